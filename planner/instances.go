package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/spread"
)

// A workload runs as one or more instances, on one or more hosts. Load is spread
// over them, so the slowest sets what the workload delivers:
//
//	effective = min_i a_i / f_i,  Σ f_i = 1     f_i = 1/n, unless loads are known
//
// Everything up to the guard is about the effective allocation; then it becomes
// amounts (package spread). Where more than one host has knobs of the pool, what
// each says it has bounds what is given out there:
//
//	Σ_{i on h} a_i <= C_h
//
// With one host, and one instance of each workload, none of this does anything.

// grain absorbs rounding when an amount is turned into units: 1e-9 of a unit.
const grain = 1e-9

// instance is the knob of one running copy of a workload.
type instance struct {
	*ledger.Knob
	// found is what it was last seen to be set to, now the same as a number; min and
	// most bound what it may have.
	found          trimtab.Amount
	now, min, most float64
	// place and site are those of the knob in the ledger.
	place, site int
	// share is f_i, its part of the load, > 0.
	share float64
	// stuck tells that its host is lost: it keeps what it has.
	stuck bool
	hosted
	// set is what it is to have; placed: because the others have that.
	set    float64
	placed bool
}

// instances returns the knobs of one resource of a workload that can be turned, in
// order of host and instance, or says why there is none. A host that declares the
// knob and cannot turn it, such as a standby without the cgroup, or that is silent
// for a lease, does not stand in the way of those that can: it serves nothing.
func (r *decision) instances(w *workload, resource int) ([]instance, trimtab.Held) {
	var found []instance
	least := math.MaxInt
	held := trimtab.Held{Code: trimtab.HeldNoKnob, Text: "no actuator has its knob" + r.about(resource)}
	all := r.planner.ledger.Of(w.Name, r.planner.resources[resource].Name)
	for _, e := range all {
		unfit := r.unfit(e)
		switch {
		case e.Gone() && found == nil:
			held.Text = fmt.Sprintf("host %s no longer has its knob%s", e.Host, r.about(resource))
		case e.Gone() || unfit > least:
		default:
			if unfit < least {
				found, least = slices.Grow(found[:0], len(all)), unfit
			}
			found = append(found, r.instance(e))
		}
	}
	if len(found) == 0 {
		return nil, held
	}
	if least > 0 {
		found = found[:1]
	}
	shareOut(w, found)
	first := found[0]
	switch {
	case first.Held.Problem != "":
		return found, trimtab.Held{Code: trimtab.HeldKnob, Text: "knob" + r.about(resource) + ": " + first.Held.Problem}
	case !first.Held.Serves():
		return found, trimtab.Held{Code: trimtab.HeldKnob, Text: "no instance of it serves yet"}
	case least > 1:
		return found, trimtab.Held{Code: trimtab.HeldTwins, Text: fmt.Sprintf("two agents say that they are host %s", first.Host)}
	case least > 0, !slices.ContainsFunc(found, func(i instance) bool { return !i.stuck }):
		return found, trimtab.Held{Code: trimtab.HeldSilent, Text: fmt.Sprintf("host %s was not heard of for %v", first.Host, r.now.Sub(first.Heard()).Round(time.Second))}
	}
	return found, trimtab.Held{}
}

func (r *decision) instance(k *ledger.Knob) instance {
	most := k.Most()
	if s := k.Held.Standing; s != nil && s.Most > 0 {
		most = math.Min(most, s.Most)
	}
	return instance{Knob: k, found: k.Held.Now, now: k.Now(), min: k.Held.Min, most: most,
		place: k.Place(), site: k.Site(), stuck: r.planner.ledger.Lost(k, r.now)}
}

// unfit ranks knobs of one workload: 0 can be turned, 1 was not heard of for a
// lease, 2 has a problem, or two agents say that they are its host.
func (r *decision) unfit(e *ledger.Knob) int {
	switch {
	case e.Held.Problem != "", !e.Held.Serves(), r.planner.ledger.Twins(e, r.now):
		return 2
	case r.now.Sub(e.Heard()) > r.planner.cfg.Lease:
		return 1
	}
	return 0
}

