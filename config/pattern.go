package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Several reports whether the knob is a pattern: each cgroup that matches is an
// instance, named by what the * stands for.
func (k *Knob) Several() bool { return strings.Contains(k.Cgroup, "*") }

// grouped is the knob of one workload in overlaps.
type grouped struct {
	*Knob
	index int
	// head is what comes before the *, parts the whole path.
	head  string
	parts []string
}

// overlaps refuses two knobs on one cgroup, and one inside another: their
// quotas would be counted twice. Of patterns it is enough that it can happen.
func (v *validator) overlaps() {
	var all []grouped
	for i := range v.config.Workloads {
		if k := &v.config.Workloads[i].Knob; k.Cgroup != "" {
			head, _, _ := strings.Cut(k.Cgroup, "*")
			all = append(all, grouped{k, i, head, strings.Split(k.Cgroup, "/")})
		}
	}
	// What two can both match begins with the heads of both: one head begins with
	// the other, and in this order only such are between them.
	slices.SortStableFunc(all, func(a, b grouped) int {
		return cmp.Or(cmp.Compare(a.head, b.head), cmp.Compare(a.Cgroup, b.Cgroup), cmp.Compare(a.Host, b.Host))
	})
	told := map[int]bool{}
	for i, p := range all {
		if i > 0 && all[i-1].Cgroup == p.Cgroup && all[i-1].Host == p.Host {
			continue // said of the first of them
		}
		for _, q := range all[i+1:] {
			if !strings.HasPrefix(q.head, p.head) {
				break
			}
			v.overlap(p, q, told)
		}
	}
}

// overlap refuses one of two knobs that can meet, once.
func (v *validator) overlap(p, q grouped, told map[int]bool) {
	if p.Host != "" && q.Host != "" && p.Host != q.Host || !meet(p.parts, q.parts) {
		return
	}
	outer, inner := p, q
	if order := cmp.Or(cmp.Compare(len(p.parts), len(q.parts)), cmp.Compare(p.index, q.index)); order > 0 {
		outer, inner = q, p
	}
	if told[inner.index] {
		return
	}
	told[inner.index] = true
	first := fmt.Sprintf("that of %q", clip(v.config.Workloads[outer.index].Name))
	is, lies := "is also", "lies inside"
	if outer.Cgroup != inner.Cgroup && (outer.Several() || inner.Several()) {
		is, lies = "can also be", "can lie inside"
		first += fmt.Sprintf(", %q", clip(outer.Cgroup))
	}
	at := fmt.Sprintf("workloads[%d].knob.cgroup", inner.index)
	if len(outer.parts) == len(inner.parts) {
		v.fail(at, fmt.Sprintf("cgroup %q %s %s", clip(inner.Cgroup), is, first), "one cgroup has one workload")
	} else {
		v.fail(at, fmt.Sprintf("cgroup %q %s %s", clip(inner.Cgroup), lies, first), "what it gets would be counted twice: name cgroups side by side")
	}
}

// meet reports whether some path that the one matches is one that the other
// matches, or lies within one.
func meet(p, q []string) bool {
	for i := range min(len(p), len(q)) {
		if !partsMeet(p[i], q[i]) {
			return false
		}
	}
	return true
}

// partsMeet reports whether some text matches both, in which * stands for at
// least one character.
func partsMeet(p, q string) bool {
	before, behind, star := strings.Cut(p, "*")
	first, last, other := strings.Cut(q, "*")
	switch {
	case !star && !other:
		return p == q
	case !star:
		return partsMeet(q, p)
	case !other:
		return len(q) > len(before)+len(behind) && strings.HasPrefix(q, before) && strings.HasSuffix(q, behind)
	}
	return (strings.HasPrefix(before, first) || strings.HasPrefix(first, before)) &&
		(strings.HasSuffix(behind, last) || strings.HasSuffix(last, behind))
}
