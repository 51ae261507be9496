package colocation

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func contributions() *Contributions {
	tail, limit, slack := .2, .87, .1
	return &Contributions{Workload: "shop", Time: noon, Window: 60, Load: 100, MaxLoad: 200, SLO: .25, Quantile: .99, Tail: &tail, Requests: 6000, Levels: 5,
		Servpods: []Servpod{
			{Component: "cart", Host: "a", Sojourn: .01, Weight: .2, Correlation: -.1, Variation: .1, Contribution: -.002},
			{Component: "cart", Host: "b", Sojourn: .04, Weight: .8, Correlation: .9, Variation: .1, Contribution: .072, LoadLimit: &limit, SlackLimit: &slack, Origin: FromHistory, SlackOrigin: Declared},
		},
		Growth: &TailGrowth{Changed: true, Quantile: .99, Before: .1, After: .2, Since: noon, Parts: []GrowthPart{{Component: "cart", Host: "b", Share: .9, Before: .02, After: .04}}},
		Calls:  []Call{{From: "cart", To: "cart", Rate: 2}, {From: "cart", To: "db", Rate: .5}}}
}

func TestContributionsSurviveJSONAndTellTheSlack(t *testing.T) {
	c := contributions()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	var back Contributions
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, &back); diff != "" {
		t.Error(diff)
	}
	if slack, ok := back.Slack(); !ok || math.Abs(slack-.2) > 1e-12 {
		t.Errorf("slack %v, %v: want 0.2", slack, ok)
	}
	back.Tail = nil
	if _, ok := back.Slack(); ok {
		t.Error("without a tail there is a slack")
	}
}

func TestBudgetsKeepTheSLOTogetherAndWhoAddsMoreToTheTailGetsLess(t *testing.T) {
	c := contributions() // an SLO of 250 ms
	c.Servpods = append(c.Servpods, Servpod{Component: "db", Host: "b", Sojourn: .1, Weight: .5, Contribution: .024}, Servpod{Component: "web", Sojourn: .02, Weight: .1})
	want := map[string]float64{"cart": .08 * .25 / 2, "db": .08 * .75 / 2, "web": .08 / 2} // ΣC is .096 without what lowers the tail
	sum := 0.0
	for _, b := range c.Budgets() {
		if math.Abs(float64(b.Time)-want[b.Component]) > 1e-12 {
			t.Errorf("%s %v s, want %v", b.Component, b.Time, want[b.Component])
		}
		sum += float64(b.Time)
		for i := range c.Servpods {
			if c.Servpods[i].Component == b.Component {
				sum += c.Servpods[i].Sojourn
			}
		}
	}
	if len(c.Budgets()) != 3 || math.Abs(sum-float64(c.SLO)) > 1e-12 {
		t.Errorf("%v, with the sojourn times %v s of %v", c.Budgets(), sum, c.SLO)
	}
	c.Servpods = append(c.Servpods, Servpod{Component: "postgresql orders-db", Peer: true, Sojourn: .02, Contribution: .5})
	if b := c.Budgets(); len(b) != 3 || math.Abs(float64(b[1].Time)-.06*.75/2) > 1e-12 {
		t.Errorf("%v: a peer takes time from all, and gets none", b)
	}
	c.Servpods = c.Servpods[2:3]
	if b := c.Budgets(); len(b) != 1 || math.Abs(float64(b[0].Time)-.15) > 1e-12 {
		t.Errorf("%v: the only one has all of it", b)
	}
	if c.Servpods[0].Sojourn = 1; c.Budgets()[0].Time != 0 {
		t.Errorf("%v: nothing is left", c.Budgets())
	}
	if c.SLO = 0; c.Budgets() != nil {
		t.Errorf("%v without an SLO", c.Budgets())
	}
}

func TestContributionsThatAreNotFiniteNotBoundedOrNotInOrderAreRefused(t *testing.T) {
	nan, inf, negative, two := math.NaN(), math.Inf(1), -1.0, 2.0
	for name, spoil := range map[string]func(c *Contributions){
		"no workload":           func(c *Contributions) { c.Workload = "" },
		"no time":               func(c *Contributions) { c.Time = time.Time{} },
		"load":                  func(c *Contributions) { c.Load = nan },
		"largest load":          func(c *Contributions) { c.MaxLoad = inf },
		"SLO":                   func(c *Contributions) { c.SLO = -1 },
		"slack":                 func(c *Contributions) { c.SLO = 1e-320; c.Tail = &two },
		"quantile":              func(c *Contributions) { c.Quantile = 1.5 },
		"tail":                  func(c *Contributions) { c.Tail = &nan },
		"levels":                func(c *Contributions) { c.Levels = -1 },
		"too many":              func(c *Contributions) { c.Servpods = make([]Servpod, MaxServpods+1) },
		"order":                 func(c *Contributions) { slices.Reverse(c.Servpods) },
		"twice":                 func(c *Contributions) { c.Servpods[1] = c.Servpods[0] },
		"no component":          func(c *Contributions) { c.Servpods[0].Component = "" },
		"sojourn":               func(c *Contributions) { c.Servpods[0].Sojourn = inf },
		"weight":                func(c *Contributions) { c.Servpods[0].Weight = 1.1 },
		"correlation":           func(c *Contributions) { c.Servpods[0].Correlation = -1.1 },
		"contribution":          func(c *Contributions) { c.Servpods[0].Contribution = nan },
		"loadlimit":             func(c *Contributions) { c.Servpods[0].LoadLimit = &two },
		"slacklimit":            func(c *Contributions) { c.Servpods[0].SlackLimit = &negative },
		"origin":                func(c *Contributions) { c.Servpods[0].Origin = "hearsay" },
		"growth":                func(c *Contributions) { c.Growth.After = inf },
		"share of the growth":   func(c *Contributions) { c.Growth.Parts[0].Share = 0 },
		"too many parts of it":  func(c *Contributions) { c.Growth.Parts = make([]GrowthPart, MaxGrowthParts+1) },
		"too many calls":        func(c *Contributions) { c.Calls = make([]Call, MaxCalls+1) },
		"call of nobody":        func(c *Contributions) { c.Calls[0].To = "" },
		"call by nobody":        func(c *Contributions) { c.Calls[0].From = "" },
		"long name of a caller": func(c *Contributions) { c.Calls[1].From = strings.Repeat("d", 254) },
		"order of calls":        func(c *Contributions) { slices.Reverse(c.Calls) },
		"one call twice":        func(c *Contributions) { c.Calls[1] = c.Calls[0] },
		"no calls of a call":    func(c *Contributions) { c.Calls[0].Rate = 0 },
		"rate of calls":         func(c *Contributions) { c.Calls[0].Rate = inf },
		"part without its name": func(c *Contributions) { c.Growth.Parts[0].Component = "" },
	} {
		c := contributions()
		spoil(c)
		if err := c.Validate(); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestContributionsOfBeforeThereWereCallsCanBeRead(t *testing.T) {
	var c Contributions
	if err := json.Unmarshal([]byte(`{"workload":"shop","time":"2026-01-02T12:00:00Z","window_s":4,"load":1,"requests":4,"levels":0}`), &c); err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil || c.Calls != nil {
		t.Errorf("%v: %+v", err, c.Calls)
	}
}
