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

// Find lists the directories beneath c.Root that match c.Dir, a path with one *,
// and that a supervisor serves, for an [actuator.Finder]. Where more than
// hostfs.MaxInstances directories match, supervised or not, it lists none and its
// error says how many there are. A root that is not there yet has none.
//
// One is another where its directory is another. A supervisor that was started
// again in the same directory goes on with the number that stands there, so the
// baseline of that number still is its own.
func Find(ctx context.Context, c Config) ([]actuator.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("find instances of %s: %w", c.Dir, err)
	}
	root, err := hostfs.OpenRoot(c.Root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find instances of %s: %w", c.Dir, err)
	}
	defer root.Close()
	found, err := root.Instances(c.Dir)
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

// supervised reports whether a supervisor serves a directory. What the file system
// will not tell does not make an instance go: its knob says why it cannot be read.
func supervised(root *hostfs.Root, name string) bool {
	dir, err := root.Sub(name)
	if err != nil {
		return unknown(err)
	}
	defer dir.Close()
	if _, err := dir.Read(MaxFile); err != nil {
		return unknown(err)
	}
	text, err := dir.Read(CurrentFile)
	if err != nil {
		return unknown(err)
	}
	state, err := ParseState([]byte(text))
	return err == nil && state.Alive()
}

// unknown tells an error that says nothing of a directory from one that says that
// it is no supervisor's: without its files, or with links in their place.
func unknown(err error) bool {
	return !errors.Is(err, os.ErrNotExist) && !errors.Is(err, trimtab.ErrRefused)
}

// Instance returns the configuration of one instance of a pattern.
func (c Config) Instance(name string) Config {
	c.Dir = strings.Replace(c.Dir, "*", name, 1)
	return c
}

// Split parts an absolute directory with a * in it into the root, which ends
// before the part with the *, and the pattern beneath.
func Split(dir string) Config {
	before, _, ok := strings.Cut(dir, "*")
	if !ok {
		return Config{Root: dir, Dir: "."}
	}
	root, _ := path.Split(before)
	return Config{Root: path.Clean(root), Dir: strings.TrimPrefix(dir, root)}
}
