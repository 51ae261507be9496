package prometheus

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/newest"
)

// maxHosts bounds the hosts that are exported.
const maxHosts = 2000

// forgotten is how long a host is exported after its last report, as the bus keeps the report of
// a host that is gone.
const forgotten = 15 * time.Minute

// bytesOf is about how many bytes a host's series have: five series, and two for a further
// resource.
func bytesOf(k newest.HostKey) int { return 7 * (70 + len(k.Pool) + len(k.Name)) }

// host is the exporter's state of one host.
type host struct {
	// fresh says that there is a report since the last scrape.
	fresh bool
	// resources are those with series.
	resources map[string]bool
}

// observeHolding keeps the newest report of a host.
func (e *Exporter) observeHolding(said *trimtab.Holding) {
	key := newest.HostKey{Pool: said.Pool, Name: said.Host}
	h := e.hosts[key]
	if h == nil {
		if len(e.hosts) >= maxHosts || len(said.Host)+len(said.Pool) > 512 || !admit(&e.names.hostPools, said.Pool, maxPools) {
			return
		}
		h = &host{resources: map[string]bool{}}
		e.hosts[key] = h
		e.usage.bytes += bytesOf(key)
	}
	h.fresh = true
	e.changed(e.newest.Observe(said, time.Now()))
}

// changed marks workloads of which a knob changed.
func (e *Exporter) changed(names []string) {
	for _, name := range names {
		if w := e.known(name); w != nil {
			w.stale = true
		}
	}
}

// settle exports the new reports of all hosts, and the allocations of workloads.
func (e *Exporter) settle() {
	for _, key := range slices.SortedFunc(maps.Keys(e.hosts), newest.HostKey.Compare) {
		h, is := e.hosts[key], e.newest.Host(key.Pool, key.Name)
		switch {
		case is == nil || time.Since(is.Arrived) > forgotten:
			e.forget(key, is)
		case h.fresh:
			e.host(h, is)
			h.fresh = false
		}
	}
	for _, name := range slices.Sorted(maps.Keys(e.workloads)) {
		if w := e.workloads[name]; w.stale {
			w.has = e.newest.Given(name)
			maps.DeleteFunc(w.has, func(at newest.HostResource, _ newest.Given) bool { return e.names.resource(at.Resource) != at.Resource })
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

// forget drops a host; is may be nil.
func (e *Exporter) forget(key newest.HostKey, is *newest.Host) {
	if is != nil {
		e.changed(e.newest.Drop(is))
	}
	e.host(e.hosts[key], &newest.Host{HostKey: key})
	for _, name := range []string{"trimtab_host_knobs", "trimtab_host_unusable_knobs", "trimtab_host_timestamp_seconds"} {
		e.metrics.Forget(name, key.Pool, key.Name)
	}
	e.usage.bytes -= bytesOf(key)
	delete(e.hosts, key)
}

// byHostResource are the series of a workload's allocation: one for each host, or one for each resource
// over all hosts.
func (w *workload) byHostResource() map[newest.HostResource]newest.Given {
	all := w.sums()
	if len(w.has) == len(all) || !w.inBrief && len(w.has) <= maxSpread {
		return w.has
	}
	return all
}

// sums returns the sums over all hosts, by resource.
func (w *workload) sums() map[newest.HostResource]newest.Given {
	all := make(map[newest.HostResource]newest.Given, 1)
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
	shown := map[newest.HostResource]bool{}
	for at, g := range w.byHostResource() {
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
func (e *Exporter) host(h *host, is *newest.Host) {
	sums := is.Sums()
	for resource := range is.Capacity {
		if _, gives := sums[resource]; !gives {
			sums[resource] = newest.Sum{}
		}
	}
	for resource := range h.resources {
		if _, still := sums[resource]; !still {
			e.metrics.Forget("trimtab_host_given", is.Pool, is.Name, resource)
			e.metrics.Forget("trimtab_host_capacity", is.Pool, is.Name, resource)
			delete(h.resources, resource)
		}
	}
	for resource, sum := range sums {
		if e.names.resource(resource) != resource {
			continue
		}
		h.resources[resource] = true
		e.set("trimtab_host_given", &sum.Amount, is.Pool, is.Name, resource)
		var capacity *float64
		if c, measured := is.Capacity[resource]; measured {
			capacity = &c
		}
		e.set("trimtab_host_capacity", capacity, is.Pool, is.Name, resource)
	}
	e.metrics.Gauge("trimtab_host_knobs", is.Pool, is.Name).Set(float64(len(is.Knobs)))
	e.metrics.Gauge("trimtab_host_unusable_knobs", is.Pool, is.Name).Set(float64(is.Problems))
	e.metrics.Gauge("trimtab_host_timestamp_seconds", is.Pool, is.Name).Set(math.Round(float64(is.Time.UnixMilli()) / 1000))
}
