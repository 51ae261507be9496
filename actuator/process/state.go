package process

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
)

// State is the supervisor's report in workers.current.
type State struct {
	// Supervisor is its process id.
	Supervisor int `json:"supervisor"`
	// Start is when that process was started, in clock ticks since the boot, to distinguish it from
	// a later one with the same ID; 0: unknown.
	Start uint64 `json:"start,omitempty"`
	// Want is the number of workers that it keeps running.
	Want    int      `json:"want"`
	Workers []Worker `json:"workers"`
	// Problem says why Want is not the number in workers.max; "": it is.
	Problem string `json:"problem,omitempty"`
}

// Worker is one worker process.
type Worker struct {
	Index int `json:"index"`
	// PID is 0 while the worker waits to be started again.
	PID int `json:"pid"`
	// Stopping says that the worker was told to end.
	Stopping bool `json:"stopping,omitempty"`
	// Crashes counts its crashes in a row.
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

// write replaces the file in dir atomically.
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

// Alive reports whether the supervisor that wrote the state still runs.
func (s State) Alive() bool {
	if err := syscall.Kill(s.Supervisor, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	start, ended, err := started(s.Supervisor)
	// If /proc may not be read, the process ID alone decides.
	return err != nil || !ended && (s.Start == 0 || s.Start == start)
}

// started returns when a process was started, in clock ticks since the boot, and whether it is a
// zombie. Source: proc_pid_stat(5), fields 3 and 22.
func started(pid int) (ticks uint64, ended bool, err error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, false, err
	}
	// The process name before this may contain blanks and parentheses.
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 {
		return 0, false, trimtab.Invalidf("process %d: %.60q", pid, b)
	}
	ticks, err = strconv.ParseUint(string(fields[19]), 10, 64)
	return ticks, fields[0][0] == 'Z' || fields[0][0] == 'X', err
}
