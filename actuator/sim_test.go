package actuator_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hosttest"
)

// lateKnob is a knob on a file whose values take effect after a while.
type lateKnob struct {
	file  *fileKnob
	h     *host
	delay time.Duration
	old   trimtab.Amount
	due   time.Duration
	fails bool
}

func (k *lateKnob) String() string                                 { return k.file.String() }
func (k *lateKnob) Resource() string                               { return k.file.Resource() }
func (k *lateKnob) Probe(ctx context.Context) error                { return k.file.Probe(ctx) }
func (k *lateKnob) MayWrite(ctx context.Context) error             { return k.file.MayWrite(ctx) }
func (k *lateKnob) Close() error                                   { return nil }
func (k *lateKnob) Traits() actuator.Traits                        { return actuator.Traits{Effective: k.Effective} }
func (k *lateKnob) Undo() []byte                                   { return k.file.Undo() }
func (k *lateKnob) Read(c context.Context) (trimtab.Amount, error) { return k.file.Read(c) }

// Nearest rounds halves up, which is where the form of the file does not.
func (k *lateKnob) Nearest(a trimtab.Amount) trimtab.Amount {
	if !a.Unlimited {
		a.Value = math.Round(a.Value/0.01) * 0.01
	}
	return k.file.Nearest(a)
}

func (k *lateKnob) Write(ctx context.Context, a trimtab.Amount) error {
	if k.fails {
		return errors.New("the write failed")
	}
	was, err := k.Read(ctx)
	if err != nil {
		return err
	}
	if k.delay > 0 {
		if k.h.boot >= k.due {
			k.old = was
		}
		k.due = k.h.boot + k.delay
	}
	return k.file.Write(ctx, a)
}

func (k *lateKnob) Effective(ctx context.Context) (trimtab.Amount, error) {
	now, err := k.Read(ctx)
	if err == nil && now.Equal(k.old, 1e-7) {
		k.due = k.h.boot // nothing is left to wait for
	}
	if k.h.boot < k.due {
		return k.old, err
	}
	return now, err
}

// twins are a real actuator and a simulated host that have the same knobs.
type twins struct {
	*rapid.T
	real  *host
	knobs []*lateKnob
	sim   *hosttest.Host
	last  *trimtab.Plan
}

func newTwins(t *testing.T, r *rapid.T) *twins {
	n := rapid.IntRange(1, 4).Draw(r, "knobs")
	values := make([]trimtab.Amount, n)
	for i := range values {
		values[i] = amount(r, "start")
	}
	w := &twins{T: r, real: newHost(t, values...)}
	capacity := map[string]float64{"cpu": float64(rapid.IntRange(4, 24).Draw(r, "cores"))}
	w.real.config.Shared, w.real.config.Measure = true, func() (map[string]float64, error) { return capacity, nil }
	var knobs []hosttest.Knob
	for i := range values {
		target := &w.real.config.Targets[i]
		target.Mode = rapid.SampledFrom([]trimtab.Mode{trimtab.Act, trimtab.Act, trimtab.Act, trimtab.Recommend, trimtab.Off}).Draw(r, "mode")
		k := &lateKnob{file: w.real.knobs[i], h: w.real, delay: time.Duration(rapid.IntRange(0, 1).Draw(r, "late")*rapid.IntRange(1, 20).Draw(r, "delay")) * time.Second}
		target.Knob, w.knobs = k, append(w.knobs, k)
		knobs = append(knobs, hosttest.Knob{KnobID: target.KnobID, Min: target.Min, Max: target.Max, Mode: target.Mode, Now: values[i], Quantum: 0.01, Delay: k.delay})
	}
	w.sim = hosttest.New("h", "p", capacity, knobs...)
	w.real.open()
	return w
}

func amount(r *rapid.T, name string) trimtab.Amount {
	if rapid.IntRange(0, 9).Draw(r, name+" unlimited") == 0 {
		return trimtab.Unlimited()
	}
	return units(math.Round(rapid.Float64Range(0.1, 8).Draw(r, name)*100) / 100)
}

// handle hands both the same plan.
func (w *twins) handle(p *trimtab.Plan) {
	w.last = p
	w.same("outcome", w.real.Handle(w.real.t.Context(), p), w.sim.Handle(w.real.wall, p))
}

