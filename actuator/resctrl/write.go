package resctrl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/rdt"
)

// Write limits the workload; Unlimited gives it the values of the default group. The error is
// trimtab.ErrRefused if the limit does not fit, if tasks of the workload are in another program's
// group, or if the CPU has no free class of service (CLOSID).
func (k *Knob) Write(ctx context.Context, a trimtab.Amount) error {
	if err := a.Validate(); err != nil {
		return fmt.Errorf("write %s: %w", k, err)
	}
	return k.within(ctx, "write", func(f rdt.Files) error {
		unlock, err := f.Lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		l, err := k.look(f)
		if err != nil {
			return err
		}
		there, err := k.identify()
		if err != nil {
			return err
		}
		g := l.group(k.group())
		if next := k.Nearest(a); next.Unlimited {
			return k.release(f, l, g, there)
		} else if there {
			return k.limit(ctx, f, l, g, uint64(next.Value))
		}
		return os.ErrNotExist
	})
}

// release removes the limit, and with the last limit the resource group.
func (k *Knob) release(f rdt.Files, l *look, g *resourceGroup, there bool) error {
	switch {
	case g == nil && !there:
		return os.ErrNotExist
	case g == nil:
		return nil
	case l.unlimited(k.otherResource(), g) || !there:
		// The kernel moves its tasks to the default group.
		if err := f.Rmdir(g.name); err != nil {
			return rdt.Explain(f, err)
		}
		k.removed = !there
		return nil
	}
	return rdt.Explain(f, f.Write(g.name+"/schemata", l.lines(k.config.Resource, nil)))
}

func (k *Knob) otherResource() string {
	if k.config.Resource == trimtab.LLC {
		return trimtab.MemBW
	}
	return trimtab.LLC
}

// lines returns the schemata of a resource for all domains: with a value, or with nil the default
// group's.
func (l *look) lines(resource string, value *uint64) string {
	if resource == trimtab.LLC && l.cache == nil || resource == trimtab.MemBW && l.bandwidth == nil {
		return ""
	}
	var b strings.Builder
	for _, name := range l.names(resource) {
		line := l.root.Line(name)
		switch {
		case line == nil:
			continue // the kernel's error will explain it
		case value != nil:
			line = line.All(*value)
		}
		b.WriteString(line.String())
	}
	return b.String()
}

// limit sets a value, in a new resource group if there is none yet.
func (k *Knob) limit(ctx context.Context, f rdt.Files, l *look, g *resourceGroup, value uint64) error {
	name := k.group()
	if k.sweep(ctx, f, l) {
		l, err := k.look(f)
		if err != nil {
			return err
		}
		return k.limitIn(f, l, g, name, value)
	}
	return k.limitIn(f, l, g, name, value)
}

func (k *Knob) limitIn(f rdt.Files, l *look, g *resourceGroup, name string, value uint64) error {
	if err := k.free(f, l); err != nil {
		return err
	}
	var moves []span
	if k.config.Resource == trimtab.LLC {
		at, needed, err := k.arrange(l, int(value))
		if err != nil {
			return err
		}
		moves, value = needed, l.window.mask(at)
	}
	if k.config.Resource == trimtab.MemBW {
		value = uint64(l.bandwidth.Asked(float64(value)))
	}
	text := l.lines(k.config.Resource, &value)
	if g == nil {
		if err := k.make(f, l, name); err != nil {
			return err
		}
		text += l.lines(k.otherResource(), nil)
	}
	err := k.fill(f, l, moves, name, text)
	if err != nil {
		err = rdt.Explain(f, err)
		if g == nil { // removes a new group that is incomplete
			err = errors.Join(err, f.Rmdir(name))
		}
	}
	return err
}

// fill moves the neighbours' ways, writes the schemata, then moves the tasks.
func (k *Knob) fill(f rdt.Files, l *look, moves []span, name, text string) error {
	for _, m := range moves {
		mask := l.window.mask(m)
		if err := f.Write(m.group+"/schemata", l.lines(trimtab.LLC, &mask)); err != nil {
			return fmt.Errorf("move the ways of a neighbour: %w", err)
		}
	}
	if err := f.Write(name+"/schemata", text); err != nil {
		return err
	}
	return k.gatherAll(f, l)
}

