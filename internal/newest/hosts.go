package newest

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

const (
	// MaxHostBytes bounds about how many bytes the knobs of all hosts take: 1,000 hosts of 20 knobs
	// take 8 MiB.
	MaxHostBytes = 96 << 20
	// SilentAfter is the age of its report at which a host counts as silent: hosts report at least
	// every 5 s.
	SilentAfter = time.Minute
)

// HostKey identifies a host in one pool.
type HostKey struct{ Pool, Name string }

// Compare orders hosts by name, and then by pool.
func (k HostKey) Compare(o HostKey) int {
	return cmp.Or(strings.Compare(k.Name, o.Name), strings.Compare(k.Pool, o.Pool))
}

// Host is the last report of one host, for one pool.
type Host struct {
	HostKey
	// Time is the report's own, and Arrived when it came.
	Time, Arrived time.Time
	LeaseLeft     trimtab.Seconds
	Paused        bool
	Capacity      map[string]float64
	Divided       bool
	Unmet         []trimtab.Unmet
	// Knobs are in order of workload, resource and instance.
	Knobs []trimtab.KnobState
	// Problems counts the knobs that cannot be used, since Since.
	Problems     int
	Since        time.Time
	cost         int           // bytes, about
	incarnations *Incarnations // nil: no agent reports its life number
}

// ReportedAt returns the time from which the age of the report counts: see [Made].
func (h *Host) ReportedAt() time.Time { return ReportedAt(h.Time, h.Arrived, Skew) }

// Silent reports whether the host is overdue at now.
func (h *Host) Silent(now time.Time) bool { return now.Sub(h.ReportedAt()) > SilentAfter }

// Lease returns the time until the lease of its allocation expires.
func (h *Host) Lease(now time.Time) trimtab.Seconds {
	return max(0, h.LeaseLeft-trimtab.SecondsOf(now.Sub(h.ReportedAt())))
}

// Gone reports whether the host's allocation no longer counts: the host is silent, and its lease
// has expired.
func (h *Host) Gone(now time.Time) bool { return h.Silent(now) && h.Lease(now) == 0 }

// Duplicate reports whether two agents say that they are this host.
func (h *Host) Duplicate(now time.Time) bool {
	return h.incarnations != nil && h.incarnations.Duplicate(now, SilentAfter)
}

// Of returns the host's knobs of one workload.
func (h *Host) Of(workload string) []trimtab.KnobState {
	from, _ := slices.BinarySearchFunc(h.Knobs, workload, func(k trimtab.KnobState, name string) int { return strings.Compare(k.Workload, name) })
	its, _ := cutWorkload(h.Knobs[from:], workload)
	return slices.Clip(its)
}

// Sum is the amount of a resource that a host gives out: of each knob the larger of what was set
// and what is in force. Unlimited counts those without a limit, which add nothing.
type Sum struct {
	Amount    float64
	Unlimited int
}

// Sums returns what the host gives out, by resource.
func (h *Host) Sums() map[string]Sum {
	out := map[string]Sum{}
	for i := range h.Knobs {
		k := &h.Knobs[i]
		s, a := out[k.Resource], k.InForce()
		if a.Less(k.Now) {
			a = k.Now
		}
		if a.Unlimited {
			s.Unlimited++
		} else {
			s.Amount = added(s.Amount, a.Value)
		}
		out[k.Resource] = s
	}
	return out
}

// Hosts has the newest holding of each host, and finds the hosts of a workload. What it keeps is
// bounded: the host that has not reported for the longest time goes first.
type Hosts struct {
	// Max is the largest number of hosts, and Pool that of holdings that name none.
	Max   int
	Pool  string
	all   map[HostKey]*Host
	of    map[string]*hostsOf
	bytes int
}

// hostsOf are the hosts that have knobs of a workload, in order.
type hostsOf struct {
	name     string
	hosts    []*Host
	problems int
}

// Host returns a host, or nil.
func (f *Hosts) Host(pool, name string) *Host { return f.all[HostKey{cmp.Or(pool, f.Pool), name}] }

// All yields all hosts, in no order.
func (f *Hosts) All() iter.Seq[*Host] { return maps.Values(f.all) }

// Len returns how many hosts there are.
func (f *Hosts) Len() int { return len(f.all) }

// Bytes returns about how many bytes the knobs take.
func (f *Hosts) Bytes() int { return f.bytes }

// On returns the hosts that have knobs of a workload, in order of name. Callers must not change the
// list.
func (f *Hosts) On(workload string) []*Host {
	if of := f.of[workload]; of != nil {
		return of.hosts
	}
	return nil
}

// Problems counts the knobs of a workload that cannot be used, wherever they are.
func (f *Hosts) Problems(workload string) int {
	if of := f.of[workload]; of != nil {
		return of.problems
	}
	return 0
}

