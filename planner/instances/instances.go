// Package instances has what is asked of the instances of one workload together: what they
// deliver, who has more than its part, and what one gets that has only just appeared.
//
// A workload runs as one or more instances, on one or more hosts. Load is spread over them, so the
// slowest sets what the workload delivers:
//
//	effective = min_i a_i / f_i,  Σ f_i = 1     f_i = 1/n, unless loads are known
//
// Package spread turns an effective allocation into amounts. This package moves nothing and reads
// no clock.
package instances

import (
	"cmp"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/spread"
)

// Instance is the knob of one running copy of a workload in one round.
type Instance struct {
	*ledger.Knob
	// Found is the value last read, Has the same as a number; Low and High bound what it may
	// have.
	Found          trimtab.Amount
	Has, Low, High float64
	// Share is f_i, its part of the load, > 0.
	Share float64
	// Stuck says that its host is lost: it keeps what it has.
	Stuck bool
	// Hosted is what was decided for it on its host.
	Hosted
	// Set is what it is to have; Placed: because the others have that.
	Set    float64
	Placed bool
}

// Hosted is what was decided for an instance on its host: its share, and whether that is also a
// limit.
type Hosted struct {
	Aim    float64
	Capped bool
}

// Of returns the instance of a knob. lost: its host is.
func Of(k *ledger.Knob, lost bool) Instance {
	most := k.Most()
	if s := k.Held.Status; s != nil && s.Most > 0 {
		most = math.Min(most, s.Most)
	}
	return Instance{Knob: k, Found: k.Held.Now, Has: k.Now(), Low: k.Held.Min, High: most, Stuck: lost}
}

// Before returns the site's own amount, as far as its bounds allow it.
func (k *Instance) Before() float64 {
	return math.Min(math.Max(k.Baseline(), math.Min(k.Low, k.Has)), math.Max(k.High, k.Has))
}

// Moves reports whether it gets another amount, by a step that is worth a write. If its amount is
// a reservation, only a large step is, unless it returns to the site's own amount.
func (k *Instance) Moves(least float64) bool {
	by := math.Abs(k.Set - k.Has)
	if !k.Held.Reserves {
		return by >= least/2
	}
	if k.Set == k.Before() {
		return by > policy.Grain
	}
	return by >= least/2 && !Small(k.Has, k.Set)
}

// largeStep is the least step of a reservation, as a fraction of the larger of both amounts: each
// is a write to a server, and changes the scheduler's sums.
const largeStep = 0.25

// Small reports whether a step is too small for a reservation.
func Small(from, to float64) bool {
	return math.Abs(to-from) < largeStep*math.Max(from, to)-policy.Grain
}

// Bounded reports whether its host bounds what is given out there, with left on each host.
func (k *Instance) Bounded(left []float64) bool {
	return left != nil && !math.IsInf(left[k.Site()], 1)
}

// All are the instances of one workload, in order of host and instance.
type All []Instance

// ShareOut sets the load shares: those of the estimate, which may be nil, else even ones.
func (all All) ShareOut(e *trimtab.Estimate) {
	loads := make([]*float64, len(all))
	if e != nil && len(all) > 1 && len(e.Shares) > 0 {
		told := make(map[[2]string]*float64, len(e.Shares))
		for i := range e.Shares {
			told[[2]string{e.Shares[i].Host, e.Shares[i].Instance}] = &e.Shares[i].Share
		}
		for i := range all {
			loads[i] = told[[2]string{all[i].Host, all[i].Instance}]
		}
	}
	for i, f := range spread.Shares(loads) {
		all[i].Share = f
	}
}

// allServed is the part of the load that instances with a known share must serve for the others to
// serve none.
const allServed = 0.995

// mostLeave bounds the instances that an action names.
const mostLeave = 30

// LeastLoaded returns n instances, at most 30, in order of their load, the least first: those that take the
// fewest requests with them. nil: the load of some is not known.
func (all All) LeastLoaded(e *trimtab.Estimate, n int) (names []string) {
	if e == nil || len(e.Shares) == 0 || n < 1 || n >= len(all) {
		return nil
	}
	told, sum := make(map[[2]string]float64, len(e.Shares)), 0.0
	for _, s := range e.Shares {
		told[[2]string{s.Host, s.Instance}] = s.Share
		sum += s.Share
	}
	load := func(i *Instance) (share float64, known bool) {
		share, known = told[[2]string{i.Host, i.Instance}]
		return share, known || sum >= allServed
	}
	order := make([]*Instance, len(all))
	for i := range all {
		if _, known := load(&all[i]); !known {
			return nil
		}
		order[i] = &all[i]
	}
	slices.SortStableFunc(order, func(a, b *Instance) int {
		x, _ := load(a)
		y, _ := load(b)
		return cmp.Compare(x, y)
	})
	for _, i := range order[:min(n, mostLeave)] {
		names = append(names, i.Instance)
	}
	return names
}

