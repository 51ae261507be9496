package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Kind describes this kind of knob. A location is declared as the absolute path of the supervisor's
// directory. The capacity for workers is not measured.
func Kind() actuator.Kind {
	return actuator.Kind{
		Name: "process", Resources: []string{trimtab.Workers},
		Probe: func(declared actuator.Location) (actuator.Location, error) { return split(declared.Path), nil },
		Find:  find,
		Open: func(at actuator.Location, _ string) (actuator.Knob, error) {
			return actuator.OrNil(Open(Config{Root: at.Root, Dir: at.Path}))
		},
		Reopen: actuator.Reopens(Reopen),
	}
}

// split splits an absolute directory into a root and a relative path. With a * in it, the root ends
// before the first element with a *.
func split(dir string) actuator.Location {
	before, _, several := strings.Cut(dir, "*")
	if !several {
		return actuator.Location{Root: dir, Path: "."}
	}
	root, _ := path.Split(before)
	return actuator.Location{Root: path.Clean(root), Path: strings.TrimPrefix(dir, root)}
}

// find lists the directories that match and that a supervisor serves. Where more
// than hostfs.MaxInstances directories match, supervised or not, it lists none and
// its error says how many there are. A root that is not there yet has none.
//
// A directory that was made again is a new instance. A supervisor that was started again in the
// same directory continues with the number in the file, so it is the same instance, with the same
// baseline.
func find(ctx context.Context, at actuator.Location) ([]actuator.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("find instances of %s: %w", at.Path, err)
	}
	root, err := hostfs.OpenRoot(at.Root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find instances of %s: %w", at.Path, err)
	}
	defer root.Close()
	found, err := root.Instances(at.Path)
	if err != nil {
		return nil, err
	}
	var all []actuator.Instance
	for _, f := range found {
		if supervised(root, f.Path) {
			all = append(all, actuator.Instance{Name: f.Name, ID: f.ID})
		}
	}
	return all, nil
}

// supervised reports whether a supervisor serves a directory. An error of the file system counts
// as yes: the knob then says why it cannot be read.
func supervised(root *hostfs.Root, dir string) bool {
	if _, err := root.ReadIn(dir, MaxFile); err != nil {
		return unknown(err)
	}
	text, err := root.ReadIn(dir, CurrentFile)
	if err != nil {
		return unknown(err)
	}
	state, err := ParseState([]byte(text))
	return err == nil && state.Alive()
}

// unknown reports whether an error leaves open if a directory has a supervisor. It is false if the
// supervisor's files are missing, or are links.
func unknown(err error) bool {
	return !errors.Is(err, os.ErrNotExist) && !errors.Is(err, trimtab.ErrRefused)
}
