package sizing

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// place is an instance on a node of 1,000 that has a limit and wants another one.
func place(now, want float64) Place {
	return Place{Size: &Size{Limit: want}, Node: "n1", Has: 1000, Now: now}
}

func TestARaiseWithoutRoomIsSaidAndHoldsUpNobody(t *testing.T) {
	short, large, small, elsewhere, none := place(400, 500), place(300, 900), place(200, 220), place(100, 5000), place(100, 200)
	short.Soon = true
	elsewhere.Node, elsewhere.Has = "n2", 6000
	none.Node = "" // in no cluster
	Fit([]Place{large, elsewhere, small, short, none})
	for name, c := range map[string]struct {
		p     Place
		limit float64
		why   string
	}{
		"short of memory": {short, 500, ""}, "the least goes first": {small, 200, "node n1 has room for 0B more"}, "too large": {large, 300, "node n1 has room for"},
		"another node": {elsewhere, 5000, ""}, "no cluster": {none, 200, ""},
	} {
		if c.p.Limit != c.limit || !strings.Contains(c.p.Why, c.why) || (c.why != "") != (c.p.Wanted > 0) {
			t.Errorf("%s: %v %q, wanted %v", name, c.p.Limit, c.p.Why, c.p.Wanted)
		}
	}
}

func TestAClusterBoundsALimitAndSaysWhy(t *testing.T) {
	full, used := place(100, 300), place(500, 100)
	full.Most, full.By = 100, "its node, which had no room (deferred: memory)"
	used.Least, used.Note = 500, "what is in use is not known"
	Fit([]Place{full, used})
	if full.Limit != 100 || full.Wanted != 300 || !strings.Contains(full.Why, "deferred: memory) allows no more") {
		t.Errorf("%+v", full.Size)
	}
	if used.Limit != 500 || used.Wanted != 100 || !strings.Contains(used.Why, "is not known") {
		t.Errorf("%+v", used.Size)
	}
}

func TestRaisesNeverTakeMoreThanANodeHasAndNothingFallsForThem(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var all []Place
		before := map[string]float64{}
		for i := range rapid.IntRange(1, 12).Draw(r, "pods") {
			p := place(rapid.Float64Range(1, 300).Draw(r, "now"), rapid.Float64Range(1, 600).Draw(r, "want"))
			p.Node, p.Soon = fmt.Sprint(i%3), rapid.Bool().Draw(r, "soon")
			before[p.Node] += p.Now
			all = append(all, p)
		}
		want := make([]float64, len(all))
		for i := range all {
			want[i] = all[i].Limit
		}
		Fit(all)
		after := map[string]float64{}
		for i, p := range all {
			after[p.Node] += max(p.Limit, p.Now)
			if p.Limit > want[i] || p.Limit < min(p.Now, want[i]) {
				r.Fatalf("%v becomes %v, wanted %v", p.Now, p.Limit, want[i])
			}
		}
		for node, sum := range after {
			if sum > max(before[node], 1000)+1e-6 {
				r.Fatalf("node %s has %v, %v before", node, sum, before[node])
			}
		}
	})
}
