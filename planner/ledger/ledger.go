package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Config says whose knobs the ledger keeps.
type Config struct {
	// Pool is the one that the knobs are of.
	Pool string
	// Lease is how long a host holds what a plan says.
	Lease time.Duration
	// Steady is how long a host that was lost twice must not be lost again before what its knobs
	// have below their baselines is given to others; 0: at once.
	Steady time.Duration
	// Shared: several hosts may have knobs of the pool, even if only one has reported so far.
	Shared bool
	// Most returns what a knob counts as while nothing limits it, by workload and
	// resource, and whether it is one of the pool's. It does not change.
	Most func(workload, resource string) (most float64, ours bool)
	// Coming returns what instances take of a resource that were requested and have no knob yet;
	// nil: nothing.
	Coming func(resource string) float64
}

// Totals are counted since the ledger was made.
type Totals struct {
	// Excess counts reports of knobs beyond the most that a host may have. Returns counts
	// holdings by which two agents claim to be one host.
	Excess, Returns uint64
}

// Ledger keeps the knobs of one pool. It is not safe for concurrent use.
type Ledger struct {
	Config
	Totals
	knobs map[trimtab.KnobID]*Knob
	hosts map[string]*host
	// The term is the leader's epoch and since when; issued are its plans of the
	// last lease, in order.
	epoch  uint64
	since  time.Time
	issued []issued
	// states caches the time for which the states of the hosts are known; see stand.
	states hostStates
	// siblings are the knobs of one resource of one workload, sorted, except for the keys in
	// disorder, to which knobs were added since.
	siblings map[kin][]*Knob
	disorder map[kin]bool
	// gone are the knobs that the last holding of their host did not list, and when
	// that was first seen.
	gone map[*Knob]time.Time
	// list has the knobs in order of their names, sites the indices of their hosts; nil: to be
	// built again.
	list  []*Knob
	sites []int32
	// nodes are the sites of nodes, by host and node.
	nodes map[[2]string]int
	// places counts the sites.
	places int
}

// kin names one resource of one workload.
type kin struct{ workload, resource string }

func kinOf(id *trimtab.KnobID) kin { return kin{id.Workload, id.Resource} }

// Knob is the state of one knob.
type Knob struct {
	trimtab.KnobID
	host *host
	// at is its index once all knobs are listed; site is the site whose capacity bounds it.
	at, site int
	// Held is the newest report of it.
	Held trimtab.KnobState
	// Fresh: it appeared while other instances of the workload existed; the caller that has given
	// it its share clears this.
	Fresh bool
	// Owes: its host refused to lower it (it may lower only so many at a time), so that it has
	// more than it was to have.
	Owes bool
	// Takes is how much of the pool it counts for while it has no limit and is to have none, in the
	// resource's unit; nil: Most.
	Takes *float64
	// most is the declared amount that a knob without a limit counts for.
	most float64
	// order is that of the message that Held.Now and Effective come from.
	order order
	// gone says that the host's last holding did not list the knob.
	gone bool
	// holdings is that of its host when it was last listed.
	holdings uint64
	// grows are released and not yet answered.
	grows []grow
}

// grow is a released rise: until it is answered it may have happened.
type grow struct {
	id    StepID
	set   trimtab.Amount
	until time.Time
}

// StepID names one step of one plan.
type StepID struct {
	Epoch, Sequence uint64
	Step            int
}

func (a StepID) compare(b StepID) int {
	return cmp.Or(cmp.Compare(a.Epoch, b.Epoch), cmp.Compare(a.Sequence, b.Sequence), cmp.Compare(a.Step, b.Step))
}

// order compares two messages of one host: by the plan that the host had accepted, then by its clock.
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

// issued is a plan and when it was published.
type issued struct {
	sequence uint64
	at       time.Time
}

// New returns a ledger that knows nothing yet.
func New(c Config) *Ledger {
	return &Ledger{Config: c, knobs: map[trimtab.KnobID]*Knob{}, hosts: map[string]*host{}, siblings: map[kin][]*Knob{}, disorder: map[kin]bool{}, gone: map[*Knob]time.Time{}, nodes: map[[2]string]int{}}
}

// Begin notes a new term.
func (l *Ledger) Begin(epoch uint64, now time.Time) {
	l.epoch, l.since, l.issued, l.states = epoch, now, nil, hostStates{}
}

// Issue records a plan that is published.
func (l *Ledger) Issue(sequence uint64, now time.Time) {
	l.issued = slices.DeleteFunc(l.issued, func(i issued) bool { return now.Sub(i.at) > l.Lease })
	l.issued, l.states = append(l.issued, issued{sequence, now}), hostStates{}
}

const (
	// maxHosts bounds the known hosts. The knobs of further hosts are ignored, and their workloads
	// keep what they have.
	maxHosts = 10_000
	// maxKnobs bounds the known knobs of a host, with those that are gone: twice what an agent
	// sets, since all may be replaced within a lease. A further knob is ignored.
	maxKnobs = 24_000
)

