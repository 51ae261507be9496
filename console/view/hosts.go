package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/internal/newest"
)

// The states of a host, as in [Host].Code.
const (
	codeSilent    = "silent"
	codeDuplicate = "twins"
	codeOver      = "over"
	codePaused    = "paused"
	codeUnmet     = "unmet"
)

// Hosts returns the hosts that f selects as they are at now, in its order: without one the
// least free first.
func (v *Model) Hosts(now time.Time, f Filter) Hosts {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := Hosts{Pool: v.config.Pool, Resource: v.config.Resource, Time: now, Counts: map[string]int{}}
	words := wordsOf(f.Query)
	rows := make([]Host, 0, v.fleet.Len())
	for h := range v.fleet.All() {
		if r := v.fleet.row(h, v.config.Resource, &v.workloads, now); fits(h, words, &r) {
			rows = append(rows, r)
			out.Counts[r.Kind]++
		}
	}
	f.orderHosts(rows)
	out.Total = len(rows)
	out.Offset = min(max(f.Offset, 0), len(rows))
	out.Hosts = rows[out.Offset:min(len(rows), out.Offset+min(max(f.Limit, 1), MaxRows))]
	return out
}

// Host returns one host with a part of its knobs. Without a pool it is the one of
// the first that has it; ok is false where none has.
func (v *Model) Host(name, pool string, limit, offset int, now time.Time) (out HostDetail, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var found *newest.Host
	for h := range v.fleet.All() {
		if h.Name == name && (pool == "" || h.Pool == pool) && (found == nil || h.Pool < found.Pool) {
			found = h
		}
	}
	if found == nil {
		return out, false
	}
	knobs := slices.Clone(found.Knobs)
	slices.SortStableFunc(knobs, func(a, b trimtab.KnobState) int {
		return cmp.Or(strings.Compare(a.Workload, b.Workload), byInstance(a, b))
	})
	out = HostDetail{Host: v.fleet.row(found, v.config.Resource, &v.workloads, now), Time: now, Listed: []Knob{}}
	out.Offset = min(max(offset, 0), len(knobs))
	for i := out.Offset; i < len(knobs) && len(out.Listed) < min(max(limit, 1), MaxKnobs); i++ {
		s := v.workloads.all[knobs[i].Workload]
		k := shownKnob(found, &knobs[i], s.binds(&knobs[i], now), now)
		k.Bound = s.bound(k.Resource, found.Name)
		out.Listed = append(out.Listed, k)
	}
	return out, true
}

// byInstance orders the knobs of one workload on one host.
func byInstance(a, b trimtab.KnobState) int {
	return cmp.Or(strings.Compare(a.Instance, b.Instance), strings.Compare(a.Resource, b.Resource))
}

// binds reports whether a knob is the one of several that has the least.
func (s *state) binds(k *trimtab.KnobState, now time.Time) bool {
	if s == nil {
		return false
	}
	d := s.held(k.Resource, now)
	return d.several() && d.least != nil && d.least.KnobID == k.KnobID && !d.effective.Unlimited
}

// Spare is the free part of a host's capacity, the least over its resources; 2 if
// nothing was measured.
func (h *Host) Spare() float64 {
	least := 2.0
	for _, r := range h.Resources {
		if r.Free != nil {
			least = min(least, *r.Free/max(*r.Capacity, math.SmallestNonzeroFloat64))
		}
	}
	return least
}

// fits reports whether the host matches the words of a filter, in lower case.
func fits(h *newest.Host, words []string, r *Host) bool {
	for _, w := range words {
		key, value, _ := strings.Cut(w, ":")
		switch {
		case key == "state":
			if r.Kind != value {
				return false
			}
		case key == "workload":
			if !slices.ContainsFunc(h.Knobs, func(k trimtab.KnobState) bool { return strings.ToLower(k.Workload) == value }) {
				return false
			}
		case !strings.Contains(strings.ToLower(h.Name), w):
			return false
		}
	}
	return true
}

