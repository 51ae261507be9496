package cpuset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
)

// Config names the group.
type Config struct {
	cgroup.Config
	// High prefers the highest-numbered cores, as for best-effort jobs.
	High bool `json:"high,omitempty"`
	// Machine has the topology of the CPUs; nil: the kernel's.
	Machine *Machine `json:"-"`
}

const (
	cpusFile = "cpuset.cpus"
	// effective1 and effective2 are the files with the CPUs in force in version 1 and 2.
	effective1, effective2 = "cpuset.effective_cpus", "cpuset.cpus.effective"
)

// Cores are the physical cores of one group.
type Cores struct {
	*cgroup.Files
	config Config
	// found is the state that the last Read returned; nil: there is none.
	found *state
	// last is the state read last, and inForce is the number of cores for a text of the
	// file with the CPUs in force; cores are counted again only if the text changed.
	last    *state
	inForce struct {
		text  string
		cores float64
	}
	// wrote is the mask that was written last; nil: none was.
	wrote Set
}

// Traits returns the optional abilities of this knob.
func (k *Cores) Traits() actuator.Traits {
	return actuator.Traits{Location: k.Location, Effective: k.Effective, Restore: k.Restore}
}

// Open opens the root only; Probe checks whether the group exists.
func Open(c Config) (*Cores, error) {
	f, err := cgroup.OpenFiles(c.Config)
	if err != nil {
		return nil, err
	}
	c.Path = f.Group()
	if c.Machine == nil {
		c.Machine = new(Machine)
	}
	return &Cores{Files: f, config: c}, nil
}

// kind is in every value that Undo returns, so that Reopen recognises it.
const kind = "cpuset-cores/1"

type undo struct {
	Config
	// CPUs is the former mask; nil: it was never read.
	CPUs *string `json:"cpus,omitempty"`
}

// reopen opens the knob that undo describes. The error is trimtab.ErrUnsupported if undo belongs to
// another kind of knob.
func reopen(b []byte, m *Machine) (*Cores, error) {
	u, err := actuator.ReadUndo[undo](kind, b)
	if err != nil {
		return nil, err
	}
	u.Machine = m
	return Open(u.Config)
}

// Undo describes the knob, with the mask that was read last.
func (k *Cores) Undo() []byte {
	u := undo{Config: k.config}
	if k.found != nil {
		text := k.found.mask.String()
		u.CPUs = &text
	}
	return actuator.UndoOf(kind, u)
}

func (k *Cores) version() int { return k.Version(effective1) }

// String names version and path.
func (k *Cores) String() string {
	return fmt.Sprintf("cgroup v%d cpuset %s", k.version(), k.config.Path)
}

// Resource returns "cores".
func (k *Cores) Resource() string { return trimtab.Cores }

// Probe returns nil if the group exists and has the controller, and the kernel says which
// CPUs form a core.
func (k *Cores) Probe(ctx context.Context) error {
	if err := k.Files.Probe(ctx, "the cpuset controller", cpusFile); err != nil {
		return err
	}
	if _, err := k.look(); err != nil {
		return fmt.Errorf("probe cpuset of cgroup %s: %w", k.config.Path, err)
	}
	return nil
}

// MayWrite returns nil if this process may write and no other program manages the group.
func (k *Cores) MayWrite(ctx context.Context) error {
	if err := k.Files.MayWrite(ctx, cpusFile); err != nil {
		return err
	}
	s, err := k.look()
	if err == nil {
		err = k.filled(s)
	}
	return err
}

// filled refuses to change an empty set of version 1. No process can run in such a group, and
// once one does the set could not be emptied again for a restore.
func (k *Cores) filled(s *state) error {
	if s.version == 1 && len(s.mask) == 0 {
		return fmt.Errorf("cpuset.cpus of cgroup %s is empty, so nothing may run in it: fill it and cpuset.mems first, as with %s: %w",
			k.config.Path, s.allowed, trimtab.ErrRefused)
	}
	return nil
}

