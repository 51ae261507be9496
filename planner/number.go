package planner

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
	"github.com/trimtab/trimtab/planner/replicas"
)

// Size and number of a workload's instances are one plan: the policy gives it an
// effective allocation, and package replicas says by what it gets it.
//
//	size      up to what the instances that are there can have (easy), at once
//	number    where that is less than the workload needs, or fewer are enough
//
// Leftover capacity goes to the size alone: nobody starts an instance for it. What
// instances that come begin with is taken from the pool before they are asked for, and
// until they have a knob of their own (coming).

// afterCame is how long after a round the next one may be for an instance that came to
// serve.
const afterCame = 2 * time.Second

// number is what the planner keeps of the number of a workload's instances.
type number struct {
	state replicas.State
	// from is the number that an action found that went out, to what it sets.
	from, to int
	minute   replicas.Minute
	// idle is the time that it has no load, where it may go to zero.
	idle replicas.Idle
}

// life is one instance's.
type life struct {
	since       time.Time // when it was seen first, zero: it was there before
	ran, served bool
}

func newNumber(c *Count) *number {
	return &number{state: replicas.State{Startup: replicas.Startup{Declared: c.Startup}}}
}

func (w *workload) counted() bool { return w.number != nil }

// sent notes an action on the number.
func (n *number) sent(a *trimtab.Action) {
	n.from, n.to = int(a.Expect.Value), int(a.Set.Value)
}

// noteNumbers takes in numbers that were written, by which rates are bounded.
func noteNumbers(p *Planner, now time.Time, o *trimtab.Outcome) {
	for i := range o.Results {
		r := &o.Results[i]
		w := p.byName[r.Workload]
		if r.Resource != trimtab.Replicas || w == nil || w.number == nil || r.Status != trimtab.Written && r.Status != trimtab.Pending || int(r.Found.Value) != w.number.to {
			continue
		}
		w.number.state.Count.Changed(now, w.Count.Behavior, w.number.from, w.number.to)
		w.number.from = w.number.to // once
	}
}

// observe learns from a holding how long instances take to start, and asks for a round
// when one came to run or to serve with less than the others have.
func (p *Planner) observe(now time.Time, h *trimtab.Holding) {
	var heard []*workload
	there := map[trimtab.KnobID]bool{}
	for i := range h.Targets {
		t := &h.Targets[i]
		w := p.byName[t.Workload]
		if w == nil || t.Resource != p.cfg.Resource || w.number == nil && t.Standing == nil {
			continue
		}
		if len(heard) == 0 || heard[len(heard)-1] != w {
			heard = append(heard, w)
		}
		there[t.KnobID] = true
		if w.crew.lives == nil {
			w.crew.lives = map[trimtab.KnobID]*life{}
		}
		l, news := w.crew.comes(now, t)
		if t.Serves() && !l.served {
			l.served = true
			if w.number != nil && !l.since.IsZero() {
				w.number.state.Startup.Observe(now.Sub(l.since))
			}
		}
		if news && smallerThan(p, w, t) {
			p.came = w.Name
		}
	}
	for _, w := range heard {
		w.crew.told = true
		for id := range w.crew.lives {
			if id.Host == h.Host && !there[id] {
				delete(w.crew.lives, id)
			}
		}
	}
}

// smallerThan reports whether another instance that serves has more than this one.
func smallerThan(p *Planner, w *workload, t *trimtab.KnobState) bool {
	return w.Mode == trimtab.Act && slices.ContainsFunc(p.ledger.Of(w.Name, t.Resource), func(k *ledger.Knob) bool {
		return !k.Gone() && k.Held.Serves() && t.Now.Less(k.Held.Now)
	})
}

// scaleKnob returns the knob of the number of a workload's instances, or nil.
func (p *Planner) scaleKnob(w *workload) *ledger.Knob {
	if w.number == nil {
		return nil
	}
	for _, k := range p.ledger.Of(w.Name, trimtab.Replicas) {
		if !k.Gone() && !k.Held.Now.Unlimited {
			return k
		}
	}
	return nil
}

