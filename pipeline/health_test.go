package pipeline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/bustest"
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/quantity"
)

// watched is what a stage or a part says of its readiness.
type watched struct {
	mu     sync.Mutex
	reason string
	// bad is the first reason that was neither "" nor starting, at when it was
	// said.
	bad string
	at  time.Time
}

func (w *watched) ready(reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reason = reason
	if reason != "" && reason != starting && reason != "stopped" && w.bad == "" {
		w.bad, w.at = reason, time.Now()
	}
}

func (w *watched) now() string { w.mu.Lock(); defer w.mu.Unlock(); return w.reason }

// first is the first reason that it was not ready for.
func (w *watched) first() string { w.mu.Lock(); defer w.mu.Unlock(); return w.bad }

// wants checks that the part became unready within the time, for a reason that
// has all words.
func (w *watched) wants(t *testing.T, began time.Time, within time.Duration, words ...string) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.bad == "" || w.at.Sub(began) > within {
		t.Errorf("after %v: %q, want not ready within %v", w.at.Sub(began), w.bad, within)
	}
	for _, word := range words {
		if !strings.Contains(w.bad, word) {
			t.Errorf("%q does not say %q", w.bad, word)
		}
	}
}

// launch runs s beside the test; stop ends it.
func launch(t *testing.T, s Stage, w *watched) (stop func()) {
	t.Helper()
	s.Ready = w.ready
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- Run(ctx, s) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// follow runs the health of a part that is no stage.
func follow(t *testing.T, b bus.Bus, work Work, w *watched) (noted bus.Bus, stop func()) {
	t.Helper()
	h := NewHealth(work)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	noted = h.Bus(b)
	go func() { defer close(done); h.Report(ctx, b, w.ready) }()
	return noted, func() { cancel(); <-done }
}

const round = 2 * time.Second

// within is three rounds and the time between two looks.
const within = 3*round + time.Second

// planning is a step that publishes a plan at every tick of its terms.
func planning() stepFunc {
	p := &trimtab.Plan{Pool: "p", Step: 1, Last: true, Lease: 30, Objective: "njc", Cause: trimtab.Cause{Kind: codes.CauseTick}, Capacity: 1}
	return func(now time.Time, in trimtab.Value) []trimtab.Value {
		switch v := in.(type) {
		case *trimtab.Leader:
			p.Epoch, p.Sequence = v.Epoch, 0
		case nil:
			if p.Epoch > 0 {
				next := *p
				p.Sequence++
				next.Sequence, next.Time = p.Sequence, now
				return []trimtab.Value{&next}
			}
		}
		return nil
	}
}

func planner(b bus.Bus) Stage {
	return Stage{Name: "planner", Bus: b, Step: planning(), Tick: round, Leader: &Leader{Pool: "p"},
		Consumes: []bus.Subscription{{Kind: trimtab.KindOutcome}, {Kind: trimtab.KindHolding}},
		Work:     Work{Round: round, Every: trimtab.KindPlan, Answered: true}}
}

// actuator answers every plan on the bus, with a refusal unless it is "".
func actuator(t *testing.T, b bus.Bus, refusal func() string) {
	t.Helper()
	_, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindPlan, Consumer: "actuator", Handle: func(ctx context.Context, d bus.Delivery) error {
		p := d.Value.(*trimtab.Plan)
		return b.Publish(ctx, &trimtab.Outcome{Pool: "p", Host: "h", Epoch: p.Epoch, Sequence: p.Sequence, Step: 1, Time: time.Now(), Refused: refusal()})
	}})
	if err != nil {
		t.Fatal(err)
	}
}

func accepts() string { return "" }

func TestAStageWhoseStepDoesNotReturnIsNotReadyAfterThreeRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		var w watched
		free := make(chan struct{})
		stalled := stepFunc(func(_ time.Time, in trimtab.Value) []trimtab.Value {
			if in == nil {
				<-free
			}
			return nil
		})
		stop := launch(t, Stage{Name: "learn", Bus: m, Step: stalled, Tick: time.Second, Work: Work{Round: round}}, &w)
		began := time.Now()
		time.Sleep(30 * time.Second)
		w.wants(t, began, time.Second+within, "stands still since 2000-01-01 00:00:01", "debug bundle")
		close(free)
		time.Sleep(5 * time.Second)
		if why := w.now(); why != "" {
			t.Errorf("it goes on, and is not ready: %s", why)
		}
		stop()
	})
}