// knows reports whether the host has, or had, a knob of this pool: reports of others are ignored.
func (l *Ledger) knows(in *trimtab.Holding) bool {
	if l.hosts[in.Host] != nil {
		return true
	}
	if len(l.hosts) >= maxHosts {
		return false
	}
	for i := range in.Targets {
		if _, ours := l.Most(in.Targets[i].Workload, in.Targets[i].Resource); ours {
			return true
		}
	}
	return false
}

// Paused reports whether a host with a knob of the pool says that it is paused.
func (l *Ledger) Paused() bool {
	for _, h := range l.hosts {
		if h.paused && h.any(func(*Knob) bool { return true }) {
			return true
		}
	}
	return false
}

// Hold reads the knobs of this pool in a holding, and reports whether the holding was new. One
// that is older than the last is late; one that is as old is a repetition, and does not count as
// a report of the host. A host whose clock was set back counts as reporting again with the next
// plan that it accepts.
func (l *Ledger) Hold(now time.Time, in *trimtab.Holding) bool {
	if !l.knows(in) {
		return false
	}
	h := l.host(in.Host)
	if h.incarnations.Observe(in.Life, now, l.Lease) {
		l.Returns++
	}
	o := order{in.Epoch, in.Sequence, in.Time}
	if !h.order.before(o) {
		return false
	}
	h.order, h.reportedAt, h.paused = o, now, in.Paused
	h.accept(o.epoch, o.sequence)
	h.capacity, h.divided, h.pace = maps.Clone(in.Capacity), in.Divided, in.Pace
	switch {
	case in.LeaseLeft <= 0:
		h.ends = time.Time{} // it is at its baselines
	case in.Time.Before(now): // it was kept for whoever leads next
		h.ends = in.Time.Add(in.LeaseLeft.Duration())
	default:
		h.ends = now.Add(in.LeaseLeft.Duration())
	}
	l.states = hostStates{}
	h.holdings++
	if len(h.listing) != len(in.Targets) {
		h.listing = make([]*Knob, len(in.Targets))
	}
	listed := 0
	for i := range in.Targets {
		t := &in.Targets[i]
		e := l.named(now, h.listing[i], t)
		if h.listing[i] = nil; e == nil {
			continue
		}
		if e.host == h { // which it is, but of a host that tells of another's
			h.listing[i] = e
		}
		if e.gone {
			e.gone = false
			delete(l.gone, e)
		}
		if e.holdings != h.holdings {
			e.holdings = h.holdings
			listed++
		}
		set, effective := t.Now, t.Effective
		if !e.order.before(o) {
			set, effective = e.Held.Now, e.Held.Effective // an outcome told of later values
		} else {
			e.order = o
		}
		e.Held = *t
		e.Held.KnobID, e.Held.Now, e.Held.Effective = e.KnobID, set, effective
		l.settle(e)
		// Plans before the one that the host has accepted have happened, and
		// were read, or never will.
		e.answered(StepID{in.Epoch, in.Sequence, 0})
	}
	if listed < len(h.knobs) {
		for _, e := range h.knobs {
			if e.holdings != h.holdings && !e.gone {
				e.gone, l.gone[e] = true, now
			}
		}
	}
	return true
}

// named returns the knob of that name, creating it; guess is tried first. nil: it is none of this
// pool's.
func (l *Ledger) named(now time.Time, guess *Knob, t *trimtab.KnobState) *Knob {
	id := t.KnobID
	id.Pool = l.Pool // builds of version 1 did not say
	if guess != nil && guess.KnobID == id {
		return guess
	}
	if k := l.knobs[id]; k != nil {
		return k
	}
	most, ours := l.Most(id.Workload, id.Resource)
	if !ours {
		return nil
	}
	if len(l.host(id.Host).knobs) >= maxKnobs {
		l.Excess++
		return nil
	}
	k := l.enter(id, most)
	// Until all hosts have reported, a knob may be new to this planner only.
	k.Fresh = (t.Now.Unlimited || now.Sub(l.since) > l.Lease) && len(l.siblings[kinOf(&id)]) > 1
	return k
}

// enter makes a knob.
func (l *Ledger) enter(id trimtab.KnobID, most float64) *Knob {
	k := &Knob{KnobID: id, host: l.host(id.Host), most: most}
	k.site = k.host.at
	k.host.knobs = append(k.host.knobs, k)
	of := kinOf(&id)
	l.siblings[of], l.disorder[of] = append(l.siblings[of], k), true
	l.knobs[id], l.list = k, nil
	return k
}

// answered forgets the grows of steps before id.
func (k *Knob) answered(id StepID) {
	k.grows = slices.DeleteFunc(k.grows, func(g grow) bool { return g.id.compare(id) < 0 })
}

