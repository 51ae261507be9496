package planner_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hosttest"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/fair"
)

// strict is a planner and its only host, which keeps the contract of actions to the
// letter: values are rounded, writes may take effect late, a lease that is not renewed
// ends.
type strict struct {
	t    rapid.TB
	p    *planner.Planner
	host *hosttest.Host
	now  time.Time
	// rises counts those that were pending.
	rises int
}

func newStrict(t rapid.TB, has map[string]float64) *strict {
	p, err := planner.New(pool(fair.NJCPolicy{}, trimtab.Act))
	if err != nil {
		t.Fatal(err)
	}
	var knobs []hosttest.Knob
	for n, v := range has {
		knobs = append(knobs, hosttest.Knob{KnobID: trimtab.KnobID{Workload: n, Resource: "cpu"}, Min: 0.1, Max: 8, Mode: trimtab.Act, Now: trimtab.Units(v), Quantum: 0.01})
	}
	p.Step(t0, &trimtab.Leader{Pool: "p", Epoch: 1})
	return &strict{t: t, p: p, host: hosttest.New("h1", "p", nil, knobs...), now: t0}
}

func (s *strict) knob(workload string) *hosttest.Knob {
	return s.host.Knob(trimtab.KnobID{Pool: "p", Host: "h1", Workload: workload, Resource: "cpu"})
}

// round plays a second in which the workloads ask for so much.
func (s *strict) round(full map[string]float64) {
	s.t.Helper()
	s.now = s.now.Add(time.Second)
	s.host.Tick(s.now)
	s.p.Step(s.now, s.host.Holding(s.now))
	for _, n := range []string{"a", "b", "c"} {
		s.p.Step(s.now, estimate(n, s.now, ramp(full[n])))
	}
	for queue := s.p.Step(s.now, nil); len(queue) > 0; {
		o := s.host.Handle(s.now, queue[0].(*trimtab.Plan))
		if err := o.Validate(); err != nil {
			s.t.Fatal(err)
		}
		queue = append(queue[1:], s.p.Step(s.now, o)...)
		if sum := s.host.Given("cpu", s.now); sum > 8+1e-6 {
			s.t.Fatalf("up to %v in use, capacity 8: %+v", sum, s.host.Holding(s.now).Targets)
		}
		for _, r := range o.Results {
			if r.Status == trimtab.Refused || r.Status == trimtab.Failed {
				s.t.Fatalf("%s: %s", r.Status, r.Reason)
			}
			if r.Status == trimtab.Pending && r.Before.Less(r.Found) {
				s.rises++
			}
		}
	}
}

// Whenever what is pending takes effect, in whatever order: what a fall frees is
// given to nobody before, and a rise keeps its room.
func TestWhatIsPendingKeepsItsRoomInThePool(t *testing.T) {
	rises := 0
	rapid.Check(t, func(t *rapid.T) {
		s := newStrict(t, map[string]float64{"a": 6, "b": 1, "c": 1})
		for range 40 {
			full := map[string]float64{}
			for _, n := range []string{"a", "b", "c"} {
				s.knob(n).Delay = time.Duration(rapid.IntRange(0, 9).Draw(t, "takes effect after")) * time.Second
				full[n] = rapid.Float64Range(0.5, 6).Draw(t, "full")
			}
			s.round(full)
		}
		rises += s.rises
	})
	if rises == 0 {
		t.Error("nothing ever rose")
	}
}

// A world without faults gets where it is going: the guard against a planner
// that is safe because it does nothing.
func TestAFaultlessWorldReachesItsTarget(t *testing.T) {
	s := newStrict(t, map[string]float64{"a": 6, "b": 1, "c": 1})
	for range 30 {
		s.round(map[string]float64{"a": 1, "b": 3, "c": 3})
	}
	// The demands are about 0.9 of the ramps, and fit.
	for n, want := range map[string]float64{"a": 0.9, "b": 2.8, "c": 2.8} {
		if got := s.knob(n).Now.Value; math.Abs(got-want) > 0.15 {
			t.Errorf("%s has %v, want about %v", n, got, want)
		}
	}
}