// coming is what instances take of a resource that were asked for and have no knob yet.
func (p *Planner) coming(resource string) (sum float64) {
	for _, w := range p.workloads {
		k := p.scaleKnob(w)
		if k == nil {
			continue
		}
		there := 0
		for _, i := range p.ledger.Of(w.Name, resource) {
			if s := i.Held.Standing; !i.Gone() && (s == nil || s.Phase != trimtab.Ending) {
				there++
			}
		}
		if more := p.ledger.Believed(k, p.now) - float64(there); more > 0 {
			sum += more * p.starts(w, k, resource)
		}
	}
	return sum
}

// starts is what one more instance begins with: what its knob says, or else its most.
func (p *Planner) starts(w *workload, k *ledger.Knob, resource string) float64 {
	if s := k.Held.Standing; s != nil {
		if v, ok := s.Starts[resource]; ok {
			return v
		}
	}
	if d := p.dial(w.Name, resource); d != nil {
		return d.Max
	}
	return 0
}

// bar notes why the size is only recommended although the workload is acted on.
func (s *seat) bar() {
	for i := range s.knobs {
		if s.barred = s.knobs[i].Held.Barred; s.barred != "" {
			return
		}
	}
}

// countable takes the knob of the number, nil: there is none, and widens the bounds to what it can give.
func (s *seat) countable(k *ledger.Knob) {
	if k == nil || s.resource != 0 || s.held.Code != "" || s.knobs.Unlimited() {
		return
	}
	s.scale = k
	if !s.countsUp() {
		return
	}
	size, least := mostSizeOf(s), s.dial.Min
	if s.sizeFixed() || reserves(s) {
		size, least = s.now/float64(len(s.knobs)), s.now/float64(len(s.knobs))
		s.easy = policy.UpUnits(s.now, s.of.Unit)
	}
	most := float64(min(s.Count.Max, int(math.Max(mostCountOf(s), 1))))
	s.hi = max(s.hi, policy.DownUnits(math.Min(most*size, s.of.Capacity), s.of.Unit))
	s.lo = min(s.lo, max(policy.UpUnits(least*float64(s.Count.Min), s.of.Unit), 1))
}

// mostSizeOf is the largest size of an instance that is declared and that the cluster
// allows.
func mostSizeOf(s *seat) float64 { return math.Max(s.knobs.Largest(s.Max), s.dial.Min) }

// countsUp reports whether the number may be planned: where nothing is written of the
// workload, also if somebody else sets it.
func (s *seat) countsUp() bool {
	return s.scale != nil && s.scale.Held.Problem == "" && (s.scale.Held.Barred == "" || s.Mode != trimtab.Act || s.barred != "")
}

// sizeFixed reports whether its number alone is written.
func (s *seat) sizeFixed() bool {
	return s.Mode == trimtab.Act && s.barred != "" && s.scale != nil && s.scale.Held.Problem == "" && s.scale.Held.Barred == ""
}

// mostCountOf is the largest number that quotas leave.
func mostCountOf(s *seat) float64 {
	if st := s.scale.Held.Standing; st != nil && st.Most > 0 {
		return st.Most
	}
	return float64(s.Count.Max)
}

// numbered is what the number of a seat's instances is to be.
type numbered struct {
	from, to int
	mode     trimtab.Mode
	why      trimtab.Reason
	// note says why the number stays; "": there is nothing to say.
	note string
}

func (n *numbered) moves() bool { return n.to != n.from }