// shareOut sets the load shares: those that the estimate tells, and even ones.
func shareOut(w *workload, of []instance) {
	loads := make([]*float64, len(of))
	if e := w.estimate; e != nil && len(of) > 1 && len(e.Shares) > 0 {
		told := make(map[[2]string]*float64, len(e.Shares))
		for i := range e.Shares {
			told[[2]string{e.Shares[i].Host, e.Shares[i].Instance}] = &e.Shares[i].Share
		}
		for i := range of {
			loads[i] = told[[2]string{of[i].Host, of[i].Instance}]
		}
	}
	for i, f := range spread.Shares(loads) {
		of[i].share = f
	}
}

// effective returns min_i of(i)/f_i.
func effective(all []instance, of func(*instance) float64) float64 {
	least := math.Inf(1)
	for i := range all {
		least = math.Min(least, of(&all[i])/all[i].share)
	}
	return least
}

// ownOf is what the instances that can be turned have beyond their parts of what the
// workload has: Σ_i max(0, a_i − f_i now).
func ownOf(s *seat) (sum float64) {
	if len(s.knobs) < 2 {
		return 0
	}
	for i := range s.knobs {
		if k := &s.knobs[i]; !k.stuck {
			sum += math.Max(0, k.now-k.share*s.now)
		}
	}
	return sum
}

// unlimited reports whether nothing limits the workload.
func (s *seat) unlimited() bool {
	return !slices.ContainsFunc(s.knobs, func(i instance) bool { return !i.Held.Standing.Cap(i.found).Unlimited })
}

// has is what the workload has, for people.
func (s *seat) has() trimtab.Amount {
	if len(s.knobs) == 1 {
		return s.knobs[0].Held.Standing.Cap(s.knobs[0].found)
	}
	if s.unlimited() {
		return trimtab.Unlimited()
	}
	return trimtab.Units(s.now)
}

// locate adds the hosts to a problem about seats, beside what is believed of the
// others.
func (r *decision) locate(prob *policy.Problem, asked []*seat, others *ledger.Counts) {
	left := others.Room()
	at := make([]int, len(left)) // by site: the place in prob.Hosts, after 1
	names := make([]site, 0, len(left))
	for _, s := range asked {
		if s.countsUp() { // it can have more instances on other nodes
			for i := range s.knobs {
				if k := &s.knobs[i]; bounded(left, k) {
					left[k.site] -= k.now
				}
			}
			continue
		}
		for i := range s.knobs {
			if k := &s.knobs[i]; !k.stuck && bounded(left, k) && at[k.site] == 0 {
				at[k.site] = 1
				names = append(names, site{k.Node(), k.site})
			}
		}
	}
	if len(names) == 0 {
		return
	}
	slices.SortFunc(names, func(a, b site) int { return cmp.Compare(a.name, b.name) })
	for i, h := range names {
		at[h.at] = i + 1
		prob.Hosts = append(prob.Hosts, policy.Host{Name: h.name, Units: math.Min(math.Max(0, left[h.at]/prob.Unit), policy.MaxUnits)})
	}
	least := make([]float64, len(prob.Hosts))
	for j, s := range asked {
		if s.countsUp() {
			continue
		}
		prob.Workloads[j].Parts = partsOf(s, at)
		for _, part := range prob.Workloads[j].Parts {
			least[part.Host] += part.Share * float64(prob.Workloads[j].Min)
		}
	}
	// A host that says it has less than its workloads may be lowered to is over, and
	// no reason to forget what the others have.
	for h := range prob.Hosts {
		prob.Hosts[h].Units = math.Max(prob.Hosts[h].Units, least[h])
	}
}

// site is a host and its place in the ledger.
type site struct {
	name string
	at   int
}

// bounded reports whether the host of a knob bounds what is given out there.
func bounded(left []float64, k *instance) bool {
	return left != nil && !math.IsInf(left[k.site], 1)
}

// partsOf returns the seat's load shares by host, in order of host, of those that are
// at a place, after 1.
func partsOf(s *seat, at []int) []policy.Part {
	parts := make([]policy.Part, 0, len(s.knobs))
	for i := range s.knobs {
		k := &s.knobs[i]
		h := at[k.site] - 1
		if h < 0 || k.stuck {
			continue
		}
		if n := len(parts); n > 0 && parts[n-1].Host == h {
			parts[n-1].Share += k.share
		} else {
			parts = append(parts, policy.Part{Host: h, Share: k.share})
		}
	}
	return inOrder(parts)
}

// inOrder sorts and joins the parts of nodes: the instances of a host are in order of
// their names, whatever nodes they are on.
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

