package prometheus

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/newest"
)

// maxHosts bounds the hosts that are exported, maxKnobs the knobs of all.
const maxHosts, maxKnobs = 2000, 200_000

// forgotten is how long a host is exported after its last report, as the bus keeps the report of
// a host that is gone.
const forgotten = 15 * time.Minute

// hostKey identifies a host in one pool.
type hostKey struct{ pool, name string }

// bytes is about how many bytes a host's series have: five series, and two for a further
// resource.
func (k *hostKey) bytes() int { return 7 * (70 + len(k.pool) + len(k.name)) }

// host is the exporter's state of one host.
type host struct {
	// news is its newest report, nil once it was read; heard is when it came.
	news  *trimtab.Holding
	heard time.Time
	// resources are those with series.
	resources map[string]bool
}

// hear keeps the newest report of a host.
func (e *Exporter) hear(said *trimtab.Holding) {
	key := hostKey{said.Pool, said.Host}
	h := e.hosts[key]
	if h == nil {
		if len(e.hosts) >= maxHosts || len(said.Host)+len(said.Pool) > 512 || !admit(&e.names.hostPools, said.Pool, maxPools) {
			return
		}
		h = &host{resources: map[string]bool{}}
		e.hosts[key] = h
		e.room.bytes += key.bytes()
	}
	h.news, h.heard = said, time.Now()
}

// settle reads the new reports of all hosts, and exports the allocations of workloads and hosts.
func (e *Exporter) settle() {
	for _, key := range slices.SortedFunc(maps.Keys(e.hosts), func(a, b hostKey) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.pool, b.pool))
	}) {
		if h := e.hosts[key]; h.news != nil {
			e.take(h.news)
			e.host(key, h, h.news)
			h.news = nil
		} else if time.Since(h.heard) > forgotten {
			e.forget(key, h)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.workloads)) {
		if w := e.workloads[name]; w.stale {
			e.count(name, w)
		}
	}
	e.fit()
	for name, w := range e.workloads {
		if w.stale {
			e.allocate(name, w)
			w.stale = false
		}
	}
}

// forget drops a host.
func (e *Exporter) forget(key hostKey, h *host) {
	gone := &trimtab.Holding{Pool: key.pool, Host: key.name}
	e.take(gone)
	e.host(key, h, gone)
	for _, name := range []string{"trimtab_host_knobs", "trimtab_host_unusable_knobs", "trimtab_host_timestamp_seconds"} {
		e.metrics.Forget(name, key.pool, key.name)
	}
	e.room.bytes -= key.bytes()
	delete(e.hosts, key)
}

// take replaces the workloads' allocations on a host by those in its report.
func (e *Exporter) take(said *trimtab.Holding) {
	changed := e.held.Hear(said, time.Now(), func(k *trimtab.KnobState) bool {
		return e.known(k.Workload) != nil && e.names.resource(k.Resource) == k.Resource
	})
	for name := range changed {
		w := e.workloads[name]
		w.has, w.stale = e.held.Of(name), true
	}
}

// places are the series of a workload's allocation: one for each host, or one for each resource
// over all hosts.
func (w *workload) places() map[newest.Place]newest.Given {
	all := w.sums()
	if len(w.has) == len(all) || !w.inBrief && len(w.has) <= maxSpread {
		return w.has
	}
	return all
}

// sums returns the sums over all hosts, by resource.
func (w *workload) sums() map[newest.Place]newest.Given {
	all := make(map[newest.Place]newest.Given, 1)
	for at, g := range w.has {
		at.Host = ""
		sum := all[at]
		sum.Add(g)
		all[at] = sum
	}
	return all
}

// allocate exports the allocation of a workload.
func (e *Exporter) allocate(name string, w *workload) {
	shown := map[newest.Place]bool{}
	for at, g := range w.places() {
		if g.Unknown || math.IsInf(g.Amount, 0) {
			continue
		}
		shown[at] = true
		e.metrics.Gauge("trimtab_workload_allocation", name, at.Host, at.Resource).Set(digits(g.Amount))
	}
	for at := range w.shown {
		if !shown[at] {
			e.metrics.Forget("trimtab_workload_allocation", name, at.Host, at.Resource)
		}
	}
	w.shown = shown
	var instances *float64
	if len(w.has) > 0 {
		most := 0.0
		for _, g := range w.sums() {
			most = max(most, float64(g.Instances))
		}
		instances = &most
	}
	e.set("trimtab_workload_instances", instances, name)
}

// host exports the capacity of a host and its allocated part.
func (e *Exporter) host(key hostKey, h *host, said *trimtab.Holding) {
	sums, unusable := map[string]float64{}, 0
	for resource := range said.Capacity {
		sums[resource] = 0
	}
	for i := range said.Targets {
		k := &said.Targets[i]
		if k.Problem != "" {
			unusable++
		}
		a := k.InForce()
		if a.Less(k.Now) {
			a = k.Now
		}
		if a.Unlimited { // an unlimited knob counts as no amount
			a.Value = 0
		}
		sums[k.Resource] += a.Value
	}
	for resource := range h.resources {
		if _, still := sums[resource]; !still {
			e.metrics.Forget("trimtab_host_given", key.pool, key.name, resource)
			e.metrics.Forget("trimtab_host_capacity", key.pool, key.name, resource)
			delete(h.resources, resource)
		}
	}
	for resource, sum := range sums {
		if e.names.resource(resource) != resource {
			continue
		}
		h.resources[resource] = true
		e.set("trimtab_host_given", &sum, key.pool, key.name, resource)
		var capacity *float64
		if c, measured := said.Capacity[resource]; measured {
			capacity = &c
		}
		e.set("trimtab_host_capacity", capacity, key.pool, key.name, resource)
	}
	e.metrics.Gauge("trimtab_host_knobs", key.pool, key.name).Set(float64(len(said.Targets)))
	e.metrics.Gauge("trimtab_host_unusable_knobs", key.pool, key.name).Set(float64(unusable))
	e.metrics.Gauge("trimtab_host_timestamp_seconds", key.pool, key.name).Set(math.Round(float64(said.Time.UnixMilli()) / 1000))
}
