package actuator

import (
	"context"
	"fmt"

	"github.com/trimtab/trimtab/internal/hostfs"
)

// ProbeGroups is [Kind.Probe] of knobs that are at control groups: without a root they are
// in the hierarchy with the cpu controller.
func ProbeGroups(at Location) (_ Location, err error) {
	if at.Root == "" {
		at.Root, err = hostfs.CPUHierarchy()
	}
	return at, err
}

// FindGroups is [Kind.Find] of knobs that are at control groups. It lists those that
// match: at most hostfs.MaxInstances, else none and an error that says how many there
// are.
func FindGroups(ctx context.Context, at Location) ([]Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("find instances of %s: %w", at.Path, err)
	}
	// Opened for each look: the root may have been mounted again.
	root, err := hostfs.OpenRoot(at.Root)
	if err != nil {
		return nil, fmt.Errorf("find instances of %s: %w", at.Path, err)
	}
	defer root.Close()
	found, err := root.Instances(at.Path)
	if err != nil {
		return nil, err
	}
	all := make([]Instance, len(found))
	for i, f := range found {
		all[i] = Instance{Name: f.Name, ID: f.ID}
	}
	return all, nil
}
