package resctrl

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"os"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/rdt"
)

// group returns the name of the resource group for the knob's control group.
func (k *Knob) group() string { return rdt.Group(k.location(), k.id) }

// resourceGroup is one group and its schemata.
type resourceGroup struct {
	name     string
	schemata rdt.Schemata
}

// look has one reading of a tree. cache or bandwidth is nil if the CPU does not have it.
type look struct {
	cache     *rdt.Cache
	bandwidth *rdt.Bandwidth
	root      rdt.Schemata
	// own are the groups with trimtab's prefix, others those of other programs.
	own, others []resourceGroup
	// window has the ways that trimtab may allocate.
	window window
}

// look reads the tree. The error is trimtab.ErrUnsupported where the host does not have
// the knob's resource.
func (k *Knob) look(f rdt.Files) (*look, error) {
	l := &look{}
	var err, noBandwidth error
	if l.cache, err = rdt.CacheOf(f); err != nil && (k.config.Resource == trimtab.LLC || !errors.Is(err, trimtab.ErrUnsupported)) {
		return nil, err
	}
	if l.bandwidth, noBandwidth = rdt.BandwidthOf(f); noBandwidth != nil && (k.config.Resource == trimtab.MemBW || !errors.Is(noBandwidth, trimtab.ErrUnsupported)) {
		return nil, noBandwidth
	}
	if l.root, err = schemata(f, ""); err != nil {
		return nil, err
	}
	names, err := f.Dirs("")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if slices.Contains([]string{"info", "mon_data", "mon_groups"}, name) {
			continue
		}
		g := resourceGroup{name: name}
		if g.schemata, err = schemata(f, name); errors.Is(err, os.ErrNotExist) {
			continue // it was removed meanwhile
		}
		if own := strings.HasPrefix(name, rdt.Prefix); own && err != nil {
			return nil, err
		} else if own {
			l.own = append(l.own, g)
		} else {
			l.others = append(l.others, g) // whatever its content
		}
	}
	if l.cache != nil {
		l.window = windowOf(l.cache.Mask, l.taken(), l.cache.Shareable)
	}
	k.grid = l.grid(k.config.Resource)
	return l, nil
}

func schemata(f rdt.Files, group string) (rdt.Schemata, error) {
	name := "schemata"
	if group != "" {
		name = group + "/schemata"
	}
	text, err := f.Read(name)
	if err != nil {
		return nil, err
	}
	s, err := rdt.ParseSchemata(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return s, nil
}

// group returns one of trimtab's groups, or nil.
func (l *look) group(name string) *resourceGroup {
	for i := range l.own {
		if l.own[i].name == name {
			return &l.own[i]
		}
	}
	return nil
}

// taken returns the ways that the default group and other programs' groups have exclusively. A
// group with all ways shares them. Ways that devices fill by io_alloc (since Linux 6.19) count as
// the devices'.
func (l *look) taken() (mask uint64) {
	mask = l.cache.Devices
	for _, g := range append([]resourceGroup{{"", l.root}}, l.others...) {
		for _, name := range l.cache.Names {
			line := g.schemata.Line(name)
			if line == nil {
				continue
			}
			for _, d := range line.Domains {
				if d.Value != l.cache.Mask {
					mask |= d.Value
				}
			}
		}
	}
	return mask
}

// names returns the names of a resource's lines in schemata.
func (l *look) names(resource string) []string {
	if resource == trimtab.LLC {
		return l.cache.Names
	}
	return []string{rdt.Name}
}

// unlimited reports whether a group has the default group's value of a resource.
func (l *look) unlimited(resource string, g *resourceGroup) bool {
	if resource == trimtab.LLC && l.cache == nil || resource == trimtab.MemBW && l.bandwidth == nil {
		return true
	}
	for _, name := range l.names(resource) {
		line := g.schemata.Line(name)
		if line.Equal(l.root.Line(name)) {
			continue
		}
		if v, alike := line.Alike(); !alike || v != l.most(resource) {
			return false
		}
	}
	return true
}

// most returns the value of a resource that means no limit.
func (l *look) most(resource string) uint64 {
	switch {
	case resource == trimtab.LLC:
		return l.cache.Mask
	case l.bandwidth.MBps:
		return rdt.NoLimitMBps
	}
	return 100
}

// strange is added to a value that another program wrote and that would look like one of trimtab's:
// no value of trimtab has a fraction of a half.
const strange = 0.5

// value returns a group's amount of a resource.
func (l *look) value(resource string, g *resourceGroup) trimtab.Amount {
	if l.unlimited(resource, g) {
		return trimtab.Unlimited()
	}
	least, odd, first := math.Inf(1), false, uint64(0)
	for i, name := range l.names(resource) {
		line := g.schemata.Line(name)
		v, alike := line.Alike()
		if i == 0 {
			first = v
		}
		odd = odd || !alike || v != first
		if line == nil {
			continue
		}
		for _, d := range line.Domains {
			n := float64(d.Value)
			if resource == trimtab.LLC {
				n = float64(bits.OnesCount64(d.Value))
			}
			least = math.Min(least, n)
		}
	}
	if math.IsInf(least, 1) {
		least, odd = 0, true
	}
	if odd || resource == trimtab.LLC && !l.alone(g, first) {
		return trimtab.Units(least + strange)
	}
	return trimtab.Units(least)
}

// alone reports whether a mask is a contiguous run of ways that no other group of trimtab has.
func (l *look) alone(g *resourceGroup, mask uint64) bool {
	for i := range l.own {
		other := &l.own[i]
		if other.name != g.name && !l.unlimited(trimtab.LLC, other) && l.masks(other)&mask != 0 {
			return false
		}
	}
	return contiguous(mask)
}

// masks returns all ways that a group has in any domain.
func (l *look) masks(g *resourceGroup) (all uint64) {
	for _, name := range l.cache.Names {
		if line := g.schemata.Line(name); line != nil {
			for _, d := range line.Domains {
				all |= d.Value
			}
		}
	}
	return all
}

// grid returns the possible values of a resource.
func (l *look) grid(resource string) grid {
	none := math.Inf(1)
	if resource == trimtab.LLC {
		n := float64(l.window.n)
		if l.window.n == l.cache.Ways() {
			none = n // all ways are the default group's value
		}
		return grid{float64(l.cache.MinBits), math.Max(n, float64(l.cache.MinBits)), 1, none, nil}
	}
	if v, alike := l.root.Line(rdt.Name).Alike(); alike {
		none = float64(v)
	}
	if l.bandwidth.MBps {
		return grid{1, rdt.NoLimitMBps, 1, math.Min(none, rdt.NoLimitMBps), nil}
	}
	gran := l.bandwidth.Gran
	if b := l.bandwidth; b.Bits > 0 {
		return grid{b.Kept(math.Max(gran, b.Min)), 100, gran, math.Min(none, 100), b}
	}
	return grid{math.Ceil(l.bandwidth.Min/gran) * gran, 100, gran, math.Min(none, 100), nil}
}
