package allocation

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/ledger"
	"github.com/trimtab/trimtab/planner/measured"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/pool"
	"github.com/trimtab/trimtab/planner/replicas"
)

// Number is what the planner keeps of the number of a workload's instances.
type Number struct {
	State replicas.State
	// From and To are the numbers before and after the last published action.
	From, To int
	Minute   replicas.Minute
	// Idle measures for how long it has had no load, if it may be scaled to zero.
	Idle replicas.Idle
}

// Start records the start of one instance.
type Start struct {
	Since       time.Time // when it was first seen; zero: it was there before the planner
	ran, Served bool
}

// InstanceSet is the set of instances of a workload in a cluster.
type InstanceSet struct {
	Starts map[trimtab.KnobID]*Start
	// Reported: a host has reported the instances. One that appears later is new.
	Reported bool
}

// Observe records the state of an instance, and reports whether it runs or serves for the first
// time.
func (c *InstanceSet) Observe(now time.Time, t *trimtab.KnobState) (s *Start, news bool) {
	s = c.Starts[t.KnobID]
	if s == nil {
		s = &Start{ran: !c.Reported && t.Problem == "", Served: !c.Reported && t.Serves()}
		if c.Reported {
			s.Since = now
		}
		c.Starts[t.KnobID] = s
	}
	news = !s.ran && t.Problem == "" || !s.Served && t.Serves()
	s.ran = s.ran || t.Problem == ""
	return s, news
}

// NewNumber returns the initial state of a planned number of instances.
func NewNumber(c *pool.Count) *Number {
	return &Number{State: replicas.State{Startup: replicas.Startup{Declared: c.Startup}}}
}

// Counted reports whether the number of its instances is planned.
func (w *Workload) Counted() bool { return w.Number != nil }

// Sent records a published action on the number.
func (n *Number) Sent(a *trimtab.Action) {
	n.From, n.To = int(a.Expect.Value), int(a.Set.Value)
}

// countable records the knob of the number of instances, nil if there is none, and widens the
// bounds to what more or fewer instances would have.
func (s *Allocation) countable(k *ledger.Knob) {
	if k == nil || s.Index != 0 || s.Status.Held.Code != "" || s.Knobs.Unlimited() {
		return
	}
	s.Scale = k
	if !s.CountsUp() {
		return
	}
	size, least := mostSizeOf(s), s.State.Min
	if s.sizeFixed() || Reserves(s) {
		size, least = s.Now/float64(len(s.Knobs)), s.Now/float64(len(s.Knobs))
		s.Range.easy = policy.UpUnits(s.Now, s.Resource.Unit)
	}
	most := float64(min(s.Count.Max, int(math.Max(mostCountOf(s), 1))))
	s.Range.Hi = max(s.Range.Hi, policy.DownUnits(math.Min(most*size, s.Resource.Capacity), s.Resource.Unit))
	s.Range.Lo = min(s.Range.Lo, max(policy.UpUnits(least*float64(s.Count.Min), s.Resource.Unit), 1))
}

// mostSizeOf returns the largest size of an instance that the configuration and the cluster allow.
func mostSizeOf(s *Allocation) float64 { return math.Max(s.Knobs.Largest(s.Max), s.State.Min) }

// CountsUp reports whether the number of its instances is planned. It is also planned if another
// program sets it, as long as trimtab only recommends for the workload.
func (s *Allocation) CountsUp() bool {
	return s.Scale != nil && s.Scale.Held.Problem == "" && (s.Scale.Held.ReadOnly == "" || s.Mode != trimtab.Act || s.ReadOnly != "")
}

// sizeFixed reports whether only the number of its instances is written, not their size.
func (s *Allocation) sizeFixed() bool {
	return s.Mode == trimtab.Act && s.ReadOnly != "" && s.Scale != nil && s.Scale.Held.Problem == "" && s.Scale.Held.ReadOnly == ""
}

