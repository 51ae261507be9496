package actuator_test

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// quickKnob is a fileKnob that a loop may move.
type quickKnob struct {
	*fileKnob
	counters actuator.Counters
	moves    int
	unfit    error
}

func (k *quickKnob) Ready(bool) error { return k.unfit }

func (k *quickKnob) Traits() actuator.Traits {
	t := k.fileKnob.Traits()
	t.Quick = k
	return t
}

func (k *quickKnob) Look() (actuator.Counters, error) {
	var err error
	k.counters.Set, err = k.Read(context.Background())
	return k.counters, err
}

func (k *quickKnob) Move(v trimtab.Amount, _ float64) (trimtab.Amount, error) {
	k.moves++
	if err := k.Write(context.Background(), v); err != nil {
		return trimtab.Amount{}, err
	}
	return k.Read(context.Background())
}

// quickHost is a host with fast loop whose knobs hold the given values.
func quickHost(t *testing.T, values ...float64) (*host, []*quickKnob) {
	t.Helper()
	var as []trimtab.Amount
	for _, v := range values {
		as = append(as, trimtab.Units(v))
	}
	h := newHost(t, as...)
	var quick []*quickKnob
	for i := range h.config.Targets {
		q := &quickKnob{fileKnob: h.knobs[i]}
		h.config.Targets[i].Knob = q
		quick = append(quick, q)
	}
	h.config.Fast = true
	return h, quick
}

func envelopeOf(target, ceiling float64) *trimtab.Envelope {
	return &trimtab.Envelope{Floor: 0.3 * target, Target: target, Ceiling: ceiling, Budget: 0.05, Late: 0.006, Lend: true, Borrow: true}
}

// withEnvelopes is a plan that leaves the knobs where they are, each with an envelope.
func (h *host) withEnvelopes(seq uint64, lendable float64, targets ...float64) *trimtab.Plan {
	p := h.plan(1, seq)
	p.Actions = nil
	p.Capacity = 8
	p.Lendable = map[string]float64{"h": lendable}
	for i, v := range targets {
		id := h.config.Targets[i].KnobID
		id.Pool, id.Host = "p", "h"
		p.Envelopes = append(p.Envelopes, trimtab.Enveloped{KnobID: id, At: trimtab.Units(v), Envelope: envelopeOf(v, 4*v)})
	}
	return p
}

func TestAPlanWithEnvelopesLetsALoopMoveInsideThem(t *testing.T) {
	h, _ := quickHost(t, 1, 2)
	h.open()
	if o := h.Handle(t.Context(), h.withEnvelopes(1, 3, 1, 2)); o.Refused != "" || len(o.Results) != 0 {
		t.Fatalf("%+v", o)
	}
	var look actuator.FastLook
	h.FastLook(&look)
	if len(look.Groups) != 2 || look.Lendable != 3 || look.Capacity != 8 {
		t.Fatalf("%+v", look)
	}
	found := h.FastMove(look.Generation, []actuator.FastMove{{Group: 0, Set: 3}, {Group: 1, Set: 0.1}}, nil)
	if found[0] != 3 || found[1] != 0.6 {
		t.Errorf("set %v: want 3, and no less than the floor 0.6", found)
	}
	for _, k := range h.Holding().Targets {
		want := map[string]float64{"w0": 1, "w1": 2}[k.Workload]
		if k.Now.Value != want || k.Fast == nil || k.Problem != "" || k.Baseline.Value != want {
			t.Errorf("%s: the holding tells %+v of a knob that rests at %v", k.Workload, k, want)
		}
	}
	found = h.FastMove(look.Generation, []actuator.FastMove{{Group: 0, Set: 3.9}, {Group: 1, Set: 8}}, found)
	if sum := found[0] + found[1]; sum > 6+1e-3 {
		t.Errorf("%v add up to %v, more than targets and what may be lent", found, sum)
	}
}

