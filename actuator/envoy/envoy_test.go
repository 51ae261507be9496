package envoy

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/knobtest"
)

func TestAThresholdMeetsTheContractOfKnobs(t *testing.T) {
	knobtest.Run(t, func(t *testing.T) knobtest.Fixture {
		i := imitate(t)
		return knobtest.Fixture{Knob: open(t, i.URL), Reopen: reopen, Least: 1, Most: 1000, Vanish: i.Close}
	})
}

func TestUnlimitedLeavesNothingSet(t *testing.T) {
	i := imitate(t)
	k := open(t, i.URL)
	if err := k.Write(t.Context(), trimtab.Units(40)); err != nil {
		t.Fatal(err)
	}
	if set := i.admin(); set[key] != "40" || set[marker(key)] == "" {
		t.Errorf("set: %v", set)
	}
	if err := k.Write(t.Context(), trimtab.Unlimited()); err != nil || len(i.admin()) != 0 {
		t.Errorf("%v, set: %v", err, i.admin())
	}
	if v, err := k.Read(t.Context()); err != nil || !v.Unlimited || k.Traits().Forgot() {
		t.Errorf("%v, %v, and it calls its own removal a restart: %t", v, err, k.Traits().Forgot())
	}
}

// So that a later change of that layer has its effect.
func TestWhatAnEarlierLayerSaysIsPutBackByRemovingTheOverride(t *testing.T) {
	i := imitate(t)
	i.do(func() { i.values["base"][key] = "100" })
	k := open(t, i.URL)
	if v, err := k.Read(t.Context()); err != nil || v != trimtab.Units(100) {
		t.Errorf("%v, %v", v, err)
	}
	if err := k.Write(t.Context(), trimtab.Units(40)); err != nil {
		t.Fatal(err)
	}
	again, err := Reopen(k.Undo())
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Write(t.Context(), trimtab.Units(100)); err != nil || len(i.admin()) != 0 {
		t.Errorf("%v, set: %v", err, i.admin())
	}
	if v, err := k.Read(t.Context()); err != nil || v != trimtab.Units(100) {
		t.Errorf("%v, %v", v, err)
	}
}

func TestALaterLayerWinsAndIsNamed(t *testing.T) {
	i := imitate(t)
	i.do(func() { i.values["late"][key], i.values["admin"][key] = "7", "9" })
	k := open(t, i.URL)
	err := k.Write(t.Context(), trimtab.Units(40))
	if !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), `layer "late" of Envoy's runtime sets it to 7`) {
		t.Errorf("write: %v", err)
	}
	if set := i.admin(); len(set) != 1 || set[key] != "9" {
		t.Errorf("what somebody had set became %v", set)
	}
	if err := k.MayWrite(t.Context()); !errors.Is(err, actuator.ErrReadOnly) {
		t.Errorf("may write: %v", err)
	}
	i.do(func() { delete(i.values["late"], key) })
	if err := errors.Join(k.MayWrite(t.Context()), k.Write(t.Context(), trimtab.Units(40))); err != nil {
		t.Error(err)
	}
}

func TestAnEnvoyWithoutAdminLayerSaysWhatToDo(t *testing.T) {
	i := imitate(t)
	i.layers = []string{"base"}
	k := open(t, i.URL)
	for what, err := range map[string]error{"probe": k.MayWrite(t.Context()), "write": k.Write(t.Context(), trimtab.Units(3))} {
		if !errors.Is(err, trimtab.ErrRefused) || !strings.Contains(err.Error(), "add `- name: admin` with `admin_layer: {}`") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if v, err := k.Read(t.Context()); err != nil || !v.Unlimited {
		t.Errorf("%v, %v", v, err)
	}
}

func TestWhatIsNoRuntimeOfEnvoyIsAnError(t *testing.T) {
	of := func(e string) string { return `{"layers":["a","b"],"entries":{"` + key + `":` + e + `}}` }
	for text, want := range map[string]string{
		"hello": "is this its admin address", "{}": "is this its admin address", "[]": "is this its admin address", `{"layers":[]}`: "is this its admin address",
		of(`{"layer_values":["","x"],"final_value":"x"}`):     "want a whole number",
		of(`{"layer_values":["","1.5"],"final_value":"1.5"}`): "want a whole number",
		of(`{"layer_values":["","-1"],"final_value":"-1"}`):   "want a whole number",
		of(`{"layer_values":["1"],"final_value":"1"}`):        "1 values in 2 layers",
		of(`{"layer_values":["",""],"final_value":""}`):       "without a value",
		of(`{"layer_values":[1,2],"final_value":2}`):          "read its values",
		strings.Repeat("x", maxAnswer+1):                      "more than 8388608 bytes",
	} {
		i := imitate(t)
		i.answer = func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
		k := open(t, i.URL)
		for what, err := range map[string]error{"probe": k.Probe(t.Context()), "may write": k.MayWrite(t.Context()), "write": k.Write(t.Context(), trimtab.Units(3))} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.90q: %s: %v, want %q in it", text, what, err, want)
			}
		}
		i.do(func() {
			for _, asked := range i.asked {
				if !strings.HasPrefix(asked, "GET /runtime?") {
					t.Errorf("%.90q: asked %s", text, asked)
				}
			}
		})
	}
}

func TestARedirectIsNotFollowed(t *testing.T) {
	i, other := imitate(t), imitate(t)
	i.answer = func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.String(), http.StatusTemporaryRedirect)
	}
	k := open(t, i.URL)
	if err := k.Write(t.Context(), trimtab.Units(3)); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("write: %v", err)
	}
	other.do(func() {
		if len(other.asked) > 0 {
			t.Errorf("asked another: %v", other.asked)
		}
	})
}

