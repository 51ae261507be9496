package planner

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/spread"
)

// instances returns the usable knobs of one resource of a workload, ordered by host and instance,
// or why there is none. A host serves nothing if it declares the knob but cannot set it (a standby
// without the cgroup), or if it was silent for a lease; the other hosts are used all the same.
func (r *decision) instances(w *allocation.Workload, resource int) (instances.All, trimtab.Held) {
	var found instances.All
	least := math.MaxInt
	held := trimtab.Held{Code: codes.HeldNoKnob, Text: "no actuator has its knob" + r.about(resource)}
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
			if in := &found[len(found)-1]; in.Held.Reserves && w.States[resource].Min <= r.planner.resources[resource].Unit {
				in.Low = math.Max(in.Low, in.Baseline()/2) // lowered reservations are lost at once: the cluster places other pods there
			}
		}
	}
	if len(found) == 0 {
		return nil, held
	}
	if least > 0 {
		found = found[:1]
	}
	found.ShareOut(w.Estimate)
	first := found[0]
	switch {
	case first.Held.Problem != "":
		return found, trimtab.Held{Code: codes.HeldKnob, Text: "knob" + r.about(resource) + ": " + first.Held.Problem}
	case !first.Held.Serves():
		return found, trimtab.Held{Code: codes.HeldKnob, Text: "no instance of it serves yet"}
	case least > 1:
		return found, trimtab.Held{Code: codes.HeldDuplicate, Text: fmt.Sprintf("two agents say that they are host %s", first.Host)}
	case least > 0, !slices.ContainsFunc(found, func(i instances.Instance) bool { return !i.Stuck }):
		return found, trimtab.Held{Code: codes.HeldSilent, Text: fmt.Sprintf("host %s was not heard of for %v", first.Host, r.now.Sub(first.ReportedAt()).Round(time.Second))}
	}
	return found, trimtab.Held{}
}

// unfit classifies a knob. 0: it can be set. 1: its host was silent for a lease. 2: it has a
// problem, serves nothing, or two agents claim to be its host.
func (r *decision) unfit(e *ledger.Knob) int {
	switch {
	case e.Held.Problem != "", !e.Held.Serves(), r.planner.ledger.Duplicate(e, r.now):
		return 2
	case r.now.Sub(e.ReportedAt()) > r.planner.cfg.Lease:
		return 1
	}
	return 0
}

