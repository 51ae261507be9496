package planner

import (
	"fmt"
	"maps"
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

// instance is the knob of one running copy of a workload.
type instance struct {
	*ledger.Knob
	// share is f_i, its part of the load, > 0.
	share float64
	// stuck tells that its host is lost: it keeps what it has.
	stuck bool
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
			found = append(found, instance{Knob: e, stuck: r.planner.ledger.Lost(e.Host, r.now)})
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
	case least > 1:
		return found, trimtab.Held{Code: trimtab.HeldTwins, Text: fmt.Sprintf("two agents say that they are host %s", first.Host)}
	case least > 0, !slices.ContainsFunc(found, func(i instance) bool { return !i.stuck }):
		return found, trimtab.Held{Code: trimtab.HeldSilent, Text: fmt.Sprintf("host %s was not heard of for %v", first.Host, r.now.Sub(r.planner.ledger.Heard(first.Host)).Round(time.Second))}
	}
	return found, trimtab.Held{}
}

// unfit ranks knobs of one workload: 0 can be turned, 1 was not heard of for a
// lease, 2 has a problem, or two agents say that they are its host.
func (r *decision) unfit(e *ledger.Knob) int {
	switch {
	case e.Held.Problem != "", r.planner.ledger.Twins(e.Host, r.now):
		return 2
	case r.now.Sub(r.planner.ledger.Heard(e.Host)) > r.planner.cfg.Lease:
		return 1
	}
	return 0
}