// state is the decoded content of a group's files.
type state struct {
	version  int
	topology Topology
	// mask is the group's set; allowed is its parent's, read from the file allowedIn; texts are the
	// files' contents.
	mask, allowed Set
	allowedIn     string
	texts         [2]string
	// amount is the number of cores in the mask; most is the number that the parent has.
	amount trimtab.Amount
	most   float64
}

// unlimited reports whether the group has all CPUs of its parent.
func (s *state) unlimited() bool { return s.version == 2 && len(s.mask) == 0 }

// count counts the cores of the sets.
func (s *state) count() {
	set := s.mask
	if s.version == 2 && set.Covers(union(s.topology)) { // a mask that Restore set
		set = s.allowed
	}
	s.amount = trimtab.Units(float64(len(s.topology.Cores(set))))
	if s.unlimited() {
		s.amount = trimtab.Unlimited()
	}
	s.most = float64(len(s.topology.Cores(s.allowed)))
}

// look reads the group and its parent. The same text means the same state: CPUs that come or go
// change the parent's text.
func (k *Cores) look() (*state, error) {
	s := &state{version: k.version(), allowedIn: effective2}
	if s.version == 1 {
		s.allowedIn = cpusFile
	}
	var texts [2]string
	var err error
	if texts[0], err = k.Files.Read(cpusFile); err != nil {
		return nil, err
	}
	parent := path.Dir(k.config.Path)
	if texts[1], err = k.ReadOf(parent, s.allowedIn); err != nil {
		return nil, err
	}
	if k.last != nil && k.last.texts == texts {
		return k.last, nil
	}
	s.texts = texts
	if s.mask, err = parse(k.config.Path, cpusFile, texts[0]); err != nil {
		return nil, err
	}
	if s.allowed, err = parse(parent, s.allowedIn, texts[1]); err != nil {
		return nil, err
	}
	if len(s.allowed) == 0 {
		return nil, trimtab.Invalidf("cgroup %s has no CPUs to give", parent)
	}
	s.allowed = k.config.Machine.Usable(s.allowed)
	if s.topology, err = k.config.Machine.Topology(); err != nil {
		return nil, err
	}
	s.count()
	k.last = s
	return s, nil
}

// wholeOf returns the CPUs that a parent group can give.
func (k *Cores) wholeOf(version int, group string) (Set, error) {
	if version == 1 {
		return k.set(group, cpusFile)
	}
	return k.set(group, effective2)
}

func (k *Cores) set(group, name string) (Set, error) {
	text, err := k.ReadOf(group, name)
	if err != nil {
		return nil, err
	}
	return parse(group, name, text)
}

func parse(group, name, text string) (Set, error) {
	s, err := ParseSet(text)
	if err != nil {
		return nil, fmt.Errorf("%s of cgroup %s: %w", name, group, err)
	}
	return s, nil
}

// Read returns how many cores the group's set has.
func (k *Cores) Read(ctx context.Context) (trimtab.Amount, error) {
	s, err := k.read(ctx)
	if err != nil {
		return trimtab.Amount{}, err
	}
	k.found = s
	return s.amount, nil
}

func (k *Cores) read(ctx context.Context) (*state, error) {
	err := ctx.Err()
	var s *state
	if err == nil {
		s, err = k.look()
	}
	if err != nil {
		return nil, fmt.Errorf("read cpuset of cgroup %s: %w", k.config.Path, err)
	}
	return s, nil
}

