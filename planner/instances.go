package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/spread"
)

// grain absorbs rounding when an amount is turned into units: 1e-9 of a unit.
const grain = 1e-9

// instances returns the knobs of one resource of a workload that can be turned, in
// order of host and instance, or says why there is none. A host that declares the
// knob and cannot turn it, such as a standby without the cgroup, or that is silent
// for a lease, does not stand in the way of those that can: it serves nothing.
func (r *decision) instances(w *workload, resource int) (instances.All, trimtab.Held) {
	var found instances.All
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
			found = append(found, instances.Of(e, r.planner.ledger.Lost(e, r.now)))
			if in := &found[len(found)-1]; in.Held.Reserves && w.dials[resource].Min <= r.planner.resources[resource].Unit {
				in.Low = math.Max(in.Low, in.Baseline()/2) // what falls is gone at once: others are placed there
			}
		}
	}
	if len(found) == 0 {
		return nil, held
	}
	if least > 0 {
		found = found[:1]
	}
	found.ShareOut(w.estimate)
	first := found[0]
	switch {
	case first.Held.Problem != "":
		return found, trimtab.Held{Code: trimtab.HeldKnob, Text: "knob" + r.about(resource) + ": " + first.Held.Problem}
	case !first.Held.Serves():
		return found, trimtab.Held{Code: trimtab.HeldKnob, Text: "no instance of it serves yet"}
	case least > 1:
		return found, trimtab.Held{Code: trimtab.HeldTwins, Text: fmt.Sprintf("two agents say that they are host %s", first.Host)}
	case least > 0, !slices.ContainsFunc(found, func(i instances.Instance) bool { return !i.Stuck }):
		return found, trimtab.Held{Code: trimtab.HeldSilent, Text: fmt.Sprintf("host %s was not heard of for %v", first.Host, r.now.Sub(first.Heard()).Round(time.Second))}
	}
	return found, trimtab.Held{}
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

// has is what the workload has, for people.
func (s *seat) has() trimtab.Amount {
	if len(s.knobs) == 1 {
		return s.knobs[0].Held.Standing.Cap(s.knobs[0].Found)
	}
	if s.knobs.Unlimited() {
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
				if k := &s.knobs[i]; k.Bounded(left) {
					left[k.Site()] -= k.Has
				}
			}
			continue
		}
		for i := range s.knobs {
			if k := &s.knobs[i]; !k.Stuck && k.Bounded(left) && at[k.Site()] == 0 {
				at[k.Site()] = 1
				names = append(names, site{k.Node(), k.Site()})
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
		prob.Workloads[j].Parts = s.knobs.Parts(at)
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
			k.Set = k.Has
		}
		stays := math.Abs(s.grant.Set-s.now) < u/2
		s.evens = stays && s.kept == "" && s.free && s.scale == nil && s.knobs.Uneven(s.now, s.dial.Min, u, r.idle(resource, r.believed(resource)) < -u/2)
		switch {
		case s.kept != "":
			if rest == nil {
				rest = r.believed(resource).Rest(r.planner.capacity(resource))
			}
			s.back(rest)
		case s.byHost:
			s.settle()
		case resource == 0 && s.scale != nil && s.free:
			// Its number goes with it: see number.go.
		case stays && s.acts() && s.knobs.Appeared() && (!reserves(s) || s.divided):
			if rest == nil {
				rest = r.believed(resource).Rest(r.planner.capacity(resource))
			}
			s.knobs.Place(rest, r.believed(resource), s.dial.Min, s.of.Quantum())
		case stays && !s.evens:
		case len(s.knobs) == 1 && !s.acts():
			s.knobs[0].Set = s.grant.Set
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
			if k.Stuck {
				continue
			}
			if at[k.Site()] == 0 {
				c := unbounded
				if k.Bounded(left) {
					c = max(0, downQuanta(left[k.Site()], u))
				}
				pool.Hosts = append(pool.Hosts, c)
				at[k.Site()] = len(pool.Hosts)
			}
			in := spread.Instance{Host: at[k.Site()] - 1, Load: &k.Share, Max: unbounded, Current: downQuanta(k.Set, u)}
			if len(s.knobs) > 1 {
				in.Max = downQuanta(k.High, u)
				in.Min = min(upQuanta(max(s.dial.Min, k.Low), u), in.Max)
			}
			w.Target += upQuanta(k.Share*s.grant.Set, u)
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
			if k := &s.knobs[i]; !k.Stuck {
				k.Set, k.Fresh = float64(amounts[j][next])*u, false
				next++
			}
		}
		set := s.knobs.Set()
		switch {
		case set < s.grant.Set-u:
			s.knobs.Level(set, s.dial.Min, u)
			s.grant.Set, s.grant.Binding = set, trimtab.Binding{Kind: trimtab.BindingHost, Detail: s.knobs.Tightest()}
		case len(s.knobs) == 1:
			s.knobs[0].Set = s.grant.Set // which is whole units, and perhaps no whole quanta
		default:
			s.grant.Set = set
		}
	}
}

// levelsOf says why instances of a workload that stays are lowered.
func levelsOf(s *seat, resource string) string {
	are := "are"
	if !s.writes() {
		are = "would be"
	}
	return fmt.Sprintf("%sit has %s over all its instances, and those that have more than their part of it %s lowered to that", resource, s.amount(s.now), are)
}

// partWhy says why one of several instances gets what it gets.
func partWhy(s *seat, k *instances.Instance, why string) string {
	show := func(v trimtab.Amount) string { return trimtab.AmountOf(s.of.Name, v) }
	from, to := show(k.Found), show(trimtab.Units(k.Set))
	if k.Placed {
		return fmt.Sprintf("from %s to %s: it has just appeared, and gets the median of what the other instances have", from, to)
	}
	if why == "" {
		return fmt.Sprintf("from %s to %s, as 1 of %d instances", from, to, len(s.knobs))
	}
	return fmt.Sprintf("%s; this is 1 of %d instances: from %s to %s", why, len(s.knobs), from, to)
}
