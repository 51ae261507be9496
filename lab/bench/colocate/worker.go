package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/trimtab/trimtab"
)

// state is what a worker keeps for itself and for the bench.
type state struct {
	// Done is the number of steps that were made.
	Done float64 `json:"done"`
	// Saved is how many of them outlive a kill.
	Saved float64 `json:"saved"`
}

// report is what a worker tells trimtab, in the file of its progress.
type report struct {
	Step  float64 `json:"step"`
	Steps float64 `json:"steps"`
	Saved float64 `json:"saved"`
}

const (
	// These lie in the worker's directory: a state each, and a report.
	doneFile, savedFile, progressFile = "done.json", "saved.json", "progress.json"
	// tellEvery is how often the state is written.
	tellEvery = 200 * time.Millisecond
	// reportEvery is how often it reports: trimtab looks every 2 s.
	reportEvery = time.Second
	// steps is how many a worker has to make: more than any run lets it.
	steps = 1e9
)

// worker is a best-effort job of our own: each step hashes a part of a buffer of
// Size bytes. Every Every it makes a checkpoint, from which it goes on after a kill.
type worker struct {
	Dir   string
	Size  int
	Every time.Duration
}

// chunk is how many bytes a step hashes.
const chunk = 64 << 10

// run works until ctx ends.
func (w *worker) run(ctx context.Context) error {
	if w.Size < chunk || w.Every <= 0 {
		return trimtab.Invalidf("work on %d bytes with checkpoints every %v", w.Size, w.Every)
	}
	var s state
	if err := read(filepath.Join(w.Dir, savedFile), &s); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	s.Done = s.Saved
	buffer, sum := make([]byte, w.Size), [sha256.Size]byte{}
	var told, reported time.Time
	saved := time.Now()
	for at := 0; ctx.Err() == nil; at = (at + chunk) % (w.Size - chunk + 1) {
		part := buffer[at : at+chunk]
		copy(part, sum[:])
		sum = sha256.Sum256(part)
		s.Done++
		now := time.Now()
		if now.Sub(saved) >= w.Every {
			s.Saved, saved = s.Done, now
			if err := write(filepath.Join(w.Dir, savedFile), s); err != nil {
				return err
			}
		}
		if now.Sub(reported) >= reportEvery {
			if err := write(filepath.Join(w.Dir, progressFile), report{s.Done, steps, s.Saved}); err != nil {
				return err
			}
			reported = now
		}
		if now.Sub(told) >= tellEvery {
			told = now
			if err := write(filepath.Join(w.Dir, doneFile), s); err != nil {
				return err
			}
		}
	}
	return nil
}

// write puts a value into the file at once: a reader sees the old or the new.
func write(file string, v any) error {
	b, err := json.Marshal(v)
	if err == nil {
		err = os.WriteFile(file+".new", b, 0o600)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	if err != nil {
		return fmt.Errorf("write progress: %w", err)
	}
	return nil
}

// read reads such a file.
func read(file string, v any) error {
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		return fmt.Errorf("read progress: %w", err)
	}
	return nil
}
