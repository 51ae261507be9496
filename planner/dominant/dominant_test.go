package dominant_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/audit"
	"github.com/trimtab/trimtab/planner/dominant"
	"github.com/trimtab/trimtab/planner/policy"
)

func share(t interface {
	Helper()
	Fatal(args ...any)
}, q *policy.Question) policy.Shares {
	t.Helper()
	s, err := dominant.Policy{}.Share(q)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pooled is a resource of so many units, all of which may be given out.
func pooled(name string, units int) policy.Pooled {
	return policy.Pooled{Name: name, Unit: 1, Capacity: float64(units), Units: units}
}

// claim demands so many units of each resource, and may have all of it.
func claim(name string, weight float64, demand ...int) policy.Claim {
	c := policy.Claim{Name: name, Weight: weight}
	for _, d := range demand {
		c.Wants = append(c.Wants, policy.Want{Max: d, Demand: d})
	}
	return c
}

// NSDI 2011, section 4.1: 9 cores and 18 GB; tasks of A need (1, 4), of B
// (3, 1): A runs three tasks and B two.
func TestTheExampleOfDRF(t *testing.T) {
	q := &policy.Question{Resources: []policy.Pooled{pooled("cpu", 9000), pooled("memory", 18000)},
		Workloads: []policy.Claim{claim("a", 1, 4500, 18000), claim("b", 1, 9000, 3000)}}
	s := share(t, q)
	if got := fmt.Sprint(s.Units); got != "[[3000 12000] [6000 2000]]" {
		t.Errorf("units %v, want 3 tasks of (1, 4) and 2 of (3, 1)", got)
	}
	if s.Binding[0][0].String() != "capacity: cpu" || s.Binding[1][1].String() != "capacity: cpu" {
		t.Errorf("binding %v: the cores are used up", s.Binding)
	}
}

func TestWhatIsLeftAfterTheDemandsIsSharedToo(t *testing.T) {
	q := &policy.Question{Resources: []policy.Pooled{pooled("cpu", 100), pooled("memory", 100)},
		Workloads: []policy.Claim{claim("a", 1, 10, 20), claim("b", 3, 30, 10)}}
	for i := range q.Workloads {
		for r := range q.Workloads[i].Wants {
			q.Workloads[i].Wants[r].Max = 100
		}
	}
	s := share(t, q)
	// From (0.2, 0.3) on by 1 : 3, until memory or cpu is full.
	used := []int{s.Units[0][0] + s.Units[1][0], s.Units[0][1] + s.Units[1][1]}
	if max(used[0], used[1]) != 100 || s.Units[0][1] <= 20 || s.Units[1][0] <= 30 {
		t.Errorf("units %v: nothing is full, or somebody got no more than its demand", s.Units)
	}
	if s.Value != 1 {
		t.Errorf("value %v: all demands are met", s.Value)
	}
}

func TestADemandIsMetBeforeAnybodyGetsMoreThanItsOwn(t *testing.T) {
	q := &policy.Question{Resources: []policy.Pooled{pooled("cpu", 100)}, Workloads: []policy.Claim{claim("a", 1, 20), claim("b", 1, 70)}}
	q.Workloads[0].Wants[0].Max = 100
	if s := share(t, q); s.Units[1][0] != 70 || s.Units[0][0] != 30 {
		t.Errorf("units %v: b's demand comes before a's surplus", s.Units)
	}
}

// What a member of a group leaves goes to its siblings first.
func TestAGroupKeepsWhatItsMembersLeave(t *testing.T) {
	q := &policy.Question{Resources: []policy.Pooled{pooled("cpu", 120)},
		Workloads: []policy.Claim{claim("a", 1, 10), claim("b", 1, 120), claim("c", 1, 120)}}
	for i, group := range []string{"shop", "shop", "batch/night"} {
		q.Workloads[i].Group = group
	}
	if s := share(t, q); fmt.Sprint(s.Units) != "[[10] [50] [60]]" {
		t.Errorf("units %v, want half of the pool for each group", s.Units)
	}
	q.Groups = []policy.Group{{Path: "shop", Weight: 2}}
	if s := share(t, q); fmt.Sprint(s.Units) != "[[10] [70] [40]]" {
		t.Errorf("units %v, want two thirds for shop", s.Units)
	}
}

// A group must not wait for a member that is blocked (SoCC 2013, section 3.2).
func TestABlockedMemberDoesNotHoldItsGroupBack(t *testing.T) {
	q := &policy.Question{Resources: []policy.Pooled{pooled("cpu", 100), pooled("memory", 100)},
		Workloads: []policy.Claim{claim("a", 1, 0, 100), claim("b", 1, 100, 0), claim("c", 2, 0, 100)}}
	q.Workloads[0].Group, q.Workloads[1].Group = "g", "g"
	s := share(t, q)
	// Memory is full when a has 20 and c 80; b goes on alone.
	if s.Units[1][0] != 100 || s.Units[0][1]+s.Units[2][1] != 100 {
		t.Errorf("units %v", s.Units)
	}
}

func TestAGuaranteeComesBeforeTheWeights(t *testing.T) {
	q := &policy.Question{Resources: []policy.Pooled{pooled("cpu", 100), pooled("memory", 1000)},
		Workloads: []policy.Claim{claim("a", 1, 60, 60), claim("b", 9, 100, 100)}}
	q.Workloads[0].Wants[0].Guarantee = 40
	if s := share(t, q); s.Units[0][0] != 40 || s.Units[1][0] != 60 {
		t.Errorf("units %v, want 40 for a", s.Units)
	}
	q.Workloads[0].Wants[0].Guarantee = 80
	if s := share(t, q); s.Units[0][0] != 60 {
		t.Errorf("units %v, want what a demands, not what it was guaranteed", s.Units)
	}
	q.Workloads[0].Wants[0].Guarantee, q.Workloads[0].Group = 0, "g"
	q.Groups = []policy.Group{{Path: "g", Weight: 1, Guarantee: 50}}
	if s := share(t, q); s.Units[0][0] != 50 {
		t.Errorf("units %v, want the group's 50 for its only member", s.Units)
	}
}

func TestAGuaranteeOfAFurtherResourceComesBeforeTheWeights(t *testing.T) {
	q := &policy.Question{Resources: []policy.Pooled{pooled("cpu", 1000), pooled("memory", 100), pooled("llc", 100)},
		Workloads: []policy.Claim{claim("a", 1, 60, 60, 60), claim("b", 9, 100, 100, 100)}}
	q.Workloads[0].Wants[1].Guarantee = 40
	if s := share(t, q); s.Units[0][1] != 40 || s.Units[1][1] != 60 {
		t.Errorf("units %v, want 40 of memory for a", s.Units)
	}
	q.Workloads[0].Wants[1].Guarantee, q.Workloads[0].Group = 0, "g"
	q.Groups = []policy.Group{{Path: "g", Weight: 1, Others: []int{0, 50}}}
	if s := share(t, q); s.Units[0][2] != 50 || s.Units[1][2] != 50 {
		t.Errorf("units %v, want the group's 50 of llc for its only member", s.Units)
	}
	q.Groups[0].Others = []int{70}
	if s := share(t, q); s.Units[0][1] != 60 {
		t.Errorf("units %v, want the 60 of memory that a demands, not the 70 of its group", s.Units)
	}
}

func TestMinimumsThatDoNotFitAreInfeasible(t *testing.T) {
	q := &policy.Question{Resources: []policy.Pooled{pooled("cpu", 10)}, Workloads: []policy.Claim{claim("a", 1, 20)}}
	q.Workloads[0].Wants[0].Min = 11
	if _, err := (dominant.Policy{}).Share(q); !errors.Is(err, trimtab.ErrInfeasible) {
		t.Errorf("%v, want infeasible", err)
	}
	q.Workloads[0].Wants = nil
	if _, err := (dominant.Policy{}).Share(q); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("%v, want invalid", err)
	}
}