// Effective returns min_i of(i)/f_i.
func (all All) Effective(of func(*Instance) float64) float64 {
	least := math.Inf(1)
	for i := range all {
		least = math.Min(least, of(&all[i])/all[i].Share)
	}
	return least
}

// Set returns the effective allocation that they will have.
func (all All) Set() float64 { return all.Effective(func(i *Instance) float64 { return i.Set }) }

// Own returns how much the settable instances have beyond their shares of the workload's amount:
// Σ_i max(0, a_i − f_i now).
func (all All) Own(now float64) (sum float64) {
	if len(all) < 2 {
		return 0
	}
	for i := range all {
		if k := &all[i]; !k.Stuck {
			sum += math.Max(0, k.Has-k.Share*now)
		}
	}
	return sum
}

// Unlimited reports whether nothing limits the workload.
func (all All) Unlimited() bool {
	return !slices.ContainsFunc(all, func(i Instance) bool { return !i.Held.Status.Cap(i.Found).Unlimited })
}

// Shared reports whether what they have are shares by weight.
func (all All) Shared() bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(i Instance) bool { return !i.Held.Shared })
}

// Left returns how much all instances together may still get under their common quota.
func (all All) Left() float64 {
	least := math.Inf(1)
	for i := range all {
		if st := all[i].Held.Status; st != nil && st.Left != nil {
			least = math.Min(least, *st.Left)
		}
	}
	return least
}

// Largest is the largest size of an instance that the cluster allows, at most what is declared.
func (all All) Largest(declared float64) float64 {
	for i := range all {
		if st := all[i].Held.Status; st != nil && st.Most > 0 {
			declared = math.Min(declared, st.Most)
		}
	}
	return declared
}

// Uneven reports whether one has more than its share of the workload's amount, now, and must be
// lowered to it although the workload itself keeps its amount: it has no limit where others have
// one, its host refused to lower it, or it has more than twice its share, or, in a pool over its
// capacity, more than that. All that it has counts in the pool, and the excess serves nothing.
func (all All) Uneven(now, least, unit float64, over bool) bool {
	if len(all) < 2 || all.Unlimited() {
		return false
	}
	return slices.ContainsFunc(all, func(k Instance) bool {
		part := math.Max(k.Share*now, math.Max(least, k.Low))
		loose := k.Held.Status.Cap(k.Found).Unlimited || k.Owes || over || k.Has > 2*part+unit
		return loose && !k.Stuck && k.Has > part+unit/2
	})
}

// Level caps the raises at the instances' shares of a target that another instance's host limits:
// more would serve nothing.
func (all All) Level(target, least, quantum float64) {
	for i := range all {
		k := &all[i]
		part := math.Max(math.Ceil(k.Share*target/quantum-policy.Grain)*quantum, math.Max(least, k.Held.Min))
		k.Set = math.Min(k.Set, math.Max(k.Now(), part))
	}
}

// Tightest names the host of the one that has least of its share.
func (all All) Tightest() string {
	least, host := math.Inf(1), ""
	for i := range all {
		if k := &all[i]; k.Set/k.Share < least {
			least, host = k.Set/k.Share, k.Node()
		}
	}
	return host
}

// Appeared reports whether one of them is new.
func (all All) Appeared() bool {
	return slices.ContainsFunc(all, func(i Instance) bool { return i.Fresh })
}

// Median returns the median amount of the instances that are not new; false: there is none, or
// none with a limit.
func (all All) Median() (float64, bool) {
	var others []float64
	for i := range all {
		if k := &all[i]; !k.Fresh && !k.Found.Unlimited {
			others = append(others, k.Set)
		}
	}
	if len(others) == 0 {
		return 0, false
	}
	slices.Sort(others)
	return (others[(len(others)-1)/2] + others[len(others)/2]) / 2, true
}

