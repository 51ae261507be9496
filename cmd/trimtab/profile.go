//go:build profile

package main

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/pprof"
	"syscall"
)

// withProfile makes a build with the tag profile write cpu.pprof and heap.pprof, of the time
// between SIGUSR1 and SIGUSR2, to the directory in TRIMTAB_PROFILE. No release has the tag;
// `lab/bench/small --profile` builds one.
func withProfile() {
	dir := os.Getenv("TRIMTAB_PROFILE")
	if dir == "" {
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1, syscall.SIGUSR2)
	go func() {
		for s := range signals {
			if err := profile(dir, s == syscall.SIGUSR1); err != nil {
				fmt.Fprintln(os.Stderr, "profile:", err)
			}
		}
	}()
}

// profile starts the CPU profile, or ends it and writes the heap profile.
func profile(dir string, start bool) error {
	name := "heap.pprof"
	if start {
		name = "cpu.pprof"
	}
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if start {
		return pprof.StartCPUProfile(f) // which writes f until the end
	}
	pprof.StopCPUProfile()
	if err := pprof.Lookup("heap").WriteTo(f, 0); err != nil {
		return err
	}
	return f.Close()
}
