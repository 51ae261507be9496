package view

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// inputs makes an estimate of the nth second, in which the named ones are
// missing.
func inputs(n int, missing ...string) *trimtab.Estimate {
	e := report(n, .9)
	e.Curve = &trimtab.Curve{Level: .9, Knots: []trimtab.Knot{{Allocation: 1}}}
	for _, name := range []string{"load", "performance"} {
		in := trimtab.Input{Name: name, Value: 1, Source: "prometheus"}
		for _, m := range missing {
			if m == name {
				in = trimtab.Input{Name: name, Source: "prometheus", Missing: "server returned HTTP status 503"}
				e.Hold = &trimtab.Held{Code: codes.HeldMissing, Text: "no " + name + " from prometheus"}
			}
		}
		e.Inputs = append(e.Inputs, in)
	}
	return e
}

func TestAMissingInputIsToldWithTheTimeItWasLastThere(t *testing.T) {
	v := New(Config{Pool: "cpu", Resource: "cpu", Capacity: 1, Round: time.Hour, Workloads: []Workload{{Name: "shop", Mode: trimtab.Act}}})
	lacking := func(now int) []MissingInput {
		p := Pipeline{Time: noon.Add(time.Duration(now) * time.Second)}
		v.AddMissing(&p)
		return p.Inputs
	}
	if m := lacking(0); len(m) != 1 || m[0].Input != "estimate" || m[0].Reason != "none yet" {
		t.Errorf("before the first estimate: %+v", m)
	}
	v.Observe(inputs(1))
	if m := lacking(1); len(m) != 0 {
		t.Errorf("all there: %+v", m)
	}
	v.Observe(inputs(5, "load"))
	v.Observe(inputs(9, "load", "performance"))
	want := noon.Add(time.Second)
	m := lacking(9)
	if len(m) != 2 || m[0].Input != "load" || !m[0].Since.Equal(want) || m[0].Reason != "server returned HTTP status 503" || m[0].Workload != "shop" {
		t.Errorf("%+v", m)
	}
	s := v.Status(noon.Add(10 * time.Second))
	if r := s.Workloads[0]; !strings.HasPrefix(r.State, "held: ") || !r.Since.Equal(want) {
		t.Errorf("%s since %v, want since %v", r.State, r.Since, want)
	}
	v.Observe(inputs(12))
	if m := lacking(12); len(m) != 0 {
		t.Errorf("back again: %+v", m)
	}
	// It is gone again: since then, not since the first time.
	v.Observe(inputs(14, "load"))
	if m := lacking(14); len(m) != 1 || !m[0].Since.Equal(noon.Add(12*time.Second)) {
		t.Errorf("%+v", m)
	}
	if m := lacking(4 * 3600); len(m) != 2 || m[0].Input != "load" || m[1].Input != "estimate" || !m[1].Since.Equal(noon.Add(14*time.Second)) {
		t.Errorf("nothing for hours: %+v", m)
	}
}

func TestAHoldIsToldSinceTheFirstOfAnUnbrokenRowOfPlans(t *testing.T) {
	v := New(Config{Round: time.Second, Workloads: []Workload{{Name: "shop", Mode: trimtab.Act}}})
	hold := func(n int, why string) time.Time {
		e := report(n, .9)
		e.Curve = &trimtab.Curve{Level: .9, Knots: []trimtab.Knot{{Allocation: 1}}}
		v.Observe(e)
		p := at(n)
		if why != "" {
			p.Held = map[string]trimtab.Held{"shop": {Code: codes.HeldMissing, Text: why}}
		}
		v.Observe(p)
		return v.Status(noon.Add(time.Duration(n) * time.Second)).Workloads[0].Since
	}
	second := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }
	for _, c := range []struct {
		n    int
		why  string
		want time.Time
	}{{1, "a", second(1)}, {2, "b", second(1)}, {3, "", time.Time{}}, {4, "a", second(4)}, {5, "a", second(4)}} {
		if got := hold(c.n, c.why); !got.Equal(c.want) {
			t.Errorf("plan %d: since %v, want %v", c.n, got, c.want)
		}
	}
}
