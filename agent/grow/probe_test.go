package grow

import (
	"context"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/shortage"
	"github.com/trimtab/trimtab/quantity"
)

// told keeps what is published.
type told struct {
	bus.Bus
	all []*trimtab.Sample
}

func (b *told) Publish(_ context.Context, v trimtab.Value) error {
	b.all = append(b.all, v.(*trimtab.Sample))
	return nil
}

// fakeGroup is a group of version 2 in plain files: 20 MiB without a file, 40 that are read every second, and 40
// that nobody needs.
type fakeGroup struct {
	t        *testing.T
	dir      string
	actuator *actuator.Actuator
	bus      *told
	feed     *Feed
	at       time.Duration
	prober   *prober
	round    func()
	// cold is what is left of what nobody needs, away what was taken of the rest, in bytes; taken how often.
	cold, away float64
	taken      int
}

func newFakeGroup(t *testing.T, p Probe) *fakeGroup {
	t.Helper()
	g := &fakeGroup{t: t, dir: t.TempDir(), bus: &told{}, feed: NewFeed(), cold: 40 << 20}
	g.put("cgroup.controllers", "memory")
	for name, text := range map[string]string{"memory.max": "209715200", "memory.high": "max", "memory.current": "104857600", "memory.stat": "anon 20971520\ninactive_file 0\n", "memory.reclaim": "", "cgroup.procs": ""} {
		g.put(filepath.Join("g", name), text)
	}
	kind := cgroup.Kind()
	k, err := kind.Open(actuator.Location{Root: g.dir, Path: "g"}, trimtab.Memory)
	if err != nil {
		t.Fatal(err)
	}
	g.actuator, err = actuator.Open(t.Context(), actuator.Config{Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: kind.Reopen,
		FreeMemory: func() (float64, float64, error) { return 1 << 40, 0, nil },
		Targets:    []actuator.Target{{KnobID: trimtab.KnobID{Workload: "w", Resource: trimtab.Memory}, Knob: k, Min: 16 << 20, Max: 1 << 30, Mode: trimtab.Act}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { g.actuator.Close(context.Background()) })
	c := &Config{Knobs: g.actuator, Feed: g.feed, Margins: map[string]float64{"w": 0.07}, Probes: map[string]Probe{"w": p}, Bus: g.bus, Metrics: metric.NewSet(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
	l, prober := newLoop(c)
	g.prober, g.round = prober, func() { l.Round(t.Context(), time.Unix(0, 0).Add(g.at)) }
	return g
}

func (g *fakeGroup) put(name, text string) {
	g.t.Helper()
	name = filepath.Join(g.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// plan puts a plan in force.
func (g *fakeGroup) plan() {
	g.t.Helper()
	if o := g.actuator.Handle(g.t.Context(), &trimtab.Plan{Pool: "p", Epoch: 1, Sequence: 1, Step: 1, Last: true, Time: time.Now(), Capacity: 1, Lease: 600}); o.Refused != "" {
		g.t.Fatal(o.Refused)
	}
}

// second plays a second of the kernel and of the loop; more are values that differ.
func (g *fakeGroup) second(more map[quantity.Quantity]float64) {
	g.t.Helper()
	g.at += time.Second
	all := map[quantity.Quantity]float64{quantity.WorkingSet: 60<<20 + g.cold, quantity.MemoryUsage: 60<<20 + g.cold, quantity.MemoryAnonymous: 20 << 20, quantity.MemoryLimit: 200 << 20,
		quantity.Refaults: g.away / float64(os.Getpagesize()), quantity.PressureMemorySome: 0}
	g.away = 0
	maps.Copy(all, more)
	g.feed.Take(nil, samples("w", "", all))
	g.feed.at = g.at
	g.round()
	if g.prober.now != nil {
		g.prober.taking.Wait()
	}
	b, err := os.ReadFile(filepath.Join(g.dir, "g/memory.reclaim"))
	if err != nil {
		g.t.Fatal(err)
	}
	if v, err := strconv.ParseFloat(strings.TrimSpace(string(b)), 64); err == nil {
		g.taken++
		g.away = max(0, v-g.cold)
		g.cold -= v - g.away
		g.put("g/memory.reclaim", "")
	}
}

// seconds plays some, at the most until nothing is probed any more.
func (g *fakeGroup) seconds(n int) {
	g.t.Helper()
	for range n {
		if g.second(nil); g.prober.now == nil {
			return
		}
	}
}

func (g *fakeGroup) settle() {
	g.second(nil)
	g.at += settled
	g.second(nil)
}

func TestAProbeTakesWhatIsNotNeededAndTellsTheRest(t *testing.T) {
	g := newFakeGroup(t, Probe{Every: time.Hour})
	g.plan()
	g.second(nil)
	if g.prober.now != nil {
		t.Error("it is probed at once")
	}
	g.at += settled
	g.seconds(1000)
	if len(g.bus.all) != 1 {
		t.Fatalf("%d results", len(g.bus.all))
	}
	s := g.bus.all[0]
	if err := s.Validate(); err != nil || s.Quantity != quantity.MemoryNeeded || s.Value < 60<<20 || s.Value > 63<<20 || s.Workload != "w" || s.Source != "probe" || s.Window < 30 {
		t.Errorf("%+v, %v", s, err)
	}
	if b, _ := os.ReadFile(filepath.Join(g.dir, "g/memory.max")); string(b) != "209715200" {
		t.Errorf("it set a limit: %s", b)
	}
	taken := g.taken
	g.at += time.Hour - 20*time.Minute
	if g.seconds(10); g.taken != taken {
		t.Error("it is probed again before its time")
	}
	g.at += time.Hour
	if g.seconds(20); g.taken == taken {
		t.Error("it is not probed again")
	}
}

func TestAProbeTakesNothingWithoutAPlanAndStopsAtHarm(t *testing.T) {
	g := newFakeGroup(t, Probe{Every: time.Hour})
	g.settle()
	if g.seconds(20); g.taken != 0 || g.prober.now != nil || len(g.bus.all) != 0 {
		t.Errorf("without a plan: taken %d times", g.taken)
	}
	for name, harm := range map[string]map[quantity.Quantity]float64{
		"tasks wait": {quantity.PressureMemorySome: 0.2}, "its limit changed": {quantity.MemoryLimit: 300 << 20}, "it was killed": {quantity.OOMKills: 1}, "it is not known": {quantity.Refaults: -1}} {
		g := newFakeGroup(t, Probe{Every: time.Hour})
		g.plan()
		g.settle()
		for g.taken == 0 && g.prober.now != nil {
			g.second(nil)
		}
		if g.second(harm); g.prober.now != nil || g.taken != 1 {
			t.Errorf("%s: it goes on, taken %d times", name, g.taken)
		}
	}
}

func TestAGroupWithoutALimitIsProbed(t *testing.T) {
	g := newFakeGroup(t, Probe{Every: time.Hour})
	g.plan()
	none := map[quantity.Quantity]float64{quantity.MemoryLimit: math.NaN()}
	g.second(none)
	g.at += settled
	for range 20 {
		g.second(none)
	}
	if g.taken == 0 {
		t.Error("nothing is taken")
	}
}

func TestAKernelWithoutReclaimEndsAProbe(t *testing.T) {
	g := newFakeGroup(t, Probe{Every: time.Hour})
	g.plan()
	g.settle()
	if err := os.Remove(filepath.Join(g.dir, "g/memory.reclaim")); err != nil {
		t.Fatal(err)
	}
	take, refused := g.actuator.Reclaim(t.Context(), trimtab.KnobID{Workload: "w", Resource: trimtab.Memory})
	if refused != "" {
		t.Fatal(refused)
	}
	if err := take(1 << 20); err == nil || !strings.Contains(err.Error(), "Linux 5.19") {
		t.Error(err)
	}
	g.put("g/memory.reclaim", "")
}

func TestAServiceWithAnSLOIsProbedOnlyWhileItsPerformanceIsKnown(t *testing.T) {
	g := newFakeGroup(t, Probe{Every: time.Hour, Target: 0.95})
	g.plan()
	g.settle()
	if g.seconds(20); g.taken != 0 {
		t.Error("its performance is not known, but it is probed")
	}
	perform := func(v float64) {
		g.prober.performances["w"] = performance{v, time.Unix(0, 0).Add(g.at)}
	}
	g.at += time.Hour
	perform(0.99)
	g.second(nil)
	for range 10 {
		perform(0.99)
		g.second(nil)
	}
	if g.taken == 0 || g.prober.now == nil {
		t.Fatal("it is not probed")
	}
	perform(0.9)
	if g.second(nil); g.prober.now != nil {
		t.Error("it misses its SLO, and the probe goes on")
	}
}

func TestNoProbeBeginsWhileTheKernelStillTakesMemoryForTheLastOne(t *testing.T) {
	n, kernel := shortage.Name{Workload: "w"}, make(chan struct{})
	p := &prober{of: map[string]Probe{"w": {Every: time.Hour}}, logger: slog.New(slog.DiscardHandler), next: map[shortage.Name]due{n: {}}}
	p.take(&running{}, 1, func(float64) error { <-kernel; return nil })
	at := look{at: time.Hour, all: []shortage.Reading{shortage.Unknown(n)}}
	if p.round(t.Context(), time.Unix(0, 0), at); p.next[n].at != 0 {
		t.Error("another probe began")
	}
	close(kernel)
	if p.stop(); p.busy.Load() {
		t.Error("the end does not wait for the kernel")
	}
	if p.round(t.Context(), time.Unix(0, 0), at); p.next[n].at != 2*time.Hour {
		t.Error("none begins afterwards")
	}
}
