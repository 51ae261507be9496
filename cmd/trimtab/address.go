package main

import "os"

// urlFrom is the address on a command line, or that of the environment.
func urlFrom(flags map[string]string) string {
	for _, u := range []string{flags["url"], os.Getenv("TRIMTAB_URL")} {
		if u != "" {
			return u
		}
	}
	return defaultURL
}

// defaultURL is where a trimtab without configuration answers.
const defaultURL = "http://127.0.0.1:9600"
