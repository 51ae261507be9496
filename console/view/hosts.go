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
)

// The states of a host, as in [Host].Code.
const (
	codeSilent = "silent"
	codeTwins  = "twins"
	codeOver   = "over"
	codePaused = "paused"
	codeUnmet  = "unmet"
)

// Hosts returns the hosts that f selects as they are at now, in its order: without one the
// least free first.
func (v *Model) Hosts(now time.Time, f Filter) Hosts {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := Hosts{Pool: v.config.Pool, Resource: v.config.Resource, Time: now, Counts: map[string]int{}}
	words := wordsOf(f.Query)
	rows := make([]Host, 0, len(v.fleet.hosts))
	for _, h := range v.fleet.hosts {
		if r := h.row(&v.workloads, v.config.Resource, now); h.fits(words, &r) {
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
	var found *host
	for _, h := range v.fleet.hosts {
		if h.name == name && (pool == "" || h.pool == pool) && (found == nil || h.pool < found.pool) {
			found = h
		}
	}
	if found == nil {
		return out, false
	}
	knobs := slices.Clone(found.knobs)
	slices.SortStableFunc(knobs, func(a, b trimtab.KnobState) int {
		return cmp.Or(strings.Compare(a.Workload, b.Workload), byInstance(a, b))
	})
	out = HostDetail{Host: found.row(&v.workloads, v.config.Resource, now), Time: now, Listed: []Knob{}}
	out.Offset = min(max(offset, 0), len(knobs))
	for i := out.Offset; i < len(knobs) && len(out.Listed) < min(max(limit, 1), MaxKnobs); i++ {
		s := v.workloads.all[knobs[i].Workload]
		k := found.knob(&knobs[i], s.binds(&knobs[i], now), now)
		k.Bound = s.bound(k.Resource, found.name)
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

// Spare is the part of its capacity that a host has free, of the resource of
// which that is least; 2 where nothing was measured.
func (h *Host) Spare() float64 {
	least := 2.0
	for _, r := range h.Rooms {
		if r.Free != nil {
			least = min(least, *r.Free/max(*r.Capacity, math.SmallestNonzeroFloat64))
		}
	}
	return least
}

// fits reports whether the host matches the words of a filter, in lower case.
func (h *host) fits(words []string, r *Host) bool {
	for _, w := range words {
		key, value, _ := strings.Cut(w, ":")
		switch {
		case key == "state":
			if r.Kind != value {
				return false
			}
		case key == "workload":
			if !slices.ContainsFunc(h.knobs, func(k trimtab.KnobState) bool { return strings.ToLower(k.Workload) == value }) {
				return false
			}
		case !strings.Contains(strings.ToLower(h.name), w):
			return false
		}
	}
	return true
}

// row is the host at now.
func (h *host) row(all *workloads, resource string, now time.Time) Host {
	r := Host{Name: h.name, Pool: h.pool, Age: trimtab.SecondsOf(max(0, now.Sub(h.heard))), LeaseLeft: h.lease(now),
		Paused: h.paused, Rooms: h.rooms(resource), Knobs: len(h.knobs), Problems: h.problems, Unmet: h.unmet}
	r.Workloads, r.Instances = h.population()
	r.Binds, r.Trend = h.boundOn(all), h.trend.points()
	r.Kind, r.Code, r.State = "ok", codeOK, codeOK
	over := overfull(r.Rooms)
	switch {
	case h.silent(now):
		r.Kind, r.Code, r.Since = "bad", codeSilent, h.heard
		r.State = "silent for " + Age(r.Age)
	case h.lives != nil && h.lives.Twins(now, silentAfter):
		r.Kind, r.Code = "bad", codeTwins
		r.State = "two agents say that they are this host, so its workloads are held: give each its own --host"
	case over != "":
		r.Kind, r.Code, r.State = "bad", codeOver, "more is given out than it has of "+over
	case h.problems > 0:
		r.Kind, r.Code, r.Since = "bad", codeKnob, h.since
		r.State = fmt.Sprintf("%d of %d knobs cannot be used: %s", h.problems, len(h.knobs), h.problem())
	case h.paused:
		r.Kind, r.Code, r.State = "note", codePaused, codePaused
	}
	if i := slices.IndexFunc(h.unmet, func(u trimtab.Unmet) bool { return u.What != codes.UnmetClaims }); i >= 0 && r.Kind == "ok" {
		r.Kind, r.Code, r.State = "note", codeUnmet, "not in force: "+h.unmet[i].Why
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
func (h *host) boundOn(all *workloads) (n int) {
	last := ""
	for i := range h.knobs { // they are in order of workload
		if k := &h.knobs[i]; (n == 0 || k.Workload != last) && all.all[k.Workload].bound(k.Resource, h.name) {
			n, last = n+1, k.Workload
		}
	}
	return n
}

// overfull names the first resource of which more is given out than there is.
func overfull(rooms []Room) string {
	for _, r := range rooms {
		if r.Free != nil && *r.Free < 0 {
			return r.Resource
		}
	}
	return ""
}

// problem returns the first problem of a knob.
func (h *host) problem() string {
	for i := range h.knobs {
		if p := h.knobs[i].Problem; p != "" {
			return p
		}
	}
	return ""
}

// population counts the workloads and instances of a host.
func (h *host) population() (workloads, instances int) {
	type copied struct{ workload, instance string }
	seen := make(map[copied]bool, len(h.knobs))
	for i := range h.knobs {
		if i == 0 || h.knobs[i].Workload != h.knobs[i-1].Workload {
			workloads++
		}
		seen[copied{h.knobs[i].Workload, h.knobs[i].Instance}] = true
	}
	return workloads, len(seen)
}

// rooms returns the host's capacity and its allocated part, the pool's resource first, the others
// by name.
func (h *host) rooms(main string) []Room {
	at := map[string]*Room{}
	of := func(resource string) *Room {
		r := at[resource]
		if r == nil && len(at) < trimtab.MaxResources {
			r = &Room{Resource: resource}
			at[resource] = r
		}
		return r
	}
	for resource, c := range h.capacity {
		if r := of(resource); r != nil {
			r.Capacity = &c
		}
	}
	for i := range h.knobs {
		k := &h.knobs[i]
		if r := of(k.Resource); r != nil {
			r.give(k)
		}
	}
	out := make([]Room, 0, len(at))
	for _, resource := range sortedKeys(at) {
		r := at[resource]
		r.Given = round9(r.Given)
		if r.Capacity != nil {
			free := round9(*r.Capacity - r.Given)
			r.Free = &free
		}
		out = append(out, *r)
	}
	slices.SortStableFunc(out, func(a, b Room) int {
		switch {
		case a.Resource == b.Resource:
			return 0
		case a.Resource == main:
			return -1
		case b.Resource == main:
			return 1
		}
		return 0
	})
	return out
}

// given is the part of the host's capacity of a resource that is given out.
func (h *host) given(resource string) float32 {
	for _, r := range h.rooms(resource) {
		if r.Resource == resource && r.Capacity != nil && *r.Capacity > 0 {
			return single(r.Given / *r.Capacity)
		}
	}
	return none()
}

// give adds the amount of a knob, or the amount that it may still have, if it is a limit.
func (r *Room) give(k *trimtab.KnobState) {
	a := k.InForce()
	if a.Less(k.Now) {
		a = k.Now
	}
	if a.Unlimited {
		r.Unlimited++ // an unlimited knob counts as no amount
		return
	}
	r.Given = min(r.Given+a.Value, math.MaxFloat64)
}
