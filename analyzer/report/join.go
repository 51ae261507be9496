package report

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

// Join computes samples of a workload from those of its instances: one as soon as every instance
// that counts has a new value, so that no sum is too low. The windows of instances do not begin at
// the same time; those of one round are combined.
//
//	load, usage           Σ v_i
//	latency               max v_i                 the slowest sets the tail
//	performance, proxy    Σ n_i v_i / Σ n_i       by requests n_i, else by load
//	allocation            min v_i / f_i           as from holdings
//	throttled             max v_i                 of the same times as the usage
//	waited, queued        Σ v_i                   of the same times, of those that may wait
//
// Throttled is a maximum, since the workload is stopped by its limit as soon as the instance with
// the smallest a_i / f_i is. The sum of usage shows whether the others use up their limits as well.
type Join struct {
	// pending has the samples since the last tick. Tick sorts them by time, so that the order of
	// arrival does not matter.
	pending []*trimtab.Sample
	of      map[quantity.Quantity]*joined
	// there has the instances that holdings name, with true if the knob can be read; nil: no
	// holding has come. readable is the number of true ones.
	there    map[instanceID]bool
	readable int
	// alone has, by host, its instance if it has only one. host is the host of all instances, "" if
	// they are on several.
	alone map[string]string
	host  string
	// loads has the mean loads of the last half minute from samples, served those from spans.
	loads  map[instanceID]*meanLoad
	served served
}

// joined is the state of one quantity.
type joined struct {
	latest map[instanceID]*latest
	// extra counts the instances with a sample whose knobs cannot be read, fresh all instances with
	// a sample since the last sum.
	extra, fresh int
	// last is the time of the last sum, or before the first the time of the first sample.
	last time.Time
	// missing is the instance that was last reported as the one without a sample.
	missing instanceID
}

// latest is the latest sample of one instance, and the latest reason why there was none.
type latest struct {
	sample    *trimtab.Sample
	missing   string
	missingAt time.Time // time of missing
	fresh     bool
}

// meanLoad is the mean load of an instance, averaged exponentially with the time constant
// Remembered.
type meanLoad struct {
	load float64
	at   time.Time
}

const (
	// maxPending is the largest number of samples of instances of a workload between two ticks.
	maxPending = 8 * MaxInstances
	// leastLoad is the least load of an instance, as a fraction of the mean, so that an instance
	// without requests causes no division by zero.
	leastLoad = 0.01
)

// Observe keeps a sample until the next tick; false: there are too many.
func (j *Join) Observe(s *trimtab.Sample) bool {
	if len(j.pending) >= maxPending {
		return false
	}
	j.pending = append(j.pending, s)
	return true
}

// Idle reports whether no instance has sent a sample.
func (j *Join) Idle() bool { return len(j.pending)+len(j.of) == 0 }

func idOf(s *trimtab.Sample) instanceID { return instanceID{s.Host, s.Instance} }

// Tick combines the samples since the last tick, and calls give with each sample of the workload.
// It drops samples of instances whose knobs cannot be read once they are older than stale, and
// everything of instances that are gone.
func (j *Join) Tick(now time.Time, h *History, stale func(quantity.Quantity) time.Duration, give func(*trimtab.Sample)) {
	if len(j.pending) == 0 {
		return
	}
	j.look(h)
	for q, v := range j.of {
		v.extra = 0
		for id, t := range v.latest {
			switch {
			case j.there[id]:
			case !j.mayReport(id), t.sample == nil, now.Sub(t.sample.Time) > stale(q):
				v.drop(id)
			default:
				v.extra++
			}
		}
		if len(v.latest) == 0 {
			delete(j.of, q)
		}
	}
	maps.DeleteFunc(j.loads, func(id instanceID, _ *meanLoad) bool { return !j.mayReport(id) })
	slices.SortFunc(j.pending, func(a, b *trimtab.Sample) int {
		return cmp.Or(a.Time.Compare(b.Time), cmp.Compare(order(a.Quantity), order(b.Quantity)), idOf(a).compare(idOf(b)), cmp.Compare(a.Missing, b.Missing),
			cmp.Compare(a.Source, b.Source), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Requests, b.Requests))
	})
	for _, s := range j.pending {
		if s = j.placed(s); j.mayReport(idOf(s)) {
			j.see(s, give)
		}
	}
	clear(j.pending)
	j.pending = j.pending[:0]
}

// order returns the sort key among samples of the same time: usage comes after the quantities that
// are combined with it.
func order(q quantity.Quantity) string {
	if q == quantity.Usage {
		return "~"
	}
	return string(q)
}

// look updates the set of existing instances from the history.
func (j *Join) look(h *History) {
	j.there, j.alone, j.host, j.readable = nil, nil, "", 0
	if len(h.hosts) == 0 {
		return
	}
	j.there, j.alone = map[instanceID]bool{}, map[string]string{}
	on := map[string]int{}
	h.present(func(id instanceID, _ *instance, readable bool) {
		if on[id.host]++; on[id.host] == 1 {
			j.alone[id.host] = id.name
		} else {
			delete(j.alone, id.host)
		}
		if j.there[id] = readable; readable {
			j.readable++
		}
		j.host = id.host
	})
	if len(on) > 1 {
		j.host = ""
	}
}

