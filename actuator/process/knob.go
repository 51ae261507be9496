package process

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// The files of a supervised directory.
const (
	// MaxFile is the file with the number of workers that may run, or "max".
	MaxFile = "workers.max"
	// CurrentFile is the file with the [State] of the supervisor.
	CurrentFile = "workers.current"
)

// MaxWorkers is the largest number of workers.
const MaxWorkers = 1 << 16

// Config names the service.
type Config struct {
	// Root is the declared directory; trimtab never writes outside it.
	Root string `json:"root"`
	// Dir is the supervisor's directory, relative to Root; "." is Root. trimtab does not follow
	// links out of it.
	Dir string `json:"dir"`
}

// Workers is the number of workers of one service. It is an [actuator.Knob]. It opens the root for
// each use, since the directory may come and go with the service.
type Workers struct {
	config Config
}

// Traits returns the optional abilities of this knob.
func (w *Workers) Traits() actuator.Traits {
	return actuator.Traits{Location: w.Location}
}

// Location returns the supervisor's directory, without links.
func (w *Workers) Location() (string, error) {
	dir, err := filepath.EvalSymlinks(filepath.Join(w.config.Root, w.config.Dir))
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", fmt.Errorf("find %s: %w", w, err)
	}
	return dir, nil
}

// Open checks the path only. Probe checks whether the directory and a supervisor exist, which may
// come and go.
func Open(c Config) (*Workers, error) {
	c.Dir = path.Clean(c.Dir)
	if path.IsAbs(c.Dir) || strings.HasPrefix(c.Dir, "..") {
		return nil, trimtab.Invalidf("workers in %q: want a path relative to the root %s", c.Dir, c.Root)
	}
	if c.Root == "" {
		return nil, trimtab.Invalidf("workers in %q: no root", c.Dir)
	}
	return &Workers{config: c}, nil
}

// within opens the root and calls do with it.
func (w *Workers) within(do func(*hostfs.Root) error) error {
	root, err := hostfs.OpenRoot(w.config.Root)
	if err != nil {
		return fmt.Errorf("open %s: %w", w, err)
	}
	defer root.Close()
	return do(root)
}

// inside opens the directory and calls do with it.
func (w *Workers) inside(do func(*hostfs.Root) error) error {
	return w.within(func(r *hostfs.Root) error {
		dir, err := r.Sub(w.config.Dir)
		if err != nil {
			return fmt.Errorf("open %s: %w", w, err)
		}
		defer dir.Close()
		return do(dir)
	})
}

// read returns the content of a file of the directory.
func (w *Workers) read(name string) (text string, err error) {
	err = w.within(func(r *hostfs.Root) error {
		text, err = r.ReadIn(w.config.Dir, name)
		return err
	})
	return text, err
}

// kind is the format name in what Undo returns.
const kind = "process-workers/1"

// Reopen opens the knob that undo describes; see [actuator.Reopen].
func Reopen(undo []byte) (*Workers, error) { return actuator.Reopen(kind, undo, Open) }

// Undo describes the knob for Reopen.
func (w *Workers) Undo() []byte { return actuator.UndoOf(kind, w.config) }

// String names the directory.
func (w *Workers) String() string {
	return "workers of " + filepath.Join(w.config.Root, w.config.Dir)
}

// Resource returns "workers".
func (w *Workers) Resource() string { return trimtab.Workers }

// Close does nothing: no file is kept open.
func (w *Workers) Close() error { return nil }

// Probe returns an error unless a supervisor serves the directory.
func (w *Workers) Probe(ctx context.Context) error {
	if _, err := w.Read(ctx); err != nil {
		return err
	}
	s, err := w.State()
	if err != nil {
		return err
	}
	if !s.Alive() {
		return fmt.Errorf("probe %s: the supervisor, process %d, is gone: %w", w, s.Supervisor, os.ErrNotExist)
	}
	return nil
}

// MayWrite returns an error if this process may not write the number.
func (w *Workers) MayWrite(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("probe %s: %w", w, err)
	}
	return w.inside(func(r *hostfs.Root) error { return r.Writable(MaxFile) })
}

// State returns the supervisor's last report.
func (w *Workers) State() (State, error) {
	b, err := w.read(CurrentFile)
	if err != nil {
		return State{}, err
	}
	return ParseState([]byte(b))
}

// Read returns the number set. Workers that were told to stop may still be finishing.
func (w *Workers) Read(ctx context.Context) (trimtab.Amount, error) {
	if err := ctx.Err(); err != nil {
		return trimtab.Amount{}, fmt.Errorf("read %s: %w", w, err)
	}
	b, err := w.read(MaxFile)
	if err != nil {
		return trimtab.Amount{}, err
	}
	return ParseMax(b)
}

// Nearest rounds to whole processes.
func (w *Workers) Nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		return a
	}
	return trimtab.Units(min(math.Round(a.Value), MaxWorkers))
}

// Write sets the number.
func (w *Workers) Write(ctx context.Context, a trimtab.Amount) error {
	if err := errors.Join(ctx.Err(), a.Validate()); err != nil {
		return fmt.Errorf("write %s: %w", w, err)
	}
	return w.inside(func(r *hostfs.Root) error {
		return r.Write(MaxFile, formatMax(w.Nearest(a)))
	})
}

// ParseMax reads the first line of workers.max.
func ParseMax(s string) (trimtab.Amount, error) {
	line, _, _ := strings.Cut(s, "\n")
	if line = strings.TrimSpace(line); line == "max" {
		return trimtab.Unlimited(), nil
	}
	n, err := strconv.Atoi(line)
	if err != nil || n < 0 || n > MaxWorkers {
		return trimtab.Amount{}, trimtab.Invalidf("%s %.40q: want 0 to %d, or max", MaxFile, s, MaxWorkers)
	}
	return trimtab.Units(float64(n)), nil
}

func formatMax(a trimtab.Amount) string {
	if a.Unlimited {
		return "max\n"
	}
	return strconv.Itoa(int(a.Value)) + "\n"
}