// row is the host at now.
func (f *fleet) row(h *newest.Host, resource string, all *workloads, now time.Time) Host {
	r := Host{Name: h.Name, Pool: h.Pool, Age: trimtab.SecondsOf(max(0, now.Sub(h.ReportedAt()))), LeaseLeft: h.Lease(now),
		Paused: h.Paused, Resources: resourcesOf(h, resource), Knobs: len(h.Knobs), Problems: h.Problems, Unmet: h.Unmet}
	r.Workloads, r.Instances = population(h)
	r.Binds, r.Trend = boundOn(h, all), f.trends[h.HostKey].points()
	r.Kind, r.Code, r.State = "ok", codeOK, codeOK
	over := overfull(r.Resources)
	switch {
	case h.Silent(now):
		r.Kind, r.Code, r.Since = "bad", codeSilent, h.ReportedAt()
		r.State = "silent for " + Age(r.Age)
	case h.Duplicate(now):
		r.Kind, r.Code = "bad", codeDuplicate
		r.State = "two agents say that they are this host, so its workloads are held: give each its own --host"
	case over != "":
		r.Kind, r.Code, r.State = "bad", codeOver, "more is given out than it has of "+over
	case h.Problems > 0:
		r.Kind, r.Code, r.Since = "bad", codeKnob, h.Since
		r.State = fmt.Sprintf("%d of %d knobs cannot be used: %s", h.Problems, len(h.Knobs), problemOf(h))
	case h.Paused:
		r.Kind, r.Code, r.State = "note", codePaused, codePaused
	}
	if i := slices.IndexFunc(h.Unmet, func(u trimtab.Unmet) bool { return u.What != codes.UnmetClaims }); i >= 0 && r.Kind == "ok" {
		r.Kind, r.Code, r.State = "note", codeUnmet, "not in force: "+h.Unmet[i].Why
	}
	return r
}

// bound reports whether a host keeps a workload from more of a resource, by the
// newest decision on it.
func (s *state) bound(resource, host string) bool {
	if s == nil {
		return false
	}
	d := s.newestOn[resource]
	return d != nil && d.Action.Why.Binding == trimtab.Binding{Kind: codes.BindingHost, Detail: host}
}

// boundOn counts the workloads that a host keeps from more.
func boundOn(h *newest.Host, all *workloads) (n int) {
	last := ""
	for i := range h.Knobs { // they are in order of workload
		if k := &h.Knobs[i]; (n == 0 || k.Workload != last) && all.all[k.Workload].bound(k.Resource, h.Name) {
			n, last = n+1, k.Workload
		}
	}
	return n
}

// overfull names the first resource of which more is given out than the host has.
func overfull(rooms []HostResource) string {
	for _, r := range rooms {
		if r.Free != nil && *r.Free < 0 {
			return r.Resource
		}
	}
	return ""
}

// problemOf returns the first problem of a knob.
func problemOf(h *newest.Host) string {
	for i := range h.Knobs {
		if p := h.Knobs[i].Problem; p != "" {
			return p
		}
	}
	return ""
}

// population counts the workloads and instances of a host.
func population(h *newest.Host) (workloads, instances int) {
	type copied struct{ workload, instance string }
	seen := make(map[copied]bool, len(h.Knobs))
	for i := range h.Knobs {
		if i == 0 || h.Knobs[i].Workload != h.Knobs[i-1].Workload {
			workloads++
		}
		seen[copied{h.Knobs[i].Workload, h.Knobs[i].Instance}] = true
	}
	return workloads, len(seen)
}

// resourcesOf returns the host's capacity and its allocated part, the pool's resource first, the others
// by name.
func resourcesOf(h *newest.Host, main string) []HostResource {
	sums := h.Sums()
	names := map[string]bool{}
	for _, of := range [][]string{sortedKeys(h.Capacity), sortedKeys(sums)} {
		for _, resource := range of {
			if len(names) < trimtab.MaxResources {
				names[resource] = true
			}
		}
	}
	out := make([]HostResource, 0, len(names))
	for resource := range names {
		sum := sums[resource]
		r := HostResource{Resource: resource, Given: round9(sum.Amount), Unlimited: sum.Unlimited}
		if c, measured := h.Capacity[resource]; measured {
			free := round9(c - r.Given)
			r.Capacity, r.Free = &c, &free
		}
		out = append(out, r)
	}
	rank := func(r HostResource) int {
		if r.Resource == main {
			return 0
		}
		return 1
	}
	slices.SortFunc(out, func(a, b HostResource) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Resource, b.Resource))
	})
	return out
}

// given is the part of the host's capacity of a resource that is given out.
func given(h *newest.Host, resource string) float32 {
	if c := h.Capacity[resource]; c > 0 {
		return single(round9(h.Sums()[resource].Amount) / c)
	}
	return none()
}
