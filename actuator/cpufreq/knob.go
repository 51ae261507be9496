package cpufreq

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// Config names the group whose CPUs are limited.
type Config struct {
	// Root is the cgroup hierarchy; Path is the group, relative to it.
	Root string `json:"root"`
	Path string `json:"path"`
	// Force also changes policies that have CPUs outside of the group, but never one that
	// another workload changes.
	Force bool `json:"force,omitempty"`
	// Neighbours are the other knobs of this process; nil: there are none.
	Neighbours *Neighbours `json:"-"`
	// open opens the directory of policies; nil: the kernel's.
	open func() (files, error)
}

// Frequency is the ceiling of the clock of one group's CPUs. It is an
// [actuator.Knob].
type Frequency struct {
	config Config
	turned
	// next has the ceilings that Undo read last, of policies that a write is about to change.
	next turned
	// seen has the policies of the group at the last read, for Nearest.
	seen []*policy
}

// turned records the state before this knob changed it.
type turned struct {
	// Was has the former ceiling of each policy, in kHz; 0: the highest that the policy allows.
	Was map[string]int64 `json:"was,omitempty"`
	// Base is the result of Read at that time.
	Base trimtab.Amount `json:"base"`
}

// over returns u, with entries that it lacks taken from t, the record in the journal.
func (t turned) over(u turned) turned {
	if t.Was == nil {
		return u
	}
	for name := range u.Was {
		if v, ok := t.Was[name]; ok {
			u.Was[name] = v
		}
	}
	u.Base = t.Base
	return u
}

// Traits returns the optional abilities of this knob.
func (k *Frequency) Traits() actuator.Traits {
	return actuator.Traits{Location: k.Location, Effective: k.Effective, Recall: k.Recall}
}

// Open checks the path only; Probe says whether the group and its policies exist.
func Open(c Config) (*Frequency, error) {
	if c.Path = path.Clean(c.Path); c.Path == "." || path.IsAbs(c.Path) || strings.HasPrefix(c.Path, "..") {
		return nil, trimtab.Invalidf("cgroup %q: want a path relative to the root %s", c.Path, c.Root)
	}
	if c.open == nil {
		c.open = func() (files, error) { return openFolder(system) }
	}
	if c.Neighbours == nil {
		c.Neighbours = new(Neighbours)
	}
	k := &Frequency{config: c}
	c.Neighbours.add(k)
	return k, nil
}

// kind is in every value that Undo returns, so that Reopen recognises it.
const kind = "cpufreq/1"

type undo struct {
	Config
	turned
}

// Reopen opens the knob that undo describes. The error is trimtab.ErrUnsupported if undo belongs to
// another kind of knob.
func Reopen(b []byte) (*Frequency, error) { return reopen(b, nil) }

func reopen(b []byte, open func() (files, error)) (*Frequency, error) {
	u, err := readUndo(b)
	if err != nil {
		return nil, err
	}
	u.open = open
	k, err := Open(u.Config)
	if err == nil {
		k.turned = u.turned
	}
	return k, err
}

func readUndo(b []byte) (undo, error) {
	u, err := actuator.ReadUndo[undo](kind, b)
	if err != nil {
		return undo{}, err
	}
	for name, v := range u.Was {
		if filepath.Base(name) != name || !strings.HasPrefix(name, "policy") || v < 0 || v > maxFrequency {
			return undo{}, trimtab.Invalidf("reopen frequency: policy %.40q with %d kHz", name, v)
		}
	}
	return u, u.Base.Validate()
}

// Undo describes the knob for Reopen. It has the former ceilings of all policies that the
// knob changed, and those of the policies that the next write would change.
func (k *Frequency) Undo() []byte {
	k.next = k.turned
	if all, mine, err := k.look(); err == nil {
		k.next = k.noted(all, mine)
	}
	return actuator.UndoOf(kind, undo{k.config, k.next})
}

// Recall restores the record of changes that an earlier process made.
func (k *Frequency) Recall(b []byte) error {
	u, err := readUndo(b)
	if err == nil {
		k.turned = u.turned
	}
	return err
}

// noted returns the former ceilings of the policies that were changed, and the present
// ones of the group's other policies.
func (k *Frequency) noted(all map[string]*policy, mine []string) turned {
	t := turned{Was: maps.Clone(k.Was), Base: k.Base}
	if t.Was == nil {
		t.Was, t.Base = map[string]int64{}, amountOf(pick(all, mine))
	}
	for _, name := range mine {
		p := all[name]
		if _, ok := t.Was[name]; ok {
			continue
		}
		t.Was[name] = p.ceiling
		if p.ceiling == p.most {
			t.Was[name] = 0
		}
	}
	return t
}

func pick(all map[string]*policy, names []string) (out []*policy) {
	for _, name := range names {
		if p := all[name]; p != nil {
			out = append(out, p)
		}
	}
	return out
}

// String names the group.
func (k *Frequency) String() string { return "cpufreq of cgroup " + k.config.Path }

// Resource returns "frequency".
func (k *Frequency) Resource() string { return trimtab.Frequency }

