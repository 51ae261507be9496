package planner

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/entitlement"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/shift"
)

// This file sets shares of CPU by weight on several hosts. A host whose workloads have no instance
// elsewhere is treated like an only host: package overload decides there. The other hosts divide
// their CPU by entitlement; when one is full and another is not, package shift decides which
// workload moves load away from it.

// hosting is the pass that sets the amounts of the instances on each host.
type hosting struct{ *decision }

// sharedHost is a host, or a node of a cluster, with the instances that share it. node is the CPU that
// they have there, which decides whether their needs fit; has is how much of it they may be given
// in total. The two differ only if the shares are reservations: has is then what the site reserved,
// plus what the pool can add.
type sharedHost struct {
	name      string
	has, node float64
	// capacityKnown: the capacity of the host is known.
	capacityKnown bool
	members       []member
}

// scale returns the fraction of the node's CPU that may be given.
func (b *sharedHost) scale() float64 {
	if !(b.node > 0) {
		return 1
	}
	return b.has / b.node
}

// member is one instance of an allocation on the host.
type member struct {
	of *allocation.Allocation
	in *instances.Instance
}

// shares sets the amounts of all instances that share CPU by weight, in a pool of several hosts.
func (r hosting) shares(all []*sharedHost) {
	round := shift.Round{Now: r.now}
	of := map[*allocation.Allocation]int{}
	var joined []*sharedHost
	var asked []*allocation.Allocation
	for _, b := range all {
		host, entitled := shift.Host{Has: b.node}, r.entitledOn(b)
		if b.apart() {
			r.takeTurns(b, entitled)
			continue
		}
		joined = append(joined, b)
		for k, m := range b.members {
			at, known := of[m.of]
			if !known {
				at = len(round.Workloads)
				of[m.of], asked = at, append(asked, m.of)
				round.Workloads = append(round.Workloads, shift.Workload{Cost: m.cores(), Instances: len(m.of.Knobs), Late: m.of.Missed > 1, Unknown: m.of.Estimate.Cost == nil && m.of.Unserved()})
			}
			m.in.Hosted = instances.Hosted{Aim: entitled[k]}
			host.Instances = append(host.Instances, shift.Instance{ID: m.in.KnobID, Workload: at, Load: m.in.Share, Entitled: entitled[k] / b.scale(), Least: math.Max(m.of.State.Min, m.in.Low), Quantum: m.of.Resource.Quantum()})
		}
		round.Hosts = append(round.Hosts, host)
	}
	if len(joined) == 0 {
		return
	}
	state, what := shift.Decide(r.planner.shift, round)
	r.planner.shift = state
	for _, b := range joined {
		for _, m := range b.members {
			share, capped, ok := state.Of(m.in.KnobID)
			switch {
			case ok:
				m.in.Hosted = instances.Hosted{Aim: b.part(m, share), Capped: capped}
			case what == shift.Fits && m.in.Held.Reserves:
				m.in.Aim = allocation.Due(m.of, m.in)
			}
		}
	}
	detail := map[shift.Verdict]string{
		shift.Fits:       "needs fit; the kernel shares",
		shift.Late:       "requests are late on a full host; the kernel shares by entitlement",
		shift.Overloaded: "needs do not fit; the kernel shares by entitlement",
		shift.Chosen:     "needs fit the pool, but not each host; what has instances elsewhere makes room",
	}[what]
	for _, s := range asked {
		s.Overload.End() // its turn in an overload of a single host is over
		s.Aim.Solved, s.Aim.Served, s.Aim.Stays, s.Aim.ByHost = true, true, true, true
		s.Aim.Units, s.Aim.Divided = policy.UpUnits(s.Now, s.Resource.Unit), what != shift.Fits
		s.Aim.Binding = trimtab.Binding{Kind: codes.BindingIdle, Detail: allocation.DueSince(s, detail, what == shift.Fits)}
		if what == shift.Chosen {
			s.Aim.Binding.Kind = codes.BindingHost
		}
	}
}

// part converts an instance's share of the node's CPU into the amount that it is given.
func (b *sharedHost) part(m member, share float64) float64 {
	if b.has == b.node {
		return share
	}
	return math.Max(m.of.Resource.Down(share*b.scale()), math.Max(m.of.State.Min, m.in.Low))
}

// apart reports whether no workload on the host has an instance elsewhere.
func (b *sharedHost) apart() bool {
	return !slices.ContainsFunc(b.members, func(m member) bool { return b.count(m.of) < len(m.of.Knobs) })
}