// spread turns the grants of one resource into what each instance is to have.
func (r *decision) spread(resource int) {
	u := r.planner.resources[resource].Unit
	var written, advised []*seat // those that move
	var rest *ledger.Rest
	for _, s := range r.seats {
		if s.resource != resource {
			continue
		}
		for i := range s.knobs {
			k := &s.knobs[i]
			k.set = k.now
		}
		stays := math.Abs(s.grant.Set-s.now) < u/2
		s.evens = stays && s.uneven(r.idle(resource, r.believed(resource)) < -u/2)
		switch {
		case s.byHost:
			settle(s)
		case resource == 0 && s.scale != nil && s.free:
			// Its number goes with it: see number.go.
		case stays && s.appeared():
			if rest == nil {
				rest = r.believed(resource).Rest(r.planner.capacity(resource))
			}
			r.place(s, rest)
		case stays && !s.evens:
		case len(s.knobs) == 1 && !s.acts():
			s.knobs[0].set = s.grant.Set
		case s.acts():
			written = append(written, s)
		default:
			advised = append(advised, s)
		}
	}
	if len(written) > 0 {
		r.amounts(written, r.others(written, resource).Room())
	}
	if len(advised) > 0 {
		r.amounts(advised, nil)
	}
}

// upQuanta and downQuanta are policy.UpUnits and DownUnits of what may be very fine.
func upQuanta(v, quantum float64) int {
	return int(math.Min(math.Ceil(v/quantum-grain), unbounded))
}

func downQuanta(v, quantum float64) int {
	return int(math.Min(math.Floor(v/quantum+grain), unbounded))
}

// unbounded is a capacity in quanta that nobody reaches.
const unbounded = 1 << 40

// amounts sets what the instances of seats that move are to have, with so much
// left on each host; nil: they have room for all.
func (r *decision) amounts(moving []*seat, left []float64) {
	p := r.planner
	pool := spread.Pool{Quanta: unbounded, Workloads: make([]spread.Workload, 0, len(moving))}
	at := make([]int, p.ledger.Sites()) // by site: the place in pool.Hosts, after 1
	for _, s := range moving {
		u, w := s.of.Quantum(), spread.Workload{Instances: make([]spread.Instance, 0, len(s.knobs))}
		for i := range s.knobs {
			k := &s.knobs[i]
			if k.stuck {
				continue
			}
			if at[k.site] == 0 {
				c := unbounded
				if bounded(left, k) {
					c = max(0, downQuanta(left[k.site], u))
				}
				pool.Hosts = append(pool.Hosts, c)
				at[k.site] = len(pool.Hosts)
			}
			in := spread.Instance{Host: at[k.site] - 1, Load: &k.share, Max: unbounded, Current: downQuanta(k.set, u)}
			if len(s.knobs) > 1 {
				in.Max = downQuanta(k.most, u)
				in.Min = min(upQuanta(max(s.dial.Min, k.min), u), in.Max)
			}
			w.Target += upQuanta(k.share*s.grant.Set, u)
			w.Instances = append(w.Instances, in)
		}
		pool.Workloads = append(pool.Workloads, w)
	}
	amounts, err := pool.Amounts()
	if err != nil {
		p.counts.Unsolved++ // no seat makes such a problem
		return
	}
	for j, s := range moving {
		next, u := 0, s.of.Quantum()
		for i := range s.knobs {
			if k := &s.knobs[i]; !k.stuck {
				k.set, k.Fresh = float64(amounts[j][next])*u, false
				next++
			}
		}
		set := effective(s.knobs, func(i *instance) float64 { return i.set })
		switch {
		case set < s.grant.Set-u:
			s.level(set)
			s.grant.Set, s.grant.Binding = set, trimtab.Binding{Kind: trimtab.BindingHost, Detail: tightestOf(s)}
		case len(s.knobs) == 1:
			s.knobs[0].set = s.grant.Set // which is whole units, and perhaps no whole quanta
		default:
			s.grant.Set = set
		}
	}
}

