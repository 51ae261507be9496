package planner

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// ledger is what the planner knows that the knobs give, and what they may yet
// give: for each knob the highest of the value last read back, of the one in
// force while that is pending, and of every grow that was released and not
// answered. For each resource their sum never exceeds the capacity by the
// planner's doing.
type ledger struct {
	// pool is the one that the knobs are of.
	pool    string
	entries map[trimtab.KnobID]*entry
	hosts   map[string]*hostState
	// lease is how long a host holds what a plan says.
	lease time.Duration
	// term is the leader's epoch and since when; issued are its plans of the last
	// lease, in order.
	epoch  uint64
	since  time.Time
	issued []issued
	// siblings counts the entries of one resource of one workload.
	siblings map[trimtab.KnobID]int
	// list is the entries in order of their names; nil: to be sorted.
	list []*entry
}

// entry is one knob.
type entry struct {
	trimtab.KnobID
	held trimtab.KnobState
	// dial is what is kept of the resource of the workload; nil: not looked up.
	dial *dial
	// order is that of the message that held.Now and Effective come from.
	order order
	// gone tells that the host's last holding did not list the knob.
	gone bool
	// goneSince is when that was first seen.
	goneSince time.Time
	// fresh tells that it appeared while other instances of the workload were
	// there, and was not given its part yet.
	fresh bool
	// holdings is that of its host when it was last listed.
	holdings uint64
	// grows are released and not yet answered.
	grows []grow
}

// grow is a released rise: until it is answered it may have happened.
type grow struct {
	id    stepID
	set   trimtab.Amount
	until time.Time
}

// stepID names one step of one plan.
type stepID struct {
	epoch, sequence uint64
	step            int
}

func (a stepID) compare(b stepID) int {
	return cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.sequence, b.sequence), cmp.Compare(a.step, b.step))
}

// order tells later from earlier messages of one host: by the plan that the
// host had accepted, then by its clock.
type order struct {
	epoch, sequence uint64
	time            time.Time
}

func (a order) before(b order) bool {
	if c := cmp.Or(cmp.Compare(a.epoch, b.epoch), cmp.Compare(a.sequence, b.sequence)); c != 0 {
		return c < 0
	}
	return a.time.Before(b.time)
}

// hostState is what is known of a host.
type hostState struct {
	// order is that of the last holding, heard when it arrived.
	order  order
	heard  time.Time
	paused bool
	// capacity is what the pool has of it, by resource; see [trimtab.Holding].
	capacity map[string]float64
	// knobs are its entries; listed is how many of them the last holding named, and
	// holdings counts these.
	knobs    map[trimtab.KnobID]*entry
	listed   int
	holdings uint64
}

// issued is a plan and when it went out.
type issued struct {
	sequence uint64
	at       time.Time
}

func newLedger(pool string, lease time.Duration) ledger {
	return ledger{pool: pool, lease: lease, entries: map[trimtab.KnobID]*entry{}, siblings: map[trimtab.KnobID]int{}, hosts: map[string]*hostState{}}
}

// begin notes a new term.
func (l *ledger) begin(epoch uint64, now time.Time) { l.epoch, l.since, l.issued = epoch, now, nil }

// issue notes a plan that goes out.
func (l *ledger) issue(sequence uint64, now time.Time) {
	l.issued = slices.DeleteFunc(l.issued, func(i issued) bool { return now.Sub(i.at) > l.lease })
	l.issued = append(l.issued, issued{sequence, now})
}

func (l *ledger) host(name string) *hostState {
	h := l.hosts[name]
	if h == nil {
		h = &hostState{knobs: map[trimtab.KnobID]*entry{}}
		l.hosts[name] = h
	}
	return h
}

// lost reports whether the lease of a host may end unseen, while that of another
// does not: when all may, it is the planner that is cut off.
func (l *ledger) lost(name string, now time.Time) bool {
	if l.renews(l.host(name), now) {
		return false
	}
	for _, h := range l.hosts {
		if l.renews(h, now) {
			return true
		}
	}
	return false
}

