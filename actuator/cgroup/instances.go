package cgroup

import (
	"context"
	"fmt"
	"strings"

	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Find lists the groups beneath c.Root that match c.Path, a path with one *, for
// an [actuator.Finder]: at most hostfs.MaxInstances, else none and an error that
// says how many there are.
func Find(ctx context.Context, c Config) ([]actuator.Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("find instances of %s: %w", c.Path, err)
	}
	// Opened for each look: the root may be mounted anew.
	root, err := hostfs.OpenRoot(c.Root)
	if err != nil {
		return nil, fmt.Errorf("find instances of %s: %w", c.Path, err)
	}
	defer root.Close()
	found, err := root.Instances(c.Path)
	if err != nil {
		return nil, err
	}
	all := make([]actuator.Instance, len(found))
	for i, f := range found {
		all[i] = actuator.Instance{Name: f.Name, ID: f.ID}
	}
	return all, nil
}

// Instance returns the configuration of one instance of a pattern.
func (c Config) Instance(name string) Config {
	c.Path = strings.Replace(c.Path, "*", name, 1)
	return c
}