// numbers divides what seats are to have into size and number.
func (r counting) numbers() {
	var seats []*seat
	idle := r.idle(0, r.believed(0))
	left, now := idle, math.Max(idle, 0)
	for _, s := range r.seats {
		switch {
		case s.resource != 0:
		case s.scale != nil:
			seats = append(seats, s)
			left -= math.Max(0, s.grant.Set-s.now)
		case s.acts():
			for i := range s.knobs {
				left += s.knobs[i].Has - s.knobs[i].Set
			}
		}
	}
	hosts := r.believed(0).Room()
	for _, s := range seats {
		own := math.Max(0, s.grant.Set-s.now)
		room := r.numberOf(s, math.Max(0, left+own), math.Min(now, math.Max(0, left+own)), hosts)
		if s.acts() {
			left = room - own
			now = math.Min(now, math.Max(0, left))
		}
	}
}

// numberOf decides on one seat, with so much left of the pool, of which so much is free
// at once, and on its nodes. It returns what is left after it.
func (r counting) numberOf(s *seat, left, free float64, hosts []float64) float64 {
	w, index := s.asWorkload(r.now, r.planner.ledger.Of(s.Name, s.of.Name))
	state := &s.number.state
	switch {
	case s.number.over(r.now, s.Count):
		w.Need, w.Count.AllowZero = replicas.Need{}, true
	case !s.free:
		w.Missing = s.held.Text
	}
	if s.free && s.served && s.estimate.Reports >= fewReports {
		if n := float64(len(s.knobs)); w.Work > 0 && w.Need.Start <= n*w.Size.Max {
			state.Slack.Observe(w.Need.Start, w.Work, len(s.knobs))
		}
		s.number.minute.Take(r.now, s.estimate, s.SLO, &state.Margin)
		w.Need = state.Margin.Add(w.Need)
		if w.Work > 0 {
			w.Work += state.Margin.Amount()
		}
	}
	room := &replicas.Room{Pool: left, Hosts: roomOf(s, hosts)}
	d := w.Decide(r.now, state, room)
	if s.free && w.Size.Barred == "" && !w.Size.Fixed {
		for at, i := range index {
			if i >= 0 {
				k := &s.knobs[i]
				k.Set = math.Min(math.Max(d.Sizes[at], math.Min(math.Max(s.dial.Min, k.Low), k.Has)), math.Max(k.High, k.Has))
				k.Fresh = false
			}
		}
		s.grant.Set = s.knobs.Set()
	}
	s.setNumber(r.now, w, &d, free, r.planner.starts(s.workload, s.scale, s.of.Name), &r.planner.cfg.Guard)
	for i := range s.knobs {
		left -= math.Max(0, s.knobs[i].Set-s.knobs[i].Has)
	}
	if more := s.count.to - s.count.from; more > 0 {
		left -= float64(more) * r.planner.starts(s.workload, s.scale, s.of.Name)
	}
	return left
}

// nodeName is a site as a key.
func nodeName(site int) string { return fmt.Sprint(site) }

// roomOf is what is left on the nodes of a seat's instances; nil: they bound nothing.
func roomOf(s *seat, hosts []float64) map[string]float64 {
	if hosts == nil {
		return nil
	}
	out := make(map[string]float64, len(s.knobs))
	for i := range s.knobs {
		out[nodeName(s.knobs[i].Site())] = hosts[s.knobs[i].Site()]
	}
	return out
}