// Location returns the group's directory.
func (k *Frequency) Location() (string, error) {
	dir, err := filepath.EvalSymlinks(filepath.Join(k.config.Root, k.config.Path))
	if err == nil {
		dir, err = filepath.Abs(dir)
	}
	if err != nil {
		return "", fmt.Errorf("find %s: %w", k, err)
	}
	return dir, nil
}

// Close removes the knob from its Neighbours.
func (k *Frequency) Close() error {
	k.config.Neighbours.remove(k)
	return nil
}

// look reads all policies, and names those of the group.
func (k *Frequency) look() (all map[string]*policy, mine []string, err error) {
	f, err := k.config.open()
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", k, err)
	}
	defer func() { _ = f.Close() }() // it was only read, or each write has returned
	return k.lookIn(f)
}

// lookIn does the same in an open directory. Of policies that the group does not have and the knob
// did not change, it reads only the CPUs, and only if the set of online CPUs changed.
func (k *Frequency) lookIn(f files) (all map[string]*policy, mine []string, err error) {
	shapes, err := k.config.Neighbours.shapes(f)
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", k, err)
	}
	cpus, missing := groupCPUs(k.config.Root, k.config.Path)
	of := func(p *policy) bool {
		return slices.ContainsFunc(p.cpus, func(c int) bool { _, ok := slices.BinarySearch(cpus, c); return ok })
	}
	all, err = shapes.read(f, func(p *policy) bool { _, turned := k.Was[p.name]; return turned || of(p) })
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", k, err)
	}
	if missing != nil {
		return all, nil, missing
	}
	for _, name := range slices.SortedFunc(maps.Keys(all), byNumber) {
		if of(all[name]) {
			mine = append(mine, name)
		}
	}
	k.seen = pick(all, mine)
	k.config.Neighbours.set(k, mine)
	if len(mine) == 0 {
		return all, nil, fmt.Errorf("read %s: none of its CPUs has a policy: %w", k, os.ErrNotExist)
	}
	return all, mine, nil
}

// Probe returns an error unless the group exists and its CPUs have policies.
func (k *Frequency) Probe(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("probe %s: %w", k, err)
	}
	_, _, err := k.look()
	return err
}

// MayWrite returns nil if the policies have only CPUs of the group and this process may
// write them.
func (k *Frequency) MayWrite(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("probe %s: %w", k, err)
	}
	f, err := k.config.open()
	if err != nil {
		return fmt.Errorf("probe %s: %w", k, err)
	}
	defer func() { _ = f.Close() }() // it was only read, or each write has returned
	all, mine, err := k.lookIn(f)
	if err == nil {
		err = k.refuse(all, mine)
	}
	for _, name := range mine {
		err = errors.Join(err, f.Writable(path.Join(name, "scaling_max_freq")))
	}
	return err
}

// refuse returns an error that is trimtab.ErrRefused, with the reason, if this group must not
// change the policies.
func (k *Frequency) refuse(all map[string]*policy, mine []string) error {
	if other, name := k.config.Neighbours.shares(k, mine); other != "" {
		return fmt.Errorf("turn %s: %s, whose CPUs have one clock, is also of cgroup %s: give each a cpuset of whole policies: %w", k, name, other, trimtab.ErrRefused)
	}
	if k.config.Force {
		return nil
	}
	cpus, err := groupCPUs(k.config.Root, k.config.Path)
	if err != nil {
		return err
	}
	for _, p := range pick(all, mine) {
		for _, c := range p.cpus {
			if _, ok := slices.BinarySearch(cpus, c); !ok {
				return fmt.Errorf("turn %s: %s is also that of CPU %d, which is not in the cpuset of the group: %w", k, p.name, c, trimtab.ErrRefused)
			}
		}
	}
	for _, p := range all {
		if !p.offline && !slices.Contains(mine, p.name) {
			return nil
		}
	}
	return fmt.Errorf("turn %s: the group runs on all CPUs of the host, and everything else would slow down with it: give it a cpuset of its own, or set force: %w", k, trimtab.ErrRefused)
}

// Read returns the highest ceiling of the policies that the knob changed; before its first
// write, of the policies that the group has.
func (k *Frequency) Read(ctx context.Context) (trimtab.Amount, error) {
	if err := ctx.Err(); err != nil {
		return trimtab.Amount{}, fmt.Errorf("read %s: %w", k, err)
	}
	all, mine, err := k.look()
	if k.Was == nil || all == nil {
		if err != nil {
			return trimtab.Amount{}, err
		}
		return amountOf(pick(all, mine)), nil
	}
	// The group may be gone; its policies still have to be restored.
	there := pick(all, slices.Collect(maps.Keys(k.Was)))
	if len(there) == 0 {
		return trimtab.Amount{}, fmt.Errorf("read %s: all its policies are gone: %w", k, os.ErrNotExist)
	}
	for _, p := range there {
		if p.offline {
			return trimtab.Amount{}, fmt.Errorf("read %s: all CPUs of %s are offline, and it keeps its ceiling until they are back", k, p.name)
		}
	}
	changed := slices.DeleteFunc(slices.Clone(there), func(p *policy) bool { return p.ceiling == k.before(p) })
	switch {
	case len(changed) == 0:
		return k.Base, nil
	case oneWrite(there):
		return amountOf(there), nil
	}
	// A process may have died between two policies: if one has another ceiling than before, there
	// is something to restore.
	return amountOf(changed), nil
}