func TestAStageThatCannotPublishIsNotReadyWithTheErrorOfTheBus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		var w watched
		full := &flaky{Bus: m, before: func() {}}
		full.fails.Store(1 << 40)
		talks := stepFunc(func(_ time.Time, in trimtab.Value) []trimtab.Value { return []trimtab.Value{command("x")} })
		stop := launch(t, Stage{Name: "learn", Bus: full, Step: talks, Tick: time.Second, Work: Work{Round: round}}, &w)
		began := time.Now()
		time.Sleep(30 * time.Second)
		w.wants(t, began, time.Second+within, "could publish no command since", "the bus is away", "make room")
		full.fails.Store(0)
		time.Sleep(10 * time.Second)
		if why := w.now(); why != "" {
			t.Errorf("it publishes again, and is not ready: %s", why)
		}
		stop()
	})
}

// silenced is a bus whose subscriptions get nothing, and say so when told to.
type silenced struct {
	bus.Bus
	mu       sync.Mutex
	troubles []func(error)
}

func (s *silenced) Subscribe(ctx context.Context, sub bus.Subscription) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.troubles = append(s.troubles, sub.Trouble)
	return func() {}, nil
}

func (s *silenced) say(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, trouble := range s.troubles {
		trouble(err)
	}
}

func TestAStageThatIsDeafIsNotReadyUntilItHears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		var w watched
		deaf := &silenced{Bus: m}
		stop := launch(t, Stage{Name: "learn", Bus: deaf, Step: stepFunc(echo), Tick: time.Second, Consumes: consumes(trimtab.KindAlert), Work: Work{Round: round}}, &w)
		began := time.Now()
		deaf.say(errors.New("consumer is gone"))
		time.Sleep(time.Second)
		if why := w.now(); why != "" {
			t.Errorf("not ready at once: %s", why)
		}
		time.Sleep(30 * time.Second)
		w.wants(t, began, within, "can receive no alert since", "consumer is gone", "may read its streams")
		deaf.say(nil)
		time.Sleep(2 * time.Second)
		if why := w.now(); why != "" {
			t.Errorf("it hears again, and is not ready: %s", why)
		}
		stop()
	})
}

func TestAPlannerThatIsLockedOutByAHigherEpochIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		var w, there watched
		// It shows no holding: the planner cannot learn which epoch would do.
		var locks atomic.Bool
		noted, stopThere := follow(t, m, Work{Round: round, Follows: "p"}, &there)
		actuator(t, noted, func() string {
			if locks.Load() {
				return "stale: epoch 1, a leader of epoch 9 was accepted"
			}
			return ""
		})
		stop := launch(t, planner(m), &w)
		time.Sleep(30 * time.Second)
		if w.now() != "" || there.now() != "" {
			t.Fatalf("planner: %q, actuator: %q", w.now(), there.now())
		}
		locks.Store(true)
		began := time.Now()
		time.Sleep(30 * time.Second)
		// The first refusal comes with the next round.
		w.wants(t, began, round+within, "every plan was refused since", "a leader of epoch 9 was accepted", "stop one of the two")
		there.wants(t, began, round+within, "refused every plan since", "a leader of epoch 9 was accepted")
		locks.Store(false)
		time.Sleep(5 * time.Second)
		if w.now() != "" || there.now() != "" {
			t.Errorf("plans are accepted again, and planner: %q, actuator: %q", w.now(), there.now())
		}
		stop()
		stopThere()
	})
}

func TestAnActuatorOnAFullDiskIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		var w, there watched
		noted, stopThere := follow(t, m, Work{Round: round, Follows: "p"}, &there)
		actuator(t, noted, func() string {
			return "append journal: no space left on device: nothing is written without the journal"
		})
		began := time.Now()
		stop := launch(t, planner(m), &w)
		time.Sleep(30 * time.Second)
		there.wants(t, began, round+within, "no space left on device", "make room")
		stop()
		stopThere()
	})
}