// mostCountOf returns the largest number of instances that the cluster's quotas allow.
func mostCountOf(s *Allocation) float64 {
	if st := s.Scale.Held.Status; st != nil && st.Most > 0 {
		return st.Most
	}
	return float64(s.Count.Max)
}

// Replicas is the planned change of the number of an allocation's instances.
type Replicas struct {
	From, To int
	Mode     trimtab.Mode
	Why      trimtab.Reason
	// Note says why the number does not change; "": no reason is needed.
	Note string
}

// Moves reports whether it changes.
func (n *Replicas) Moves() bool { return n.To != n.From }

// Leaving names the instances of an allocation that should leave first if the number falls, where that
// is asked for and known.
func Leaving(s *Allocation) []string {
	if !s.Count.Chosen {
		return nil
	}
	return s.Knobs.LeastLoaded(s.Estimate, s.Replicas.From-s.Replicas.To)
}

// nodeName returns the key of a site in maps of package replicas.
func nodeName(site int) string { return fmt.Sprint(site) }

// HeadroomOf returns the idle capacity of the nodes on which the allocation has instances, by node;
// nil: nodes do not limit it.
func HeadroomOf(s *Allocation, hosts []float64) map[string]float64 {
	if hosts == nil {
		return nil
	}
	out := make(map[string]float64, len(s.Knobs))
	for i := range s.Knobs {
		out[nodeName(s.Knobs[i].Site())] = hosts[s.Knobs[i].Site()]
	}
	return out
}

// AsWorkload returns the allocation as package replicas sees it, and for each instance there its
// index in s.Knobs; −1: it serves nothing, or cannot be set.
func (s *Allocation) AsWorkload(now time.Time, knobs []*ledger.Knob) (*replicas.Workload, []int) {
	scale, c := s.Scale, s.Count
	need := neededBy(s)
	w := &replicas.Workload{Name: s.Name, Need: need, Work: workOf(s), Granted: s.Step.Set, Replicas: int(math.Round(scale.Now())), Fallback: c.Fallback,
		Size:  replicas.Size{Min: math.Max(s.State.Min, s.Resource.Quantum()), Max: math.Max(mostSizeOf(s), s.Resource.Quantum()), Step: math.Max(s.Resource.Quantum(), 0.01*s.Resource.Unit), Behavior: c.Size},
		Count: replicas.Count{Min: c.Min, Max: c.Max, Spare: c.Spare, Behavior: c.Behavior}}
	w.Size.Fixed = s.Aim.Kept != ""
	if s.Resource.Name == trimtab.CPU {
		w.Size.Step = 0.01 // a kubelet rounds CPU quotas to this
	}
	if s.Acts() {
		w.Size.ReadOnly, w.Count.ReadOnly = s.ReadOnly, scale.Held.ReadOnly
	}
	if scale.Held.Problem != "" {
		w.Count.ReadOnly = scale.Held.Problem
	}
	if st := scale.Held.Status; st != nil {
		w.Rollout = st.Rollout
	}
	if st := scale.Held.Status; st != nil && st.Most > 0 {
		more := max(0, int(st.Most)-w.Replicas)
		w.Limits.Pods = &more
	}
	if scale.Held.Floor > 0 {
		may := max(0, w.Replicas-int(math.Ceil(scale.Held.Floor-policy.Grain)))
		w.Limits.Disruptable = &may
	}
	if q := s.Knobs.Left(); !math.IsInf(q, 1) {
		w.Limits.Amount = &q
	}
	var index []int
	for _, k := range knobs {
		if k.Gone() {
			continue
		}
		in := replicas.Instance{Host: nodeName(k.Site()), InForce: k.Now(), Asked: k.Now(), Ready: k.Held.Serves()}
		if e := k.Held.InForce(); !e.Unlimited {
			in.InForce = e.Value
		}
		if st := k.Held.Status; st != nil {
			in.Terminating = st.Phase == trimtab.Ending
		}
		if l := s.History.Instances.Starts[k.KnobID]; l != nil && !l.Served && !l.Since.IsZero() {
			in.Age = now.Sub(l.Since)
		}
		w.Instances = append(w.Instances, in)
		index = append(index, slices.IndexFunc(s.Knobs, func(i instances.Instance) bool { return i.Knob == k && !i.Stuck }))
	}
	return w, index
}

