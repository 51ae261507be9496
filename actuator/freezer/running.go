package freezer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// Running says whether the processes of one group run, 1, or are frozen, 0.
type Running struct {
	group
	config Config
	// freezing: it was this knob that asked for 0 last.
	freezing bool
}

// Traits returns what the knob can do beyond what every knob can.
func (k *Running) Traits() actuator.Traits {
	return actuator.Traits{Place: k.Place, Effective: k.Effective}
}

// OpenRunning opens the root. Whether the group is there is for Probe to say.
func OpenRunning(c Config) (*Running, error) {
	g, err := openGroup(c)
	if err != nil {
		return nil, err
	}
	c.Path = g.Group()
	return &Running{group: g, config: c}, nil
}

// runningKind and aliveKind mark what Undo returns.
const (
	runningKind = "freezer-running/1"
	aliveKind   = "freezer-alive/1"
)

type undo struct {
	Kind string `json:"kind"`
	Config
}

// encode describes a knob of this package.
func encode(kind string, c Config) []byte { return actuator.UndoOf(undo{kind, c}) }

// decode reads what encode wrote for a kind.
func decode(kind string, b []byte) (Config, error) {
	var u undo
	if err := json.Unmarshal(b, &u); err != nil || u.Kind != kind {
		return Config{}, fmt.Errorf("reopen freezer %.60q: %w", b, trimtab.ErrUnsupported)
	}
	return u.Config, nil
}

// ReopenRunning opens the knob that undo describes. The error is
// trimtab.ErrUnsupported when undo is another kind of knob's.
func ReopenRunning(b []byte) (*Running, error) {
	c, err := decode(runningKind, b)
	if err != nil {
		return nil, err
	}
	return OpenRunning(c)
}

// Undo describes the knob for ReopenRunning.
func (k *Running) Undo() []byte { return encode(runningKind, k.config) }

// String names version and path.
func (k *Running) String() string {
	return fmt.Sprintf("cgroup v%d freezer %s", k.version(), k.Group())
}

// Resource returns "running".
func (k *Running) Resource() string { return trimtab.Running }

// Probe says whether the group is there and can be frozen.
func (k *Running) Probe(ctx context.Context) error {
	return k.Files.Probe(ctx, k.maker(), k.file())
}

// MayWrite says whether the group is free to be frozen, and by this process.
func (k *Running) MayWrite(ctx context.Context) error { return k.Files.MayWrite(ctx, k.file()) }

// Read returns whether the group was set to run.
func (k *Running) Read(ctx context.Context) (trimtab.Amount, error) {
	return k.read(ctx, k.frozenBySelf)
}

// Effective returns 0 once all processes are frozen. Where this knob froze the group, it freezes
// again those that are not.
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

// Nearest is 1 from a half on, also without limit.
func (k *Running) Nearest(a trimtab.Amount) trimtab.Amount { return nearest(a) }

// Write freezes the group, or thaws it. It does not wait until all are.
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