// draw makes a question; in large units, so that rounding is small beside it.
func draw(t *rapid.T, scale int) *policy.Question {
	q := &policy.Question{}
	m := rapid.IntRange(1, 4).Draw(t, "resources")
	n := rapid.IntRange(1, 8).Draw(t, "workloads")
	least := make([]int, m)
	for r := range m {
		c := rapid.IntRange(n, 20).Draw(t, "capacity") * scale
		units := c
		if rapid.IntRange(0, 3).Draw(t, "others") == 0 {
			units = rapid.IntRange(n*scale, c).Draw(t, "units")
		}
		q.Resources = append(q.Resources, policy.Pooled{Name: fmt.Sprint("r", r), Unit: 1, Capacity: float64(c), Units: units})
	}
	for i := range n {
		c := policy.Claim{Name: fmt.Sprint("w", i), Weight: rapid.SampledFrom([]float64{1, 1, 2, 5, 0.25}).Draw(t, "weight"),
			Group: rapid.SampledFrom([]string{"", "", "a", "a/b", "c"}).Draw(t, "group")}
		for r := range m {
			if r > 0 && rapid.IntRange(0, 4).Draw(t, "without") == 0 {
				c.Wants = append(c.Wants, policy.Want{})
				continue
			}
			w := policy.Want{Min: rapid.IntRange(0, scale).Draw(t, "min"), Max: int(q.Resources[r].Capacity)}
			w.Demand = rapid.IntRange(w.Min, w.Max).Draw(t, "demand")
			if rapid.Bool().Draw(t, "bounded") {
				w.Max = rapid.IntRange(max(1, w.Demand), w.Max).Draw(t, "max")
			}
			w.Current = rapid.IntRange(0, w.Max).Draw(t, "current")
			w.Guarantee = rapid.SampledFrom([]int{0, 0, scale, 3 * scale}).Draw(t, "guarantee")
			least[r] += w.Min
			c.Wants = append(c.Wants, w)
		}
		q.Workloads = append(q.Workloads, c)
	}
	if rapid.Bool().Draw(t, "groups") {
		q.Groups = []policy.Group{{Path: "a", Weight: 3, Guarantee: scale, Others: []int{scale}}, {Path: "a/b", Weight: 0.5}}
	}
	return q
}