// Read reads the results of an outcome. Only a result for this very knob answers its grows:
// another's does not show what this one has. A refused plan answers nothing, since it may be the
// repetition of one that was carried out. It reports whether a knob got a newer value than
// before.
func (l *Ledger) Read(in *trimtab.Outcome) (news bool) {
	o := order{in.Epoch, in.Sequence, in.Time}
	if h := l.hosts[in.Host]; h != nil && in.Refused == "" {
		h.accept(in.Epoch, in.Sequence)
	}
	for _, r := range in.Results {
		e := l.knobs[r.KnobID]
		if e == nil || !r.Known {
			continue
		}
		news = news || e.order.before(o)
		e.Owes = r.Status == trimtab.Refused && r.Asked.Less(r.Found)
		late := o.before(e.order)
		if !late {
			e.order, e.Held.Now, e.Held.Effective = o, r.Found, r.Effective
		}
		// A clock that was set back makes the newest reading look late: then a grow
		// that happened is still to be counted.
		if in.Refused == "" && !(late && e.taken(r.Found) > e.gives()) {
			e.answered(StepID{in.Epoch, in.Sequence, in.Step + 1})
		}
	}
	return news
}

// Release records a grow that is published with a step: until it is answered, or until that time,
// it may have happened.
func (k *Knob) Release(id StepID, set trimtab.Amount, until time.Time) {
	k.grows = append(k.grows, grow{id: id, set: set, until: until})
}

// Believed returns the most that the knob takes: now, once pending values and released grows are
// in force, or once the lease of a lost or flapping host ends and its baseline comes back.
func (l *Ledger) Believed(k *Knob, now time.Time) float64 {
	v := k.gives()
	if l.Lost(k, now) || l.flaps(k.host, now) {
		v += k.Lends()
	}
	for _, g := range k.grows {
		if !now.After(g.until) {
			v = max(v, k.bounded(g.set))
		}
	}
	return v
}

// Reserve returns the most that the knob may give: the believed amount; its baseline
// if the lease of its host may have ended, even if only this planner is cut off,
// since a plan may yet reach others; and Most while a former leader's plan may
// still set it.
func (l *Ledger) Reserve(k *Knob, now time.Time) float64 {
	v := l.Believed(k, now)
	if l.updateStates(now); l.Many() && !k.host.renews {
		v = max(v, k.gives()+k.Lends())
	}
	if !l.Fenced(k, now) {
		v = max(v, k.Most())
	}
	return v
}

// Fenced reports whether no plan of a former leader can change what the knob was
// read to be: it was read after its host had accepted a plan of this term, or all
// former plans have run out.
func (l *Ledger) Fenced(k *Knob, now time.Time) bool {
	return k.order.epoch >= l.epoch || now.Sub(l.since) > l.Lease
}

// Unfenced reports whether a former leader may still set a knob.
func (l *Ledger) Unfenced(now time.Time) bool {
	for _, h := range l.hosts {
		if h.any(func(k *Knob) bool { return !l.Fenced(k, now) }) {
			return true
		}
	}
	return false
}

// Knob returns the knob of that name, or nil.
func (l *Ledger) Knob(id trimtab.KnobID) *Knob { return l.knobs[id] }

// Knobs returns all knobs in order of their names.
func (l *Ledger) Knobs() []*Knob {
	if l.list != nil {
		return l.list
	}
	for of := range l.disorder { // at once: many may have come
		slices.SortFunc(l.siblings[of], func(a, b *Knob) int { return a.Compare(b.KnobID) })
	}
	clear(l.disorder)
	of := slices.SortedFunc(maps.Values(l.siblings), func(a, b []*Knob) int { return a[0].Compare(b[0].KnobID) })
	l.list = slices.Concat(of...)
	l.sites = make([]int32, len(l.list))
	for i, k := range l.list {
		k.at, l.sites[i] = i, int32(k.site)
	}
	return l.list
}

// Of returns the knobs of one resource of one workload, in order of host and
// instance.
func (l *Ledger) Of(workload, resource string) []*Knob {
	l.Knobs() // they know their places then
	return l.siblings[kin{workload, resource}]
}

// Prune forgets knobs that are gone for longer than after, when another host
// has the workload by now, or when they were of one of several instances.
func (l *Ledger) Prune(now time.Time, after time.Duration) {
	dead := map[kin]int{} // on all hosts
	for k := range l.gone {
		dead[kinOf(&k.KnobID)]++
	}
	old := map[*Knob]bool{}
	for k, since := range l.gone {
		of := kinOf(&k.KnobID)
		old[k] = (k.Instance != "" || dead[of] < len(l.siblings[of])) && now.Sub(since) > after
	}
	l.forget(old)
}

// forget is the opposite of enter, of all at once that are marked.
func (l *Ledger) forget(old map[*Knob]bool) {
	is := func(k *Knob) bool { return old[k] }
	hosts, kins := map[*host]bool{}, map[kin]bool{}
	for k := range old {
		if old[k] {
			hosts[k.host], kins[kinOf(&k.KnobID)] = true, true
			delete(l.knobs, k.KnobID)
			delete(l.gone, k)
			l.list = nil
		}
	}
	for h := range hosts {
		h.knobs = slices.DeleteFunc(h.knobs, is)
	}
	for of := range kins {
		if l.siblings[of] = slices.DeleteFunc(l.siblings[of], is); len(l.siblings[of]) == 0 {
			delete(l.siblings, of)
			delete(l.disorder, of)
		}
	}
}