// Observe stores the report of a host that arrives at now, and returns the workloads of which a knob
// changed: but for the state of the fast loop, which always changes. The last report to arrive
// counts, whatever its time says: the bus keeps the order of each host's.
func (f *Hosts) Observe(said *trimtab.Holding, now time.Time) (h *Host, changed []string) {
	key := HostKey{cmp.Or(said.Pool, f.Pool), said.Host}
	if h = f.all[key]; h == nil {
		h = &Host{HostKey: key}
		if f.all == nil {
			f.all, f.of = map[HostKey]*Host{}, map[string]*hostsOf{}
		}
		f.all[key] = h
	}
	h.Time, h.Arrived = said.Time, now
	h.LeaseLeft, h.Paused, h.Capacity, h.Divided = said.LeaseLeft, said.Paused, said.Capacity, said.Divided
	h.Unmet = nil
	for _, u := range said.Unmet[:min(len(said.Unmet), trimtab.MaxUnmet)] {
		h.Unmet = append(h.Unmet, trimtab.Unmet{What: Brief(u.What), Why: Brief(u.Why), Do: Brief(u.Do)})
	}
	if h.incarnations == nil && said.Life != 0 {
		h.incarnations = &Incarnations{}
	}
	if h.incarnations != nil {
		h.incarnations.Observe(said.Life, now, SilentAfter)
	}
	if knobs := f.kept(said); slices.EqualFunc(h.Knobs, knobs, sameKnob) {
		h.Knobs = knobs // the fast loop's state is always the newest
	} else {
		changed = f.replace(h, knobs)
	}
	for len(f.all) > 1 && (len(f.all) > f.Max || f.bytes > MaxHostBytes) {
		changed = append(changed, f.dropOldest(h)...)
	}
	return h, changed
}

// Drop forgets a host, and returns its workloads.
func (f *Hosts) Drop(h *Host) (changed []string) {
	changed = f.replace(h, nil)
	delete(f.all, h.HostKey)
	return changed
}

// dropOldest drops the host that has not reported for the longest time, except keep.
func (f *Hosts) dropOldest(keep *Host) (changed []string) {
	var oldest *Host
	for _, h := range f.all {
		if h != keep && (oldest == nil || h.ReportedAt().Before(oldest.ReportedAt())) {
			oldest = h
		}
	}
	return f.Drop(oldest)
}

// kept are the knobs of a holding as they are kept, in order: alone, since the
// message may be long.
func (f *Hosts) kept(said *trimtab.Holding) []trimtab.KnobState {
	out := make([]trimtab.KnobState, 0, len(said.Targets))
	cost := 0
	for i := range said.Targets {
		k := said.Targets[i]
		if of := f.of[k.Workload]; of != nil {
			k.Workload = of.name // shares the memory of the name
		}
		k.Pool, k.Host = said.Pool, said.Host
		k.Knob, k.Problem, k.ReadOnly = Brief(k.Knob), Brief(k.Problem), Brief(k.ReadOnly)
		if cost += knobCost(&k); cost > MaxHostBytes/4 {
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
	return 240 + fast + len(k.Workload) + len(k.Instance) + len(k.Resource) + len(k.Knob) + len(k.Problem) + len(k.ReadOnly)
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

// replace replaces the knobs of h, and returns the workloads that changed, in order.
func (f *Hosts) replace(h *Host, knobs []trimtab.KnobState) (changed []string) {
	before, after := h.Knobs, knobs
	h.Knobs = knobs
	f.bytes -= h.cost
	h.cost = 0
	for i := range knobs {
		h.cost += knobCost(&knobs[i])
	}
	h.Problems = problems(knobs)
	f.bytes += h.cost
	h.Since = Begun(h.Since, h.Problems > 0, h.Time)
	for len(before) > 0 || len(after) > 0 {
		name := first(before, after)
		var was, is []trimtab.KnobState
		was, before = cutWorkload(before, name)
		is, after = cutWorkload(after, name)
		if !slices.EqualFunc(was, is, sameKnob) {
			f.move(name, h, was, is)
			changed = append(changed, name)
		}
	}
	return changed
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

// move records that a host's knobs of a workload changed.
func (f *Hosts) move(name string, h *Host, was, is []trimtab.KnobState) {
	of := f.of[name]
	if of == nil {
		of = &hostsOf{name: name}
		f.of[name] = of
	}
	at, known := slices.BinarySearchFunc(of.hosts, h, func(a, b *Host) int { return a.Compare(b.HostKey) })
	switch {
	case !known:
		of.hosts = slices.Insert(of.hosts, at, h)
	case len(is) == 0:
		of.hosts = slices.Delete(of.hosts, at, at+1)
	}
	if of.problems += problems(is) - problems(was); len(of.hosts) == 0 {
		delete(f.of, name)
	}
}

// Begun returns since when something is: now when it was not before, zero
// when it is not.
func Begun(since time.Time, is bool, now time.Time) time.Time {
	switch {
	case !is:
		return time.Time{}
	case since.IsZero():
		return now
	}
	return since
}

// maxBrief is the longest text kept of one value, in bytes.
const maxBrief = 500

// Brief is a text that people still read.
func Brief(text string) string {
	if len(text) <= maxBrief {
		return text
	}
	return string([]byte(text[:maxBrief])) + "…" // alone, not as a part of the whole
}
