package pipeline

import (
	"context"
	"encoding/json"
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
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/internal/metric"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type stepFunc func(now time.Time, in trimtab.Value) []trimtab.Value

func (f stepFunc) Step(now time.Time, in trimtab.Value) []trimtab.Value { return f(now, in) }

// start runs s; the returned function stops it.
func start(t *testing.T, s Stage) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ready := make(chan struct{})
	var once sync.Once
	s.Ready = func(reason string) {
		if reason != starting {
			once.Do(func() { close(ready) })
		}
	}
	done := make(chan error, 1)
	go func() { done <- Run(ctx, s) }()
	<-ready
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// collect notes the names of all values of a kind.
func collect(t *testing.T, b bus.Bus, k trimtab.Kind) func() []string {
	t.Helper()
	var mu sync.Mutex
	var got []string
	_, err := b.Subscribe(t.Context(), bus.Subscription{Kind: k, Handle: func(_ context.Context, d bus.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, name(d.Value))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return func() []string { mu.Lock(); defer mu.Unlock(); return append([]string(nil), got...) }
}

func name(v trimtab.Value) string {
	switch v := v.(type) {
	case *trimtab.Alert:
		return v.Name
	case *trimtab.Command:
		return v.By
	case *trimtab.Estimate:
		raw, _ := json.Marshal(v)
		return string(raw)
	}
	return "?"
}

func alert(n string) *trimtab.Alert {
	return &trimtab.Alert{Workload: "w", Name: n, Time: time.Unix(1, 0)}
}

func command(by string) *trimtab.Command {
	return &trimtab.Command{Pool: "p", Verb: trimtab.Round, Time: time.Unix(1, 0), By: by}
}

// echo turns alerts into commands, and news of leadership too.
func echo(_ time.Time, in trimtab.Value) []trimtab.Value {
	switch v := in.(type) {
	case *trimtab.Alert:
		return []trimtab.Value{command(v.Name)}
	case *trimtab.Leader:
		return []trimtab.Value{command(fmt.Sprint("epoch ", v.Epoch))}
	}
	return nil
}

func consumes(k ...trimtab.Kind) (s []bus.Subscription) {
	for _, k := range k {
		s = append(s, bus.Subscription{Kind: k, Consumer: "stage"})
	}
	return s
}

// flaky refuses the first publications of commands.
type flaky struct {
	bus.Bus
	fails  atomic.Int64
	before func()
}

func (f *flaky) Publish(ctx context.Context, v trimtab.Value) error {
	if v.Kind() == trimtab.KindCommand && f.fails.Add(-1) >= 0 {
		if f.before != nil {
			f.before()
		}
		return errors.New("the bus is away")
	}
	return f.Bus.Publish(ctx, v)
}

func TestOutputsAreOnTheBusBeforeTheInputIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		f := &flaky{Bus: m}
		f.fails.Store(7)
		f.before = func() {
			if n := m.Stats().Delivered[trimtab.KindAlert]; n != 0 {
				t.Errorf("%d inputs acknowledged before the output was stored", n)
			}
		}
		got := collect(t, m, trimtab.KindCommand)
		defer start(t, Stage{Name: "s", Bus: f, Step: stepFunc(echo), Consumes: consumes(trimtab.KindAlert)})()
		if err := m.Publish(t.Context(), alert("1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if g := got(); len(g) != 1 || m.Stats().Delivered[trimtab.KindAlert] != 1 {
			t.Errorf("got %q", g)
		}
	})
}

func TestAnInputWhoseOutputIsNotStoredIsThereForTheNextStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		f := &flaky{Bus: m}
		f.fails.Store(1 << 40)
		got := collect(t, m, trimtab.KindCommand)
		stop := start(t, Stage{Name: "s", Bus: f, Step: stepFunc(echo), Consumes: consumes(trimtab.KindAlert)})
		if err := m.Publish(t.Context(), alert("1")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		stop()
		defer start(t, Stage{Name: "s", Bus: m, Step: stepFunc(echo), Consumes: consumes(trimtab.KindAlert)})()
		time.Sleep(time.Second)
		if g := got(); len(g) != 1 {
			t.Errorf("got %q", g)
		}
	})
}

func TestAPanicCostsOneValueAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set := bustest.NewMemory(), metric.NewSet()
		defer m.Close()
		got := collect(t, m, trimtab.KindCommand)
		defer start(t, Stage{Name: "s", Bus: m, Metrics: set, Consumes: consumes(trimtab.KindAlert), Tick: time.Second,
			Step: stepFunc(func(now time.Time, in trimtab.Value) []trimtab.Value {
				if in == nil || name(in) == "poison" {
					panic("no")
				}
				return echo(now, in)
			})})()
		for _, n := range []string{"1", "poison", "2"} {
			if err := m.Publish(t.Context(), alert(n)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2500 * time.Millisecond)
		if g := strings.Join(got(), " "); g != "1 2" || len(m.Aside(trimtab.KindAlert)) != 1 {
			t.Errorf("got %q, %d put aside", g, len(m.Aside(trimtab.KindAlert)))
		}
		if n := value(t, set, "trimtab_stage_panics_total"); n != 3 {
			t.Errorf("%v panics counted, want 1 and 2 ticks", n)
		}
	})
}

func value(t *testing.T, set *metric.Set, name string) (sum float64) {
	t.Helper()
	families, err := set.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

func TestTicksDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := bustest.NewMemory()
		defer m.Close()
		var ticks atomic.Int64
		defer start(t, Stage{Name: "s", Bus: m, Tick: time.Second, Step: stepFunc(func(time.Time, trimtab.Value) []trimtab.Value {
			if ticks.Add(1) == 1 {
				time.Sleep(time.Minute)
			}
			return nil
		})})()
		time.Sleep(62*time.Second + 500*time.Millisecond)
		if n := ticks.Load(); n > 4 {
			t.Errorf("%d ticks after a step of a minute", n)
		}
	})
}

// memo is a step with a state: how many alerts it saw.
type memo struct {
	mu    sync.Mutex
	count map[string]int
}

func (m *memo) Step(_ time.Time, in trimtab.Value) []trimtab.Value {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, ok := in.(*trimtab.Alert); ok {
		m.count[a.Name]++
	}
	return nil
}

func (m *memo) Snapshot() map[string][]byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := map[string][]byte{}
	for k, n := range m.count {
		out[k] = fmt.Append(nil, n)
	}
	return out
}

func (m *memo) Restore(name string, state []byte) error {
	var n int
	if _, err := fmt.Sscan(string(state), &n); err != nil {
		return trimtab.Invalidf("state %q", state)
	}
	m.count[name] = n
	return nil
}

func (m *memo) Counts(yield func(name string, value float64, labels ...string)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := 0
	for _, n := range m.count {
		sum += n
	}
	yield("trimtab_stage_panics_total", float64(sum), "memo")
	yield("trimtab_no_such_metric", 1)
	if sum == 1 {
		yield("trimtab_stage_ready", 1, "memo")
	}
}

func TestASnapshotOutlivesARestartAndABrokenOneIsIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set := bustest.NewMemory(), metric.NewSet()
		defer m.Close()
		stage := Stage{Name: "learn", Bus: m, Consumes: consumes(trimtab.KindAlert), Snapshots: &Snapshots{Every: time.Second}, Metrics: set}
		first := &memo{count: map[string]int{}}
		stage.Step = first
		stop := start(t, stage)
		for _, n := range []string{"a", "a", "b"} {
			if err := m.Publish(t.Context(), alert(n)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(3 * time.Second)
		if n := value(t, set, "trimtab_stage_snapshots_total"); n == 0 {
			t.Error("nothing saved while running")
		}
		stop()
		k, err := m.Bucket(t.Context(), "snapshots")
		if err != nil {
			t.Fatal(err)
		}
		raw, _, err := k.Get(t.Context(), "learn/b")
		if err != nil {
			t.Fatal(err)
		}
		raw[len(raw)-1] ^= 1
		if _, err := k.Put(t.Context(), "learn/b", raw); err != nil {
			t.Fatal(err)
		}
		second := &memo{count: map[string]int{}}
		stage.Step = second
		start(t, stage)()
		if fmt.Sprint(second.count) != "map[a:2]" {
			t.Errorf("restored %v, want a:2 and nothing of the broken b", second.count)
		}
	})
}

func TestCountsOfAStepBecomeMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, set := bustest.NewMemory(), metric.NewSet()
		defer m.Close()
		defer start(t, Stage{Name: "s", Bus: m, Metrics: set, Consumes: consumes(trimtab.KindAlert), Step: &memo{count: map[string]int{}}})()
		for n := range 3 {
			if err := m.Publish(t.Context(), alert("x")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if v := value(t, set, "trimtab_stage_panics_total"); v != float64(n+1) {
				t.Errorf("counter %v, want %d", v, n+1)
			}
			if v := value(t, set, "trimtab_stage_ready"); (v == 1) != (n == 0) {
				t.Errorf("after %d: gauge %v", n+1, v)
			}
		}
	})
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