// workOf returns the part of its need that its requests use, without headroom, in the resource's
// unit; 0: unknown.
func workOf(s *Allocation) float64 {
	e := s.Estimate
	if !s.Status.Free || !s.Aim.Served || e.Cost == nil || e.Load == nil {
		return 0
	}
	return *e.Cost * (e.Load.Mean + math.Max(0, s.History.Confidence)*(e.Load.Upper-e.Load.Mean))
}

// neededBy returns how much the workload needs in the coming round, and how much within the time
// that a new instance takes to start. If the pool is too small for all needs, both are the amount that
// the policy gives.
func neededBy(s *Allocation) replicas.Need {
	if !s.Status.Free {
		return replicas.Need{Round: s.Now, Start: s.Now}
	}
	n := replicas.Need{Round: float64(s.Aim.Units) * s.Resource.Unit}
	switch {
	case s.Aim.Served:
		n.Round = math.Min(s.Aim.Safe, float64(s.Range.Hi)*s.Resource.Unit)
	case !s.Unserved(): // leftover capacity that the policy gives it is no reason to start instances
		n.Round = math.Min(n.Round, float64(s.NeedAt(1)+s.Waiting())*s.Resource.Unit)
	}
	if s.Scale.Held.ReadOnly != "" && s.Writes() {
		// What it is advised is not limited by the instances that exist.
		hi := s.Range.Hi
		s.Range.Hi = policy.DownUnits(math.Min(float64(s.Count.Max)*s.Max, s.Resource.Capacity), s.Resource.Unit)
		n.Round = math.Max(n.Round, float64(s.NeedAt(s.History.Confidence))*s.Resource.Unit)
		if s.Unserved() && measured.Misses(s.Estimate, s.SLO) && s.Now >= float64(hi)*s.Resource.Unit-policy.Grain*s.Resource.Unit {
			// It has all that its instances can have, misses its SLO, and nothing shows how much is
			// enough: to advise more is no worse a guess than to stay.
			n.Round = math.Min(math.Max(n.Round, (1+growth)*s.Now), float64(s.Range.Hi)*s.Resource.Unit)
		}
		s.Range.Hi = hi
	}
	n.Start = n.Round
	l := s.Estimate.Load
	if l == nil || !s.Aim.Served || !(l.Later > l.Upper) || !(l.Within > 0) {
		return n
	}
	// Interpolate between the load bounds of the round and of the whole forecast.
	part := math.Min(math.Max(s.Number.State.Startup.Upper().Seconds()/float64(l.Within), 0), 1)
	asks := s.Asks()
	later := asks.Beyond(l.Upper + part*(l.Later-l.Upper))
	n.Start = math.Max(n.Start, float64(later)*s.Resource.Unit)
	return n
}

// Over reports whether a workload has had no load for its cooldown.
func (n *Number) Over(now time.Time, c *pool.Count) bool {
	return c.AllowZero && n.Idle.Over(now, c.Cooldown)
}

// Wanted returns with how many instances a workload at zero comes back for a load: at least one.
func (w *Workload) Wanted(k *ledger.Knob, load float64) int {
	n := max(1, w.Count.Min)
	if need, ok := replicas.NeedOf(w.Estimate.Curve, w.SLO, load, 0); ok {
		n = max(n, int(math.Min(math.Ceil(need.Round/w.Max-policy.Grain), pool.MostReplicas)))
	}
	if st := k.Held.Status; st != nil && st.Most > 0 {
		n = min(n, int(st.Most))
	}
	return min(n, w.Count.Max)
}
