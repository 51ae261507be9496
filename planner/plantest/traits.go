package plantest

import (
	"cmp"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// wrapper is a policy that embeds another, as to change one method.
type wrapper struct{ policy.Policy }

// Name is another one.
func (w wrapper) Name() string { return "wrapped " + w.Policy.Name() }

// wrapped checks that a policy answers the same in a wrapper.
func wrapped(t *rapid.T, o policy.Policy) {
	p := draw(t)
	if a, b := answers(t, o, p), answers(t, wrapper{o}, p); a != b {
		t.Fatalf("%s\nand in a wrapper\n%s", a, b)
	}
}

// answers is all that a policy answers about a problem.
func answers(t *rapid.T, o policy.Policy, p *policy.Problem) string {
	s, its := solve(t, o, p), o.Traits()
	out := fmt.Sprintf("%+v, weighs %v, serves %v, caution %v", s, its.Weighs, its.Serves, its.Caution)
	if its.Expect != nil {
		out += fmt.Sprintf(", expects %v", its.Expect(trimtab.Band{Lower: 0.2, Mean: 0.4, Upper: 0.7}, 100))
	}
	if its.Scorer != nil {
		out += fmt.Sprintf(", scores %v", its.Scorer(p)(s.Units))
	}
	if its.Share != nil {
		shared, err := its.Share(question(p))
		out += fmt.Sprintf(", shares %+v, %v", shared, err)
	}
	return out
}

func counted(t *rapid.T, o policy.Policy) {
	its := o.Traits()
	if !(its.Caution >= 0 && its.Caution <= 1) {
		t.Fatalf("caution %v", its.Caution)
	}
	if its.Expect == nil {
		return
	}
	v := rapid.SliceOfN(rapid.Float64Range(0, 2), 3, 3).Draw(t, "band")
	slices.Sort(v)
	b, reports := trimtab.Band{Lower: v[0], Mean: v[1], Upper: v[2]}, rapid.IntRange(0, 2000).Draw(t, "reports")
	if e := its.Expect(b, reports); e < b.Lower && !near(e, b.Lower) || e > b.Upper && !near(e, b.Upper) {
		t.Fatalf("%v of %+v", e, b)
	}
}

// rising draws a problem with enough for all, whose curves are certain and do not fall, and whose
// utilities end at the SLO.
func rising(t *rapid.T) *policy.Problem {
	p := certain(draw(t))
	p.Units, p.Groups = 0, nil
	for i := range p.Workloads {
		w := &p.Workloads[i]
		w.Utility, w.Group, w.Guarantee = policy.Linear(w.SLO), "", 0
		p.Units += w.Max
		if w.Curve == nil {
			continue
		}
		var bands []trimtab.Band
		for _, k := range w.Curve.Knots {
			bands = append(bands, k.Band)
		}
		slices.SortFunc(bands, func(a, b trimtab.Band) int { return cmp.Compare(a.Mean, b.Mean) })
		for k := range bands {
			w.Curve.Knots[k].Band = bands[k]
		}
		w.Demand = policy.DemandOf(w.Curve, w.SLO, p.Unit, w.Min, w.Max).Upper
	}
	return p
}

func serves(t *rapid.T, o policy.Policy) {
	its := o.Traits()
	if !its.Serves || its.Scorer == nil {
		return
	}
	p := rising(t)
	enough, most := make([]int, len(p.Workloads)), make([]int, len(p.Workloads))
	for i, w := range p.Workloads {
		enough[i], most[i] = w.Demand, w.Max
		if w.Curve == nil {
			enough[i] = w.Max
		}
	}
	score := its.Scorer(p)
	if a, b := score(enough), score(most); a < b && !near(a, b) {
		t.Fatalf("%v with what the SLOs need, %v, and %v with all, %v", a, enough, b, most)
	}
}

// weighs changes the workloads' entitlements, demands and present amounts: their utilities must
// stay the same.
func weighs(t *rapid.T, o policy.Policy) {
	its := o.Traits()
	if !its.Weighs {
		return
	}
	p, other := draw(t), draw(t)
	units, changed := solve(t, o, p).Units, copyOf(p)
	for i := range changed.Workloads {
		w, from := &changed.Workloads[i], other.Workloads[i%len(other.Workloads)]
		w.Weight, w.Current, w.Demand, w.Group, w.Guarantee = from.Weight, from.Current, from.Demand, from.Group, from.Guarantee
	}
	changed.Units, changed.Groups = p.Units+other.Units, other.Groups
	if a, b := its.Scorer(p)(units), its.Scorer(changed)(units); a != b {
		t.Fatalf("%v scores %v, and %v with other entitlements and demands", units, a, b)
	}
}

// question asks the same of one resource.
func question(p *policy.Problem) *policy.Question {
	q := &policy.Question{Groups: p.Groups, Resources: []policy.Pooled{{Name: "cpu", Unit: p.Unit, Capacity: float64(max(1, p.Units)), Units: p.Units, Hosts: p.Hosts}}}
	for _, w := range p.Workloads {
		q.Workloads = append(q.Workloads, policy.Claim{Name: w.Name, Group: w.Group, Weight: w.Weight,
			Wants: []policy.Want{{Min: w.Min, Max: w.Max, Current: w.Current, Demand: w.Demand, Guarantee: w.Guarantee, Parts: w.Parts}}})
	}
	return q
}

func shares(t *rapid.T, o policy.Policy) {
	share := o.Traits().Share
	if share == nil {
		return
	}
	p := draw(t)
	if rapid.Bool().Draw(t, "hosts") {
		p = drawHosts(t)
	}
	s := solve(t, o, p)
	got, err := share(question(p))
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Units {
		if got.Units[i][0] != s.Units[i] {
			t.Fatalf("%v of one resource, %v as a problem", got.Units, s.Units)
		}
	}
}
