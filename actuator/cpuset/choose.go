package cpuset

import (
	"cmp"
	"slices"
)

// Topology says which CPUs are threads of one physical core: the cores, each a set.
type Topology []Set

// Cores returns the allowed CPUs of each core in order of their lowest CPU, without empty ones. A
// CPU that the topology does not have counts as a core of its own.
func (t Topology) Cores(allowed Set) []Set {
	if len(allowed) == 0 {
		return nil
	}
	var out []Set
	known := make([]bool, allowed[len(allowed)-1]+1)
	for _, core := range t {
		part := core.And(allowed)
		if len(part) == 0 {
			continue
		}
		out = append(out, part)
		for _, n := range part {
			known[n] = true
		}
	}
	for _, n := range allowed {
		if !known[n] {
			out = append(out, Set{n})
		}
	}
	slices.SortFunc(out, func(a, b Set) int { return cmp.Compare(a[0], b[0]) })
	return out
}

// Choice is the input of [Choose].
type Choice struct {
	// Cores are the cores that the group may have, as Topology.Cores returns them.
	Cores []Set
	// Has are the CPUs that it has now.
	Has Set
	// Others are the CPUs of other groups, which are not to be shared.
	Others Set
	// High prefers the highest-numbered cores.
	High bool
}

// Choose returns n cores, each with all its allowed threads: first those that only this group
// has, then free ones, each from the lowest number (with High from the highest). If these are too
// few, a group that does not grow may also keep cores that it shares already. ok is false if
// there are fewer than n, and for n < 1, since a set is never empty.
func Choose(n int, c Choice) (set Set, ok bool) {
	own, free, shared := c.sorted()
	had := len(own) + len(shared)
	candidates := slices.Concat(own, free)
	if n <= had {
		candidates = append(candidates, shared...)
	}
	if n < 1 || n > len(candidates) {
		return nil, false
	}
	return union(candidates[:n]), true
}

// union returns the CPUs that are in any of the sets.
func union(all []Set) Set { return Set(nil).Or(slices.Concat(all...)) }

// sorted returns the cores in the order in which they are chosen.
func (c *Choice) sorted() (own, free, shared []Set) {
	for _, core := range c.Cores {
		switch has, taken := c.Has.Meets(core), c.Others.Meets(core); {
		case has && taken:
			shared = append(shared, core)
		case has:
			own = append(own, core)
		case !taken:
			free = append(free, core)
		}
	}
	if c.High {
		slices.Reverse(own)
		slices.Reverse(free)
		slices.Reverse(shared)
	}
	return own, free, shared
}

// free counts the cores that no other group has.
func (c *Choice) free() int {
	own, free, _ := c.sorted()
	return len(own) + len(free)
}
