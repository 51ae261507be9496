package site

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/endtoend"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

func shopWith(t *testing.T, head string) *config.Config {
	t.Helper()
	text := head + `
pool: {cpu: 8}
workloads:
  - name: web
    slo: {latency: 100ms, fraction: 0.9}
    weight: 3
    group: shop/front
    guarantee: 2
    knob: {cgroup: web, cpu: {min: 1, max: 4}}
  - name: api
    slo: {latency: 100ms, fraction: 0.9}
    knob: {cgroup: api, cpu: {min: 1, max: 4}}
`
	c, err := config.Parse("shop.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryObjectiveOfTheFileIsAPolicyOfThatName(t *testing.T) {
	for _, name := range []string{"njc", "egalitarian", "social", "nash", "resource-fair", "drf", "sum(weight * u)", "min(u / weight)"} {
		cfg := shopWith(t, "objective: "+name)
		p, err := PlannerConfig(cfg)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := p.Policy.Name(); got != name {
			t.Errorf("%s: policy %s", name, got)
		}
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatAMoveCostsUnlessTheFileSaysSoIsThatOfTheObjective(t *testing.T) {
	for objective, want := range map[string]float64{"social": 0.05, "nash": 0.05, "sum(u)": 0.05, config.EndToEnd: endtoend.DefaultMoveCost} {
		for planning, want := range map[string]float64{"entry: web": want, "entry: web, move_cost: 0.05": 0.05, "entry: web, move_cost: 0": 0} {
			p, err := PolicyOf(shopWith(t, "objective: "+objective+"\nplanning: {"+planning+"}"))
			if err != nil {
				t.Fatal(err)
			}
			if got := moveCost(p); got != want {
				t.Errorf("%s, %s: %v, want %v", objective, planning, got, want)
			}
		}
	}
}

// moveCost is that of a policy that has one, else -1.
func moveCost(p policy.Policy) float64 {
	switch p := p.(type) {
	case endtoend.Policy:
		return p.MoveCost
	case welfare.TieBreak:
		switch o := p.Objective.(type) {
		case welfare.Social:
			return o.MoveCost
		case welfare.Nash:
			return o.MoveCost
		case welfare.Own:
			return o.MoveCost
		}
	}
	return -1
}

func TestTheOperatorsObjectiveCountsAShareOfItsMost(t *testing.T) {
	p, err := PlannerConfig(shopWith(t, "objective: sum(weight * u)"))
	if err != nil {
		t.Fatal(err)
	}
	// web weighs 3, api 1: what web is worth at its SLO is the most there is.
	if o := p.Policy.(welfare.TieBreak).Objective.(welfare.Own); o.Scale != 3 || o.Least {
		t.Errorf("%+v", o)
	}
	if web, api := p.Workloads[0].Worth(0.9), p.Workloads[1].Worth(0.9); web != 1 || api < 0.333 || api > 0.334 {
		t.Errorf("web is worth %v, api %v", web, api)
	}
}

func TestGroupsGuaranteesAndPlanningReachThePlanner(t *testing.T) {
	cfg := shopWith(t, "objective: njc\ngroups: [{path: shop, weight: 2, guarantee: 3}]\nplanning: {move_cost: 0.3}")
	p, err := PlannerConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if g := p.Groups; len(g) != 1 || g[0].Path != "shop" || g[0].Weight != 2 || g[0].Guarantee != 3 {
		t.Errorf("groups %+v", p.Groups)
	}
	if w := p.Workloads[0]; w.Group != "shop/front" || w.Guarantee != 2 {
		t.Errorf("%+v", w)
	}
	// A reload that changes them is one that the planner must hear of.
	if got := restarted(t, cfg, shopWith(t, "objective: njc")); !slices.Equal(got, []string{"planner"}) {
		t.Errorf("restarted: %v", got)
	}
}

func TestGuaranteesOfFurtherResourcesReachThePlanner(t *testing.T) {
	read := func(name string) (*config.Config, planner.Config) {
		t.Helper()
		text, err := os.ReadFile("../../config/testdata/good/several.yaml")
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Parse("several.yaml", []byte(strings.Replace(string(text), "llc: 4", "llc: "+name, 1)))
		if err != nil {
			t.Fatal(err)
		}
		p, err := PlannerConfig(cfg)
		if err == nil {
			err = p.Validate()
		}
		if err != nil {
			t.Fatal(err)
		}
		return cfg, p
	}
	cfg, p := read("4")
	if g := p.Groups[0]; g.Others["memory"] != 8<<30 || len(g.Others) != 1 {
		t.Errorf("group %+v", g)
	}
	if w := p.Workloads[0]; w.Guarantee != 1 || w.Others["memory"].Guarantee != 2<<30 || w.Others["llc"].Guarantee != 4 {
		t.Errorf("%+v", w)
	}
	other, _ := read("5")
	if got := restarted(t, cfg, other); !slices.Equal(got, []string{"planner"}) {
		t.Errorf("restarted: %v", got)
	}
}

func TestAWorkloadThatIsOnlyWatchedNeedsNoSLO(t *testing.T) {
	c, err := config.Parse("shop.yaml", []byte("pool: {cpu: 4}\nworkloads: [{name: shop, mode: off}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := PlannerConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
}

// Of a workload whose memory alone is planned neither load nor performance is missing, unless it has an SLO.
func TestMemoryAloneIsKnownToAnalyzerAndConsole(t *testing.T) {
	cfg, err := config.Parse("alone.yaml", []byte("pool: {cpu: 8}\nworkloads:\n  - {name: a, mode: act, knob: {cgroup: a, memory: {max: 4GiB}}}\n  - {name: b, slo: {latency: 1s, fraction: 0.9}, knob: {cgroup: b, memory: {max: 4GiB}}}\n  - {name: c, slo: {latency: 1s, fraction: 0.9}, knob: {cgroup: c, cpu: {max: 2}, memory: {max: 4GiB}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := AnalyzerConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	v := viewConfig(cfg)
	for i, want := range []struct{ unasked, alone bool }{{true, true}, {false, true}, {false, false}} {
		if a.Workloads[i].MemoryAlone != want.unasked || v.Workloads[i].MemoryAlone != want.alone {
			t.Errorf("%s: %v, %v", v.Workloads[i].Name, a.Workloads[i].MemoryAlone, v.Workloads[i].MemoryAlone)
		}
	}
}
