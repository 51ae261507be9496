package actuator_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/bustest"
	"github.com/trimtab/trimtab/internal/trial"
)

// running is an actuator on a bus, with real clocks.
type running struct {
	*host
	bus      *bustest.Memory
	outcomes chan *trimtab.Outcome
	holdings chan *trimtab.Holding
	stop     func()
}

// run starts the actuator on b.
func (h *host) run(b *bustest.Memory) *running {
	h.t.Helper()
	r := &running{host: h, bus: b, outcomes: make(chan *trimtab.Outcome, 100), holdings: make(chan *trimtab.Holding, 1)}
	h.wall = time.Now()
	r.listen(trimtab.KindOutcome, func(v trimtab.Value) { r.outcomes <- v.(*trimtab.Outcome) })
	r.listen(trimtab.KindHolding, func(v trimtab.Value) {
		select {
		case <-r.holdings: // only the latest
		default:
		}
		r.holdings <- v.(*trimtab.Holding)
	})
	a, err := actuator.Open(h.t.Context(), h.config)
	if err != nil {
		h.t.Fatal(err)
	}
	h.Actuator = a
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx, b) }()
	stopped := false
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			h.t.Error(err)
		}
	}
	h.t.Cleanup(func() { r.stop(); a.Close(context.Background()) })
	r.holding(func(*trimtab.Holding) bool { return true }) // now it listens
	return r
}