func TestAPlanComparesWithWhereAKnobRestsAndLoansLastOverIt(t *testing.T) {
	h, quick := quickHost(t, 1, 2)
	h.open()
	h.Handle(t.Context(), h.withEnvelopes(1, 5, 1, 2))
	var look actuator.FastLook
	h.FastLook(&look)
	h.FastMove(look.Generation, []actuator.FastMove{{Group: 0, Set: 3}}, nil)
	p := h.withEnvelopes(2, 5)
	id := h.config.Targets[0].KnobID
	id.Pool, id.Host = "p", "h"
	p.Actions = []trimtab.Action{{KnobID: id, Expect: trimtab.Units(1), Set: trimtab.Units(1.5), Envelope: envelopeOf(1.5, 6), Mode: trimtab.Act}}
	o := h.Handle(t.Context(), p)
	r := o.Results[0]
	if r.Status != trimtab.Written || r.Before.Value != 1 || r.Found.Value != 1.5 {
		t.Errorf("%+v", r)
	}
	if v, _ := quick[0].Read(t.Context()); v.Value != 3 {
		t.Errorf("set to %v: a loan inside the new envelope ends with a plan", v)
	}
	p = h.withEnvelopes(3, 5)
	p.Actions = []trimtab.Action{{KnobID: id, Expect: trimtab.Units(1.5), Set: trimtab.Units(1.2), Mode: trimtab.Act}}
	if r := h.Handle(t.Context(), p).Results[0]; r.Status != trimtab.Written || r.Found.Value != 1.2 {
		t.Errorf("%+v", r)
	}
	if v, _ := quick[0].Read(t.Context()); v.Value != 1.2 {
		t.Errorf("set to %v: without an envelope it stays where the plan sets it", v)
	}
}

func TestALoanMakesRoomForAPlanThatNeedsIt(t *testing.T) {
	h, quick := quickHost(t, 1, 2)
	h.open()
	h.Handle(t.Context(), h.withEnvelopes(1, 5, 1, 2))
	var look actuator.FastLook
	h.FastLook(&look)
	h.FastMove(look.Generation, []actuator.FastMove{{Group: 0, Set: 4}}, nil)
	p := h.withEnvelopes(2, 0)
	id := h.config.Targets[1].KnobID
	id.Pool, id.Host = "p", "h"
	p.Actions = []trimtab.Action{{KnobID: id, Expect: trimtab.Units(2), Set: trimtab.Units(7), Envelope: envelopeOf(7, 7), Mode: trimtab.Act}}
	if r := h.Handle(t.Context(), p).Results[0]; r.Status != trimtab.Written {
		t.Errorf("%+v", r)
	}
	if v, _ := quick[0].Read(t.Context()); v.Value != 1 {
		t.Errorf("the loan is still %v", v)
	}
}

func TestWhatAnOperatorSetsDuringALoanIsLeftAlone(t *testing.T) {
	h, quick := quickHost(t, 1, 2)
	h.open()
	h.Handle(t.Context(), h.withEnvelopes(1, 5, 1, 2))
	var look actuator.FastLook
	h.FastLook(&look)
	h.FastMove(look.Generation, []actuator.FastMove{{Group: 0, Set: 3}}, nil)
	h.put(quick[0].fileKnob, trimtab.Units(6)) // outside the envelope
	h.FastLook(&look)
	h.FastLook(&look)
	if len(look.Groups) != 1 || look.Groups[0].Workload != "w1" {
		t.Errorf("the loop is still offered %+v", look.Groups)
	}
	h.put(quick[0].fileKnob, trimtab.Units(2)) // inside it
	h.Tick(t.Context())
	h.FastLook(&look)
	if len(look.Groups) != 2 {
		t.Errorf("a value inside the envelope is nobody's in particular: %+v", look.Groups)
	}
}

