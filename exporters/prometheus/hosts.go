package prometheus

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// maxHosts bounds the hosts that are exported, maxKnobs the knobs of all.
const maxHosts, maxKnobs = 2000, 200_000

// forgotten is how long a host is exported after its last report, as the bus keeps the report of
// a host that is gone.
const forgotten = 15 * time.Minute

// hostKey names what one pool has on one host.
type hostKey struct{ pool, name string }

// bytes is about how many bytes a host's series have: five series, and two for a further
// resource.
func (k *hostKey) bytes() int { return 7 * (70 + len(k.pool) + len(k.name)) }

// place is where a workload has something of a resource; no host: on all.
type place struct{ host, resource string }

// given is what a workload has at a place: the sum over its instances there.
type given struct {
	amount float64
	// unknown tells that an instance has no limit, or cannot be read.
	unknown   bool
	instances int
}

func (g *given) add(o given) {
	g.amount, g.unknown, g.instances = g.amount+o.amount, g.unknown || o.unknown, g.instances+o.instances
}

// host is what is exported of one.
type host struct {
	// news is its newest word, nil once it was taken; heard is when it came.
	news  *trimtab.Holding
	heard time.Time
	// knobs counts those of its last word.
	knobs int
	// workloads are those with something on the host, resources those with series.
	workloads map[string][]place
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

// settle reads the new reports of all hosts, and exports what workloads and hosts have.
func (e *Exporter) settle() {
	for _, key := range slices.SortedFunc(maps.Keys(e.hosts), func(a, b hostKey) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.pool, b.pool))
	}) {
		if h := e.hosts[key]; h.news != nil {
			e.take(h, h.news)
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
	e.take(h, gone)
	e.host(key, h, gone)
	for _, name := range []string{"trimtab_host_knobs", "trimtab_host_unusable_knobs", "trimtab_host_timestamp_seconds"} {
		e.metrics.Forget(name, key.pool, key.name)
	}
	e.room.bytes -= key.bytes()
	delete(e.hosts, key)
}

// take replaces what workloads have on a host by its report.
func (e *Exporter) take(h *host, said *trimtab.Holding) {
	now := map[string]map[place]given{}
	e.room.knobs -= h.knobs
	h.knobs = 0
	for i := range said.Targets {
		k := &said.Targets[i]
		if e.known(k.Workload) == nil || e.names.resource(k.Resource) != k.Resource || e.room.knobs >= maxKnobs {
			continue
		}
		e.room.knobs++
		h.knobs++
		a := k.InForce()
		at := place{said.Host, k.Resource}
		if now[k.Workload] == nil {
			now[k.Workload] = map[place]given{}
		}
		g := now[k.Workload][at]
		g.add(given{a.Value, a.Unlimited || k.Problem != "", 1})
		now[k.Workload][at] = g
	}
	for name, places := range h.workloads {
		for _, at := range places {
			if _, still := now[name][at]; !still {
				w := e.workloads[name]
				delete(w.has, at)
				w.stale = true
			}
		}
	}
	h.workloads = make(map[string][]place, len(now))
	for name, places := range now {
		w := e.workloads[name]
		if w.has == nil {
			w.has = map[place]given{}
		}
		for at, g := range places {
			h.workloads[name] = append(h.workloads[name], at)
			if old, known := w.has[at]; !known || old != g {
				w.has[at], w.stale = g, true
			}
		}
	}
}

// places are the series of a workload's allocation: one for each host, or one for each resource
// over all hosts.
func (w *workload) places() map[place]given {
	all := w.sums()
	if len(w.has) == len(all) || !w.inBrief && len(w.has) <= maxSpread {
		return w.has
	}
	return all
}

// sums are what a workload has over all hosts, by resource.
func (w *workload) sums() map[place]given {
	all := make(map[place]given, 1)
	for at, g := range w.has {
		at.host = ""
		sum := all[at]
		sum.add(g)
		all[at] = sum
	}
	return all
}

// allocate exports what a workload has.
func (e *Exporter) allocate(name string, w *workload) {
	shown := map[place]bool{}
	for at, g := range w.places() {
		if g.unknown || math.IsInf(g.amount, 0) {
			continue
		}
		shown[at] = true
		e.metrics.Gauge("trimtab_workload_allocation", name, at.host, at.resource).Set(digits(g.amount))
	}
	for at := range w.shown {
		if !shown[at] {
			e.metrics.Forget("trimtab_workload_allocation", name, at.host, at.resource)
		}
	}
	w.shown = shown
	var instances *float64
	if len(w.has) > 0 {
		most := 0.0
		for _, g := range w.sums() {
			most = max(most, float64(g.instances))
		}
		instances = &most
	}
	e.set("trimtab_workload_instances", instances, name)
}

// host exports what a host has and gives.
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
		if a.Unlimited { // nothing is given to it
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