// Effective returns how many cores are in force: fewer than set if the parent lacks some. It
// reuses the Read just before, so that an unchanged group costs three file reads a second.
func (k *Cores) Effective(ctx context.Context) (trimtab.Amount, error) {
	if k.found == nil {
		if _, err := k.Read(ctx); err != nil {
			return trimtab.Amount{}, err
		}
	}
	if err := ctx.Err(); err != nil {
		return trimtab.Amount{}, fmt.Errorf("read cpuset of cgroup %s: %w", k.config.Path, err)
	}
	name := effective2
	if k.found.version == 1 {
		name = effective1
	}
	text, err := k.Files.Read(name)
	switch {
	case errors.Is(err, os.ErrNotExist) || err == nil && text == "":
		return k.Read(ctx) // an old kernel, or the group is gone
	case err != nil || k.found.unlimited():
		return k.found.amount, err
	case text == k.inForce.text:
		return trimtab.Units(k.inForce.cores), nil
	}
	now, err := parse(k.config.Path, name, text)
	if err != nil {
		return trimtab.Amount{}, err
	}
	k.inForce.text, k.inForce.cores = text, float64(len(k.found.topology.Cores(now)))
	return trimtab.Units(k.inForce.cores), nil
}

// Nearest rounds to whole cores, at least one and at most those of the parent. No limit
// becomes all cores of the parent, because the kernel refuses to empty the set of a group
// that has processes.
func (k *Cores) Nearest(a trimtab.Amount) trimtab.Amount {
	s := k.found
	if s == nil {
		s, _ = k.look() // on an error the parent does not limit it
	}
	most := math.Inf(1)
	if s != nil {
		most = s.most
	}
	if a.Unlimited && s == nil {
		return a
	}
	if a.Unlimited {
		return trimtab.Units(most)
	}
	return trimtab.Units(min(max(1, math.Round(a.Value)), most))
}

// Write gives the group so many cores; the package comment says how they are chosen.
func (k *Cores) Write(ctx context.Context, a trimtab.Amount) error {
	if err := k.write(ctx, a); err != nil {
		return fmt.Errorf("write cpuset of cgroup %s: %w", k.config.Path, err)
	}
	return nil
}

func (k *Cores) write(ctx context.Context, a trimtab.Amount) error {
	if err := errors.Join(ctx.Err(), a.Validate()); err != nil {
		return err
	}
	if err := k.Owned(); err != nil {
		return err
	}
	s, err := k.look()
	if err == nil {
		err = k.filled(s)
	}
	if err != nil {
		return err
	}
	k.found = s
	next := k.Nearest(a)
	if next == s.amount {
		return nil
	}
	others, names, err := k.others(s.version)
	if err != nil {
		return err
	}
	has := s.mask
	if s.unlimited() {
		has = s.allowed
	}
	c := Choice{Cores: s.topology.Cores(s.allowed), Has: has, Others: others, High: k.config.High}
	set, ok := Choose(int(next.Value), c)
	if !ok {
		return fmt.Errorf("give it %v cores: of %d that %s has, %d are free: %s: %w", next, len(c.Cores),
			path.Dir(k.config.Path), c.free(), taken(others, names), trimtab.ErrRefused)
	}
	k.found = nil // the state read before has changed
	if err := k.put(ctx, s, set); err != nil {
		return err
	}
	return k.confirm(ctx, s, set, others)
}

// confirm reads the other groups once more, since another process may have chosen the same
// cores at the same time. If so, this process, or both, return to the cores that they had.
func (k *Cores) confirm(ctx context.Context, was *state, set, known Set) error {
	others, names, err := k.others(was.version)
	if err == nil && known.Covers(others.And(set)) {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("another program took some of CPUs %s at the same time: %s: %w", set, taken(others, names), trimtab.ErrRefused)
	}
	return errors.Join(err, k.put(context.WithoutCancel(ctx), was, was.mask))
}

// maxNamed bounds how many groups an error names.
const maxNamed = 5

func taken(others Set, names []string) string {
	if len(names) > maxNamed {
		names = append(names[:maxNamed:maxNamed], "others")
	}
	return fmt.Sprintf("CPUs %s belong to %s", others, strings.Join(names, ", "))
}