func TestAnEnvoyThatHangsCostsNoMoreThanItsDeadline(t *testing.T) {
	i := imitate(t)
	i.answer = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := open(t, i.URL).Read(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestOnlyLimitsOfWhatIsInServiceAreTaken(t *testing.T) {
	for _, key := range []string{
		"", "x", "circuit_breakers.shop.default.max_pending_requests", "circuit_breakers..default.max_requests", "circuit_breakers.a*.default.max_requests",
		"circuit_breakers.a b.default.max_requests", "circuit_breakers.a\n.default.max_requests", "circuit_breakers.a.other.max_requests",
	} {
		if _, err := Open(Config{"http://127.0.0.1:9901", key}); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%q: %v", key, err)
		}
	}
	i := imitate(t)
	k, err := Open(Config{i.URL, "circuit_breakers.outbound|80||a/b&c=d.svc.high.max_connections"})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Write(t.Context(), trimtab.Units(3)); err != nil || i.admin()[k.config.Key] != "3" {
		t.Errorf("%v, set: %v", err, i.admin())
	}
}

// With 0 Envoy answers nothing.
func TestNoLimitThatIsSentStopsTheService(t *testing.T) {
	k := open(t, "http://127.0.0.1:9901")
	for v, want := range map[float64]float64{0: 0, 0.4: 1, 1.5: 2, 1e12: math.MaxUint32} {
		if got := k.Nearest(trimtab.Units(v)); got != trimtab.Units(want) {
			t.Errorf("nearest to %v is %v, want %v", v, got, want)
		}
	}
}

// run opens an actuator for the key in an Envoy.
func run(t *testing.T, i *imitation) *actuator.Actuator {
	t.Helper()
	a, err := actuator.Open(t.Context(), actuator.Config{
		Host: "h", Pool: "p", Dir: t.TempDir(), Reopen: Kind().Reopen, ForeignHold: time.Minute,
		Targets: []actuator.Target{{KnobID: trimtab.KnobID{Workload: "shop", Resource: trimtab.Concurrency}, Min: 1, Max: 1000, Mode: trimtab.Act, Knob: open(t, i.URL)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// set has a plan set the one knob, and returns what came of it.
func set(t *testing.T, a *actuator.Actuator, sequence uint64, v float64) trimtab.Result {
	t.Helper()
	now := a.Holding().Targets[0]
	o := a.Handle(t.Context(), &trimtab.Plan{
		Pool: "p", Epoch: 1, Sequence: sequence, Step: 1, Last: true, Time: time.Now(), Capacity: 2, Lease: 30,
		Actions: []trimtab.Action{{KnobID: now.KnobID, Expect: now.Now, Set: trimtab.Units(v), Mode: trimtab.Act}},
	})
	if len(o.Results) != 1 {
		t.Fatalf("%+v", o)
	}
	return o.Results[0]
}

func TestAPlanSetsAThresholdAndTheEndRemovesIt(t *testing.T) {
	i := imitate(t)
	a := run(t, i)
	for n, v := range []float64{12, 40} {
		if r := set(t, a, uint64(n+1), v); r.Status != trimtab.Written || i.admin()[key] != fmt.Sprint(v) {
			t.Errorf("%+v, set: %v", r, i.admin())
		}
		a.Tick(t.Context())
	}
	if err := a.Close(t.Context()); err != nil || len(i.admin()) != 0 {
		t.Errorf("%v, set: %v", err, i.admin())
	}
}

// Also that a person removed it: that says as much as any other value.
func TestAThresholdThatSomebodyElseSetIsLeftToThem(t *testing.T) {
	for _, v := range []string{"33", ""} {
		i := imitate(t)
		a := run(t, i)
		set(t, a, 1, 12)
		if err := modify(t.Context(), i.URL, map[string]string{key: v}); err != nil {
			t.Fatal(err)
		}
		a.Tick(t.Context())
		if k := a.Holding().Targets[0]; !strings.Contains(k.Problem, "somebody else") {
			t.Errorf("%q: problem %q", v, k.Problem)
		}
		if r := set(t, a, 2, 20); r.Status != trimtab.Refused {
			t.Errorf("%q: %+v", v, r)
		}
		if err := a.Close(t.Context()); err != nil || i.admin()[key] != v {
			t.Errorf("%q: %v, set: %v", v, err, i.admin())
		}
	}
}

func TestARestartOfEnvoyIsNobodysChange(t *testing.T) {
	i := imitate(t)
	a := run(t, i)
	set(t, a, 1, 12)
	i.do(i.restart)
	a.Tick(t.Context())
	if k := a.Holding().Targets[0]; k.Problem != "" || !k.Now.Unlimited {
		t.Errorf("%+v", k)
	}
	if r := set(t, a, 2, 20); r.Status != trimtab.Written || i.admin()[key] != "20" {
		t.Errorf("%+v, set: %v", r, i.admin())
	}
	if err := a.Close(t.Context()); err != nil || len(i.admin()) != 0 {
		t.Errorf("%v, set: %v", err, i.admin())
	}
}

func FuzzRuntime(f *testing.F) {
	f.Add([]byte(`{"layers":["base","admin"],"entries":{"` + key + `":{"layer_values":["100","40"],"final_value":"40"},"` + marker(key) + `":{"layer_values":["","40"],"final_value":"40"}}}`))
	f.Add([]byte(`{"layers":[],"entries":{}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parse(b, key)
		if err != nil {
			return
		}
		i := r.admin()
		_, _ = r.below(i), r.above(i)
		if len(r.values) != len(r.layers) || len(r.marks) != len(r.layers) || i >= len(r.layers) || r.limit.Validate() != nil {
			t.Errorf("%s: %+v", b, r)
		}
	})
}
