package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/newest"
)

const (
	// maxHosts and maxHostBytes bound the hosts that are known and about how many bytes their knobs
	// take, all together; those that have not reported for the longest time are dropped first.
	// 1,000 hosts of 20 knobs take 8 MiB.
	maxHosts     = 10_000
	maxHostBytes = 96 << 20
	// silentAfter is the time since its last report after which a host is shown as silent: hosts
	// report at least every 5 s.
	silentAfter = time.Minute
	// skew is how far the clock of a host may be behind. A report that is older than that was kept
	// by the bus for a host that is gone.
	skew = 10 * time.Minute
)

// hostKey identifies a host in one pool.
type hostKey struct{ pool, name string }

// host is the last report of one host, for one pool.
type host struct {
	hostKey
	time      time.Time
	heard     time.Time // by the clock of this process, if known
	leaseLeft trimtab.Seconds
	paused    bool
	capacity  map[string]float64
	divided   bool
	unmet     []trimtab.Unmet
	// knobs are in order of workload, resource and instance.
	knobs []trimtab.KnobState
	cost  int // bytes, about
	// problems counts the knobs that cannot be used, since when.
	problems int
	since    time.Time
	lives    *newest.Lives // nil: no agent reports its life number
	trend    trend
}

// fleet has the hosts.
type fleet struct {
	hosts map[hostKey]*host
	bytes int // about the size of its knobs
}

// silent reports whether the host is overdue at now.
func (h *host) silent(now time.Time) bool { return now.Sub(h.heard) > silentAfter }

// lease returns the time until the lease of its allocation expires.
func (h *host) lease(now time.Time) trimtab.Seconds {
	return max(0, h.leaseLeft-trimtab.SecondsOf(now.Sub(h.heard)))
}

// gone reports whether the host's allocation no longer counts: the host is silent, and its lease
// has expired.
func (h *host) gone(now time.Time) bool { return h.silent(now) && h.lease(now) == 0 }

// of returns the host's knobs of one workload.
func (h *host) of(workload string) []trimtab.KnobState {
	from, _ := slices.BinarySearchFunc(h.knobs, workload, func(k trimtab.KnobState, name string) int { return strings.Compare(k.Workload, name) })
	n := 0
	for from+n < len(h.knobs) && h.knobs[from+n].Workload == workload {
		n++
	}
	return h.knobs[from : from+n : from+n]
}

// hear stores the report of a host. pool and resource are those of the view.
func (f *fleet) hear(said *trimtab.Holding, pool, resource string, all *workloads) {
	key := hostKey{cmp.Or(said.Pool, pool), said.Host}
	h := f.hosts[key]
	if h == nil {
		h = &host{hostKey: key}
		f.hosts[key] = h
	}
	now := time.Now()
	h.time, h.heard, h.leaseLeft, h.paused, h.capacity, h.divided = said.Time, now, said.LeaseLeft, said.Paused, said.Capacity, said.Divided
	h.unmet = takenUnmet(said.Unmet)
	if h.lives == nil && said.Life != 0 {
		h.lives = &newest.Lives{}
	}
	if h.lives != nil {
		h.lives.Heard(said.Life, now, silentAfter)
	}
	if now.Sub(said.Time) > skew {
		h.heard = said.Time
	}
	if knobs := taken(said, all); slices.EqualFunc(h.knobs, knobs, sameKnob) {
		h.knobs = knobs // the fast loop's state is always the newest
	} else {
		f.replaceKnobs(h, knobs, all)
	}
	if now.Unix()/60 != h.trend.minute {
		h.trend.note(now, h.given(resource))
	}
	for len(f.hosts) > maxHosts || f.bytes > maxHostBytes && len(f.hosts) > 1 {
		f.forgetBut(h, all)
	}
}

// taken are the knobs of a holding as they are kept, in order: alone, since the
// message may be long.
func taken(said *trimtab.Holding, all *workloads) []trimtab.KnobState {
	out := make([]trimtab.KnobState, 0, len(said.Targets))
	cost := 0
	for i := range said.Targets {
		k := said.Targets[i]
		if s := all.all[k.Workload]; s != nil {
			k.Workload = s.Name // shares the memory of the name
		}
		k.Pool, k.Host = said.Pool, said.Host
		k.Knob, k.Problem, k.Barred = brief(k.Knob), brief(k.Problem), brief(k.Barred)
		if cost += knobCost(&k); cost > maxHostBytes/4 {
			break
		}
		out = append(out, k)
	}
	slices.SortStableFunc(out, func(a, b trimtab.KnobState) int { return a.Compare(b.KnobID) })
	return out
}

