package hosttest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// Knob is one simulated knob.
type Knob struct {
	trimtab.KnobID
	// Min and Max limit every value that is set, 0 <= Min <= Max, Max > 0.
	Min, Max float64
	Mode     trimtab.Mode
	// Now is its initial value.
	Now trimtab.Amount
	// Quantum is the unit to which values are rounded, at least one; 0: they are not rounded.
	Quantum float64
	// Delay is the time until a written value takes effect.
	Delay time.Duration
	// Fails says that writes have no effect but an error.
	Fails bool
}

// Host is one simulated host of a pool. Its methods get the time.
type Host struct {
	Name, Pool string
	// Capacity is the capacity of the host for the pool, by resource; a missing one was not
	// measured.
	Capacity map[string]float64

	knobs []*state
	at    position
	lease time.Time
	// failing is the time since which restores fail; zero: the last one succeeded.
	failing time.Time
	answers map[int]*answered
}

// position is the step of a plan.
type position struct {
	epoch, sequence uint64
	step            int
}

func (p position) before(q position) bool {
	if p.epoch != q.epoch {
		return p.epoch < q.epoch
	}
	if p.sequence != q.sequence {
		return p.sequence < q.sequence
	}
	return p.step < q.step
}

// state is a knob with its history.
type state struct {
	Knob
	since time.Time
	// old is the value in force until due; nil: it is Now.
	old *trimtab.Amount
	due time.Time
	// wrote are the values that plans may have set; baseline is the value before them; nil: none.
	wrote    []trimtab.Amount
	baseline trimtab.Amount
}

// New makes a host with its knobs, and fills in their pool and host.
func New(name, pool string, capacity map[string]float64, knobs ...Knob) *Host {
	h := &Host{Name: name, Pool: pool, Capacity: capacity, answers: map[int]*answered{}}
	for _, k := range knobs {
		k.Pool, k.Host = pool, name
		h.knobs = append(h.knobs, &state{Knob: k})
	}
	slices.SortFunc(h.knobs, func(x, y *state) int { return x.Compare(y.KnobID) })
	return h
}

// Knob returns the knob of that name, for a test to change or break; nil: there is none.
func (h *Host) Knob(id trimtab.KnobID) *Knob {
	if k := h.find(id); k != nil {
		return &k.Knob
	}
	return nil
}

func (h *Host) find(id trimtab.KnobID) *state {
	for _, k := range h.knobs {
		if k.KnobID == id {
			return k
		}
	}
	return nil
}

// Given returns the amount of a resource that the host may have allocated: for each knob the larger
// of the set and the effective value; unlimited counts as its Max.
func (h *Host) Given(resource string, now time.Time) (sum float64) {
	h.settle(now)
	for _, k := range h.knobs {
		if k.Resource == resource {
			sum += k.atMost(k.Now)
		}
	}
	return sum
}

// settle ends a delay that is over.
func (k *state) settle(now time.Time) {
	if k.old != nil && (!now.Before(k.due) || same(*k.old, k.Now)) {
		k.old = nil
	}
}

func (h *Host) settle(now time.Time) {
	for _, k := range h.knobs {
		k.settle(now)
	}
}

// tolerance is the difference below which two amounts are the same; slack is the largest rounding
// error of a sum. Both are as in package actuator.
const (
	tolerance = 1e-7
	slack     = 1e-3
)

func same(a, b trimtab.Amount) bool { return a.Equal(b, tolerance) }

func (k *state) bounded(v trimtab.Amount) float64 {
	if v.Unlimited {
		return k.Max
	}
	return v.Value
}

func (k *state) atMost(v trimtab.Amount) float64 {
	if k.old != nil {
		return max(k.bounded(v), k.bounded(*k.old))
	}
	return k.bounded(v)
}

func (k *state) nearest(v trimtab.Amount) trimtab.Amount {
	if v.Unlimited || k.Quantum <= 0 {
		return v
	}
	return trimtab.Units(max(1, math.Round(v.Value/k.Quantum)) * k.Quantum)
}

func (k *state) ours() bool {
	return slices.ContainsFunc(k.wrote, func(v trimtab.Amount) bool { return same(v, k.Now) })
}

// foreign reports whether another program has changed a knob that a plan had set.
func (k *state) foreign() bool { return k.wrote != nil && !k.ours() && !same(k.Now, k.baseline) }

// write sets a value, and reports whether it did.
func (k *state) write(now time.Time, v trimtab.Amount) bool {
	if k.Fails {
		return false
	}
	if k.Delay > 0 {
		if k.old == nil {
			old := k.Now
			k.old = &old
		}
		k.due = now.Add(k.Delay)
	}
	k.Now, k.since = v, now
	k.settle(now)
	return true
}

// waitsForShrinks is how long the restore of larger baselines waits for a knob that cannot be
// lowered.
const waitsForShrinks = 10 * time.Second

// Tick restores the baselines once the lease has expired, reductions first. A raise that needs the
// capacity of a failed reduction waits for it.
func (h *Host) Tick(now time.Time) {
	h.settle(now)
	if now.Before(h.lease) || !slices.ContainsFunc(h.knobs, func(k *state) bool { return k.wrote != nil }) {
		return
	}
	patient, failed := h.failing.IsZero() || now.Sub(h.failing) < waitsForShrinks, false
	lost := map[string]float64{}
	for _, shrinks := range []bool{true, false} {
		for _, k := range h.knobs {
			switch {
			case k.wrote == nil || k.baseline.Less(k.Now) != shrinks:
			case same(k.Now, k.baseline), !k.ours():
				k.wrote = nil
			case !shrinks && !(lost[k.Resource] <= slack):
				lost[k.Resource] -= above(k.baseline, k.Now)
				failed = true
			case k.write(now, k.baseline):
				k.wrote = nil
			default:
				failed = true
				if shrinks && patient {
					lost[k.Resource] += above(k.Now, k.baseline)
				}
			}
		}
	}
	if !failed {
		h.failing = time.Time{}
	} else if h.failing.IsZero() {
		h.failing = now
	}
}

// above returns by how much a exceeds b.
func above(a, b trimtab.Amount) float64 {
	if a.Unlimited {
		return math.Inf(1)
	}
	return a.Value - b.Value
}

// Holding returns the state of all knobs.
func (h *Host) Holding(now time.Time) *trimtab.Holding {
	out := &trimtab.Holding{Pool: h.Pool, Host: h.Name, Time: now, Epoch: h.at.epoch, Sequence: h.at.sequence, Capacity: maps.Clone(h.Capacity)}
	h.settle(now)
	for _, k := range h.knobs {
		s := trimtab.KnobState{KnobID: k.KnobID, Knob: "simulated", Now: k.Now, Effective: k.old, Since: k.since, Baseline: k.Now, Min: k.Min, Max: k.Max}
		if k.wrote != nil {
			s.Baseline = k.baseline
			out.LeaseLeft = trimtab.SecondsOf(max(0, h.lease.Sub(now)))
		}
		if k.foreign() {
			s.Problem = fmt.Sprintf("changed by somebody else to %v", k.Now)
		}
		out.Targets = append(out.Targets, s)
	}
	return out
}
