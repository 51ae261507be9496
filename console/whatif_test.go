package console_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/whatif"
)

// askedConsole serves a console whose what-if answers are made by answer.
func askedConsole(t *testing.T, answer console.WhatIf) *httptest.Server {
	t.Helper()
	v := view.New(view.Config{Pool: "shop", Resource: "cpu", Capacity: 8, Workloads: []view.Workload{{Name: "checkout", Mode: trimtab.Act, Share: true, Target: .95}}})
	s := httptest.NewServer(console.Handler(v, console.Options{WhatIf: answer}))
	t.Cleanup(s.Close)
	return s
}

func read(t *testing.T, url string) (int, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

func answered(c whatif.Change, now time.Time) (*whatif.Answer, error) {
	o := whatif.Outlook{Allocation: 3, SLO: .95, Weight: 1, Performance: &trimtab.Band{Lower: .9, Mean: .94, Upper: .97}, Meets: whatif.MeetsUnlikely}
	after := o
	after.Allocation = 2
	return &whatif.Answer{Time: now, Pool: "shop", Objective: "social", Resource: "cpu", Change: c, CapacityBefore: 8, CapacityAfter: 6, Pay: 1, Assumes: []string{},
		Workloads: []whatif.Workload{{Workload: "<b>checkout</b>", Share: true, Effect: whatif.Pays, Now: 3, Before: o, After: after}}}, nil
}

func TestAWhatIfIsAskedWithParametersByKindAndName(t *testing.T) {
	var asked whatif.Change
	s := askedConsole(t, func(c whatif.Change, now time.Time) (*whatif.Answer, error) {
		asked = c
		return answered(c, now)
	})
	code, body := read(t, s.URL+"/api/v1/what-if?capacity:cpu=6&slo:checkout=200ms&weight:shop/web=2&q=x")
	want := whatif.Change{Capacity: map[string]float64{"cpu": 6}, SLO: map[string]string{"checkout": "200ms"}, Weight: map[string]float64{"shop/web": 2}}
	var got whatif.Answer
	if err := json.Unmarshal([]byte(body), &got); err != nil || code != http.StatusOK {
		t.Fatalf("%d %s: %v", code, body, err)
	}
	if d := cmp.Diff(want, asked) + cmp.Diff(want, got.Change); d != "" {
		t.Error(d)
	}
}

func TestAQuestionThatCannotBeAnsweredIsAnError(t *testing.T) {
	s := askedConsole(t, func(c whatif.Change, now time.Time) (*whatif.Answer, error) {
		if len(c.Capacity) > 0 {
			return nil, fmt.Errorf("answer what-if: too small: %w", trimtab.ErrInfeasible)
		}
		return answered(c, now)
	})
	for query, want := range map[string]int{"": 200, "capacity:cpu=0.1": 400, "capacity:cpu=-1": 400, "capacity:cpu=NaN": 400, "weight:a=x": 400, "size:a=1": 400, "weight:a=": 200} {
		if code, body := read(t, s.URL+"/api/v1/what-if?"+query); code != want {
			t.Errorf("%q: %d %s", query, code, body)
		}
	}
	// The page stays, with sliders and what is wrong.
	code, body := read(t, s.URL+"/what-if?capacity:cpu=0.1")
	if code != http.StatusOK || !strings.Contains(body, "too small") || !strings.Contains(body, `name="capacity:cpu"`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body := read(t, askedConsole(t, nil).URL+"/api/v1/what-if"); code != http.StatusNotImplemented || !strings.Contains(body, "error") {
		t.Errorf("%d %s", code, body)
	}
}

func TestThePageOfWhatIfSaysWhoPaysAndEscapesNames(t *testing.T) {
	s := askedConsole(t, answered)
	_, body := read(t, s.URL+"/what-if?capacity:cpu=6")
	for _, want := range []string{"What if</h1>", "pays", "94% (90% to 97%)", "&lt;b&gt;checkout&lt;/b&gt;", `type="range"`, `value="6"`, `data-was="8"`, "unlikely"} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(body, "<b>checkout") {
		t.Error("a name is not escaped")
	}
}
