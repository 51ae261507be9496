package view

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
)

func called(pairs ...string) (out []colocation.Call) {
	for _, p := range pairs {
		from, to, _ := strings.Cut(p, ">")
		out = append(out, colocation.Call{From: from, To: to, Rate: 1})
	}
	slices.SortFunc(out, func(a, b colocation.Call) int { return a.Compare(&b) })
	return out
}

func layersIn(g *CallGraph) map[string]int {
	out := map[string]int{}
	for _, n := range g.Nodes {
		out[n.Component] = n.Layer
	}
	return out
}

func TestTheLayerOfAComponentIsTheLongestWayToIt(t *testing.T) {
	for name, c := range map[string]struct {
		calls []colocation.Call
		want  map[string]int
		back  string
	}{
		"a chain with a short cut": {called("web>cart", "cart>db", "web>db"), map[string]int{"web": 0, "cart": 1, "db": 2}, ""},
		"a callee that calls back": {called("web>cart", "cart>db", "db>cart"), map[string]int{"web": 0, "cart": 1, "db": 2}, "db>cart"},
		"a cycle without an entry": {called("b>a", "a>b"), map[string]int{"a": 0, "b": 1}, "b>a"},
		"a call of itself":         {called("a>a", "a>b"), map[string]int{"a": 0, "b": 1}, ""},
		"two entries":              {called("b>c", "a>b", "z>c"), map[string]int{"a": 0, "z": 0, "b": 1, "c": 2}, ""},
	} {
		g := drawn(&colocation.Contributions{Calls: c.calls})
		if diff := cmp.Diff(c.want, layersIn(g)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for _, e := range g.Edges {
			if e.Back != (e.From+">"+e.To == c.back) {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
}

func TestWithoutCallsThereIsNoGraph(t *testing.T) {
	if g := drawn(&colocation.Contributions{Servpods: []colocation.Servpod{{Component: "web"}}, Calls: called("web>web")}); g != nil {
		t.Errorf("%+v", g)
	}
}

func TestANodeTellsWhatItsComponentAddsOnAllHosts(t *testing.T) {
	g := drawn(&colocation.Contributions{Calls: called("web>db"),
		Servpods: []colocation.Servpod{{Component: "db", Host: "a", Sojourn: .01, Contribution: .02}, {Component: "db", Host: "b", Sojourn: .02, Contribution: .04}, {Component: "web", Sojourn: .1, Contribution: .02}},
		Growth:   &colocation.TailGrowth{Changed: true, Parts: []colocation.GrowthPart{{Component: "db", Host: "a", Share: .4}, {Component: "db", Host: "b", Share: .5}}}})
	db, web := g.Nodes[0], g.Nodes[1]
	if db.Component != "db" || db.Share != "75%" || db.Heat != 8 || db.Grew != "90%" || web.Share != "25%" || web.Grew != "" {
		t.Errorf("%+v\n%+v", db, web)
	}
	if want := "Call graph of 2 components; of all contributions: db 75%, web 25%; the tail grew in db"; g.Label != want || g.Grew != "db" {
		t.Errorf("%q %q, want %q", g.Label, g.Grew, want)
	}
	if db.X <= web.X || db.Y != web.Y {
		t.Errorf("web at %d, %d, db at %d, %d", web.X, web.Y, db.X, db.Y)
	}
}

func TestOfManyComponentsThoseThatMatterAreDrawn(t *testing.T) {
	c := &colocation.Contributions{}
	for i := range 90 {
		name := fmt.Sprintf("c%02d", i)
		c.Calls = append(c.Calls, colocation.Call{From: "all", To: name, Rate: 1})
		c.Servpods = append(c.Servpods, colocation.Servpod{Component: name, Contribution: float64(i)})
	}
	c.Growth = &colocation.TailGrowth{Changed: true, Parts: []colocation.GrowthPart{{Component: "c00", Share: .5}}}
	g := drawn(c)
	if len(g.Nodes) != shownNodes || g.More != 91-shownNodes || g.Nodes[0].Component != "c00" || g.Nodes[1].Component != "c89" {
		t.Errorf("%d nodes, %d more, first %+v", len(g.Nodes), g.More, g.Nodes[:2])
	}
}

// drawnContributions are any that are valid.
func drawnContributions(rt *rapid.T) *colocation.Contributions {
	name := rapid.OneOf(rapid.StringMatching("[a-h]"), rapid.StringMatching("[a-z]{2}"), rapid.StringN(1, 60, 253))
	c := &colocation.Contributions{Workload: "shop", Time: time.Unix(1, 0)}
	pods, calls := map[string]bool{}, map[[2]string]bool{}
	for range rapid.IntRange(0, 60).Draw(rt, "pods") {
		pods[name.Draw(rt, "component")] = true
	}
	for _, p := range slices.Sorted(maps.Keys(pods)) {
		c.Servpods = append(c.Servpods, colocation.Servpod{Component: p, Sojourn: rapid.Float64Range(0, math.MaxFloat64).Draw(rt, "sojourn"), Contribution: rapid.Float64Range(-math.MaxFloat64, math.MaxFloat64).Draw(rt, "contribution")})
	}
	for range rapid.IntRange(0, colocation.MaxCalls).Draw(rt, "calls") {
		calls[[2]string{name.Draw(rt, "from"), name.Draw(rt, "to")}] = true
	}
	for x := range calls {
		c.Calls = append(c.Calls, colocation.Call{From: x[0], To: x[1], Rate: 1})
	}
	slices.SortFunc(c.Calls, func(a, b colocation.Call) int { return a.Compare(&b) })
	if rapid.Bool().Draw(rt, "grew") {
		c.Growth = &colocation.TailGrowth{Changed: true, Parts: []colocation.GrowthPart{{Component: name.Draw(rt, "grew in"), Share: 1}}}
	}
	return c
}

// Whatever is said: each call leads right but for those that close a cycle, a
// layer is one after that of a caller, and nodes are inside and apart.
func TestAnyCallGraphIsLaidOutInBounds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := drawnContributions(rt)
		if err := c.Validate(); err != nil {
			rt.Fatal(err)
		}
		g := drawn(c)
		if again := drawn(c); cmp.Diff(g, again, cmpopts.IgnoreUnexported(Node{})) != "" {
			rt.Fatal("drawn twice, it differs")
		}
		if g == nil {
			return
		}
		if len(g.Nodes) == 0 || len(g.Nodes) > shownNodes || len(g.Edges) > colocation.MaxCalls {
			rt.Fatalf("%d nodes, %d edges", len(g.Nodes), len(g.Edges))
		}
		at := map[[2]int]bool{}
		for _, n := range g.Nodes {
			if n.Heat < 0 || n.Heat > 10 || n.X < 0 || n.Y < 0 || n.X+nodeWidth > g.Width || n.Y+nodeHeight > g.Height || at[[2]int{n.X, n.Y}] {
				rt.Fatalf("%+v in %d x %d", n, g.Width, g.Height)
			}
			at[[2]int{n.X, n.Y}] = true
		}
		layers := layersIn(g)
		for _, e := range g.Edges {
			if (layers[e.From] < layers[e.To]) == e.Back {
				rt.Fatalf("%+v from layer %d to %d", e, layers[e.From], layers[e.To])
			}
		}
	})
}

// The slow way: go along the calls until no layer changes.
func TestLayersAreThoseOfTheSlowWay(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		calls := slices.DeleteFunc(drawnContributions(rt).Calls, func(x colocation.Call) bool { return x.From == x.To })
		got, back := layersOf(calls)
		want := map[string]int{}
		for i, changed := 0, true; changed; i++ {
			if changed = false; i > len(calls)+1 {
				rt.Fatal("without the calls back there still is a cycle")
			}
			for j, x := range calls {
				want[x.From], want[x.To] = max(want[x.From], 0), max(want[x.To], 0)
				if !back[j] && want[x.To] <= want[x.From] {
					want[x.To], changed = want[x.From]+1, true
				}
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// drawn is a graph of components of which none is a workload of its own.
func drawn(c *colocation.Contributions) *CallGraph {
	return graphOf(c, func(string) string { return "" })
}

func TestComponentsThatAreWorkloadsAreMarkedWhereTheyAreShort(t *testing.T) {
	v := stateView()
	p := plan(1, 2)
	need := 3.0
	p.Actions[0].Workload, p.Actions[0].Why.Demand = "fine", &need
	v.Observe(p)
	v.Observe(&trimtab.Holding{Host: "h2", Time: noon, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Host: "h2", Workload: "fine", Resource: "cpu"}, Knob: "cgroup v2 fine", Now: trimtab.Units(2), Max: 4}}})
	g := v.CallGraph(&colocation.Contributions{Calls: called("db>other", "fine>misses", "web>db", "web>fine", "web>learning")}, noon)
	got := map[string]string{}
	for _, n := range g.Nodes {
		got[n.Component] = n.Short
	}
	want := map[string]string{"db": "", "other": "", "web": "", "learning": "", "misses": "misses its SLO", "fine": "has 2 of the 3 cores that its SLO needs"}
	if !maps.Equal(got, want) || g.Short != "fine, misses" || !strings.HasSuffix(g.Label, "short of what they need: fine, misses") {
		t.Errorf("%q, %q, %q", got, g.Short, g.Label)
	}
}