// placed sets the instance of a sample without one, if its host has only one: a source that counts
// by host need not know how the agent names it.
func (j *Join) placed(s *trimtab.Sample) *trimtab.Sample {
	only, found := j.alone[s.Host]
	if !found || s.Instance != "" || only == "" {
		return s
	}
	of := *s
	of.Instance = only
	return &of
}

// mayReport reports whether the instance exists, or may exist because no holding has come.
func (j *Join) mayReport(id instanceID) bool {
	_, there := j.there[id]
	return there || j.there == nil
}

func (v *joined) drop(id instanceID) {
	if v.latest[id].fresh {
		v.fresh--
	}
	delete(v.latest, id)
}

// see adds one sample. If it was the last one missing, it makes a sample of the workload.
func (j *Join) see(s *trimtab.Sample, give func(*trimtab.Sample)) {
	id := idOf(s)
	v := j.quantity(s)
	if v == nil {
		return
	}
	t := v.latest[id]
	if t == nil {
		if len(v.latest) >= MaxInstances {
			return
		}
		t = &latest{}
		v.latest[id] = t
	}
	if s.Missing != "" {
		t.missing, t.missingAt = s.Missing, s.Time
		return
	}
	switch {
	case t.sample == nil:
		if !j.there[id] {
			v.extra++
		}
	case !s.Time.After(t.sample.Time):
		return
	}
	if !t.fresh {
		v.fresh++
	}
	*t = latest{sample: s, fresh: true}
	if s.Quantity == quantity.Load {
		weigh(j.loads, id, s.Time, s.Value)
	}
	if !slices.Contains(besideUsage(), s.Quantity) && v.fresh >= j.readable+v.extra {
		j.give(s.Quantity, v, give)
	}
}

// quantity returns the state for the quantity of s; nil: that quantity is not combined.
func (j *Join) quantity(s *trimtab.Sample) *joined {
	if v := j.of[s.Quantity]; v != nil {
		return v
	}
	if !slices.Contains(besideUsage(), s.Quantity) && !slices.Contains(summed(), s.Quantity) {
		return nil
	}
	if j.of == nil {
		j.of = map[quantity.Quantity]*joined{}
	}
	if j.loads == nil {
		j.loads = map[instanceID]*meanLoad{}
	}
	v := &joined{latest: map[instanceID]*latest{}, last: s.Time}
	j.of[s.Quantity] = v
	return v
}

// summed returns the quantities that are combined on their own, not together with usage.
func summed() []quantity.Quantity {
	return []quantity.Quantity{quantity.Load, quantity.Usage, quantity.Performance, quantity.Proxy, quantity.Latency, quantity.Allocation}
}

// weigh adds a measured load of an instance to its mean.
func weigh(loads map[instanceID]*meanLoad, id instanceID, at time.Time, load float64) {
	m := loads[id]
	if m == nil || at.Before(m.at) { // a restored state may lie in the future
		loads[id] = &meanLoad{load, at}
		return
	}
	m.load += (1 - math.Exp(-at.Sub(m.at).Seconds()/Remembered.Seconds())) * (load - m.load)
	m.at = at
}

// give makes a sample of the workload from those of its instances.
func (j *Join) give(q quantity.Quantity, v *joined, give func(*trimtab.Sample)) {
	var parts []*trimtab.Sample
	for _, t := range v.latest {
		if t.sample != nil {
			t.fresh = false
			parts = append(parts, t.sample)
		}
	}
	slices.SortFunc(parts, func(a, b *trimtab.Sample) int { return idOf(a).compare(idOf(b)) })
	whole := j.sum(parts)
	v.fresh, v.last, v.missing = 0, whole.Time, instanceID{}
	if whole.Validate() != nil {
		return // the sum overflowed
	}
	give(whole)
	if q != quantity.Usage {
		return
	}
	for _, q := range besideUsage() {
		if with := j.beside(q, parts); with != nil {
			with.Time, with.Window = whole.Time, whole.Window
			give(with)
		}
	}
}

// sum combines the samples of one or more instances, in order of instance.
func (j *Join) sum(parts []*trimtab.Sample) *trimtab.Sample {
	first := parts[0]
	out := &trimtab.Sample{Workload: first.Workload, Quantity: first.Quantity, Source: first.Source, Time: first.Time}
	counted, noisy := true, true
	for _, s := range parts {
		if s.Time.Before(out.Time) {
			out.Time = s.Time
		}
		out.Window = max(out.Window, s.Window)
		out.Requests += s.Requests
		counted, noisy = counted && s.Requests > 0, noisy && s.Sigma > 0
	}
	if !counted {
		out.Requests = 0
	}
	shares := j.sharesOf(parts)
	least, sum, variance := math.Inf(1), 0.0, 0.0
	for i, s := range parts {
		weight := shares[i]
		if counted {
			weight = s.Requests / out.Requests
		}
		switch s.Quantity {
		case quantity.Load, quantity.Usage:
			weight = 1
		}
		sum += weight * s.Value
		variance += weight * weight * s.Sigma * s.Sigma
		least = math.Min(least, s.Value/shares[i])
		if s.Quantity == quantity.Latency {
			out.Value = math.Max(out.Value, s.Value)
		}
	}
	switch first.Quantity {
	case quantity.Latency:
	case quantity.Allocation:
		out.Value = least
	default:
		if out.Value = sum; noisy {
			out.Sigma = math.Sqrt(variance)
		}
	}
	return out
}