func TestALoopThatDiedLeavesKnobsAtTheirTargets(t *testing.T) {
	h, quick := quickHost(t, 1, 2)
	h.open()
	h.Handle(t.Context(), h.withEnvelopes(1, 5, 1, 2))
	var look actuator.FastLook
	h.FastLook(&look)
	h.FastMove(look.Generation, []actuator.FastMove{{Group: 0, Set: 3}, {Group: 1, Set: 1}}, nil)
	h.boot += 3 * time.Second
	h.Tick(t.Context())
	for i, want := range []float64{1, 2} {
		if v, _ := quick[i].Read(t.Context()); v.Value != want {
			t.Errorf("knob %d is set to %v, want %v", i, v, want)
		}
	}
}

func TestAfterACrashLoansEndAndBaselinesComeBackWithTheLease(t *testing.T) {
	h, quick := quickHost(t, 1, 2)
	h.open()
	h.Handle(t.Context(), h.withEnvelopes(1, 5, 1, 2))
	var look actuator.FastLook
	h.FastLook(&look)
	h.FastMove(look.Generation, []actuator.FastMove{{Group: 0, Set: 3}, {Group: 1, Set: 1}}, nil)
	h.crash().open()
	for i, want := range []float64{1, 2} {
		if v, _ := quick[i].Read(t.Context()); v.Value != want {
			t.Errorf("after a crash knob %d is set to %v, want %v", i, v, want)
		}
	}
	h.Handle(t.Context(), h.withEnvelopes(2, 5, 1, 2))
	h.FastLook(&look)
	h.FastMove(look.Generation, []actuator.FastMove{{Group: 0, Set: 3}}, nil)
	h.crash()
	r, err := actuator.Restore(t.Context(), h.config.Dir, reopen)
	if err != nil {
		t.Fatal(err, r)
	}
	if v, _ := quick[0].Read(t.Context()); v.Value != 1 {
		t.Errorf("restored to %v: %v", v, r)
	}
}

func TestThePauseOfAPoolEndsItsLoans(t *testing.T) {
	h, _ := quickHost(t, 1, 2)
	h.open()
	h.Handle(t.Context(), h.withEnvelopes(1, 5, 1, 2))
	if err := h.Command(t.Context(), &trimtab.Command{Pool: "p", Verb: trimtab.Pause, Time: h.wall, By: "test"}); err != nil {
		t.Fatal(err)
	}
	var look actuator.FastLook
	h.FastLook(&look)
	for _, g := range look.Groups {
		if g.Envelope.Least() != g.Envelope.Most() {
			t.Errorf("%+v", g)
		}
	}
}

func TestAKnobThatCannotBeMovedSaysWhyAndStays(t *testing.T) {
	h, quick := quickHost(t, 1)
	quick[0].unfit = os.ErrPermission
	h.open()
	h.Handle(t.Context(), h.withEnvelopes(1, 5, 1))
	if f := h.Holding().Targets[0].Fast; f == nil || f.Off == "" {
		t.Errorf("%+v", f)
	}
	var look actuator.FastLook
	if h.FastLook(&look); len(look.Groups) != 0 {
		t.Errorf("%+v", look.Groups)
	}
}

func TestTheGroupAboveIsSetOnceAndGoesBack(t *testing.T) {
	h, quick := quickHost(t, 1, 2)
	above := &quickKnob{fileKnob: &fileKnob{Path: h.dir + "/above"}}
	h.put(above.fileKnob, trimtab.Unlimited())
	h.config.Parent = above
	h.open()
	h.Handle(t.Context(), h.withEnvelopes(1, 5, 1, 2))
	if v, _ := above.Read(t.Context()); v.Value != 8 {
		t.Fatalf("the group above is set to %v, want the capacity", v)
	}
	var look actuator.FastLook
	h.FastLook(&look)
	h.FastMove(look.Generation, []actuator.FastMove{{Group: 0, Set: 3}}, nil)
	h.Handle(t.Context(), h.withEnvelopes(2, 5, 1, 2))
	if above.writes != 1 {
		t.Errorf("it was written %d times", above.writes)
	}
	h.boot += time.Hour
	h.Tick(t.Context())
	if v, _ := above.Read(t.Context()); !v.Unlimited {
		t.Errorf("after the lease it is %v", v)
	}
	if v, _ := quick[0].Read(t.Context()); v.Value != 1 {
		t.Errorf("after the lease w0 is %v", v)
	}
	if math.IsNaN(look.Lendable) {
		t.Error("no number")
	}
}