// knobCost is about how many bytes a knob takes.
func knobCost(k *trimtab.KnobState) int {
	fast := 0
	if k.Fast != nil {
		fast = 260 + 40*len(k.Fast.From)
	}
	return 240 + fast + len(k.Workload) + len(k.Instance) + len(k.Resource) + len(k.Knob) + len(k.Problem) + len(k.Barred)
}

// sameKnob compares all fields that are shown, except the state of the fast loop.
func sameKnob(a, b trimtab.KnobState) bool {
	if (a.Effective == nil) != (b.Effective == nil) || a.Effective != nil && *a.Effective != *b.Effective || !a.Since.Equal(b.Since) {
		return false
	}
	if (a.Fast == nil) != (b.Fast == nil) {
		return false
	}
	a.Effective, a.Since = b.Effective, b.Since
	a.Fast = b.Fast // it changes all the time, and is read on request
	return a == b
}

// replaceKnobs replaces the knobs of h, and marks the affected workloads as changed.
func (f *fleet) replaceKnobs(h *host, knobs []trimtab.KnobState, all *workloads) {
	before, after := h.knobs, knobs
	h.knobs = knobs
	f.bytes -= h.cost
	h.cost = 0
	for i := range knobs {
		h.cost += knobCost(&knobs[i])
	}
	h.problems = problems(knobs)
	f.bytes += h.cost
	h.since = begun(h.since, h.problems > 0, h.time)
	for len(before) > 0 || len(after) > 0 {
		name := first(before, after)
		var was, is []trimtab.KnobState
		was, before = cutWorkload(before, name)
		is, after = cutWorkload(after, name)
		if !slices.EqualFunc(was, is, sameKnob) {
			all.moveIn(name, h, was, is)
		}
	}
}

// first is the first workload of two lists in order, of which one is not empty.
func first(a, b []trimtab.KnobState) string {
	if len(b) == 0 || len(a) > 0 && a[0].Workload <= b[0].Workload {
		return a[0].Workload
	}
	return b[0].Workload
}

// cutWorkload takes the knobs of a workload from the front of a list.
func cutWorkload(knobs []trimtab.KnobState, name string) (its, rest []trimtab.KnobState) {
	n := 0
	for n < len(knobs) && knobs[n].Workload == name {
		n++
	}
	return knobs[:n], knobs[n:]
}

// problems counts the knobs that cannot be used.
func problems(knobs []trimtab.KnobState) (n int) {
	for i := range knobs {
		if knobs[i].Problem != "" {
			n++
		}
	}
	return n
}

// moveIn records that a host's knobs of a workload changed.
func (w *workloads) moveIn(name string, h *host, was, is []trimtab.KnobState) {
	if w.all[name] == nil && len(is) == 0 {
		return
	}
	s := w.state(name)
	if s == nil {
		return
	}
	at, known := slices.BinarySearchFunc(s.hosts, h, (*host).compare)
	switch {
	case !known && len(is) == 0:
		return
	case !known:
		s.hosts, was = slices.Insert(s.hosts, at, h), nil
	case len(is) == 0:
		s.hosts = slices.Delete(s.hosts, at, at+1)
	}
	s.problems += problems(is) - problems(was)
	s.since.knob = begun(s.since.knob, s.problems > 0, h.time)
}

// settleIn finds the hosts of a workload for which there was no space when they reported it.
func (f *fleet) settleIn(s *state) {
	for _, h := range f.hosts {
		if its := h.of(s.Name); len(its) > 0 {
			s.hosts = append(s.hosts, h)
			s.problems += problems(its)
			s.since.knob = begun(s.since.knob, s.problems > 0, h.time)
		}
	}
	slices.SortFunc(s.hosts, (*host).compare)
}

func (h *host) compare(o *host) int {
	return cmp.Or(strings.Compare(h.name, o.name), strings.Compare(h.pool, o.pool))
}

// forgetBut drops the host that has not reported for the longest time, except keep.
func (f *fleet) forgetBut(keep *host, all *workloads) {
	var oldest *host
	for _, h := range f.hosts {
		if h != keep && (oldest == nil || h.heard.Before(oldest.heard)) {
			oldest = h
		}
	}
	f.drop(oldest, all)
}

func (f *fleet) drop(h *host, all *workloads) {
	f.replaceKnobs(h, nil, all)
	delete(f.hosts, h.hostKey)
}
