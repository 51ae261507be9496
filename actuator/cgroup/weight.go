package cgroup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

const (
	// mostWeight is the end of cpu.weight, which begins with 1.
	mostWeight = 10_000
	// leastShares and mostShares are the ends of version 1's cpu.shares.
	leastShares, mostShares = 2, 262_144
	// weightOfShare is 100/1024, one default over the other. It is 25/256, so that an
	// amount is a whole number of shares exactly.
	weightOfShare = 100.0 / 1024
)

// Weight is the weight of one group's CPU time among its siblings, when they want more than there
// is. Its scale is that of cpu.weight.
type Weight struct{ *Files }

// Traits returns what the knob can do beyond what every knob can.
func (k *Weight) Traits() actuator.Traits {
	return actuator.Traits{Place: k.Place}
}

// OpenWeight opens the root as Open does.
func OpenWeight(c Config) (*Weight, error) {
	f, err := OpenFiles(c)
	if err != nil {
		return nil, err
	}
	return &Weight{f}, nil
}

// weightKind marks what Undo returns.
const weightKind = "cgroup-weight/1"

// ReopenWeight opens the knob that undo describes. The error is
// trimtab.ErrUnsupported when undo is another kind of knob's.
func ReopenWeight(b []byte) (*Weight, error) {
	var u undo
	if err := json.Unmarshal(b, &u); err != nil || u.Kind != weightKind {
		return nil, fmt.Errorf("reopen cgroup weight %.60q: %w", b, trimtab.ErrUnsupported)
	}
	return OpenWeight(u.Config)
}

// Undo describes the knob for ReopenWeight.
func (k *Weight) Undo() []byte { return actuator.UndoOf(undo{Kind: weightKind, Config: k.config}) }

// shared reports whether the group has version 1's shares.
func (k *Weight) shared() bool { return k.Version("cpu.shares") == 1 }

// file returns the file of the weight.
func (k *Weight) file() string {
	if k.shared() {
		return "cpu.shares"
	}
	return "cpu.weight"
}

// String names version and path.
func (k *Weight) String() string {
	return fmt.Sprintf("cgroup v%d weight %s", k.Version("cpu.shares"), k.config.Path)
}

// Resource returns "weight".
func (k *Weight) Resource() string { return trimtab.Weight }

// Probe says whether the group is there and has the controller.
func (k *Weight) Probe(ctx context.Context) error {
	return k.Files.Probe(ctx, "the cpu controller", k.file())
}

// MayWrite says whether the group is free to be written, and by this process.
func (k *Weight) MayWrite(ctx context.Context) error { return k.Files.MayWrite(ctx, k.file()) }

// Read returns the weight in force. An idle group (cpu.idle) has 0.
func (k *Weight) Read(ctx context.Context) (trimtab.Amount, error) {
	if err := ctx.Err(); err != nil {
		return trimtab.Amount{}, fmt.Errorf("read weight of cgroup %s: %w", k.config.Path, err)
	}
	name := k.file()
	text, err := k.Files.Read(name)
	if err != nil {
		return trimtab.Amount{}, err
	}
	v, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return trimtab.Amount{}, trimtab.Invalidf("%s %.40q of cgroup %s: want a number", name, text, k.config.Path)
	}
	if k.shared() {
		return trimtab.Units(float64(v) * weightOfShare), nil
	}
	return trimtab.Units(float64(v)), nil
}

// Nearest rounds to whole numbers on version 2, to whole shares on version 1. An unlimited amount
// becomes the largest. 0 is an idle group of version 2.
func (k *Weight) Nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		a = trimtab.Units(math.MaxInt32)
	}
	if k.shared() {
		return trimtab.Units(k.shares(a) * weightOfShare)
	}
	if a.Value == 0 {
		return a // as an idle group reads
	}
	return trimtab.Units(math.Round(min(max(a.Value, 1), mostWeight)))
}

// shares converts a weight to version 1.
func (k *Weight) shares(a trimtab.Amount) float64 {
	return math.Round(min(max(a.Value/weightOfShare, leastShares), mostShares))
}

// Write sets the weight, of a systemd unit through systemd.
func (k *Weight) Write(ctx context.Context, a trimtab.Amount) error {
	err := errors.Join(ctx.Err(), a.Validate())
	if err == nil {
		err = k.Owned()
	}
	if err != nil {
		return fmt.Errorf("write weight of cgroup %s: %w", k.config.Path, err)
	}
	next := k.Nearest(a)
	if k.shared() {
		return k.weighed(k.Files.Write("cpu.shares", strconv.FormatInt(int64(k.shares(next)), 10)))
	}
	if k.Unit() != "" {
		return k.SetUnit(ctx, "CPUWeight", uint64(next.Value)) // 0 is CPUWeight=idle
	}
	if next.Value == 0 {
		return k.Files.Write("cpu.idle", "1")
	}
	return k.weighed(k.Files.Write("cpu.weight", strconv.FormatInt(int64(next.Value), 10)))
}

// weighed names the cause of a weight that the kernel refused.
func (k *Weight) weighed(err error) error { return whyWeight(k.root, k.config.Path, err) }