func TestWithoutAFastLoopEnvelopesChangeNothing(t *testing.T) {
	h, quick := quickHost(t, 1, 2)
	h.config.Fast = false
	h.open()
	h.Handle(t.Context(), h.withEnvelopes(1, 5, 1, 2))
	var look actuator.FastLook
	h.FastLook(&look)
	if k := h.Holding().Targets[0]; len(look.Groups) != 0 || k.Fast != nil || h.Holding().LeaseLeft != 0 || quick[0].writes != 0 {
		t.Errorf("%+v, %+v", look, k)
	}
}

func TestNoSumIsOverTheCapacityAndNobodyBelowItsFloorWhateverHappens(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		h, quick := quickHost(t, 1, 2, 1)
		targets := []float64{1, 2, 1}
		loses := false // a restore that fails is tried again; what comes back then is people's
		now := func() (sum float64) {
			for _, k := range quick {
				v, _ := k.Read(t.Context())
				sum += v.Value
			}
			return sum
		}
		for i, k := range quick {
			k.before = func(v trimtab.Amount) error {
				if loses && r.IntN(10) == 0 {
					return os.ErrDeadlineExceeded // a write that is lost
				}
				was, _ := k.Read(t.Context())
				if sum := now() - was.Value + v.Value; v.Value > was.Value && sum > 8+1e-2 {
					t.Errorf("seed %d: the sum would be %v", seed, sum)
				}
				if v.Value < 0.3*targets[i]*0.5-1e-2 {
					t.Errorf("seed %d: knob %d is set to %v", seed, i, v)
				}
				return nil
			}
		}
		h.open()
		var look actuator.FastLook
		seq := uint64(1)
		for range 300 {
			switch r.IntN(6) {
			case 0:
				p := h.withEnvelopes(seq, 8*r.Float64())
				for i := range targets {
					id := h.config.Targets[i].KnobID
					id.Pool, id.Host = "p", "h"
					rests := h.Holding().Targets[i].Now
					if r.IntN(2) == 0 {
						p.Envelopes = append(p.Envelopes, trimtab.Enveloped{KnobID: id, At: rests, Envelope: envelopeOf(rests.Value, 4*rests.Value)})
						continue
					}
					set := targets[i] * (0.5 + r.Float64())
					p.Actions = append(p.Actions, trimtab.Action{KnobID: id, Expect: rests, Set: trimtab.Units(set), Envelope: envelopeOf(set, 4*set), Mode: trimtab.Act})
				}
				loses = true
				h.Handle(t.Context(), p)
				loses = false
				seq++
			case 1:
				h.boot += time.Duration(r.IntN(3000)) * time.Millisecond
				h.wall = h.wall.Add(time.Second)
				h.Tick(t.Context())
			default:
				h.FastLook(&look)
				var moves []actuator.FastMove
				for i := range look.Groups {
					moves = append(moves, actuator.FastMove{Group: i, Set: 10 * r.Float64()})
				}
				loses = true
				h.FastMove(look.Generation-uint64(r.IntN(10)/9), moves, nil)
				loses = false
				h.boot += 100 * time.Millisecond
			}
		}
		h.Close(t.Context())
	}
}

func TestARaiseThatWasRefusedIsNotMadeUpForByTheNextProcess(t *testing.T) {
	other := pools(t, 4, row(3))[0].open()
	h, _ := quickHost(t, 1)
	h.config.LockDir, h.config.Measure = other.config.LockDir, other.config.Measure
	h.open()
	tick(h, other)
	p := h.plan(1, 1, set(0, units(1), units(2)))
	p.Actions[0].Envelope = envelopeOf(2, 4)
	is(t, h.statuses(p), trimtab.Refused)
	h.crash().open()
	h.want(units(1))
}