func (r *running) listen(k trimtab.Kind, take func(v trimtab.Value)) {
	r.t.Helper()
	stop, err := r.bus.Subscribe(r.t.Context(), bus.Subscription{Kind: k, Handle: func(_ context.Context, d bus.Delivery) error {
		take(d.Value)
		return nil
	}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(stop)
}

// holding waits for one that fits.
func (r *running) holding(fits func(h *trimtab.Holding) bool) *trimtab.Holding {
	r.t.Helper()
	deadline := time.After(time.Minute)
	for {
		select {
		case h := <-r.holdings:
			if fits(h) {
				return h
			}
		case <-deadline:
			r.t.Fatal("no such holding")
		}
	}
}

// publish sends a plan and waits for the answer.
func (r *running) publish(p *trimtab.Plan) *trimtab.Outcome {
	r.t.Helper()
	if err := r.bus.Publish(r.t.Context(), p); err != nil {
		r.t.Fatal(err)
	}
	select {
	case o := <-r.outcomes:
		return o
	case <-time.After(time.Minute):
		r.t.Fatal("no outcome")
		return nil
	}
}

func newBus(t *testing.T) *bustest.Memory {
	b := bustest.NewMemory()
	t.Cleanup(func() { b.Close() })
	return b
}

func TestOverTheBusAPlanIsAnsweredAndTheHoldingFollows(t *testing.T) {
	h := newHost(t, units(2))
	h.config.Heartbeat = 10 * time.Millisecond
	r := h.run(newBus(t))
	o := r.publish(h.plan(1, 1, set(0, units(2), units(1))))
	if len(o.Results) != 1 || o.Results[0].Status != trimtab.Written {
		t.Fatalf("outcome %+v", o)
	}
	got := r.holding(func(h *trimtab.Holding) bool { return h.Sequence == 1 && h.Targets[0].Now == units(1) })
	if got.Targets[0].Baseline != units(2) || got.LeaseLeft <= 0 {
		t.Errorf("holding %+v", got)
	}
	if err := r.bus.Publish(t.Context(), &trimtab.Command{Pool: "p", Verb: trimtab.Pause, Time: time.Now()}); err != nil {
		t.Fatal(err)
	}
	r.holding(func(h *trimtab.Holding) bool { return h.Paused })
}

func TestAHostCarriesOutItsPartOfAPlanAndHearsNoOther(t *testing.T) {
	h := newHost(t, units(2))
	r := h.run(newBus(t))
	whole := h.plan(1, 1, set(0, units(2), units(1)))
	whole.Hosts = []string{h.config.Host, "other"}
	pieces, parts := whole.Split()
	var own *trimtab.Plan
	for _, v := range append(pieces, parts...) {
		if p := v.(*trimtab.Plan); p.Host == h.config.Host {
			own = p
			continue
		}
		if err := r.bus.Publish(t.Context(), v); err != nil {
			t.Fatal(err)
		}
	}
	if o := r.publish(own); len(o.Results) != 1 || o.Results[0].Status != trimtab.Written {
		t.Errorf("outcome %+v", o)
	}
}

func TestWithoutTheBusTheLeaseEndsInTheBaselines(t *testing.T) {
	t.Parallel()
	h := newHost(t, units(2))
	h.config.Heartbeat = 10 * time.Millisecond
	r := h.run(newBus(t))
	p := h.plan(1, 1, set(0, units(2), units(1)))
	p.Time, p.Lease = time.Now(), 3 // as a plan that is older than its lease is refused
	if o := r.publish(p); o.Refused != "" {
		t.Fatal(o.Refused)
	}
	r.bus.Close()
	eventually(t, func() error {
		if v, err := h.knobs[0].Read(t.Context()); err != nil || v != units(2) {
			return fmt.Errorf("%v, %v", v, err)
		}
		return nil
	})
}

func TestABusThatTellsEverythingAgainHasNoEffect(t *testing.T) {
	h := newHost(t, units(2))
	r := h.run(newBus(t))
	var plans []*trimtab.Plan
	now := units(2)
	for sequence := uint64(1); sequence <= 20; sequence++ {
		next := units(1 + float64((sequence+1)%5))
		plans = append(plans, h.plan(1, sequence, set(0, now, next)))
		if o := r.publish(plans[len(plans)-1]); o.Results[0].Status != trimtab.Written {
			t.Fatalf("outcome %+v", o)
		}
		now = next
	}
	writes := h.knobs[0].writes
	for _, i := range rand.Perm(len(plans)) {
		o := r.publish(plans[i])
		if i < len(plans)-1 && o.Refused == "" {
			t.Errorf("plan %s was accepted again", plans[i].ID())
		}
	}
	if h.knobs[0].writes != writes {
		t.Errorf("%d more writes", h.knobs[0].writes-writes)
	}
	h.want(now)
}

func TestARestartGoesOnWhereItStopped(t *testing.T) {
	h := newHost(t, units(2))
	h.config.KeepOnStop = true
	b := newBus(t)
	r := h.run(b)
	r.publish(h.plan(1, 1, set(0, units(2), units(1))))
	r.stop()
	if err := h.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Published while nobody listened.
	if err := b.Publish(t.Context(), h.plan(1, 2, set(0, units(1), units(3)))); err != nil {
		t.Fatal(err)
	}
	r = h.run(b)
	r.holding(func(h *trimtab.Holding) bool { return h.Sequence == 2 && h.Targets[0].Now == units(3) })
	if got := h.Holding().Targets[0].Baseline; got != units(2) {
		t.Errorf("baseline %v, want 2", got)
	}
}

// Two leaders at a time, a thousand times: once the newer was heard, nothing
// of the older has an effect, whatever the order and the repetitions.
func TestOfTwoLeadersOnlyTheNewerHasEffects(t *testing.T) {
	h := newHost(t, units(2)).open()
	tr := trial.Start(t, trial.Some(300, 1000))
	heard, effects := uint64(0), 0
	for round := uint64(1); round <= uint64(tr.N); round++ {
		for _, i := range tr.Rand.Perm(4) {
			epoch := round + uint64(i%2)
			now := h.Holding().Targets[0].Now
			next := units(1 + float64(tr.Rand.IntN(50))/10)
			o := h.Handle(t.Context(), h.plan(epoch, round*4+uint64(i), set(0, now, next)))
			found, _ := h.knobs[0].Read(t.Context())
			if epoch < heard && (o.Refused == "" || found != now) {
				t.Fatalf("epoch %d after %d: %+v", epoch, heard, o)
			}
			if o.Refused == "" {
				effects++
			}
			heard = max(heard, epoch)
		}
		tr.Case()
	}
	if effects < tr.N {
		t.Errorf("only %d effects", effects)
	}
}

func TestAHoldingThatSaysNothingNewIsRepeatedSeldomAndNewsGoesOutAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, units(2))
		h.config.Repeat = 3 * time.Second
		b := bustest.NewMemory()
		defer b.Close()
		var last *trimtab.Holding
		count := 0
		stop, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindHolding, Handle: func(_ context.Context, d bus.Delivery) error {
			last = d.Value.(*trimtab.Holding)
			count++
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		a, err := actuator.Open(t.Context(), h.config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var run sync.WaitGroup
		run.Go(func() { _ = a.Run(ctx, b) })
		time.Sleep(time.Minute)
		synctest.Wait()
		if count < 19 || count > 22 {
			t.Errorf("%d holdings in a minute without news, want one each 3 s", count)
		}
		for _, v := range []float64{1.5, 1.75} {
			before := count
			h.put(h.knobs[0], units(v)) // by somebody else
			time.Sleep(1500 * time.Millisecond)
			synctest.Wait()
			if last.Targets[0].Now != units(v) || count == before {
				t.Errorf("the knob is at %v, and the last of %d new holdings says %v", v, count-before, last.Targets[0].Now)
			}
		}
		cancel()
		run.Wait()
		if err := a.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
}