// make creates the resource group.
func (k *Knob) make(f rdt.Files, l *look, name string) error {
	err := f.Mkdir(name)
	if err == nil {
		return nil
	}
	explained := rdt.Explain(f, err)
	if !errors.Is(err, syscall.ENOSPC) {
		return explained
	}
	// ENOSPC has three causes; last_cmd_status tells which (fs/resctrl/rdtgroup.c).
	switch text := explained.Error(); {
	case strings.Contains(text, "Out of RMIDs"):
		return fmt.Errorf("the CPU has no monitor (RMID) left for one more group: remove groups of monitors (mon_groups) that nobody reads: %w: %w", explained, trimtab.ErrRefused)
	case strings.Contains(text, "No space on"):
		return fmt.Errorf("no cache ways are left that a new group may share: another program has them for itself (mode exclusive, or io_alloc): %w: %w", explained, trimtab.ErrRefused)
	case strings.Contains(text, "CLOSID"):
		return fmt.Errorf("the CPU has %d classes of service (CLOSIDs), the default one included, and all are in use: limit fewer workloads with resctrl: %w: %w", l.classes(), explained, trimtab.ErrRefused)
	}
	return fmt.Errorf("the CPU has no class of service (CLOSID) or no monitor (RMID) left, or no ways that a new group may share: %w: %w", explained, trimtab.ErrRefused)
}

// classes returns the largest possible number of groups.
func (l *look) classes() int {
	switch {
	case l.cache == nil:
		return l.bandwidth.CLOSIDs
	case l.bandwidth == nil:
		return l.cache.CLOSIDs
	}
	return min(l.cache.CLOSIDs, l.bandwidth.CLOSIDs)
}

// arrange finds ways for the group beside those of trimtab's other groups.
func (k *Knob) arrange(l *look, ways int) (at span, moves []span, err error) {
	own := span{group: k.group()}
	var others []span
	var used uint64
	for i := range l.own {
		other := &l.own[i]
		if l.unlimited(trimtab.LLC, other) {
			continue
		}
		mask, alike := other.schemata.Line(l.cache.Names[0]).Alike()
		s, within := l.window.span(other.name, mask)
		within = within && alike && l.masks(other) == mask
		if other.name == own.group {
			if within && l.alone(other, mask) {
				own = s
			}
			continue
		}
		if !within || used&mask != 0 {
			return span{}, nil, fmt.Errorf("the ways %x of group %s were changed by another program: %w", l.masks(other), other.name, trimtab.ErrRefused)
		}
		used |= mask
		others = append(others, s)
	}
	moves, at, ok := place(l.window.n, others, own, ways, k.config.High)
	if !ok {
		return span{}, nil, fmt.Errorf("%d ways do not fit: trimtab may give out %d of %d, and its other groups have %d: %w", ways, l.window.n, l.cache.Ways(), total(others), trimtab.ErrRefused)
	}
	return at, moves, nil
}

// sweep removes groups that a dead trimtab left behind, and reports whether it removed any: those
// at the knob's own location whose control group is gone, those whose owner is dead and whose
// journal is gone, and those without a known owner once they have no tasks.
func (k *Knob) sweep(ctx context.Context, f rdt.Files, l *look) (removed bool) {
	var owned map[string]bool // by the hash of the location
	if k.host.Locations != nil {
		places, err := k.host.Locations(ctx)
		if err != nil {
			return false // if the owners are unknown, remove none
		}
		owned = map[string]bool{}
		for place, has := range places {
			owned[rdt.HashOf(place)] = has
		}
	}
	own := k.group()
	mine := rdt.HashOf(k.location())
	for _, g := range l.own {
		hash, _, _ := strings.Cut(strings.TrimPrefix(g.name, rdt.Prefix), "-")
		if g.name == own {
			continue
		}
		if hash != mine {
			has, known := owned[hash]
			if owned == nil || has {
				continue
			}
			if tasks, err := tasksOf(f, g.name); !known && (err != nil || len(tasks) > 0) {
				continue
			}
		}
		if f.Rmdir(g.name) == nil {
			removed = true
		}
	}
	return removed
}