// Distribute gives new instances the median amount of the others, as far as their hosts and the pool
// have room beside what all are believed to have; rest is that room, and is not changed.
func (all All) Distribute(rest *ledger.Rest, believed *ledger.Counts, least, quantum float64) {
	median, ok := all.Median()
	if !ok {
		return
	}
	idle, at, room := rest.Idle, make([]int, 0, len(all)), make([]float64, 0, len(all))
	for i := range all {
		if k := &all[i]; k.Fresh && !k.Stuck {
			if rest.Headroom != nil {
				at, room = append(at, k.Site()), append(room, rest.Headroom[k.Site()])
			}
			rest.Subtract(k.Site(), -believed.Of(k.Index()))
		}
	}
	for i := range all {
		k := &all[i]
		if !k.Fresh || k.Stuck {
			continue
		}
		set := math.Min(math.Min(median, k.High), rest.Idle)
		if k.Bounded(rest.Headroom) {
			set = math.Min(set, rest.Headroom[k.Site()])
		}
		set = math.Max(math.Floor(set/quantum+policy.Grain)*quantum, math.Max(least, k.Low))
		rest.Subtract(k.Site(), set)
		k.Set, k.Fresh, k.Placed = set, false, true
	}
	rest.Idle = idle
	for i := len(at) - 1; i >= 0; i-- { // a host may be there twice: what it had first comes last
		rest.Headroom[at[i]] = room[i]
	}
}

// Settle sets what was decided for each on its host.
func (all All) Settle() {
	for i := range all {
		if k := &all[i]; !k.Stuck {
			most := k.High
			if k.Held.Reserves { // what the site gave it may be more
				most = math.Max(most, k.Has)
			}
			k.Set, k.Fresh = math.Min(k.Aim, most), false
		}
	}
}

// Parts returns the load shares by host, in order of host, of the instances on hosts of the
// problem; at has the index of each site's host, plus 1.
func (all All) Parts(at []int) []policy.Part {
	parts := make([]policy.Part, 0, len(all))
	for i := range all {
		k := &all[i]
		h := at[k.Site()] - 1
		if h < 0 || k.Stuck {
			continue
		}
		if n := len(parts); n > 0 && parts[n-1].Host == h {
			parts[n-1].Share += k.Share
		} else {
			parts = append(parts, policy.Part{Host: h, Share: k.Share})
		}
	}
	return inOrder(parts)
}

// inOrder sorts and joins the shares of nodes, since the instances of a host are in order of
// their names, whatever their nodes.
func inOrder(parts []policy.Part) []policy.Part {
	byHost := func(a, b policy.Part) int { return cmp.Compare(a.Host, b.Host) }
	if slices.IsSortedFunc(parts, byHost) {
		return parts
	}
	slices.SortStableFunc(parts, byHost)
	out := parts[:1]
	for _, p := range parts[1:] {
		if last := &out[len(out)-1]; last.Host == p.Host {
			last.Share += p.Share
		} else {
			out = append(out, p)
		}
	}
	return out
}

// Headroom returns how much more they can have together with left on each host.
func (all All) Headroom(left []float64) float64 {
	most := math.Inf(1)
	for i := 0; i < len(all); {
		site, share := all[i].Site(), 0.0
		for ; i < len(all) && all[i].Site() == site; i++ {
			if !all[i].Stuck {
				share += all[i].Share
			}
		}
		if share > 0 {
			most = math.Min(most, math.Max(0, left[site])/share)
		}
	}
	return most
}

// Caps returns the limit of a group above one of them on a host, or on any for "", that allows
// less than is declared; nil: there is none.
func (all All) Caps(host string) *trimtab.KnobStatus {
	for i := range all {
		if st := all[i].Held.Status; st != nil && st.Caps && (host == "" || all[i].Host == host) {
			return st
		}
	}
	return nil
}

// BoundBy names the quota of the cluster, or the group above, that allows none of them a unit
// more; "": none does.
func (all All) BoundBy(unit float64) string {
	for i := range all {
		st := all[i].Held.Status
		switch {
		case st == nil:
		case st.Most > 0 && st.Most <= all[i].Has+policy.Grain:
			return st.By + allows(st)
		case st.Left != nil && *st.Left < unit:
			return st.LeftBy + " leaves no more"
		}
	}
	return ""
}

func allows(st *trimtab.KnobStatus) string {
	if st.Caps { // its name is within commas
		return ", allows no more"
	}
	return " allows no more"
}