// renews reports whether a host is heard, and has accepted a plan of the last
// half of a lease: what it says may have been on its way for long, and then tells
// of an old plan.
func (l *ledger) renews(h *hostState, now time.Time) bool {
	if now.Sub(h.heard) > l.lease/3 {
		return false
	}
	from := now // of a later term, of which this planner hears soon
	switch {
	case h.order.epoch < l.epoch:
		from = l.since
	case h.order.epoch == l.epoch:
		i, found := slices.BinarySearchFunc(l.issued, h.order.sequence, func(i issued, n uint64) int { return cmp.Compare(i.sequence, n) })
		switch {
		case found:
			from = l.issued[i].at
		case i == 0:
			from = l.since
		}
	}
	return now.Sub(from) <= l.lease/2
}

// maxHosts bounds the hosts that are known. One more is not: its knobs count as
// those of nobody, and their workloads hold.
const maxHosts = 10_000

// knows reports whether the host has, or had, a knob of ours: no other has
// anything to say.
func (l *ledger) knows(in *trimtab.Holding, ours func(*trimtab.KnobState) bool) bool {
	if l.hosts[in.Host] != nil {
		return true
	}
	if len(l.hosts) >= maxHosts {
		return false
	}
	for i := range in.Targets {
		if ours(&in.Targets[i]) {
			return true
		}
	}
	return false
}

// paused reports whether a host that has a knob of ours says that it is.
func (l *ledger) paused() bool {
	for _, e := range l.entries {
		if h := l.hosts[e.Host]; !e.gone && h != nil && h.paused {
			return true
		}
	}
	return false
}

// hold takes in a holding, of the knobs that are ours, and reports whether it
// was news: a holding that is older than the last is late. A host whose clock
// was set back is heard again with the next plan that it accepts.
func (l *ledger) hold(now time.Time, in *trimtab.Holding, ours func(*trimtab.KnobState) bool) bool {
	if !l.knows(in, ours) {
		return false
	}
	h := l.host(in.Host)
	o := order{in.Epoch, in.Sequence, in.Time}
	if o.before(h.order) {
		return false
	}
	h.order, h.heard, h.paused, h.capacity = o, now, in.Paused, maps.Clone(in.Capacity)
	h.holdings++
	h.listed = 0
	for i := range in.Targets {
		t := in.Targets[i]
		if !ours(&t) {
			continue
		}
		t.Pool = l.pool // builds of version 1 did not say
		e := l.entries[t.KnobID]
		if e == nil {
			e = l.entry(t.KnobID)
			// Until all hosts were heard, others are new to the planner only.
			e.fresh = (t.Now.Unlimited || now.Sub(l.since) > l.lease) && l.siblings[kin(t.KnobID)] > 1
		}
		if e.gone = false; e.holdings != h.holdings {
			e.holdings = h.holdings
			h.listed++
		}
		if o.before(e.order) {
			t.Now, t.Effective = e.held.Now, e.held.Effective // an outcome told of later values
		} else {
			e.order = o
		}
		e.held = t
		// Plans before the one that the host has accepted have happened, and
		// were read, or never will.
		e.answered(stepID{in.Epoch, in.Sequence, 0})
	}
	if h.listed < len(h.knobs) {
		for _, e := range h.knobs {
			if e.holdings != h.holdings && !e.gone {
				e.gone, e.goneSince = true, now
			}
		}
	}
	return true
}

// entry returns the knob of that name, making it.
func (l *ledger) entry(id trimtab.KnobID) *entry {
	e := l.entries[id]
	if e == nil {
		e = &entry{KnobID: id}
		l.entries[id], l.host(id.Host).knobs[id], l.list = e, e, nil
		l.siblings[kin(id)]++
	}
	return e
}

// kin names the resource of the workload that a knob is of.
func kin(id trimtab.KnobID) trimtab.KnobID {
	return trimtab.KnobID{Workload: id.Workload, Resource: id.Resource}
}

// answered forgets the grows of steps before id.
func (e *entry) answered(id stepID) {
	e.grows = slices.DeleteFunc(e.grows, func(g grow) bool { return g.id.compare(id) < 0 })
}

