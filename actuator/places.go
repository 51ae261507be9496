package actuator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trimtab/trimtab/internal/hostfs"
)

// Places tells, of each place that was locked in a directory of locks for one of some
// resources, whether somebody has it: a process that lives, or the journal of one that
// died, which still has a baseline to restore. A kind whose knobs leave something behind
// asks before it removes what nobody has.
func Places(ctx context.Context, locks string, resources ...string) (map[string]bool, error) {
	entries, err := os.ReadDir(locks)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list locks of knobs: %w", err)
	}
	places := map[string]bool{}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("list locks of knobs: %w", err)
		}
		path := filepath.Join(locks, e.Name())
		mark := readMark(path)
		if !strings.HasSuffix(e.Name(), ".lock") || !slices.Contains(resources, mark.Resource) || mark.Place == "" {
			continue
		}
		places[mark.Place] = places[mark.Place] || hostfs.Taken(ctx, path) || mark.pending()
	}
	return places, nil
}

// journalsOf tells of which journals the owner, dead or alive, turned something last that
// is still there.
func journalsOf(locks string) (map[string]bool, error) {
	entries, err := os.ReadDir(locks)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("list locks of knobs: %w", err)
	}
	journals := map[string]bool{}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lock") {
			continue
		}
		mark := readMark(filepath.Join(locks, e.Name()))
		if mark.Dir == "" || journals[mark.Dir] {
			continue
		}
		_, err := os.Stat(mark.Place)
		journals[mark.Dir] = !errors.Is(err, os.ErrNotExist)
	}
	return journals, nil
}

// pending reports whether the journal of an owner has a baseline of its knob. One that is
// there and cannot be read may have one.
func (o *owner) pending() bool {
	s, err := readDir(o.Dir)
	if err != nil {
		return o.Dir != "" && !errors.Is(err, os.ErrNotExist)
	}
	return !s.whole() || slices.ContainsFunc(s.entries, func(e *entry) bool {
		return e.Resource == o.Resource && e.Workload == o.Workload && e.Instance == o.Instance
	})
}

// maxTurned bounds what Turned lists.
const maxTurned = 100

// Turned lists what the actuator with a journal in dir turned last, by its marks in a
// directory of locks: for people, where the journal is lost. It may be at its baseline.
func Turned(locks, dir string) (all []string) {
	entries, err := os.ReadDir(locks)
	if err != nil {
		return nil
	}
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	for _, e := range entries {
		if mark := readMark(filepath.Join(locks, e.Name())); mark.Dir == dir && mark.Place != "" && len(all) < maxTurned {
			all = append(all, fmt.Sprintf("%s of %s: %s", mark.Resource, mark.Name(), mark.Place))
		}
	}
	return all
}