func TestTheClockOfAStageNeverGoesBackAndNeverStands(t *testing.T) {
	var c clock
	at := time.Now()
	wall := func(jump time.Duration) time.Time { return at.Round(0).Add(jump) }
	last := c.now(at)
	for _, step := range []struct{ jump, least, most time.Duration }{
		{time.Second, time.Second, time.Second},
		{-time.Second, 0, 0},
		{3 * time.Second, 3 * time.Second, 3 * time.Second},
		{24 * 365 * 10 * time.Hour, time.Second, 24 * 365 * 11 * time.Hour},
		{4 * time.Second, 0, 2 * time.Second},
	} {
		now := c.now(wall(step.jump))
		if now.Before(last) {
			t.Errorf("jump %v: %v before %v", step.jump, now, last)
		}
		last = now
	}
}

func TestDuplicatesAndOrderChangeNoOutput(t *testing.T) {
	// An idempotent step: the set of names seen, as one estimate.
	run := func(t *testing.T, in []string) string {
		var last string
		synctest.Test(t, func(t *testing.T) {
			m := bustest.NewMemory()
			defer m.Close()
			seen := map[string]bool{}
			stop := start(t, Stage{Name: "s", Bus: m, Consumes: consumes(trimtab.KindAlert), Step: stepFunc(func(_ time.Time, in trimtab.Value) []trimtab.Value {
				seen[name(in)] = true
				return []trimtab.Value{&trimtab.Estimate{Workload: "w", Model: fmt.Sprint(len(seen)), Time: time.Unix(1, 0).UTC()}}
			})})
			for i, n := range in {
				if i%5 == 0 {
					if err := m.Inject(t.Context(), trimtab.KindAlert, "w", []byte("{corrupt")); err != nil {
						t.Fatal(err)
					}
				}
				if err := m.Publish(t.Context(), alert(n)); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
			got := collect(t, m, trimtab.KindEstimate)
			synctest.Wait()
			last = strings.Join(got(), " ")
			stop()
		})
		return last
	}
	clean := run(t, []string{"1", "2", "3", "4"})
	if dirty := run(t, []string{"3", "1", "1", "2", "4", "3", "2", "4"}); dirty != clean || clean == "" {
		t.Errorf("clean %s\ndirty %s", clean, dirty)
	}
}

func TestStagesWorkOverNATS(t *testing.T) {
	b, err := natsbus.Open(t.Context(), natsbus.Config{Dir: t.TempDir(), Source: "x"})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	set := metric.NewSet()
	got := make(chan string, 100)
	stopB := start(t, Stage{Name: "b", Bus: b, Metrics: set, Consumes: []bus.Subscription{{Kind: trimtab.KindCommand}},
		Step: stepFunc(func(_ time.Time, in trimtab.Value) []trimtab.Value { got <- name(in); return nil })})
	stopA := start(t, Stage{Name: "a", Bus: b, Metrics: set, Consumes: consumes(trimtab.KindAlert), Leader: &Leader{Pool: "p"}, Step: stepFunc(echo)})
	if s := <-got; s != "epoch 1" {
		t.Error(s)
	}
	if err := b.Publish(t.Context(), alert("1")); err != nil {
		t.Fatal(err)
	}
	if s := <-got; s != "1" {
		t.Error(s)
	}
	stopA()
	stopB()
}

// silent is a bus that is out of reach.
type silent struct{ bus.Bus }

func (silent) Ready() error { return errors.New("bus is RECONNECTING") }

func TestTheBusIsCountedAndSaysWhyItIsNotReady(t *testing.T) {
	b := bustest.NewMemory()
	defer b.Close()
	set := metric.NewSet()
	for want, reached := range map[string]bus.Bus{"": b, "bus is RECONNECTING": silent{b}} {
		ctx, cancel := context.WithCancel(t.Context())
		ready, done := make(chan string, 1), make(chan error, 1)
		go func() { done <- CountBus(ctx, reached, set, func(why string) { ready <- why }) }()
		if why := <-ready; why != want {
			t.Errorf("ready %q, want %q", why, want)
		}
		if err := b.Publish(ctx, alert("1")); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if n := value(t, set, "trimtab_bus_published_total"); n != 3 {
		t.Errorf("published %v: one before and twice one after, from two readers", n)
	}
}