// sharesOf returns the shares of the load that the instances of the samples serve.
func (j *Join) sharesOf(parts []*trimtab.Sample) []float64 {
	loads := Loads{}
	known := slices.ContainsFunc([]map[instanceID]*meanLoad{j.loads, j.served.loads}, func(of map[instanceID]*meanLoad) bool {
		clear(loads)
		for _, s := range parts {
			if m := of[idOf(s)]; m != nil {
				loads[idOf(s)] = m.load
			}
		}
		return len(loads) == len(parts) && bounded(loads)
	})
	shares, sum := make([]float64, len(parts)), 0.0
	for i, s := range parts {
		if shares[i] = 1; known {
			shares[i] = loads[idOf(s)]
		}
		sum += shares[i]
	}
	for i := range shares {
		shares[i] /= sum
	}
	return shares
}

// total returns the sum of loads. It adds in a fixed order, so that the result is always exactly
// the same.
func total(loads Loads) (sum float64) {
	for _, id := range slices.SortedFunc(maps.Keys(loads), instanceID.compare) {
		sum += loads[id]
	}
	return sum
}

// bounded raises each load to at least leastLoad times the mean. It returns false if the sum is not
// positive and finite.
func bounded(loads Loads) bool {
	sum := total(loads)
	if !(sum > 0) || math.IsInf(sum, 1) {
		return false
	}
	for id, load := range loads {
		loads[id] = math.Max(load, leastLoad*sum/float64(len(loads)))
	}
	return true
}

// Known returns the mean loads of all instances whose knobs can be read, or nil if there is only
// one or the load of one is not recent. Loads from samples are preferred to loads from spans. The
// latter may be twice as old: spans are counted for up to stale before they give a load, and one
// failed count does not invalidate the load before.
func (j *Join) Known(h *History, now time.Time, stale time.Duration) Loads {
	if loads := j.since(h, j.loads, now.Add(-stale)); loads != nil {
		return loads
	}
	return j.since(h, j.served.loads, now.Add(-2*stale))
}

// since returns the mean loads of all readable instances that were updated since a time; nil if one
// is missing.
func (j *Join) since(h *History, told map[instanceID]*meanLoad, since time.Time) Loads {
	if len(told) == 0 {
		return nil
	}
	if j.look(h); j.readable < 2 {
		return nil
	}
	loads := Loads{}
	for id, readable := range j.there {
		m := told[id]
		switch {
		case !readable:
		case m == nil || m.at.Before(since):
			return nil
		default:
			loads[id] = m.load
		}
	}
	if !bounded(loads) {
		return nil
	}
	return loads
}

// Shares returns the shares of the load, in order of host and instance.
func (loads Loads) Shares() []trimtab.LoadShare {
	if len(loads) == 0 {
		return nil
	}
	sum := total(loads)
	var out []trimtab.LoadShare
	for _, id := range slices.SortedFunc(maps.Keys(loads), instanceID.compare) {
		out = append(out, trimtab.LoadShare{Host: id.host, Instance: id.name, Share: loads[id] / sum})
	}
	return out
}

// ReportMissing reports quantities without a new sum for longer than late. For each it calls say once,
// with the first instance whose sample is missing.
func (j *Join) ReportMissing(now time.Time, h *History, late func(quantity.Quantity) time.Duration, say func(*trimtab.Sample)) {
	for _, q := range summed() {
		v := j.of[q]
		if v == nil || now.Sub(v.last) <= late(q) {
			continue
		}
		j.look(h)
		id, lacks := j.firstMissing(v)
		if !lacks || v.missing == id {
			continue
		}
		v.missing = id
		why := "no sample of " + id.String()
		if t := v.latest[id]; t != nil && t.missing != "" {
			why += ": " + t.missing
		}
		say(&trimtab.Sample{Host: id.host, Instance: id.name, Quantity: q, Time: now, Missing: why})
	}
}

// firstMissing returns the first instance, in order, that exists or has reported before, and has no
// new sample of v's quantity; false: there is none.
func (j *Join) firstMissing(v *joined) (first instanceID, found bool) {
	consider := func(id instanceID, t *latest) {
		if (t == nil || !t.fresh) && (!found || id.compare(first) < 0) {
			first, found = id, true
		}
	}
	for id, t := range v.latest {
		consider(id, t)
	}
	for id, there := range j.there {
		if t := v.latest[id]; there && t == nil {
			consider(id, t)
		}
	}
	return first, found
}
