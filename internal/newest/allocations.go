package newest

import (
	"cmp"
	"time"

	"github.com/trimtab/trimtab"
)

// Place is a host and a resource of which a workload has an allocation. Without a host it means all
// hosts.
type Place struct{ Host, Resource string }

// Compare orders places by host, and then by resource.
func (p Place) Compare(o Place) int {
	return cmp.Or(cmp.Compare(p.Host, o.Host), cmp.Compare(p.Resource, o.Resource))
}

// Given is the allocation of a workload in a place: the sum over its instances there.
type Given struct {
	Amount float64
	// Unknown says that an instance has no limit, or cannot be read.
	Unknown   bool
	Instances int
}

// Add adds the allocation of other instances.
func (g *Given) Add(o Given) {
	g.Amount, g.Unknown, g.Instances = g.Amount+o.Amount, g.Unknown || o.Unknown, g.Instances+o.Instances
}

// Allocations has the workloads' allocations in each place, by the newest report of every host. The
// caller must set the bounds of the zero value, which otherwise stores nothing.
type Allocations struct {
	// MaxHosts is the largest number of hosts, MaxKnobs that of all their knobs; the rest is not
	// counted.
	MaxHosts, MaxKnobs int
	knobs              int
	of                 map[string]map[Place]Given
	on                 map[speaker]*word
}

// speaker is a host of a pool.
type speaker struct{ pool, host string }

// word is the last report of a host.
type word struct {
	heard  time.Time
	knobs  int
	places map[string][]Place // by workload
}

// Of returns the allocations of a workload, by place. Callers must not change the map, which
// changes with the next report.
func (a *Allocations) Of(workload string) map[Place]Given { return a.of[workload] }

// Knobs returns how many are counted.
func (a *Allocations) Knobs() int { return a.knobs }

// Hear replaces the allocations of a host by a new report, counting the knobs that admits accepts.
// It returns the workloads whose allocation there changed.
func (a *Allocations) Hear(h *trimtab.Holding, now time.Time, admits func(*trimtab.KnobState) bool) (changed map[string]bool) {
	key := speaker{h.Pool, h.Host}
	was := a.on[key]
	if was == nil {
		if len(a.on) >= a.MaxHosts {
			return nil
		}
		was = &word{}
	}
	if a.on == nil {
		a.of, a.on = map[string]map[Place]Given{}, map[speaker]*word{}
	}
	a.knobs -= was.knobs
	is, sums := &word{heard: now, places: map[string][]Place{}}, map[string]map[Place]Given{}
	for i := range h.Targets {
		k := &h.Targets[i]
		if !admits(k) || a.knobs >= a.MaxKnobs {
			continue
		}
		a.knobs++
		is.knobs++
		at, amount := Place{h.Host, k.Resource}, k.InForce()
		if sums[k.Workload] == nil {
			sums[k.Workload] = map[Place]Given{}
		}
		g := sums[k.Workload][at]
		g.Add(Given{amount.Value, amount.Unlimited || k.Problem != "", 1})
		sums[k.Workload][at] = g
	}
	changed = map[string]bool{}
	for name, places := range was.places {
		for _, at := range places {
			if _, still := sums[name][at]; !still {
				delete(a.of[name], at)
				changed[name] = true
			}
		}
		if len(a.of[name]) == 0 {
			delete(a.of, name)
		}
	}
	for name, places := range sums {
		if a.of[name] == nil {
			a.of[name] = map[Place]Given{}
		}
		for at, g := range places {
			is.places[name] = append(is.places[name], at)
			if old, known := a.of[name][at]; !known || old != g {
				a.of[name][at], changed[name] = g, true
			}
		}
	}
	if a.on[key] = is; is.knobs == 0 {
		delete(a.on, key)
	}
	return changed
}

// Forget drops the hosts that said nothing since a time.
func (a *Allocations) Forget(since time.Time) {
	for from, w := range a.on {
		if w.heard.Before(since) {
			a.Hear(&trimtab.Holding{Pool: from.pool, Host: from.host}, since, nil)
		}
	}
}
