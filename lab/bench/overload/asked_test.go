package main

import (
	"strings"
	"testing"
)

// resultAt is one of a load with a row of weights, of HAProxy, and of the gate.
func resultAt(load float64, gate row) *result {
	slow := 800.0
	gate.Name, gate.Cost = rowGate, 1
	return &result{about: about{Service: "node"}, Load: load, Rows: []row{
		{Name: rowWeights, figures: figures{Goodput: 0.1, P99: &slow}, Cost: 1},
		{Name: rowHAProxy, figures: figures{Goodput: 0.88}, Cost: 1}, {Name: rowManaged, Missing: "no limit"}, gate}}
}

func TestEachAskedFigureIsMetOrNot(t *testing.T) {
	fast, share, soon := 170.0, 0.995, 250.0
	good := row{figures: figures{Goodput: 0.92, P99: &fast, Critical: &share, First: &soon}}
	out := asked([]*result{resultAt(2, good)})
	if len(out) != 2+7 || strings.Contains(strings.Join(out, "\n"), "NOT") {
		t.Errorf("all are met: %q", out)
	}
	late, less, slow := 900.0, 0.98, 180.0
	bad := row{figures: figures{Goodput: 0.1, P99: &slow, Critical: &less, First: &late, Late: 1}, Others: 0.5}
	if text := strings.Join(asked([]*result{resultAt(2, bad)}), "\n"); strings.Count(text, "NOT met (doubtful") != 7 {
		t.Errorf("none is met: %s", text)
	}
}

func TestAFigureIsDoubtfulIfTheRowThatItIsComparedWithIs(t *testing.T) {
	p99, busy := 100.0, 1.5
	r := resultAt(2, row{figures: figures{Goodput: 0.95, P99: &p99}})
	r.Rows[0].Busy = &busy
	if text := strings.Join(asked([]*result{r}), "\n"); strings.Count(text, "met (doubtful") != 2 {
		t.Errorf("the service had 1.5 times its cores in the row of weights: %s", text)
	}
	r.Rows[0].Busy, r.Rows[1].Cost = nil, 0.6
	if text := strings.Join(asked([]*result{r}), "\n"); strings.Count(text, "doubtful") != 1 {
		t.Errorf("a request took .6 times the CPU in the row of HAProxy: %s", text)
	}
}

func TestAtALoadThatFitsRefusalsAreCounted(t *testing.T) {
	for shed, want := range map[float64]string{0.0009: ": met", 0.0011: ": NOT met"} {
		out := asked([]*result{resultAt(0.8, row{figures: figures{Goodput: 0.9, Shed: shed}})})
		if len(out) != 2+2 || !strings.HasSuffix(out[3], want) {
			t.Errorf("%v refused: %q", shed, out)
		}
	}
}

func TestWhatWasNotMeasuredIsNeitherMetNorMissed(t *testing.T) {
	r := resultAt(3, row{figures: figures{Goodput: 0.9}})
	r.Rows = r.Rows[3:]
	if text := strings.Join(asked([]*result{r}), "\n"); strings.Count(text, "no such figure") != 2 || strings.Contains(text, "NOT") {
		t.Errorf("no critical request, no refusal, no other row: %s", text)
	}
	if out := asked([]*result{{Rows: []row{{Name: rowHAProxy}}}}); out != nil {
		t.Errorf("no row of trimtab: %q", out)
	}
}