// takeTurns lets package overload decide for a host that is apart. entitled is the entitlement of
// each instance there.
func (r hosting) takeTurns(b *sharedHost, entitled []float64) {
	var allocations []*allocation.Allocation
	whole := map[string]float64{}
	for k, m := range b.members {
		if k == 0 || allocations[len(allocations)-1] != m.of {
			allocations = append(allocations, m.of)
		}
		whole[m.of.Name] += entitled[k]
	}
	aiming(r).takeTurns(b.name, policy.DownUnits(b.node, r.planner.cfg.Unit), b.scale(), allocations, whole)
}

// sharedHosts returns the hosts on which the allocations have instances that can be set, in order of
// name, with the capacity left for those instances. The sum of has is at most what the pool leaves,
// or what the site reserved if that is more.
func (r hosting) sharedHosts(asked []*allocation.Allocation) []*sharedHost {
	others := r.others(asked, 0)
	room, by, out := others.Headroom(), map[int]*sharedHost{}, []*sharedHost(nil)
	for _, s := range asked {
		for i := range s.Knobs {
			k := &s.Knobs[i]
			if k.Stuck {
				continue
			}
			b := by[k.Site()]
			if b == nil {
				b = &sharedHost{name: k.Node(), capacityKnown: k.Bounded(room)}
				if by[k.Site()] = b; b.capacityKnown {
					b.node = math.Max(0, room[k.Site()])
				}
				out = append(out, b)
			}
			switch b.members = append(b.members, member{s, k}); {
			case b.capacityKnown:
			case k.Held.Reserves:
				b.node += math.Max(k.Has, k.Before())
			default:
				b.node += k.Has // unknown capacity: count what the instances have
			}
		}
	}
	given, beyond := 0.0, 0.0
	for _, b := range out {
		b.has = b.given()
		given, beyond = given+b.has, beyond+b.node-b.has
	}
	part := 1.0
	if left := math.Max(0, r.idle(0, others)); given+beyond > left && beyond > 0 {
		part = math.Max(0, left-given) / beyond
	}
	for _, b := range out {
		reserves := b.has > 0
		if b.has += part * (b.node - b.has); !reserves {
			b.node = b.has
		}
	}
	return out
}

// given returns what the site reserved for the instances of a host, at most the node's CPU.
func (b *sharedHost) given() (sum float64) {
	for _, m := range b.members {
		if m.in.Held.Reserves {
			sum += m.in.Before()
		}
	}
	return math.Min(sum, b.node)
}

// cores returns how many cores the requests of the workload need, > 0.
func (m member) cores() float64 {
	v := m.of.Overload.Wants
	if !(v > 0) {
		v = float64(m.of.NeedAt(-1)) * m.of.Resource.Unit
	}
	return math.Max(v, m.of.Resource.Unit)
}

// count returns how many instances of an allocation are on the host.
func (b *sharedHost) count(s *allocation.Allocation) (n int) {
	for _, m := range b.members {
		if m.of == s {
			n++
		}
	}
	return n
}

// entitledOn returns the entitlement of each instance on a host: the host's CPU is divided among
// the workloads there, and a workload's part equally among its instances on the host.
func (r hosting) entitledOn(b *sharedHost) []float64 {
	var members []entitlement.Member
	for k, m := range b.members {
		if k > 0 && b.members[k-1].of == m.of {
			continue // instances of one allocation are adjacent: count it once
		}
		part := float64(b.count(m.of)) / float64(len(m.of.Knobs))
		least := 0.0
		for _, o := range b.members {
			if o.of == m.of {
				least += math.Max(m.of.State.Min, o.in.Low)
			}
		}
		members = append(members, entitlement.Member{Name: m.of.Name, Group: m.of.Group, Part: entitlement.Part{Weight: m.of.Weight, Least: math.Max(m.of.State.Guarantee*part, least)}})
	}
	entitled := entitlement.Divide(b.has, members, r.planner.cfg.Entitled())
	out := make([]float64, len(b.members))
	for k, m := range b.members {
		out[k] = entitled[m.of.Name] / float64(b.count(m.of))
		if math.Abs(out[k]-m.in.Has) < m.of.Resource.Unit {
			out[k] = m.in.Has
		} else {
			out[k] = m.of.Resource.Down(out[k])
		}
	}
	return out
}
