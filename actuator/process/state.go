package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
)

// State is what a supervisor says of itself in workers.current.
type State struct {
	// Supervisor is its process id.
	Supervisor int `json:"supervisor"`
	// Want is how many workers it aims at.
	Want    int      `json:"want"`
	Workers []Worker `json:"workers"`
	// Problem is empty, or why Want is not what workers.max asks for.
	Problem string `json:"problem,omitempty"`
}

// Worker is one worker process.
type Worker struct {
	Index int `json:"index"`
	// PID is 0 while the worker waits to be started again.
	PID int `json:"pid"`
	// Stopping tells that it was asked to end.
	Stopping bool `json:"stopping,omitempty"`
	// Crashes counts its unwanted ends in a row.
	Crashes int       `json:"crashes,omitempty"`
	Since   time.Time `json:"since,omitzero"`
}

// Running counts the workers that have a process and were not told to stop.
func (s State) Running() int {
	n := 0
	for _, w := range s.Workers {
		if w.PID > 0 && !w.Stopping {
			n++
		}
	}
	return n
}

// ParseState reads workers.current; the error is trimtab.ErrInvalid.
func ParseState(b []byte) (State, error) {
	var s State
	if err := json.Unmarshal(b, &s); err != nil {
		return State{}, fmt.Errorf("read %s: %w: %w", CurrentFile, trimtab.ErrInvalid, err)
	}
	if s.Supervisor < 1 || s.Want < 0 || s.Want > MaxWorkers || len(s.Workers) > MaxWorkers {
		return State{}, trimtab.Invalidf("read %s: supervisor %d wants %d workers", CurrentFile, s.Supervisor, s.Want)
	}
	for _, w := range s.Workers {
		if w.Index < 0 || w.PID < 0 || w.Crashes < 0 {
			return State{}, trimtab.Invalidf("read %s: worker %d with process %d", CurrentFile, w.Index, w.PID)
		}
	}
	return s, nil
}

// write replaces the file in dir as a whole.
func (s State) write(dir string) error {
	b, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("write %s: %w", CurrentFile, err)
	}
	temporary := filepath.Join(dir, CurrentFile+".new")
	if err := os.WriteFile(temporary, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write %s: %w", CurrentFile, err)
	}
	return os.Rename(temporary, filepath.Join(dir, CurrentFile))
}

// alive reports whether a process has this id.
func alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
