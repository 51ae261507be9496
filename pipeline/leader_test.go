package pipeline

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/bustest"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/pause"
)

// The goroutine of the lock may come to this before the one that opened it goes
// on.
func TestALockThatIsTakenBeforeItsStageHasItIsReported(t *testing.T) {
	set := metric.NewSet()
	s := &stage{Stage: Stage{Name: "s", Leader: &Leader{Pool: "p"}}, counts: newCounts(set, "s"), health: NewHealth(Work{}), ready: &ready{report: func(string) {}}}
	s.lead(7, "")
	if epoch := value(t, set, "trimtab_leader_epoch"); epoch != 7 {
		t.Errorf("epoch %v", epoch)
	}
}

func TestOneLeaderAndAHigherEpochAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		got := collect(t, m, trimtab.KindCommand)
		stage := func(holder string) Stage {
			return Stage{Name: holder, Bus: m, Step: stepFunc(echo), Leader: &Leader{Pool: "p"},
				Consumes: []bus.Subscription{{Kind: trimtab.KindAlert}, {Kind: trimtab.KindHolding}}}
		}
		stopA := start(t, stage("a"))
		time.Sleep(time.Second)
		stopB := start(t, stage("b"))
		time.Sleep(time.Minute)
		if g := strings.Join(got(), ","); g != "epoch 1" {
			t.Fatalf("got %q, want one leader", g)
		}
		if err := m.Publish(t.Context(), alert("x")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if g := strings.Join(got(), ","); g != "epoch 1,x" {
			t.Errorf("got %q: one who does not lead published", g)
		}
		stopA() // gives up: b follows at once
		time.Sleep(2 * time.Second)
		if g := strings.Join(got(), ","); g != "epoch 1,x,epoch 2" {
			t.Errorf("got %q", g)
		}
		// A wiped store and an actuator that remembers.
		m.Wipe()
		h := &trimtab.Holding{Host: "h", Time: time.Now(), Epoch: 40}
		if err := m.Publish(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if g := got(); g[len(g)-1] != "epoch 41" {
			t.Errorf("got %q, want an epoch above that of the holding", g)
		}
		stopB()
	})
}

func TestAnEpochThatAnotherLifeLedUnderIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		got := collect(t, m, trimtab.KindCommand)
		stop := start(t, Stage{Name: "a", Bus: m, Step: stepFunc(echo), Leader: &Leader{Pool: "p"},
			Consumes: []bus.Subscription{{Kind: trimtab.KindHolding}}})
		time.Sleep(time.Second)
		// A store that was rolled back gave out epoch 1 again: the actuator
		// has plan 1-9, and would refuse everything up to it.
		h := &trimtab.Holding{Host: "h", Time: time.Now(), Epoch: 1, Sequence: 9}
		if err := m.Publish(t.Context(), h); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if g := strings.Join(got(), ","); g != "epoch 1,epoch 2" {
			t.Errorf("got %q, want the epoch left once", g)
		}
		stop()
	})
}

func TestAnEpochUnderWhichAHostTakesOurFirstPlanForAnOldOneIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		epoch := uint64(0)
		plans := stepFunc(func(now time.Time, in trimtab.Value) []trimtab.Value {
			if l, ok := in.(*trimtab.Leader); ok && l.Epoch > epoch {
				epoch = l.Epoch
				return []trimtab.Value{
					command(fmt.Sprint("epoch ", epoch)),
					&trimtab.Plan{Pool: "p", Epoch: epoch, Sequence: 1, Step: 1, Time: now, Lease: 60},
				}
			}
			return nil
		})
		got := collect(t, m, trimtab.KindCommand)
		defer start(t, Stage{Name: "a", Bus: m, Step: plans, Leader: &Leader{Pool: "p"},
			Consumes: []bus.Subscription{{Kind: trimtab.KindOutcome}}})()
		time.Sleep(time.Second)
		// A store that was rolled back gave out epoch 1 again, whose plan 1-1 the host has
		// from the life before. Its holding would not tell the two plans apart.
		for _, refused := range []string{"expired: made 1m ago", trimtab.Overtaken + "plan 1-1 step 1, 1-1 step 2 was accepted"} {
			if g := strings.Join(got(), ","); g != "epoch 1" {
				t.Fatalf("got %q before it is told %q", g, refused)
			}
			o := &trimtab.Outcome{Pool: "p", Host: "h", Epoch: 1, Sequence: 1, Step: 1, Time: time.Now(), Refused: refused}
			if err := m.Publish(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			time.Sleep(5 * time.Second)
		}
		if g := strings.Join(got(), ","); g != "epoch 1,epoch 2" {
			t.Errorf("got %q, want the epoch left once", g)
		}
	})
}

// frozen is a bus whose buckets stop to answer, as they do for a process
// that is stopped.
type frozen struct {
	bus.Bus
	cut atomic.Bool
}

type frozenBucket struct {
	bus.Bucket
	cut *atomic.Bool
}

func (f *frozen) Bucket(ctx context.Context, name string) (bus.Bucket, error) {
	b, err := f.Bus.Bucket(ctx, name)
	return frozenBucket{b, &f.cut}, err
}