// speeds are the rates of the tree.
func speeds(q *policy.Question, done []bool) []float64 {
	var members []audit.Member
	weights := map[string]float64{}
	for _, g := range q.Groups {
		weights[g.Path] = g.Weight
	}
	for i, w := range q.Workloads {
		if !done[i] {
			members = append(members, audit.Member{Group: w.Group, Weight: w.Weight})
		}
	}
	parts, out := audit.Entitlements(members, weights), make([]float64, len(done))
	for i := range out {
		if !done[i] {
			out[i], parts = parts[0], parts[1:]
		}
	}
	return out
}

// The definition, in small steps of time: every level that may grow does, at
// its rate of the tree.
func slow(q *policy.Question, floors [][]float64, steps int) [][]float64 {
	n, m := len(q.Workloads), len(q.Resources)
	level, rate, demand := make([]float64, n), make([][]float64, n), make([]float64, n)
	rows := rowsOf(q)
	share := func(i, r int) float64 { return math.Max(floors[i][r], level[i]*rate[i][r]) }
	for i, w := range q.Workloads {
		rate[i] = make([]float64, m)
		for r := range m {
			d := float64(max(w.Wants[r].Demand, w.Wants[r].Min)) / q.Resources[r].Capacity
			rate[i][r], demand[i] = d, math.Max(demand[i], d)
		}
		for r := range m {
			if demand[i] > 0 {
				rate[i][r] /= demand[i]
			}
		}
	}
	for pass := range 2 {
		limit, done := make([]float64, n), make([]bool, n)
		for i, w := range q.Workloads {
			if limit[i] = demand[i]; pass == 1 {
				limit[i] = math.Inf(1)
				for r := range m {
					if rate[i][r] > 0 {
						limit[i] = math.Min(limit[i], float64(w.Wants[r].Max)/q.Resources[r].Capacity/rate[i][r])
					}
				}
			}
			done[i] = demand[i] == 0 || level[i] >= limit[i]
		}
		full := make([]bool, len(rows))
		var speed []float64
		for changed := true; slices.Contains(done, false); {
			if changed {
				speed, changed = speeds(q, done), false
			}
			for i := range n {
				if done[i] {
					continue
				}
				before := level[i]
				level[i] = math.Min(limit[i], before+speed[i]/float64(steps))
				done[i] = level[i] == limit[i]
				for k, row := range rows {
					used := 0.0
					for j := range n {
						used += row.takes[j] * share(j, row.resource)
					}
					full[k] = full[k] || used > row.units/q.Resources[row.resource].Capacity+1e-12
					if full[k] && row.takes[i] > 0 && level[i]*rate[i][row.resource] > floors[i][row.resource] {
						level[i], done[i] = before, true
						break
					}
				}
				changed = changed || done[i]
			}
		}
	}
	out := make([][]float64, n)
	for i := range out {
		for r := range m {
			out[i] = append(out[i], share(i, r)*q.Resources[r].Capacity)
		}
	}
	return out
}

func TestTheAnswerIsTheFillingByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const scale, steps = 1000, 2000
		q := draw(t, scale)
		floors := make([][]float64, len(q.Workloads))
		for i := range q.Workloads {
			for r := range q.Resources {
				w := &q.Workloads[i].Wants[r]
				w.Guarantee = 0
				floors[i] = append(floors[i], float64(w.Min)/q.Resources[r].Capacity)
			}
		}
		for i := range q.Groups {
			q.Groups[i].Guarantee, q.Groups[i].Others = 0, nil
		}
		s, err := dominant.Policy{}.Share(q)
		if err != nil {
			t.Fatal(err)
		}
		differs := ""
		// Where two events fall into one step their order is chance, and all that
		// follows from it: finer steps tell them apart.
		for _, finer := range []int{1, 10, 100} {
			if differs = apart(q, s.Units, slow(q, floors, finer*steps), steps); differs == "" {
				return
			}
		}
		t.Fatalf("%s\n%+v", differs, q)
	})
}

// apart says where an answer differs from the definition in so many steps by more
// than a step too early or too late of each workload, and a unit; "": nowhere.
func apart(q *policy.Question, units [][]int, want [][]float64, steps int) string {
	for i := range want {
		if unresolved(q, i, steps) {
			continue
		}
		for r, v := range want[i] {
			allowed := 2 + 4*float64(len(q.Workloads))*q.Resources[r].Capacity/float64(steps)
			if math.Abs(float64(units[i][r])-v) > allowed {
				return fmt.Sprintf("%s has %d of %s, by definition %v (±%v)", q.Workloads[i].Name, units[i][r], q.Resources[r].Name, v, allowed)
			}
		}
	}
	return ""
}

// unresolved reports whether a workload wants less of a resource than four steps: what the
// definition leaves of that by its steps lets the others, which go with it, grow by a multiple.
func unresolved(q *policy.Question, i, steps int) bool {
	for r, of := range q.Resources {
		w := q.Workloads[i].Wants[r]
		if d := float64(max(w.Demand, w.Min)); d > 0 && d < 4*of.Capacity/float64(steps) {
			return true
		}
	}
	return false
}

func TestAnAnswerKeepsBoundsAndCapacities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t, rapid.SampledFrom([]int{1, 7, 1000}).Draw(t, "scale"))
		s, err := dominant.Policy{}.Share(q)
		if err != nil {
			t.Fatal(err)
		}
		for r, of := range q.Resources {
			sum := 0
			for i, w := range q.Workloads {
				u := s.Units[i][r]
				if u < w.Wants[r].Min || u > w.Wants[r].Max {
					t.Fatalf("%s has %d of %s, bounds %+v", w.Name, u, of.Name, w.Wants[r])
				}
				if s.Binding[i][r].Kind == "" {
					t.Fatal("no binding")
				}
				sum += u
			}
			if sum > of.Units {
				t.Fatalf("%d units of %s of %d", sum, of.Name, of.Units)
			}
		}
		if !(s.Value >= 0 && s.Value <= 1) {
			t.Fatalf("value %v", s.Value)
		}
	})
}

