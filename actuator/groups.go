package actuator

import (
	"context"
	"fmt"

	"github.com/trimtab/trimtab/internal/hostfs"
)

// ProbeGroups implements [Kind.Probe] for knobs of control groups. Without a declared root it takes
// the hierarchy with the cpu controller.
func ProbeGroups(at Location) (_ Location, err error) {
	if at.Root == "" {
		at.Root, err = hostfs.CPUHierarchy()
	}
	return at, err
}

// FindGroups implements [Kind.Find] for knobs of control groups. If more than hostfs.MaxInstances
// groups match, it lists none, and the error says how many there are.
func FindGroups(ctx context.Context, at Location) ([]Instance, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("find instances of %s: %w", at.Path, err)
	}
	// It opens the root each time, since it may have been mounted again.
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
