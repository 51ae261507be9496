package haproxy

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// run opens an actuator for web1 at a socket, in a mode.
func run(t *testing.T, socket, dir string, mode trimtab.Mode) *actuator.Actuator {
	t.Helper()
	k := Kind()
	at, err := k.Probe(actuator.Location{Root: socket, Path: "shop/web1/*"})
	if err != nil {
		t.Fatal(err)
	}
	like := []actuator.Target{{KnobID: trimtab.KnobID{Workload: "web", Resource: trimtab.Concurrency}, Min: 1, Max: 1000, Mode: mode}}
	a, err := actuator.Open(t.Context(), actuator.Config{
		Host: "h", Pool: "p", Dir: dir, Finders: []actuator.Finder{k.Finder(at, at.Path, like)}, Reopen: k.Reopen,
		Limits: actuator.Limits{Capacity: map[string]float64{trimtab.CPU: 2}}, ForeignHold: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// set has a plan set the one knob, and returns what came of it.
func set(t *testing.T, a *actuator.Actuator, sequence uint64, v float64) trimtab.Result {
	t.Helper()
	h := a.Holding()
	if len(h.Targets) != 1 || h.Targets[0].Instance != "web1" {
		t.Fatalf("%+v", h.Targets)
	}
	k := h.Targets[0]
	o := a.Handle(t.Context(), &trimtab.Plan{
		Pool: "p", Epoch: 1, Sequence: sequence, Step: 1, Last: true, Time: time.Now(), Capacity: 2, Lease: 30,
		Actions: []trimtab.Action{{KnobID: k.KnobID, Expect: k.Now, Set: trimtab.Units(v), Mode: trimtab.Act}},
	})
	if len(o.Results) != 1 {
		t.Fatalf("%+v", o)
	}
	return o.Results[0]
}

func (i *imitation) limit() (v uint32) {
	i.do(func() { v = i.limits["web1"] })
	return v
}

// The capacity of the pool, 2 cores, bounds no number of requests.
func TestAPlanSetsALimitAndTheEndTakesItBack(t *testing.T) {
	i, socket := imitate(t)
	a := run(t, socket, t.TempDir(), trimtab.Act)
	for n, v := range []float64{12, 40} {
		if r := set(t, a, uint64(n+1), v); r.Status != trimtab.Written || i.limit() != uint32(v) {
			t.Errorf("%+v, and HAProxy has %d", r, i.limit())
		}
	}
	if err := a.Close(t.Context()); err != nil || i.limit() != 0 {
		t.Errorf("after the end HAProxy has %d, %v", i.limit(), err)
	}
}

func TestALimitIsTakenBackFromTheJournalAlone(t *testing.T) {
	h := real(t)
	dir := t.TempDir()
	a := run(t, h.Socket, dir, trimtab.Act)
	if r := set(t, a, 1, 12); r.Status != trimtab.Written {
		t.Errorf("%+v", r)
	}
	k := open(t, h.Socket, "shop", "web1")
	if v, err := k.Read(t.Context()); err != nil || v != trimtab.Units(12) {
		t.Errorf("HAProxy has %v, %v", v, err)
	}
	if err := a.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if v, err := k.Read(t.Context()); err != nil || !v.Unlimited {
		t.Errorf("after the end HAProxy has %v, %v", v, err)
	}
}

func TestARecommendationWritesNothing(t *testing.T) {
	i, socket := imitate(t)
	a := run(t, socket, t.TempDir(), trimtab.Recommend)
	if r := set(t, a, 1, 12); r.Status != trimtab.Recommended || i.limit() != 0 {
		t.Errorf("%+v, and HAProxy has %d", r, i.limit())
	}
	if err := a.Close(t.Context()); err != nil || i.limit() != 0 {
		t.Errorf("%d, %v", i.limit(), err)
	}
}

// After a reload the limit of the configuration holds, and is the new baseline.
func TestAReloadedHAProxyIsLimitedAnewAndRestoredToItsConfiguration(t *testing.T) {
	i, socket := imitate(t)
	a := run(t, socket, t.TempDir(), trimtab.Act)
	set(t, a, 1, 12)
	i.do(func() { i.pid, i.limits["web1"] = "101", 60 })
	a.Tick(t.Context())
	if k := a.Holding().Targets[0]; k.Problem != "" || k.Now != trimtab.Units(60) {
		t.Fatalf("%+v", k)
	}
	if r := set(t, a, 2, 12); r.Status != trimtab.Written || i.limit() != 12 {
		t.Errorf("%+v, and HAProxy has %d", r, i.limit())
	}
	if err := a.Close(t.Context()); err != nil || i.limit() != 60 {
		t.Errorf("after the end HAProxy has %d, %v", i.limit(), err)
	}
}

// Also what it was before: that a person put it back says as much as any other value.
func TestALimitThatSomebodyElseSetIsLeftToThem(t *testing.T) {
	for _, v := range []uint32{33, 0} {
		i, socket := imitate(t)
		a := run(t, socket, t.TempDir(), trimtab.Act)
		set(t, a, 1, 12)
		i.do(func() { i.limits["web1"] = v })
		a.Tick(t.Context())
		if k := a.Holding().Targets[0]; !strings.Contains(k.Problem, "somebody else") {
			t.Errorf("%d: problem %q", v, k.Problem)
		}
		if r := set(t, a, 2, 20); r.Status != trimtab.Refused {
			t.Errorf("%d: %+v", v, r)
		}
		if err := a.Close(t.Context()); err != nil || i.limit() != v {
			t.Errorf("%d: after the end HAProxy has %d, %v", v, i.limit(), err)
		}
	}
}

func TestAHAProxyThatIsGoneIsAProblemUntilItIsBack(t *testing.T) {
	i, socket := imitate(t)
	a := run(t, socket, t.TempDir(), trimtab.Act)
	set(t, a, 1, 12)
	i.do(func() { i.says = []byte("\n") })
	a.Tick(t.Context())
	if h := a.Holding(); len(h.Targets) == 0 || h.Targets[0].Problem == "" {
		t.Errorf("%+v", h.Targets)
	}
	i.do(func() { i.says = nil })
	a.Tick(t.Context())
	if r := set(t, a, 2, 20); r.Status != trimtab.Written || i.limit() != 20 {
		t.Errorf("%+v, and HAProxy has %d", r, i.limit())
	}
	if err := a.Close(t.Context()); err != nil || i.limit() != 0 {
		t.Errorf("%d, %v", i.limit(), err)
	}
}
