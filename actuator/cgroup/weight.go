package cgroup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

const (
	// mostWeight is the largest cpu.weight; the smallest is 1.
	mostWeight = 10_000
	// leastShares and mostShares are the smallest and largest cpu.shares of version 1.
	leastShares, mostShares = 2, 262_144
	// weightOfShare is the ratio of the defaults of cpu.weight and cpu.shares, 100/1024 = 25/256.
	// With it every whole number of shares is an exact amount.
	weightOfShare = 100.0 / 1024
)

// Weight is the weight of one group's CPU time among its siblings, which counts when they want more
// than there is. Its scale is that of cpu.weight; 0 is an idle group, which the kernel runs only
// while no sibling wants a CPU.
type Weight struct{ *Files }

// Traits returns the optional abilities of this knob.
func (k *Weight) Traits() actuator.Traits {
	return actuator.Traits{Location: k.Location}
}

// OpenWeight opens the root as Open does.
func OpenWeight(c Config) (*Weight, error) {
	f, err := OpenFiles(c)
	if err != nil {
		return nil, err
	}
	return &Weight{f}, nil
}

// weightKind is the format name in what Undo returns.
const weightKind = "cgroup-weight/1"

// ReopenWeight opens the knob that undo describes; see [actuator.Reopen].
func ReopenWeight(undo []byte) (*Weight, error) {
	return actuator.Reopen(weightKind, undo, OpenWeight)
}

// Undo describes the knob for ReopenWeight.
func (k *Weight) Undo() []byte { return actuator.UndoOf(weightKind, k.config) }

// shared reports whether the group has version 1's shares.
func (k *Weight) shared() bool { return k.Version("cpu.shares") == 1 }

// idle reports whether the group is a best-effort job's and idle.
func (k *Weight) idle() bool {
	if !k.config.Idles {
		return false
	}
	text, err := k.Files.Read(idleFile)
	return err == nil && text == "1"
}

// idles reports whether a weight of 0 can make the group idle: a kernel before 5.15 has no idle
// groups.
func (k *Weight) idles() bool {
	if !k.config.Idles {
		return false
	}
	_, err := k.Files.Read(idleFile)
	return err == nil
}

// idleFile is 1 while the group is idle.
const idleFile = "cpu.idle"

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

// Probe returns an error unless the group exists and has the controller.
func (k *Weight) Probe(ctx context.Context) error {
	return k.Files.Probe(ctx, "the cpu controller", k.file())
}

// MayWrite returns an error if another manager owns the group, or this process may not write it.
func (k *Weight) MayWrite(ctx context.Context) error { return k.Files.MayWrite(ctx, k.file()) }

// Read returns the weight in force. An idle group (cpu.idle) has 0.
func (k *Weight) Read(ctx context.Context) (trimtab.Amount, error) {
	if err := ctx.Err(); err != nil {
		return trimtab.Amount{}, fmt.Errorf("read weight of cgroup %s: %w", k.config.Path, err)
	}
	if k.idle() {
		return trimtab.Units(0), nil
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
// becomes the largest. 0 is an idle group on version 2, and a best-effort job's on version 1 where
// the kernel has idle groups.
func (k *Weight) Nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		a = trimtab.Units(math.MaxInt32)
	}
	if a.Value == 0 && (!k.shared() || k.idles()) {
		return a // an idle group reads as 0
	}
	if k.shared() {
		return trimtab.Units(k.shares(a) * weightOfShare)
	}
	return trimtab.Units(math.Round(min(max(a.Value, 1), mostWeight)))
}

// shares converts a weight to cpu.shares of version 1.
func (k *Weight) shares(a trimtab.Amount) float64 {
	return math.Round(min(max(a.Value/weightOfShare, leastShares), mostShares))
}

// Write sets the weight; for a systemd unit it asks systemd.
func (k *Weight) Write(ctx context.Context, a trimtab.Amount) error {
	err := errors.Join(ctx.Err(), a.Validate())
	if err == nil {
		err = k.Owned()
	}
	if err != nil {
		return fmt.Errorf("write weight of cgroup %s: %w", k.config.Path, err)
	}
	next := k.Nearest(a)
	switch {
	case !k.shared() && k.Unit() != "":
		return k.SetUnit(ctx, "CPUWeight", uint64(next.Value)) // 0 sets CPUWeight=idle
	case next.Value == 0:
		return k.Files.Write(idleFile, "1")
	case k.idle():
		if err := k.Files.Write(idleFile, "0"); err != nil {
			return err
		}
	}
	return k.put(next)
}

// put writes a weight to the group's file, and adds to the kernel's refusal its cause.
func (k *Weight) put(a trimtab.Amount) error {
	v := a.Value
	if k.shared() {
		v = k.shares(a)
	}
	return whyWeight(k.root, k.config.Path, k.Files.Write(k.file(), strconv.FormatInt(int64(v), 10)))
}