// oneWrite reports whether one value, written to all of these policies, would give the
// ceilings that they have now.
func oneWrite(all []*policy) bool {
	for _, candidate := range all {
		v := candidate.ceiling // a higher value has the same effect as the highest ceiling
		if !slices.ContainsFunc(all, func(p *policy) bool { return p.resolve(v) != p.ceiling }) {
			return true
		}
	}
	return false
}

// before returns the former ceiling of a policy that this knob changed.
func (k *Frequency) before(p *policy) int64 {
	if v := k.Was[p.name]; v > 0 {
		return p.resolve(v)
	}
	return p.most
}

// Effective returns the highest ceiling of the CPUs that the group has now; it may have
// got other CPUs since the last write.
func (k *Frequency) Effective(ctx context.Context) (trimtab.Amount, error) {
	asked, err := k.Read(ctx)
	if err != nil || k.Was == nil {
		return asked, err
	}
	all, mine, err := k.look()
	if errors.Is(err, os.ErrNotExist) && all != nil {
		return asked, nil // the group is gone
	}
	if err != nil {
		return trimtab.Amount{}, err
	}
	joined := slices.DeleteFunc(pick(all, mine), func(p *policy) bool { _, ok := k.Was[p.name]; return ok })
	if len(joined) == 0 {
		return asked, nil
	}
	if v := amountOf(joined); asked.Less(v) {
		return v, nil
	}
	return asked, nil
}

// Nearest returns the highest ceiling that the policies would have after a was written.
func (k *Frequency) Nearest(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		return a
	}
	v := kilohertz(a)
	if len(k.seen) == 0 {
		return trimtab.Units(float64(v) / 1000)
	}
	after := make([]*policy, len(k.seen))
	for i, p := range k.seen {
		after[i] = &policy{ceiling: p.resolve(v), most: p.most}
	}
	return amountOf(after)
}

// Write sets the ceiling of all policies of the group, and restores policies that it changed
// before and that the group no longer has. Writing the value from before the first write restores
// each policy's own former ceiling.
func (k *Frequency) Write(ctx context.Context, a trimtab.Amount) error {
	if err := errors.Join(ctx.Err(), a.Validate()); err != nil {
		return fmt.Errorf("write %s: %w", k, err)
	}
	f, err := k.config.open()
	if err != nil {
		return fmt.Errorf("write %s: %w", k, err)
	}
	defer func() { _ = f.Close() }() // it was only read, or each write has returned
	all, mine, err := k.lookIn(f)
	if all != nil && k.Was != nil && a.Equal(k.Base, 1e-7) {
		return k.putBack(f, all, slices.Collect(maps.Keys(k.Was)))
	}
	if err == nil {
		err = k.refuse(all, mine)
	}
	if err != nil {
		return err
	}
	next := k.noted(all, mine)
	if k.Was == nil && a.Equal(next.Base, 1e-7) {
		return nil // nothing to change
	}
	k.turned, k.next = k.next.over(next), turned{}
	if err := k.set(f, pick(all, mine), kilohertz(a)); err != nil {
		return err
	}
	left := slices.DeleteFunc(slices.Collect(maps.Keys(k.Was)), func(name string) bool { return slices.Contains(mine, name) })
	return k.putBack(f, all, left)
}

// set writes one ceiling to several policies. If one write fails, the policies written
// before it get back what they had.
func (k *Frequency) set(f files, all []*policy, v int64) error {
	for i, p := range all {
		err := write(f, p, p.resolve(v))
		if err == nil || errors.Is(err, os.ErrNotExist) || offline(err) {
			continue // its CPUs went offline meanwhile
		}
		for _, q := range all[:i] {
			err = errors.Join(err, write(f, q, q.ceiling))
		}
		return fmt.Errorf("write %s: %w", k, err)
	}
	return nil
}

func write(f files, p *policy, v int64) error {
	return f.Write(path.Join(p.name, "scaling_max_freq"), strconv.FormatInt(v, 10))
}

// putBack restores policies. One that cannot be restored now still counts as changed.
func (k *Frequency) putBack(f files, all map[string]*policy, names []string) error {
	var errs []error
	for _, name := range names {
		p := all[name]
		var err error
		switch {
		case p == nil: // the policy is gone, and its ceiling with it
		case p.offline:
			err = fmt.Errorf("all CPUs of %s are offline, and it keeps its ceiling until they are back", name)
		case p.ceiling != k.before(p):
			err = write(f, p, k.before(p))
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("put back %s: %w", k, err))
			continue
		}
		delete(k.Was, name)
	}
	if len(k.Was) == 0 {
		k.turned = turned{}
	}
	return errors.Join(errs...)
}