// locate adds the hosts to the problem, each with the capacity that knobs of other workloads leave
// there.
func (r *decision) locate(prob *policy.Problem, asked []*allocation.Allocation, others *ledger.Counts) {
	left := others.Headroom()
	at := make([]int, len(left)) // by site: index in prob.Hosts plus 1; 0: not in prob.Hosts
	names := make([]site, 0, len(left))
	for _, s := range asked {
		if s.CountsUp() { // it can get instances on other nodes, so that no host limits it
			for i := range s.Knobs {
				if k := &s.Knobs[i]; k.Bounded(left) {
					left[k.Site()] -= k.Has
				}
			}
			continue
		}
		for i := range s.Knobs {
			if k := &s.Knobs[i]; !k.Stuck && k.Bounded(left) && at[k.Site()] == 0 {
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
		if s.CountsUp() {
			continue
		}
		prob.Workloads[j].Parts = s.Knobs.Parts(at)
		for _, part := range prob.Workloads[j].Parts {
			least[part.Host] += part.Share * float64(prob.Workloads[j].Min)
		}
	}
	// A host whose workloads' minimums exceed its reported capacity would make the problem
	// infeasible. It counts as having just those minimums, so that the others are still planned
	// for.
	for h := range prob.Hosts {
		prob.Hosts[h].Units = math.Max(prob.Hosts[h].Units, least[h])
	}
}

// site is a host and its index in the ledger.
type site struct {
	name string
	at   int
}

// spread divides the grant of each allocation of one resource among its instances.
func (r *decision) spread(resource int) {
	u := r.planner.resources[resource].Unit
	var written, advised []*allocation.Allocation // allocations whose amounts change, in mode act and mode recommend
	var rest *ledger.Rest
	for _, s := range r.allocations {
		if s.Index != resource {
			continue
		}
		for i := range s.Knobs {
			k := &s.Knobs[i]
			k.Set = k.Has
		}
		stays := math.Abs(s.Step.Set-s.Now) < u/2
		s.Notes.Evens = stays && s.Aim.Kept == "" && s.Status.Free && s.Scale == nil && s.Knobs.Uneven(s.Now, s.State.Min, u, r.idle(resource, r.believed(resource)) < -u/2)
		switch {
		case s.Aim.Kept != "":
			if rest == nil {
				rest = r.believed(resource).Rest(r.planner.capacity(resource))
			}
			s.GoBack(rest)
		case s.Aim.ByHost:
			s.Settle()
		case resource == 0 && s.Scale != nil && s.Status.Free:
			// The number of instances changes with it: see number.go.
		case stays && s.Acts() && s.Knobs.Appeared() && (!allocation.Reserves(s) || s.Aim.Divided):
			if rest == nil {
				rest = r.believed(resource).Rest(r.planner.capacity(resource))
			}
			s.Knobs.Distribute(rest, r.believed(resource), s.State.Min, s.Resource.Quantum())
		case stays && !s.Notes.Evens:
		case len(s.Knobs) == 1 && !s.Acts():
			s.Knobs[0].Set = s.Step.Set
		case s.Acts():
			written = append(written, s)
		default:
			advised = append(advised, s)
		}
	}
	if len(written) > 0 {
		r.amounts(written, r.others(written, resource).Headroom())
	}
	if len(advised) > 0 {
		r.amounts(advised, nil)
	}
}

// upQuanta and downQuanta round like policy.UpUnits and policy.DownUnits, for quanta that may be
// very small.
func upQuanta(v, quantum float64) int {
	return int(math.Min(math.Ceil(v/quantum-policy.Grain), unbounded))
}

func downQuanta(v, quantum float64) int {
	return int(math.Min(math.Floor(v/quantum+policy.Grain), unbounded))
}

// unbounded is a capacity in quanta that is never reached.
const unbounded = 1 << 40

// amounts divides the grants of allocations among their instances. left is the capacity of each
// host; nil: every host has enough.
func (r *decision) amounts(moving []*allocation.Allocation, left []float64) {
	p := r.planner
	pool := spread.Pool{Quanta: unbounded, Workloads: make([]spread.Workload, 0, len(moving))}
	at := make([]int, p.ledger.Sites()) // by site: index in pool.Hosts plus 1; 0: not in pool.Hosts
	for _, s := range moving {
		u, w := s.Resource.Quantum(), spread.Workload{Instances: make([]spread.Instance, 0, len(s.Knobs))}
		for i := range s.Knobs {
			k := &s.Knobs[i]
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
			if len(s.Knobs) > 1 {
				in.Max = downQuanta(k.High, u)
				in.Min = min(upQuanta(max(s.State.Min, k.Low), u), in.Max)
			}
			w.Target += upQuanta(k.Share*s.Step.Set, u)
			w.Instances = append(w.Instances, in)
		}
		pool.Workloads = append(pool.Workloads, w)
	}
	amounts, err := pool.Amounts()
	if err != nil {
		p.counts.unsolved++ // cannot happen: minimums never exceed maximums here
		return
	}
	for j, s := range moving {
		next, u := 0, s.Resource.Quantum()
		for i := range s.Knobs {
			if k := &s.Knobs[i]; !k.Stuck {
				k.Set, k.Fresh = float64(amounts[j][next])*u, false
				next++
			}
		}
		set := s.Knobs.Set()
		switch {
		case set < s.Step.Set-u:
			s.Knobs.Level(set, s.State.Min, u)
			s.Step.Set, s.Step.Binding = set, trimtab.Binding{Kind: codes.BindingHost, Detail: s.Knobs.Tightest()}
		case len(s.Knobs) == 1:
			s.Knobs[0].Set = s.Step.Set // whole units, which need not be whole quanta
		default:
			s.Step.Set = set
		}
	}
}
