package actuator_test

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/trial"
)

// killed is what a knob panics with in the place of a write.
type killed struct{}

// R14: a plan of two steps, shrinks and then grows, is cut off before any of its
// effects: the actuator is killed there, the planner, or both. If the planner
// lives its steps come again, and the plan is finished; if it alone is dead, what
// was taken is given back within ten seconds; if both are, when the lease ends.
// At no time is the sum over the capacity.
func TestAPlanThatIsCutOffAnywhereIsFinishedOrCompensated(t *testing.T) {
	tr := trial.Start(t, trial.Some(60, 200))
	random := tr.Rand
	finished, compensated := 0, 0
	for i := range tr.N {
		n := 2 + random.IntN(4)
		values, wanted := make([]trimtab.Amount, n), make([]trimtab.Amount, n)
		for i := range values {
			values[i], wanted[i] = units(float64(2+random.IntN(4))), units(float64(1+random.IntN(7)))
		}
		h := newHost(t, values...)
		sum := func() (s float64) {
			for _, k := range h.knobs {
				v, err := k.Read(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				s += v.Value
			}
			return s
		}
		capacity, freed := sum(), 0.0
		steps := [2]*trimtab.Plan{h.plan(1, 1), h.plan(1, 1)}
		steps[0].Last, steps[1].Step = false, 2
		for i := range values {
			if wanted[i].Less(values[i]) {
				steps[0].Actions = append(steps[0].Actions, set(i, values[i], wanted[i]))
				freed += values[i].Value - wanted[i].Value
			}
		}
		for i := range values {
			if grow := wanted[i].Value - values[i].Value; grow > 0 && grow <= freed {
				steps[1].Actions = append(steps[1].Actions, set(i, values[i], wanted[i]))
				freed -= grow
			} else if !wanted[i].Less(values[i]) {
				wanted[i] = values[i]
			}
		}
		effects, stop := 0, random.IntN(2*n)
		for _, k := range h.knobs {
			k.before = func(trimtab.Amount) error {
				if s := sum(); s > capacity+1e-9 {
					tr.Failf("case %d of seed %d: the sum is %v of %v", i, tr.Seed, s, capacity)
				}
				if effects++; effects == stop {
					panic(killed{})
				}
				return nil
			}
		}
		h.open()
		// holds tells that the last step came, or that both died.
		plannerLives, holds := random.IntN(2) == 0, false
		for s := 0; s < len(steps); s++ {
			steps[s].Capacity, steps[s].Time, holds = capacity, h.wall, s == 1
			if h.handleOrDie(steps[s]) {
				h.crash().open()
				if !plannerLives {
					holds = true
					break
				}
				s-- // the bus delivers it again
			} else if !plannerLives && effects >= stop {
				break
			}
			h.pass(time.Duration(random.IntN(1000)) * time.Millisecond)
		}
		stop = -1
		if plannerLives {
			finished++
			h.pass(10 * time.Second)
			h.Tick(t.Context())
			h.want(wanted...)
		} else {
			h.pass(10 * time.Second)
			h.Tick(t.Context())
			if s := sum(); s > capacity+1e-9 {
				tr.Failf("case %d of seed %d: the sum is %v of %v", i, tr.Seed, s, capacity)
			}
			if !holds {
				compensated++
				h.want(values...)
			}
		}
		h.pass(30 * time.Second)
		h.Tick(t.Context())
		h.want(values...)
		h.crash()
		tr.Case()
		if t.Failed() {
			t.Fatalf("case %d of seed %d: from %v to %v, stopped at effect %d, planner lives: %v", i, tr.Seed, values, wanted, stop, plannerLives)
		}
	}
	tr.Notef("%d plans finished, %d compensated", finished, compensated)
}

// handleOrDie hands a plan to the actuator, and tells whether that was killed.
func (h *host) handleOrDie(p *trimtab.Plan) (died bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(killed); !ok {
				panic(r)
			}
			died = true
		}
	}()
	h.Handle(h.t.Context(), p)
	return false
}
