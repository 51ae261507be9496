package main

import (
	"bytes"
	"io"
	"os"
	"runtime/pprof"
	"sync"
)

// recentBytes bounds the log lines that are kept for a debug bundle.
const recentBytes = 256 << 10

// recentLog keeps the newest log lines. The zero value is ready; it is safe
// for concurrent use.
type recentLog struct {
	mu    sync.Mutex
	lines [][]byte
	size  int
}

// Write takes one line, as log handlers write them.
func (r *recentLog) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, append([]byte(nil), p...))
	r.size += len(p)
	for r.size > recentBytes && len(r.lines) > 1 {
		r.size -= len(r.lines[0])
		r.lines[0] = nil
		r.lines = r.lines[1:]
	}
	return len(p), nil
}

// print writes the lines, oldest first.
func (r *recentLog) print(w io.Writer) error {
	r.mu.Lock()
	lines := append([][]byte(nil), r.lines...)
	r.mu.Unlock()
	for _, line := range lines {
		if _, err := w.Write(line); err != nil {
			return err
		}
	}
	return nil
}

// shownConfig is the configuration in force, without its secrets.
func (s *site) shownConfig() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config.Redacted()
}

// debugTexts are what the process tells to people who look for a fault.
func (s *site) debugTexts() map[string]func(io.Writer) error {
	texts := map[string]func(io.Writer) error{
		"goroutines": func(w io.Writer) error { return pprof.Lookup("goroutine").WriteTo(w, 1) },
	}
	if r := s.options.Recent; r != nil {
		scrub := newScrubber(os.Environ())
		texts["log"] = func(w io.Writer) error {
			var b bytes.Buffer
			if err := r.print(&b); err != nil {
				return err
			}
			_, err := w.Write(scrub.scrub(b.Bytes()))
			return err
		}
	}
	return texts
}