// uneven reports whether an instance has more than its part of what the workload has, and is
// to come down to it although the workload itself does not move: it has no limit where others
// have one, its host refused to lower it, or it has more than twice its part, or, in a pool
// that is over its capacity, more than that. All that it has counts in the pool, and serves
// nothing.
func (s *seat) uneven(over bool) bool {
	if !s.free || len(s.knobs) < 2 || s.scale != nil || s.unlimited() {
		return false
	}
	return slices.ContainsFunc(s.knobs, func(k instance) bool {
		part := math.Max(k.share*s.now, math.Max(s.dial.Min, k.min))
		loose := k.Held.Standing.Cap(k.found).Unlimited || k.Owes || over || k.now > 2*part+s.of.Unit
		return loose && !k.stuck && k.now > part+s.of.Unit/2
	})
}

// levelsOf says why instances of a workload that stays are lowered.
func levelsOf(s *seat, resource string) string {
	are := "are"
	if !s.writes() {
		are = "would be"
	}
	return fmt.Sprintf("%sit has %s over all its instances, and those that have more than their part of it %s lowered to that", resource, s.amount(s.now), are)
}

// level keeps instances from being raised beyond their parts of a target, which is all
// that a host lets another one have: more would serve nothing.
func (s *seat) level(target float64) {
	u := s.of.Quantum()
	for i := range s.knobs {
		k := &s.knobs[i]
		part := math.Max(float64(upQuanta(k.share*target, u))*u, math.Max(s.dial.Min, k.Held.Min))
		k.set = math.Min(k.set, math.Max(k.Now(), part))
	}
}

// tightestOf names the host of the instance that has least of its share.
func tightestOf(s *seat) string {
	least, host := math.Inf(1), ""
	for i := range s.knobs {
		if k := &s.knobs[i]; k.set/k.share < least {
			least, host = k.set/k.share, k.Node()
		}
	}
	return host
}

// place gives an instance that has only just appeared what the median of the
// others has, as far as its host and the pool have room beside all that is believed
// of others; rest is that, and stays what it was.
func (r *decision) place(s *seat, rest *ledger.Rest) {
	median, ok := s.median()
	if !ok {
		return
	}
	idle, at, room := rest.Idle, make([]int, 0, len(s.knobs)), make([]float64, 0, len(s.knobs))
	for i := range s.knobs {
		if k := &s.knobs[i]; k.Fresh && !k.stuck {
			if rest.Room != nil {
				at, room = append(at, k.site), append(room, rest.Room[k.site])
			}
			rest.Take(k.site, -r.believed(s.resource).Of(k.place))
		}
	}
	for i := range s.knobs {
		k := &s.knobs[i]
		if !k.Fresh || k.stuck {
			continue
		}
		set := math.Min(math.Min(median, k.most), rest.Idle)
		if bounded(rest.Room, k) {
			set = math.Min(set, rest.Room[k.site])
		}
		set = math.Max(math.Floor(set/s.of.Quantum()+grain)*s.of.Quantum(), math.Max(s.dial.Min, k.min))
		rest.Take(k.site, set)
		k.set, k.Fresh, k.placed = set, false, true
	}
	rest.Idle = idle
	for i := len(at) - 1; i >= 0; i-- { // a host may be there twice: what it had first comes last
		rest.Room[at[i]] = room[i]
	}
}

// appeared reports whether an instance of a workload that is acted on has only just
// appeared.
func (s *seat) appeared() bool {
	return s.acts() && slices.ContainsFunc(s.knobs, func(i instance) bool { return i.Fresh })
}

// median is that of what the instances have that were there before; false: there was
// none, or none with a limit.
func (s *seat) median() (float64, bool) {
	var others []float64
	for i := range s.knobs {
		if k := &s.knobs[i]; !k.Fresh && !k.found.Unlimited {
			others = append(others, k.set)
		}
	}
	if len(others) == 0 {
		return 0, false
	}
	slices.Sort(others)
	return (others[(len(others)-1)/2] + others[len(others)/2]) / 2, true
}

// partWhy says why one of several instances gets what it gets.
func partWhy(s *seat, k *instance, why string) string {
	show := func(v trimtab.Amount) string { return trimtab.AmountOf(s.of.Name, v) }
	from, to := show(k.found), show(trimtab.Units(k.set))
	if k.placed {
		return fmt.Sprintf("from %s to %s: it has just appeared, and gets the median of what the other instances have", from, to)
	}
	if why == "" {
		return fmt.Sprintf("from %s to %s, as 1 of %d instances", from, to, len(s.knobs))
	}
	return fmt.Sprintf("%s; this is 1 of %d instances: from %s to %s", why, len(s.knobs), from, to)
}