// read takes in the results of an outcome. Only a result of the very knob
// answers its grows: another's says nothing of what this one holds. A refused
// plan may be the repetition of one that was carried out: it answers nothing.
func (l *ledger) read(in *trimtab.Outcome) {
	o := order{in.Epoch, in.Sequence, in.Time}
	for _, r := range in.Results {
		e := l.entries[r.KnobID]
		if e == nil || !r.Known {
			continue
		}
		if !o.before(e.order) {
			e.order, e.held.Now, e.held.Effective = o, r.Found, r.Effective
		}
		if in.Refused == "" {
			e.answered(stepID{in.Epoch, in.Sequence, in.Step + 1})
		}
	}
}

// gives is the most that the knob gives, or will when what is pending arrives.
func (e *entry) gives(most float64) float64 {
	return max(bounded(e.held.Now, most), bounded(e.held.InForce(), most))
}

// believed returns the most that the knob gives, or will when what is pending
// and the grows that were released to it arrive, or when the lease of a lost host
// ends and its baseline comes back. most stands for unlimited.
func (l *ledger) believed(e *entry, most float64, now time.Time) float64 {
	v := e.gives(most)
	if l.lost(e.Host, now) {
		v += e.lends(most)
	}
	for _, g := range e.grows {
		if !now.After(g.until) {
			v = max(v, bounded(g.set, most))
		}
	}
	return v
}

// lends returns what comes back to the knob with its baseline. One that had no
// limit before has lent nothing that could be counted.
func (e *entry) lends(most float64) float64 {
	if e.held.Baseline.Unlimited {
		return 0
	}
	return max(0, min(e.held.Baseline.Value, most)-e.gives(most))
}

// reserve returns the most that the knob may give: what is believed, and most
// while a former leader's plan may still be turning it.
func (l *ledger) reserve(e *entry, most float64, t term) float64 {
	v := l.believed(e, most, t.now)
	if !t.fenced(e) {
		v = max(v, most)
	}
	return v
}

// term is the leader's epoch, since when, and now.
type term struct {
	epoch      uint64
	since, now time.Time
	// lease is how long a former leader's plans can still be carried out.
	lease time.Duration
}

// fenced reports whether no plan of a former leader can change what e was read
// to be: it was read after its host had accepted a plan of this term, or all
// former plans have run out.
func (t term) fenced(e *entry) bool {
	return e.order.epoch >= t.epoch || t.now.Sub(t.since) > t.lease
}

// live returns the hosts that have knobs, in order.
func (l *ledger) live() []string {
	has := map[string]bool{}
	for _, e := range l.entries {
		if !e.gone {
			has[e.Host] = true
		}
	}
	return slices.Sorted(maps.Keys(has))
}

// sorted returns the entries in order of their names.
func (l *ledger) sorted() []*entry {
	if l.list == nil {
		l.list = slices.SortedFunc(maps.Values(l.entries), func(a, b *entry) int { return a.Compare(b.KnobID) })
	}
	return l.list
}

// of returns the knobs of one resource of one workload, in order of host.
func (l *ledger) of(workload, resource string) []*entry {
	all := l.sorted()
	first, _ := slices.BinarySearchFunc(all, trimtab.KnobID{Pool: l.pool, Workload: workload, Resource: resource},
		func(e *entry, id trimtab.KnobID) int { return e.Compare(id) })
	last := first
	for last < len(all) && all[last].Workload == workload && all[last].Resource == resource {
		last++
	}
	return all[first:last]
}

// prune forgets knobs that are gone for longer than after, when another host
// has the workload by now, or when they were of one of several instances.
func (l *ledger) prune(now time.Time, after time.Duration) {
	dead := map[trimtab.KnobID]int{} // on all hosts
	var gone []*entry
	for id, e := range l.entries {
		if e.gone {
			dead[kin(id)]++
			gone = append(gone, e)
		}
	}
	for _, e := range gone {
		id := e.KnobID
		if (id.Instance != "" || dead[kin(id)] < l.siblings[kin(id)]) && now.Sub(e.goneSince) > after {
			delete(l.entries, id)
			delete(l.host(id.Host).knobs, id)
			dead[kin(id)]--
			if l.siblings[kin(id)]--; l.siblings[kin(id)] == 0 {
				delete(l.siblings, kin(id))
			}
			l.list = nil
		}
	}
}

// bounded returns a's value, or most when it is unlimited.
func bounded(a trimtab.Amount, most float64) float64 {
	if a.Unlimited {
		return most
	}
	return a.Value
}
