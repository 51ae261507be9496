package console

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// TestWhateverWasLearntIsDrawnInsideTheChart: no place is outside the
// viewBox, and none is NaN.
func TestWhateverWasLearntIsDrawnInsideTheChart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &Explanation{Workload: "w", Share: rapid.Bool().Draw(t, "share"), Curve: &trimtab.Curve{}}
		value := rapid.Float64Range(0, 1e12)
		at := 0.0
		for range rapid.IntRange(1, 8).Draw(t, "knots") {
			lower, more, most := value.Draw(t, "lower"), value.Draw(t, "mean"), value.Draw(t, "upper")
			e.Curve.Knots = append(e.Curve.Knots, trimtab.Knot{Allocation: at, Band: trimtab.Band{Lower: lower, Mean: lower + more, Upper: lower + more + most}})
			at += rapid.Float64Range(1e-9, 1e9).Draw(t, "step")
		}
		for _, p := range []**float64{&e.SLOTarget, &e.Target} {
			if rapid.Bool().Draw(t, "given") {
				v := value.Draw(t, "value")
				*p = &v
			}
		}
		a := trimtab.Units(value.Draw(t, "allocation"))
		e.Allocation = &a
		c := curveChart(e)
		inside(t, c.Line)
		inside(t, c.Band)
		for _, m := range append(c.Marks, c.Levels...) {
			inside(t, m.At+","+m.At)
		}
		if len(c.Across) > 6 || len(c.Up) > 6 {
			t.Fatalf("%d and %d labels", len(c.Across), len(c.Up))
		}
	})
}

func inside(t *rapid.T, points string) {
	for _, p := range strings.Fields(points) {
		for _, s := range strings.Split(p, ",") {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil || math.IsNaN(v) || v < 0 || v > chartWidth {
				t.Fatalf("point %s: %v", p, err)
			}
		}
	}
}

func TestNothingIsDrawnOfWhatIsNotKnown(t *testing.T) {
	if curveChart(&Explanation{}) != nil || historyChart(&Explanation{}, nil, noon) != nil {
		t.Error("a chart of nothing")
	}
}

func TestThePageOfAWorkloadDrawsItsCurveAndItsHistory(t *testing.T) {
	v := testView()
	v.Observe(plan(1, 1.5))
	v.Observe(plan(2, 2))
	_, body, _ := request(t, Handler(v, Options{}), "GET", "/workloads/shop", "")
	for _, want := range []string{`class="band"`, `class="slo"`, `class="has"`, `class="wanted"`, "SLO 95"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in\n%s", want, body)
		}
	}
	if strings.Contains(body, "NaN") || strings.Contains(body, " style=") || strings.Contains(body, "<script") {
		t.Error("the page carries what its content security policy forbids, or no numbers")
	}
}
