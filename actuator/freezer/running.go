package freezer

import (
	"context"
	"errors"
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// Running is the switch of a group's processes between running, 1, and frozen, 0.
type Running struct {
	group
	// freezing says that this knob was the last to set 0.
	freezing bool
}

// Traits returns the optional abilities of this knob.
func (k *Running) Traits() actuator.Traits {
	return actuator.Traits{Location: k.Location, Effective: k.Effective}
}

// OpenRunning opens the root. It does not check that the group exists; Probe does.
func OpenRunning(c Config) (*Running, error) {
	g, err := openGroup(c)
	if err != nil {
		return nil, err
	}
	return &Running{group: g}, nil
}

// runningKind and aliveKind are the format names in what Undo returns.
const (
	runningKind = "freezer-running/1"
	aliveKind   = "freezer-alive/1"
)

// ReopenRunning opens the knob that undo describes; see [actuator.Reopen].
func ReopenRunning(undo []byte) (*Running, error) {
	return actuator.Reopen(runningKind, undo, OpenRunning)
}

// Undo describes the knob for ReopenRunning.
func (k *Running) Undo() []byte { return actuator.UndoOf(runningKind, k.Config()) }

// String names version and path.
func (k *Running) String() string {
	return fmt.Sprintf("cgroup v%d freezer %s", k.version(), k.Group())
}

// Resource returns "running".
func (k *Running) Resource() string { return trimtab.Running }

// Probe returns an error unless the group exists and can be frozen.
func (k *Running) Probe(ctx context.Context) error {
	return k.Files.Probe(ctx, k.maker(), k.file())
}

// MayWrite returns an error if another manager owns the group, or this process may not freeze it.
func (k *Running) MayWrite(ctx context.Context) error { return k.Files.MayWrite(ctx, k.file()) }

// Read returns 1 if the group was last set to run, else 0.
func (k *Running) Read(ctx context.Context) (trimtab.Amount, error) {
	return k.read(ctx, k.frozenBySelf)
}

// Effective returns 0 once all processes are frozen. If this knob froze the group, it requests
// freezing again for processes that are not frozen.
func (k *Running) Effective(ctx context.Context) (trimtab.Amount, error) {
	if k.freezing {
		return k.read(ctx, k.refrozen)
	}
	return k.read(ctx, k.frozen)
}

func (k *Running) read(ctx context.Context, frozen func() (bool, error)) (trimtab.Amount, error) {
	on, err := false, ctx.Err()
	if err == nil {
		on, err = frozen()
	}
	if err != nil {
		return trimtab.Amount{}, fmt.Errorf("read freezer of cgroup %s: %w", k.Group(), err)
	}
	return units(!on), nil
}

// Nearest returns 1 for amounts of at least 0.5 and for unlimited, else 0.
func (k *Running) Nearest(a trimtab.Amount) trimtab.Amount { return nearest(a) }

// Write freezes or thaws the group. It does not wait until all processes are frozen.
func (k *Running) Write(ctx context.Context, a trimtab.Amount) error {
	err := errors.Join(ctx.Err(), a.Validate())
	if err == nil {
		err = k.Owned()
	}
	freeze := nearest(a).Value == 0
	if err == nil && freeze {
		err = k.spared()
	}
	if err == nil {
		err = k.freeze(freeze)
	}
	if err != nil {
		return fmt.Errorf("write freezer of cgroup %s: %w", k.Group(), err)
	}
	k.freezing = freeze
	return nil
}
