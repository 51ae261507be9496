package main

import (
	"net/url"
	"os"
	"regexp"
	"strings"
)

// hiddenSecret stands in place of a secret, as in a shown configuration.
const hiddenSecret = "<secret>"

// secretKeys are words before a colon or equals sign that a secret follows.
const secretKeys = `(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|credentials?|private[_-]?key)`

// scrubber hides secrets in texts that leave the machine. It is the last line:
// nothing that it is given should hold any.
type scrubber struct {
	patterns []*regexp.Regexp
	// known are secrets of this process's environment, wherever they stand.
	known []string
}

// newScrubber knows the secrets among environment ("NAME=value" each).
func newScrubber(environment []string) *scrubber {
	s := &scrubber{}
	for _, p := range []string{
		// The user and password of a URL, up to the last @ of the word.
		`([a-zA-Z][a-zA-Z0-9+.-]*://)[^\s"'<>]*(@)`,
		`(?i)((?:authorization|cookie)["']?\s*[:=]\s*["']?)[^\r\n"']+`,
		`(?i)(\bbearer\s+)[^\s"',;]+`,
		`(?i)(\bbasic\s+)[A-Za-z0-9+/=]{8,}`,
		`(?i)(` + secretKeys + `\\*["']?\s*[:=]\s*\\*["'])[^"'\r\n\\]*()`,
		`(?i)(` + secretKeys + `\\*["']?\s*[:=]\s*)[^\s,;}&"'\\]+`,
		`(?s)(-----BEGIN [A-Z ]*PRIVATE KEY-----).*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
		`()\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*`,
		// Seeds of NATS keys.
		`()\bS[ACNOPUX][A-Z2-7]{50,}\b`,
	} {
		s.patterns = append(s.patterns, regexp.MustCompile(p))
	}
	secret := regexp.MustCompile(`(?i)pass|secret|token|key|credential|auth|headers|cookie`)
	for _, e := range environment {
		name, value, _ := strings.Cut(e, "=")
		if secret.MatchString(name) && len(value) >= 6 {
			s.known = append(s.known, value)
		}
		if u, err := url.Parse(value); err == nil && u.User != nil {
			if p, ok := u.User.Password(); ok && p != "" {
				s.known = append(s.known, p)
			}
		}
	}
	return s
}

// scrub returns b without secrets.
func (s *scrubber) scrub(b []byte) []byte {
	text := string(b)
	for _, k := range s.known {
		text = strings.ReplaceAll(text, k, hiddenSecret)
	}
	for _, p := range s.patterns {
		text = p.ReplaceAllString(text, "${1}"+hiddenSecret+"${2}")
	}
	return []byte(text)
}

// shownURL is an address without user and password, for messages.
func shownURL(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return string(newScrubber(nil).scrub([]byte(address)))
	}
	if u.User != nil {
		u.User = nil
		return u.String()
	}
	return address
}

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
