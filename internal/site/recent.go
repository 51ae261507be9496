package site

import (
	"bytes"
	"io"
	"os"
	"runtime/pprof"
	"sync"

	"github.com/trimtab/trimtab/internal/scrub"
)

// recentBytes is the size of the log lines kept for a debug bundle.
const recentBytes = 256 << 10

// RecentLog keeps the newest log lines. The zero value is ready; it is safe for concurrent use.
type RecentLog struct {
	mu    sync.Mutex
	lines [][]byte
	size  int
}

// Write adds one line, as log handlers write them.
func (r *RecentLog) Write(p []byte) (int, error) {
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
func (r *RecentLog) print(w io.Writer) error {
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

// texts returns the texts of a debug bundle; with a nil log, all except its lines.
func (r *RecentLog) texts() map[string]func(io.Writer) error {
	texts := map[string]func(io.Writer) error{
		"goroutines": func(w io.Writer) error { return pprof.Lookup("goroutine").WriteTo(w, 1) },
	}
	if r != nil {
		secrets := scrub.New(os.Environ())
		texts["log"] = func(w io.Writer) error {
			var b bytes.Buffer
			if err := r.print(&b); err != nil {
				return err
			}
			_, err := w.Write(secrets.Bytes(b.Bytes()))
			return err
		}
	}
	return texts
}