// shareOut sets the load shares: those that the estimate tells, and even ones.
func shareOut(w *workload, of []instance) {
	loads := make([]*float64, len(of))
	if e := w.estimate; e != nil && len(of) > 1 {
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

// unlimited reports whether nothing limits the workload.
func (s *seat) unlimited() bool {
	return !slices.ContainsFunc(s.knobs, func(i instance) bool { return !i.Held.Now.Unlimited })
}

// has is what the workload has, for people.
func (s *seat) has() trimtab.Amount {
	if len(s.knobs) == 1 {
		return s.knobs[0].Held.Now
	}
	if s.unlimited() {
		return trimtab.Unlimited()
	}
	return trimtab.Units(s.now)
}

// room returns what is left of a resource on each host that says what it has, where
// there are several, beside what is believed of the knobs but those of mine.
func (p *Planner) room(now time.Time, resource int, mine map[*ledger.Knob]bool) map[string]float64 {
	return p.ledger.Room(p.resources[resource].Name, func(k *ledger.Knob) float64 {
		if mine[k] {
			return 0
		}
		return p.ledger.Believed(k, now)
	})
}

// locate adds the hosts to a problem about seats, whose knobs are mine.
func (r *decision) locate(prob *policy.Problem, asked []*seat, mine map[*ledger.Knob]bool) {
	left := r.planner.room(r.now, 0, mine)
	if len(left) == 0 {
		return
	}
	at := map[string]int{}
	for _, s := range asked {
		for i := range s.knobs {
			if _, ok := left[s.knobs[i].Host]; ok && !s.knobs[i].stuck {
				at[s.knobs[i].Host] = 0
			}
		}
	}
	for i, name := range slices.Sorted(maps.Keys(at)) {
		at[name] = i
		prob.Hosts = append(prob.Hosts, policy.Host{Name: name, Units: math.Max(0, left[name]/prob.Unit)})
	}
	least := make([]float64, len(prob.Hosts))
	for j, s := range asked {
		prob.Workloads[j].Parts = s.parts(at)
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

// parts returns the seat's load shares by host, in order of host.
func (s *seat) parts(at map[string]int) []policy.Part {
	var parts []policy.Part
	for i := range s.knobs {
		k := &s.knobs[i]
		h, ok := at[k.Host]
		if !ok || k.stuck {
			continue
		}
		if n := len(parts); n > 0 && parts[n-1].Host == h {
			parts[n-1].Share += k.share
		} else {
			parts = append(parts, policy.Part{Host: h, Share: k.share})
		}
	}
	return parts
}

// spread turns the grants of one resource into what each instance is to have.
func (r *decision) spread(resource int) {
	p, u := r.planner, r.planner.resources[resource].Unit
	moving := map[bool][]*seat{} // by whether it is written
	mine := map[*ledger.Knob]bool{}
	for _, s := range r.seats {
		if s.resource != resource {
			continue
		}
		for i := range s.knobs {
			k := &s.knobs[i]
			k.set = k.Now()
		}
		switch {
		case math.Abs(s.grant.Set-s.now) < u/2:
			r.place(s)
		case len(s.knobs) == 1 && !s.acts():
			s.knobs[0].set = s.grant.Set
		default:
			moving[s.acts()] = append(moving[s.acts()], s)
			for i := range s.knobs {
				mine[s.knobs[i].Knob] = s.acts() && !s.knobs[i].stuck
			}
		}
	}
	if len(moving) == 0 {
		return
	}
	r.amounts(moving[true], p.room(r.now, resource, mine))
	r.amounts(moving[false], nil)
}

// quantum is what the amounts of several instances are whole numbers of: as fine
// as knobs can be turned, so that a small step reaches each of them.
func (of *Resource) quantum() float64 {
	if step := trimtab.ResourceOf(of.Name).Step; step > 0 {
		return math.Min(step, of.Unit)
	}
	return of.Unit
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
// left on each host; a host that is missing has room for all.
func (r *decision) amounts(moving []*seat, left map[string]float64) {
	p := r.planner
	pool := spread.Pool{Quanta: unbounded}
	at := map[string]int{}
	for _, s := range moving {
		u, w := s.of.quantum(), spread.Workload{}
		for i := range s.knobs {
			k := &s.knobs[i]
			if k.stuck {
				continue
			}
			h, ok := at[k.Host]
			if !ok {
				c := unbounded
				if room, ok := left[k.Host]; ok {
					c = max(0, downQuanta(room, u))
				}
				h, at[k.Host], pool.Hosts = len(pool.Hosts), len(pool.Hosts), append(pool.Hosts, c)
			}
			in := spread.Instance{Host: h, Load: &k.share, Max: unbounded, Current: downQuanta(k.set, u)}
			if len(s.knobs) > 1 {
				in.Max = downQuanta(k.Most(), u)
				in.Min = min(upQuanta(max(s.dial.Min, k.Held.Min), u), in.Max)
			}
			w.Target += upQuanta(k.share*s.grant.Set, u)
			w.Instances = append(w.Instances, in)
		}
		pool.Workloads = append(pool.Workloads, w)
	}
	amounts, err := pool.Amounts()
	if err != nil {
		p.counts.unsolved++ // no seat makes such a problem
		return
	}
	for j, s := range moving {
		next, u := 0, s.of.quantum()
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
			s.grant.Set, s.grant.Binding = set, trimtab.Binding{Kind: trimtab.BindingHost, Detail: s.tightest()}
		case len(s.knobs) == 1:
			s.knobs[0].set = s.grant.Set // which is whole units, and perhaps no whole quanta
		default:
			s.grant.Set = set
		}
	}
}

// level keeps instances from being raised beyond their parts of a target, which is all
// that a host lets another one have: more would serve nothing.
func (s *seat) level(target float64) {
	u := s.of.quantum()
	for i := range s.knobs {
		k := &s.knobs[i]
		part := math.Max(float64(upQuanta(k.share*target, u))*u, math.Max(s.dial.Min, k.Held.Min))
		k.set = math.Min(k.set, math.Max(k.Now(), part))
	}
}

// tightest names the host of the instance that has least of its share.
func (s *seat) tightest() string {
	least, host := math.Inf(1), ""
	for i := range s.knobs {
		if k := &s.knobs[i]; k.set/k.share < least {
			least, host = k.set/k.share, k.Host
		}
	}
	return host
}

// place gives an instance that has only just appeared what the median of the
// others has, as far as its host and the pool have room.
func (r *decision) place(s *seat) {
	p := r.planner
	if !s.acts() || !slices.ContainsFunc(s.knobs, func(i instance) bool { return i.Fresh }) {
		return
	}
	var others []float64
	mine := map[*ledger.Knob]bool{}
	for i := range s.knobs {
		switch k := &s.knobs[i]; {
		case k.Fresh:
			mine[k.Knob] = !k.stuck
		case !k.Held.Now.Unlimited:
			others = append(others, k.set)
		}
	}
	if len(others) == 0 {
		return
	}
	slices.Sort(others)
	median := (others[(len(others)-1)/2] + others[len(others)/2]) / 2
	left, idle := p.room(r.now, s.resource, mine), p.idle(r.now, s.resource, mine)
	for i := range s.knobs {
		k := &s.knobs[i]
		if !k.Fresh || k.stuck {
			continue
		}
		set := math.Min(math.Min(median, k.Most()), idle)
		if room, ok := left[k.Host]; ok {
			set = math.Min(set, room)
			left[k.Host] -= set
		}
		set = math.Max(math.Floor(set/s.of.quantum()+grain)*s.of.quantum(), math.Max(s.dial.Min, k.Held.Min))
		idle -= set
		k.set, k.Fresh, k.placed = set, false, true
	}
}

// part says why one of several instances gets what it gets.
func (s *seat) part(k *instance, why string) string {
	show := func(v trimtab.Amount) string { return trimtab.AmountOf(s.of.Name, v) }
	from, to := show(k.Held.Now), show(trimtab.Units(k.set))
	if k.placed {
		return fmt.Sprintf("from %s to %s: it has just appeared, and gets the median of what the other instances have", from, to)
	}
	if why == "" {
		return fmt.Sprintf("from %s to %s, as 1 of %d instances", from, to, len(s.knobs))
	}
	return fmt.Sprintf("%s; this is 1 of %d instances: from %s to %s", why, len(s.knobs), from, to)
}