// same compares what both say, but for the words of reasons.
func (w *twins) same(what string, real, sim any) {
	said := func(text string) string {
		if text == "" {
			return ""
		}
		return "a reason"
	}
	if diff := cmp.Diff(real, sim, cmpopts.EquateApprox(0, 1e-6), cmpopts.EquateEmpty(),
		cmpopts.IgnoreFields(trimtab.Outcome{}, "Refused", "Took"), cmpopts.IgnoreFields(trimtab.Result{}, "Reason"),
		cmpopts.IgnoreFields(trimtab.Holding{}, "Life"), cmpopts.IgnoreFields(trimtab.KnobState{}, "Since", "Knob", "Problem")); diff != "" {
		w.Fatalf("%s: the actuator has -, the simulated host +\n%s", what, diff)
	}
	switch x := real.(type) {
	case *trimtab.Outcome:
		if y := sim.(*trimtab.Outcome); said(x.Refused) != said(y.Refused) {
			w.Fatalf("refused by the actuator: %q, by the simulated host: %q", x.Refused, y.Refused)
		}
	case *trimtab.Holding:
		for i, y := range sim.(*trimtab.Holding).Targets {
			if said(x.Targets[i].Problem) != said(y.Problem) {
				w.Fatalf("problem of the actuator: %q, of the simulated host: %q", x.Targets[i].Problem, y.Problem)
			}
		}
	}
}

// plan makes a plan, most of whose parts are right.
func (w *twins) plan() *trimtab.Plan {
	now := w.real.Holding()
	odd := func(name string) bool { return rapid.IntRange(0, 7).Draw(w.T, name) == 0 }
	p := w.real.plan(now.Epoch+uint64(rapid.IntRange(0, 1).Draw(w.T, "epoch")), now.Sequence+uint64(rapid.IntRange(0, 1).Draw(w.T, "sequence")))
	p.Epoch = max(p.Epoch, 1)
	p.Step, p.Last = rapid.IntRange(1, 3).Draw(w.T, "step"), rapid.Bool().Draw(w.T, "last")
	p.Lease, p.Capacity = trimtab.Seconds(rapid.IntRange(1, 40).Draw(w.T, "lease")), float64(rapid.IntRange(4, 30).Draw(w.T, "capacity"))
	if odd("another time") {
		p.Time = p.Time.Add(time.Duration(rapid.IntRange(-60, 60).Draw(w.T, "of")) * time.Second)
	}
	if odd("another pool") {
		p.Pool = "q"
	}
	for i, k := range now.Targets {
		if odd("left out") {
			continue
		}
		a := set(i, k.Now, amount(w.T, "set"))
		if odd("odd value") {
			a.Set = units(rapid.Float64Range(0, 20).Draw(w.T, "odd"))
		}
		if odd("odd expectation") {
			a.Expect = amount(w.T, "expect")
		}
		if odd("recommends") {
			a.Mode = trimtab.Recommend
		}
		if odd("elsewhere") {
			a.Host = "other"
		}
		if odd("unknown") {
			a.Workload += "x"
		}
		a.Pool = p.Pool
		p.Actions = append(p.Actions, a)
	}
	return p
}

// The contract of actions, as the simulated host keeps it, is that of the actuator.
func TestASimulatedHostAnswersAsTheActuatorDoes(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newTwins(t, r)
		for range rapid.IntRange(1, 20).Draw(r, "operations") {
			w.real.pass(time.Duration(rapid.IntRange(0, 15).Draw(r, "seconds")) * time.Second)
			i := rapid.IntRange(0, len(w.knobs)-1).Draw(r, "knob")
			k := w.sim.Knob(trimtab.KnobID{Pool: "p", Host: "h", Workload: "w" + strconv.Itoa(i), Resource: "cpu"})
			switch what := rapid.IntRange(0, 9).Draw(r, "what"); {
			case what < 5:
				w.handle(w.plan())
			case what < 6 && w.last != nil:
				w.handle(w.last)
			case what < 7:
				w.knobs[i].fails = !w.knobs[i].fails
				k.Fails = w.knobs[i].fails
			case what < 8 && k.Mode != trimtab.Off && w.knobs[i].delay == 0:
				k.Now = amount(r, "somebody else sets")
				w.real.put(w.real.knobs[i], k.Now)
			default:
				w.real.Tick(t.Context())
				w.sim.Tick(w.real.wall)
				w.same("holding", w.real.Holding(), w.sim.Holding(w.real.wall))
			}
		}
		if err := w.real.Abandon(); err != nil {
			r.Fatal(err)
		}
	})
}