// asWorkload is the seat as package replicas sees it, with the knobs of all its instances, and at which of the seat's knobs
// each of its instances is; -1: it serves nothing, or cannot be turned.
func (s *seat) asWorkload(now time.Time, knobs []*ledger.Knob) (*replicas.Workload, []int) {
	scale, c := s.scale, s.Count
	need := neededBy(s)
	w := &replicas.Workload{Name: s.Name, Need: need, Work: workOf(s), Granted: s.grant.Set, Replicas: int(math.Round(scale.Now())), Fallback: c.Fallback,
		Size:  replicas.Size{Min: math.Max(s.dial.Min, s.of.Quantum()), Max: math.Max(mostSizeOf(s), s.of.Quantum()), Step: math.Max(s.of.Quantum(), 0.01*s.of.Unit), Behavior: c.Size},
		Count: replicas.Count{Min: c.Min, Max: c.Max, Spare: c.Spare, Behavior: c.Behavior}}
	w.Size.Fixed = s.kept != ""
	if s.of.Name == trimtab.CPU {
		w.Size.Step = 0.01 // what a kubelet rounds to
	}
	if s.acts() {
		w.Size.Barred, w.Count.Barred = s.barred, scale.Held.Barred
	}
	if scale.Held.Problem != "" {
		w.Count.Barred = scale.Held.Problem
	}
	if st := scale.Held.Standing; st != nil {
		w.Rollout = st.Rollout
	}
	if st := scale.Held.Standing; st != nil && st.Most > 0 {
		more := max(0, int(st.Most)-w.Replicas)
		w.Limits.Pods = &more
	}
	if scale.Held.Floor > 0 {
		may := max(0, w.Replicas-int(math.Ceil(scale.Held.Floor-grain)))
		w.Limits.Budgets = append(w.Limits.Budgets, replicas.Budget{Allowed: &may})
	}
	if q := s.knobs.Left(); !math.IsInf(q, 1) {
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
		if st := k.Held.Standing; st != nil {
			in.Terminating = st.Phase == trimtab.Ending
		}
		if l := s.crew.lives[k.KnobID]; l != nil && !l.served && !l.since.IsZero() {
			in.Age = now.Sub(l.since)
		}
		w.Instances = append(w.Instances, in)
		index = append(index, slices.IndexFunc(s.knobs, func(i instances.Instance) bool { return i.Knob == k && !i.Stuck }))
	}
	return w, index
}

// workOf is what of its need is work; 0: not known.
func workOf(s *seat) float64 {
	e := s.estimate
	if !s.free || !s.served || e.Cost == nil || e.Load == nil {
		return 0
	}
	return *e.Cost * (e.Load.Mean + math.Max(0, s.confidence)*(e.Load.Upper-e.Load.Mean))
}

// neededBy is what the workload needs for the coming round, and for as long as a start
// takes: of what the policy gives it where the pool has not enough for all.
func neededBy(s *seat) replicas.Need {
	if !s.free {
		return replicas.Need{Round: s.now, Start: s.now}
	}
	n := replicas.Need{Round: float64(s.aim) * s.of.Unit}
	switch {
	case s.served:
		n.Round = math.Min(s.safe, float64(s.hi)*s.of.Unit)
	case !s.unserved(): // what the policy shares out beyond that is no reason to start any
		n.Round = math.Min(n.Round, float64(s.needAt(1)+s.waiting())*s.of.Unit)
	}
	if s.scale.Held.Barred != "" && s.writes() {
		// What it is advised is bound by no instances that are there.
		hi := s.hi
		s.hi = policy.DownUnits(math.Min(float64(s.Count.Max)*s.Max, s.of.Capacity), s.of.Unit)
		n.Round = math.Max(n.Round, float64(s.needAt(s.confidence))*s.of.Unit)
		if s.unserved() && measured.Misses(s.estimate, s.SLO) && s.now >= float64(hi)*s.of.Unit-grain*s.of.Unit {
			// It has all that its instances may, misses its SLO, and nothing tells how much
			// is enough: a step towards more is no worse a guess than to stay.
			n.Round = math.Min(math.Max(n.Round, (1+growth)*s.now), float64(s.hi)*s.of.Unit)
		}
		s.hi = hi
	}
	n.Start = n.Round
	l := s.estimate.Load
	if l == nil || !s.served || !(l.Later > l.Upper) || !(l.Within > 0) {
		return n
	}
	// Between the bounds of the round and of all that is forecast.
	part := math.Min(math.Max(s.number.state.Startup.Upper().Seconds()/float64(l.Within), 0), 1)
	asks := s.asks()
	later := asks.Beyond(l.Upper + part*(l.Later-l.Upper))
	n.Start = math.Max(n.Start, float64(later)*s.of.Unit)
	return n
}