// others returns the CPUs and the names of the groups beneath the root that have fewer
// CPUs than the root. Left out are this group, its parents, and the groups inside it.
func (k *Cores) others(version int) (all Set, names []string, err error) {
	whole, err := k.wholeOf(version, ".")
	if err != nil {
		return nil, nil, err
	}
	own := k.config.Path
	err = k.Root().Walk(".", func(group string) error {
		switch {
		case group == own:
			return fs.SkipDir
		case group == "." || strings.HasPrefix(own, group+"/"):
			return nil
		case path.Base(group) == Guests:
			return fs.SkipDir
		}
		set, err := k.set(group, cpusFile)
		switch {
		case errors.Is(err, os.ErrNotExist): // the group was removed, or no group in it has the controller
			return fs.SkipDir
		case err != nil:
			return err
		case len(set) == 0 || set.Covers(whole):
			return nil
		}
		all, names = all.Or(set), append(names, group)
		return fs.SkipDir
	})
	return all, names, err
}

// put writes a mask; for a systemd unit it asks systemd. nil means the parent's CPUs.
func (k *Cores) put(ctx context.Context, s *state, set Set) error {
	var err error
	unit := k.Unit() != ""
	if unit {
		err = k.SetUnit(ctx, "AllowedCPUs", set.mask())
	}
	// If a unit no longer has a set, systemd does not change its file.
	if err == nil && !(unit && len(set) > 0) {
		err = k.Files.Write(cpusFile, set.String()+"\n")
	}
	if len(set) == 0 && errors.Is(err, syscall.ENOSPC) {
		// The set of a group with a process cannot be emptied; all possible CPUs have the same
		// effect.
		set = k.config.Machine.Possible(s.allowed)
		err = k.Files.Write(cpusFile, set.String())
	}
	switch {
	case errors.Is(err, syscall.EBUSY):
		err = fmt.Errorf("a group inside it has other CPUs than %s: %w", set, err)
	case errors.Is(err, syscall.EACCES) && !s.allowed.Covers(set):
		err = fmt.Errorf("its parent %s has only CPUs %s: %w", path.Dir(k.config.Path), s.allowed, err)
	case errors.Is(err, syscall.EINVAL):
		err = fmt.Errorf("a group beside it has some of CPUs %s for itself alone: %w", set, err)
	}
	if err == nil {
		k.wrote = append(Set{}, set...)
	}
	return err
}

// Restore writes the mask of undo, even if another group has some of its cores by now.
func (k *Cores) Restore(ctx context.Context, b []byte) error {
	if err := k.restore(ctx, b); err != nil {
		return fmt.Errorf("restore cpuset of cgroup %s: %w", k.config.Path, err)
	}
	return nil
}

func (k *Cores) restore(ctx context.Context, b []byte) error {
	u, err := actuator.ReadUndo[undo](kind, b)
	if err != nil {
		return err
	}
	if u.CPUs == nil {
		return trimtab.Invalidf("undo %.60q has no mask", b)
	}
	was, err := ParseSet(*u.CPUs)
	if err != nil {
		return err
	}
	s, err := k.read(ctx)
	if err != nil {
		return err
	}
	now := s.mask.String()
	switch {
	case now == was.String():
		return nil
	case k.wrote != nil && now != k.wrote.String():
		return fmt.Errorf("another program set CPUs %q, trimtab set %q: left alone: %w", now, k.wrote, trimtab.ErrRefused)
	case s.version == 1 && len(was) == 0:
		return fmt.Errorf("it was empty, and a set is never emptied: it keeps CPUs %s: %w", now, trimtab.ErrRefused)
	}
	if err := k.put(ctx, s, was); err != nil {
		return err
	}
	if s, err = k.read(ctx); err == nil && s.mask.String() != k.wrote.String() {
		err = fmt.Errorf("wrote CPUs %q, read back %q", k.wrote, s.mask)
	}
	return err
}