// Where one resource is pooled: a_i = clip(t w_i, min_i, d_i) with the greatest t
// that fits.
func TestWithOneResourceItIsWeightedMaxMin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		p := &policy.Problem{Units: rapid.IntRange(n, 100_000).Draw(t, "units"), Unit: 1}
		for i := range n {
			d := rapid.IntRange(1, 50_000).Draw(t, "demand")
			p.Workloads = append(p.Workloads, policy.Workload{Name: fmt.Sprint("w", i), Weight: rapid.Float64Range(0.1, 10).Draw(t, "weight"),
				Min: 1, Max: d, Demand: d, SLO: 1})
		}
		s, err := dominant.Policy{}.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		clip := func(level float64) (sum float64, parts []float64) {
			for _, w := range p.Workloads {
				v := math.Min(math.Max(level*w.Weight, float64(w.Min)), float64(w.Demand))
				sum, parts = sum+v, append(parts, v)
			}
			return sum, parts
		}
		low, high := 0.0, 1e9
		for range 200 {
			if sum, _ := clip((low + high) / 2); sum > float64(p.Units) {
				high = (low + high) / 2
			} else {
				low = (low + high) / 2
			}
		}
		_, want := clip(low)
		for i, v := range want {
			if math.Abs(float64(s.Units[i])-v) > 1+1e-6*v {
				t.Fatalf("%s has %d, weighted max-min gives %v", p.Workloads[i].Name, s.Units[i], v)
			}
		}
	})
}

// With demands in full, no minimum in the way, and units far smaller than the
// shares, an audit finds nothing but rounding.
func TestAnAuditOfTheAnswerFindsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const scale = 10_000
		q := draw(t, scale)
		pool := &audit.Pool{}
		for r := range q.Resources {
			q.Resources[r].Units = int(q.Resources[r].Capacity)
			pool.Resources = append(pool.Resources, audit.Resource{Name: q.Resources[r].Name, Capacity: q.Resources[r].Capacity})
		}
		q.Groups = nil
		var members []audit.Member
		for i := range q.Workloads {
			w := &q.Workloads[i]
			w.Group = ""
			tenant := audit.Tenant{Name: w.Name}
			for r := range w.Wants {
				w.Wants[r].Min, w.Wants[r].Guarantee = 0, 0
				tenant.Demand = append(tenant.Demand, float64(w.Wants[r].Demand))
			}
			pool.Tenants = append(pool.Tenants, tenant)
			members = append(members, audit.Member{Weight: w.Weight})
		}
		s, err := dominant.Policy{}.Share(q)
		if err != nil {
			t.Fatal(err)
		}
		for i, e := range audit.Entitlements(members, nil) {
			pool.Tenants[i].Entitlement = e
			for _, u := range s.Units[i] {
				pool.Tenants[i].Has = append(pool.Tenants[i].Has, float64(u))
			}
		}
		// A unit more or less is this much of the smallest demand; another's
		// unit counts 20 times for who is entitled to so much more.
		smallest := math.Inf(1)
		for _, v := range pool.Tenants {
			for _, d := range v.Demand {
				if d > 0 {
					smallest = math.Min(smallest, d)
				}
			}
		}
		allowed := 50 * float64(len(members)) / smallest
		if f := audit.FairnessOf(pool); f.Envy > allowed || f.Shortfall > allowed || f.Slack > allowed {
			t.Fatalf("%+v, rounding allows %v\n%+v", f, allowed, audit.Of(pool).Workloads)
		}
	})
}

// How the answer's cost grows with the pool, with floors in the way and not.
func BenchmarkShare(b *testing.B) {
	for _, n := range []int{100, 1000, 5000} {
		for name, least := range map[string]int{"free": 0, "floors": 500} {
			b.Run(fmt.Sprintf("%s-%d", name, n), func(b *testing.B) {
				q := &policy.Question{Resources: []policy.Pooled{pooled("cpu", 1_000_000), pooled("memory", 1_000_000), pooled("llc", 1_000_000)}}
				for i := range n {
					w := claim(fmt.Sprintf("w%05d", i), 1+float64(i%5), 1+i*7919%1000, 1+i*104729%1000, 1+i*1299709%1000)
					for r := range w.Wants {
						w.Wants[r].Max, w.Wants[r].Min = 2000, min(least, 400_000/n)*(i%2)
					}
					q.Workloads = append(q.Workloads, w)
				}
				for b.Loop() {
					share(b, q)
				}
			})
		}
	}
}