func (f frozenBucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	if f.cut.Load() {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return f.Bucket.Update(ctx, key, value, revision)
}

func TestALeaderThatCannotRenewIsSilentBeforeAnotherLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		got := collect(t, m, trimtab.KindCommand)
		f := &frozen{Bus: m}
		tick := func(name string) stepFunc {
			epoch := uint64(0)
			return func(_ time.Time, in trimtab.Value) []trimtab.Value {
				if l, ok := in.(*trimtab.Leader); ok {
					epoch = l.Epoch
				}
				return []trimtab.Value{command(fmt.Sprint(name, epoch))} // even when it must not
			}
		}
		stop := start(t, Stage{Name: "old", Bus: f, Step: tick("old"), Tick: 100 * time.Millisecond, Leader: &Leader{Pool: "p"}})
		defer stop()
		time.Sleep(3 * time.Second)
		defer start(t, Stage{Name: "new", Bus: m, Step: tick("new"), Tick: 100 * time.Millisecond, Leader: &Leader{Pool: "p"}})()
		time.Sleep(3 * time.Second)
		f.cut.Store(true)
		time.Sleep(time.Minute)
		seenNew := false
		for _, g := range got() {
			switch {
			case g == "new2":
				seenNew = true
			case g == "old1" && !seenNew:
			default:
				t.Fatalf("%s was published, new seen: %v", g, seenNew)
			}
		}
		if !seenNew {
			t.Error("nobody took over")
		}
	})
}

// slow is a bus whose buckets carry out what they are asked for at once and
// answer late, as they seem to for a process that gets no CPU.
type slow struct {
	bus.Bus
	delay func() time.Duration
}

type slowBucket struct {
	bus.Bucket
	slow *slow
}

func (s *slow) Bucket(ctx context.Context, name string) (bus.Bucket, error) {
	b, err := s.Bus.Bucket(ctx, name)
	return slowBucket{b, s}, err
}

func (s slowBucket) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	now, err := s.Bucket.Update(ctx, key, value, revision)
	if !pause.For(ctx, s.slow.delay()) {
		return 0, ctx.Err()
	}
	return now, err
}

func TestALeaderWhoseRenewalsAreAnsweredLateDoesNotLoseItself(t *testing.T) {
	for name, delay := range map[string]func() time.Duration{
		"a second":                       func() time.Duration { return time.Second },
		"three seconds, over a deadline": func() time.Duration { return 3 * time.Second },
		"one in three is lost": func() func() time.Duration {
			n := 0
			return func() time.Duration {
				if n++; n%3 == 0 {
					return time.Hour
				}
				return 10 * time.Millisecond
			}
		}(),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := bustest.NewMemory()
				defer m.Close()
				got := collect(t, m, trimtab.KindCommand)
				leader := func(name string, b bus.Bus) Stage {
					return Stage{Name: name, Bus: b, Step: stepFunc(echo), Leader: &Leader{Pool: "p"}}
				}
				stop := start(t, leader("slow", &slow{m, delay}))
				time.Sleep(time.Second)
				stopRival := start(t, leader("rival", m))
				time.Sleep(10 * time.Minute)
				if g := strings.Join(got(), ","); g != "epoch 1" {
					t.Errorf("got %q, want one leader and one term", g)
				}
				stopRival()
				stop()
			})
		})
	}
}

func TestALockThatRanOutAndThatNobodyTookIsRenewedInTheSameTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		var epochs []uint64
		f := &frozen{Bus: m}
		stop := start(t, Stage{Name: "a", Bus: f, Leader: &Leader{Pool: "p"}, Step: stepFunc(func(_ time.Time, in trimtab.Value) []trimtab.Value {
			if l, ok := in.(*trimtab.Leader); ok {
				epochs = append(epochs, l.Epoch)
			}
			return nil
		})})
		time.Sleep(10 * time.Second)
		f.cut.Store(true)
		time.Sleep(20 * time.Second)
		f.cut.Store(false)
		time.Sleep(10 * time.Second)
		stop()
		if got := fmt.Sprint(epochs); got != "[1 0 1]" {
			t.Errorf("epochs %s, want the term to go on", got)
		}
	})
}

func TestTheTermOfALeaderGrowsWithItsDelaysAndShrinksAfterThem(t *testing.T) {
	l := &lock{Leader: Leader{Term: defaultTerm}}
	now := time.Now()
	for _, c := range []struct{ after, delay, want time.Duration }{
		{0, time.Millisecond, defaultTerm},
		{time.Second, 2 * time.Second, 8 * time.Second},
		{time.Second, time.Millisecond, 8 * time.Second},
		{time.Second, time.Minute, maxTerm},
		{lateWindow, 0, maxTerm},
		{lateWindow, 0, defaultTerm},
	} {
		now = now.Add(c.after)
		l.late.note(now, c.delay)
		if got := l.term(); got != c.want {
			t.Errorf("after a delay of %v: term %v, want %v", c.delay, got, c.want)
		}
	}
}

func TestAProcessThatIsOnTimeLengthensNoTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &lock{Leader: Leader{Term: defaultTerm}}
		ctx, cancel := context.WithTimeout(t.Context(), 5*lateWindow)
		defer cancel()
		l.late.measure(ctx, l.every())
		if got := l.term(); got != defaultTerm || l.late.worst() == 0 {
			t.Errorf("term %v after delays of %v, want %v", got, l.late.worst(), defaultTerm)
		}
	})
}