func TestAPlannerWhosePlansNobodyAnswersIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		var w watched
		began := time.Now()
		stop := launch(t, planner(m), &w)
		time.Sleep(30 * time.Second)
		w.wants(t, began, round+within, "no actuator answered its plans since")
		actuator(t, m, accepts)
		time.Sleep(5 * time.Second)
		if why := w.now(); why != "" {
			t.Errorf("plans are answered, and it is not ready: %s", why)
		}
		stop()
	})
}

func TestAPlannerThatLeadsAndPlansNothingIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		var w watched
		s := planner(m)
		s.Step = stepFunc(func(time.Time, trimtab.Value) []trimtab.Value { return nil })
		began := time.Now()
		stop := launch(t, s, &w)
		time.Sleep(30 * time.Second)
		w.wants(t, began, within, "published no plan since")
		stop()
	})
}

func TestAPlannerThatKnowsThatAnotherLeadsIsReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		actuator(t, m, accepts)
		var first, second watched
		stopFirst := launch(t, planner(m), &first)
		time.Sleep(time.Second)
		s := planner(m)
		s.Name = "standby"
		stopSecond := launch(t, s, &second)
		time.Sleep(5 * time.Minute)
		if first.first() != "" || second.first() != "" || second.now() != "" {
			t.Errorf("leader: %q, standby: %q, now %q", first.first(), second.first(), second.now())
		}
		stopSecond()
		stopFirst()
	})
}

func TestAnActuatorThatHearsNoPlanWhileAPlannerLeadsIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		var w, there watched
		_, stopThere := follow(t, m, Work{Round: round, Follows: "p"}, &there) // hears nothing
		time.Sleep(time.Minute)
		if why := there.now(); why != "" {
			t.Errorf("nobody leads, and it is not ready: %s", why)
		}
		began := time.Now()
		stop := launch(t, planner(m), &w)
		time.Sleep(time.Minute)
		// Whoever leads is known when the lock was renewed once.
		there.wants(t, began, within+defaultTerm/2, "received no plan since", "although planner leads pool p")
		stop()
		time.Sleep(2 * defaultTerm)
		if why := there.now(); why != "" {
			t.Errorf("nobody leads any more, and it is not ready: %s", why)
		}
		stopThere()
	})
}

func TestTheSilenceOfASourceIsNotUnreadiness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		var w watched
		noted, stop := follow(t, m, Work{Round: round}, &w)
		// Nobody takes spans for a while, and then no span comes any more.
		frame := frameOf(t)
		began := time.Now()
		for range 20 {
			if err := noted.Publish(t.Context(), frame); err == nil {
				t.Fatal("somebody took the spans")
			}
			time.Sleep(time.Second)
		}
		w.wants(t, began, within+time.Second, "could publish no spans since", "an analyzer runs")
		time.Sleep(time.Minute)
		if why := w.now(); why != "" {
			t.Errorf("the source is silent, and the receiver is not ready: %s", why)
		}
		stop()
	})
}

func TestACollectorThatStandsStillIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		var w watched
		noted, stop := follow(t, m, Work{Round: round, Every: trimtab.KindSample}, &w)
		for range 10 {
			missing := &trimtab.Sample{Workload: "w", Quantity: quantity.Load, Time: time.Now(), Source: "cgroup", Missing: "no such group"}
			if err := noted.Publish(t.Context(), missing); err != nil {
				t.Fatal(err)
			}
			time.Sleep(round)
		}
		if why := w.first(); why != "" {
			t.Errorf("it tells that its source is silent, and is not ready: %s", why)
		}
		began := time.Now()
		time.Sleep(time.Minute)
		w.wants(t, began, within, "published no sample since")
		stop()
	})
}

func frameOf(t *testing.T) *trimtab.SpanFrame {
	t.Helper()
	var f codec.FrameWriter
	f.Reset()
	at, _ := f.AddPackedResource(codec.PackResource(nil))
	f.Add(&trimtab.Span{TraceID: [16]byte{1}, SpanID: [8]byte{1}, Resource: at, Adjusted: 1})
	return f.Frame(0)
}

func TestReasonsOfNotReadyDoNotChangeWhileTheyLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHealth(Work{Round: round, Every: trimtab.KindSample})
		time.Sleep(time.Minute)
		first := h.Reason(time.Now())
		time.Sleep(time.Minute)
		if again := h.Reason(time.Now()); first == "" || again != first {
			t.Errorf("%q, then %q: the log would be full of it", first, fmt.Sprint(again))
		}
	})
}
