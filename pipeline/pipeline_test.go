package pipeline

import (
	"bytes"
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
	"github.com/trimtab/trimtab/codec"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/internal/metric"
)

func TestMain(m *testing.M) { leak.Main(m) }

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
	families, err := set.Gather()
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

// untested is a bus whose server is of another release.
type untested struct{ bus.Bus }

func (untested) Untested() bool { return true }

func TestTheBusTellsWhatComesFromOtherReleases(t *testing.T) {
	b := bustest.NewMemory()
	defer b.Close()
	handled := make(chan bool, 3)
	stop, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindAlert, Handle: func(context.Context, bus.Delivery) error {
		handled <- true
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	now, err := codec.Encode(alert("1"), trimtab.Origin{})
	if err != nil {
		t.Fatal(err)
	}
	before := bytes.Replace(now, fmt.Appendf(nil, `"version":%d`, codec.Version), []byte(`"version":1`), 1)
	for _, data := range [][]byte{before, now, before} {
		if err := b.Inject(t.Context(), trimtab.KindAlert, "w", data); err != nil {
			t.Fatal(err)
		}
	}
	for range cap(handled) {
		<-handled
	}
	stop()
	for server, want := range map[bus.Bus]float64{b: 0, untested{b}: 1} {
		set := metric.NewSet()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := CountBus(ctx, server, set, func(string) {}); err != nil {
			t.Error(err)
		}
		if n := value(t, set, "trimtab_bus_older_version_total"); n != 2 {
			t.Errorf("%v of an older version, want 2", n)
		}
		if n := value(t, set, "trimtab_bus_server_untested"); n != want {
			t.Errorf("untested %v, want %v", n, want)
		}
	}
}

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
