package dominant_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/optimize/convex/lp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/planner/dominant"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
)

// constraint is Σ_i takes_i · units_i <= units, of one resource.
type constraint struct {
	resource int
	takes    []float64
	units    float64
}

// rowsOf lists the budget of each resource and the hosts of each.
func rowsOf(q *policy.Question) (rows []constraint) {
	for r, of := range q.Resources {
		pool := constraint{r, make([]float64, len(q.Workloads)), float64(of.Units)}
		on := make([]constraint, len(of.Hosts))
		for h, host := range of.Hosts {
			on[h] = constraint{r, make([]float64, len(q.Workloads)), host.Units}
		}
		for i, w := range q.Workloads {
			pool.takes[i] = 1
			for _, part := range w.Wants[r].Parts {
				on[part.Host].takes[i] = part.Share
			}
		}
		rows = append(append(rows, pool), on...)
	}
	return rows
}

// locate puts the workloads of a question on hosts, which hold all minimums.
func locate(t *rapid.T, q *policy.Question, scale int) *policy.Question {
	n := rapid.IntRange(1, 4).Draw(t, "hosts")
	shares := make([][]float64, len(q.Workloads))
	for i := range shares {
		sum := 0.0
		for range n {
			f := rapid.SampledFrom([]float64{0, 0.25, 0.5, 1.0 / 3, 1}).Draw(t, "share")
			if sum+f > 1 {
				f = 0
			}
			shares[i], sum = append(shares[i], f), sum+f
		}
	}
	for r := range q.Resources {
		of, least := &q.Resources[r], make([]float64, n)
		for i := range q.Workloads {
			w := &q.Workloads[i].Wants[r]
			for h, f := range shares[i] {
				if f > 0 && w.Max > 0 {
					w.Parts = append(w.Parts, policy.Part{Host: h, Share: f})
					least[h] += f * float64(w.Min)
				}
			}
		}
		for h, units := range least {
			has := units + rapid.SampledFrom([]float64{0, 0.5, 1.25, 3, 8, 30}).Draw(t, "host")*float64(scale)
			of.Hosts = append(of.Hosts, policy.Host{Name: fmt.Sprint("h", h), Units: has})
		}
	}
	return q
}

// checkRows fails where more is given than there is, or a bound is not kept.
func checkRows(t *rapid.T, q *policy.Question, units [][]int) {
	t.Helper()
	for _, row := range rowsOf(q) {
		sum := 0.0
		for i := range units {
			sum += row.takes[i] * float64(units[i][row.resource])
		}
		if sum > row.units+1e-6 {
			t.Fatalf("%v of %v units of %s: %+v", sum, row.units, q.Resources[row.resource].Name, units)
		}
	}
	for i, w := range q.Workloads {
		for r, v := range w.Wants {
			if u := units[i][r]; u < v.Min || u > v.Max {
				t.Fatalf("%s has %d of %s, bounds %+v", w.Name, u, q.Resources[r].Name, v)
			}
		}
	}
}

// a and b need as much cpu as memory; a runs on h1, c, which needs memory alone, on h2,
// and half of b on each. The memory of h2 is full when b has 40 and c 40: b stops with
// both resources, and a goes on to what h1 has beside b's half. Then both hosts of
// b are full, and the first is named.
func TestWhoRunsOnAFullHostStopsAndTheOthersGoOn(t *testing.T) {
	q := &policy.Question{Resources: []policy.Pooled{pooled("cpu", 200), pooled("memory", 200)},
		Workloads: []policy.Claim{claim("a", 1, 200, 200), claim("b", 1, 200, 200), claim("c", 1, 0, 200)}}
	for r, hosts := range [][]float64{{100, 100}, {100, 60}} {
		q.Resources[r].Hosts = []policy.Host{{Name: "h1", Units: hosts[0]}, {Name: "h2", Units: hosts[1]}}
		q.Workloads[0].Wants[r].Parts = []policy.Part{{Host: 0, Share: 1}}
		q.Workloads[1].Wants[r].Parts = []policy.Part{{Host: 0, Share: 0.5}, {Host: 1, Share: 0.5}}
	}
	q.Workloads[2].Wants[1].Parts = []policy.Part{{Host: 1, Share: 1}}
	s := share(t, q)
	if got := fmt.Sprint(s.Units); got != "[[80 80] [40 40] [0 40]]" {
		t.Errorf("units %v", got)
	}
	if got := fmt.Sprint(s.Binding); got != "[[host: h1 host: h1] [host: h1 host: h1] [host: h2 host: h2]]" {
		t.Errorf("binding %v", got)
	}
}

func TestAGuaranteeThatAHostCannotHoldTakesNothingFromAnotherHost(t *testing.T) {
	q := &policy.Question{Resources: []policy.Pooled{pooled("cpu", 200)},
		Workloads: []policy.Claim{claim("a", 1, 90), claim("b", 1, 90), claim("c", 1, 100), claim("d", 9, 100)}}
	q.Resources[0].Hosts = []policy.Host{{Name: "h1", Units: 60}, {Name: "h2", Units: 100}}
	for i, host := range []int{0, 0, 1, 1} {
		q.Workloads[i].Wants[0].Parts = []policy.Part{{Host: host, Share: 1}}
	}
	for i, n := range []int{80, 40, 70, 0} {
		q.Workloads[i].Wants[0].Guarantee = n
	}
	if s := share(t, q); fmt.Sprint(s.Units) != "[[40] [20] [70] [30]]" {
		t.Errorf("units %v, want h1 in proportion to what is guaranteed, and 70 for c", s.Units)
	}
}

func TestWhereTheLeastOfAllIsAllThatThereIsOtherResourcesAreGivenOutAllTheSame(t *testing.T) {
	// 2/3000 + 99/3000 is a rounding more than 101/3000.
	q := &policy.Question{Resources: []policy.Pooled{pooled("cpu", 2000), pooled("memory", 3000)}, Workloads: []policy.Claim{claim("a", 1, 0, 2), claim("b", 1, 11, 99)}}
	for r, units := range []int{500, 101} {
		q.Resources[r].Hosts = []policy.Host{{Name: "h1", Units: float64(units)}}
		for i := range q.Workloads {
			q.Workloads[i].Wants[r].Parts = []policy.Part{{Host: 0, Share: 1}}
		}
	}
	q.Workloads[0].Wants[1].Min, q.Workloads[1].Wants[1].Min = 2, 99
	if s := share(t, q); s.Units[1][0] < 11 || s.Units[0][1] != 2 || s.Units[1][1] != 99 {
		t.Errorf("units %v, want the 11 of cpu that b needs beside its memory", s.Units)
	}
}

func TestOverHostsAnAnswerKeepsBoundsAndCapacities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		scale := rapid.SampledFrom([]int{1, 7, 1000}).Draw(t, "scale")
		q := locate(t, draw(t, scale), scale)
		s, err := dominant.Policy{}.Share(q)
		if err != nil {
			t.Fatal(err)
		}
		checkRows(t, q, s.Units)
		for i := range s.Binding {
			for _, b := range s.Binding[i] {
				if b.Kind == "" || b.Kind == codes.BindingHost && !slices.ContainsFunc(q.Resources[0].Hosts, func(h policy.Host) bool { return h.Name == b.Detail }) {
					t.Fatalf("%q binds", b)
				}
			}
		}
	})
}

func TestOverHostsTheAnswerIsTheFillingByDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const scale, steps = 1000, 2000
		q := locate(t, unguaranteed(draw(t, scale)), scale)
		s, err := dominant.Policy{}.Share(q)
		if err != nil {
			t.Fatal(err)
		}
		differs := ""
		for _, finer := range []int{1, 10, 100} {
			if differs = apart(q, s.Units, slow(q, floorsOf(q), finer*steps), steps); differs == "" {
				return
			}
		}
		t.Fatalf("%s\n%+v", differs, q)
	})
}

// unguaranteed takes the guarantees out of a question.
func unguaranteed(q *policy.Question) *policy.Question {
	for i := range q.Workloads {
		for r := range q.Workloads[i].Wants {
			q.Workloads[i].Wants[r].Guarantee = 0
		}
	}
	for i := range q.Groups {
		q.Groups[i].Guarantee, q.Groups[i].Others = 0, nil
	}
	return q
}

// floorsOf are the minimums as parts of the capacities.
func floorsOf(q *policy.Question) [][]float64 {
	floors := make([][]float64, len(q.Workloads))
	for i, w := range q.Workloads {
		for r := range q.Resources {
			floors[i] = append(floors[i], float64(w.Wants[r].Min)/q.Resources[r].Capacity)
		}
	}
	return floors
}

// The levels are the greatest by lexicographic order, by linear programmes: the
// greatest t by which all may rise, then who cannot rise beyond it, and so on.
func TestWithoutGroupsTheLevelsAreThoseOfLinearProgrammes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const scale = 1000
		q := draw(t, scale)
		q.Groups = nil
		if q.Workloads = q.Workloads[:min(5, len(q.Workloads))]; rapid.Bool().Draw(t, "without floors") {
			for i := range q.Workloads {
				for r := range q.Workloads[i].Wants {
					q.Workloads[i].Wants[r].Min = 0
				}
			}
		}
		for i := range q.Workloads {
			q.Workloads[i].Group = ""
		}
		q = locate(t, unguaranteed(q), scale)
		s, err := dominant.Policy{}.Share(q)
		if err != nil {
			t.Fatal(err)
		}
		l := levelsOf(q)
		l.rise(t, l.demand)
		l.rise(t, l.most)
		for i := range s.Units {
			for r, of := range q.Resources {
				want := math.Max(l.floor[i][r], l.now[i]*l.rate[i][r]) * of.Capacity
				if math.Abs(float64(s.Units[i][r])-want) > 1+1e-4 {
					t.Fatalf("%s has %d of %s, by the linear programmes %v\n%+v", q.Workloads[i].Name, s.Units[i][r], of.Name, want, q)
				}
			}
		}
	})
}

// levels are those of the package comment.
type levels struct {
	rows              []constraint // in shares
	weight            []float64
	rate, floor       [][]float64
	now, demand, most []float64
}

func levelsOf(q *policy.Question) *levels {
	l := &levels{rows: rowsOf(q), floor: floorsOf(q)}
	for k := range l.rows {
		l.rows[k].units /= q.Resources[l.rows[k].resource].Capacity
	}
	for _, w := range q.Workloads {
		demand, most, rate := 0.0, math.Inf(1), make([]float64, len(q.Resources))
		for r, of := range q.Resources {
			rate[r] = float64(max(w.Wants[r].Demand, w.Wants[r].Min)) / of.Capacity
			demand = math.Max(demand, rate[r])
		}
		for r, of := range q.Resources {
			if rate[r] > 0 {
				rate[r] /= demand
				most = math.Min(most, float64(w.Wants[r].Max)/of.Capacity/rate[r])
			}
		}
		if demand == 0 {
			most = 0
		}
		l.weight, l.rate = append(l.weight, w.Weight), append(l.rate, rate)
		l.now, l.demand, l.most = append(l.now, 0), append(l.demand, demand), append(l.most, most)
	}
	return l
}

// rise raises the levels up to limits.
func (l *levels) rise(t *rapid.T, limit []float64) {
	active := make([]bool, len(l.now))
	for i := range active {
		active[i] = l.now[i] < limit[i]-1e-9
	}
	for slices.Contains(active, true) {
		raise := l.greatest(t, limit, active)
		for i := range active {
			if active[i] {
				l.now[i] += l.weight[i] * raise
			}
		}
		some := false
		for i := range active {
			if active[i] {
				alone := make([]bool, len(active))
				alone[i] = true
				active[i] = l.now[i] < limit[i]-1e-9 && l.greatest(t, limit, alone)*l.weight[i] > 1e-8
				some = some || !active[i]
			}
		}
		if !some {
			t.Skip("nobody stops: rounding of the simplex")
		}
	}
}

// greatest returns the greatest t with which there is an allocation that gives
// everybody its level, and those that are active weight·t more,
//
//	u_i >= weight_i t (active),  now_i + u_i <= limit_i
//	y_ir >= floor_ir, (now_i + u_i) rate_ir,   Σ takes_i y_ir <= units of every row
//
// by the simplex over t, u and z = y − max(floor, now·rate), all >= 0.
func (l *levels) greatest(t *rapid.T, limit []float64, active []bool) float64 {
	n, m := len(l.now), len(l.rate[0])
	base := func(i, r int) float64 { return math.Max(l.floor[i][r], l.now[i]*l.rate[i][r]) }
	u, z := func(i int) int { return 1 + i }, func(i, r int) int { return 1 + n + i*m + r }
	var coefficients [][]float64
	var right []float64
	add := func(b float64, terms map[int]float64) {
		row := make([]float64, 1+n+n*m)
		for at, v := range terms {
			row[at] = v
		}
		coefficients, right = append(coefficients, row), append(right, math.Max(0, b))
	}
	for i := range n {
		add(limit[i]-l.now[i], map[int]float64{u(i): 1})
		if active[i] {
			add(0, map[int]float64{0: l.weight[i], u(i): -1})
		}
		for r := range m {
			add(base(i, r)-l.now[i]*l.rate[i][r], map[int]float64{u(i): l.rate[i][r], z(i, r): -1})
		}
	}
	for _, row := range l.rows {
		left, terms := row.units, map[int]float64{}
		for i, f := range row.takes {
			left -= f * base(i, row.resource)
			terms[z(i, row.resource)] = f
		}
		add(left, terms)
	}
	width, rows := 1+n+n*m, len(right)
	a, c, basis := mat.NewDense(rows, width+rows, nil), make([]float64, width+rows), make([]int, rows)
	for k, row := range coefficients {
		for at, v := range row {
			a.Set(k, at, v)
		}
		a.Set(k, width+k, 1)
		basis[k] = width + k
	}
	c[0] = -1
	least, _, err := lp.Simplex(c, a, right, 1e-12, basis)
	if err != nil {
		t.Skip(err)
	}
	return -least
}

func TestOneHostThatHasThePoolChangesNoBitOfSeveralResources(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := draw(t, rapid.SampledFrom([]int{1, 7, 1000}).Draw(t, "scale"))
		want, err := dominant.Policy{}.Share(q)
		if err != nil {
			t.Fatal(err)
		}
		for r := range q.Resources {
			q.Resources[r].Hosts = []policy.Host{{Name: "idle", Units: 1}, {Name: "h", Units: float64(q.Resources[r].Units)}}
			for i := range q.Workloads {
				if w := &q.Workloads[i].Wants[r]; w.Max > 0 {
					w.Parts = []policy.Part{{Host: 1, Share: 1}}
				}
			}
		}
		if got := fmt.Sprint(share(t, q)); got != fmt.Sprint(want) {
			t.Fatalf("%v, without hosts %v", got, want)
		}
	})
}

// NJC is max-min by weight up to the demand.
func TestOfOneResourceOverHostsTheAnswerIsThatOfNJC(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const scale = 1000
		q := unguaranteed(draw(t, scale))
		q.Groups, q.Resources = nil, q.Resources[:1]
		for i := range q.Workloads {
			w := &q.Workloads[i]
			w.Group, w.Wants = "", w.Wants[:1]
			w.Wants[0].Max = max(w.Wants[0].Demand, w.Wants[0].Min)
			w.Wants[0].Demand = w.Wants[0].Max
		}
		p := locate(t, q, scale).Of(0)
		got, err := dominant.Policy{}.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Workloads {
			p.Workloads[i].SLO = 1
		}
		want, err := fair.ResourceFair{}.Solve(p)
		if err != nil {
			t.Fatal(err)
		}
		for i, n := range got.Units {
			if max(n-want.Units[i], want.Units[i]-n) > 1 {
				t.Fatalf("%v, resource-fair %v of %+v", got.Units, want.Units, p)
			}
		}
	})
}

func TestPartsThatAreNoPartsAreRefusedOfEveryResource(t *testing.T) {
	q := &policy.Question{Resources: []policy.Pooled{pooled("cpu", 10), pooled("memory", 10)}, Workloads: []policy.Claim{claim("a", 1, 5, 5)}}
	q.Workloads[0].Wants[1].Parts = []policy.Part{{Host: 0, Share: 1}}
	if _, err := (dominant.Policy{}).Share(q); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("a part on a host that is not there: %v", err)
	}
	q.Resources[1].Hosts = []policy.Host{{Name: "h", Units: 3}}
	q.Workloads[0].Wants[1].Min = 4
	if _, err := (dominant.Policy{}).Share(q); !errors.Is(err, trimtab.ErrInfeasible) {
		t.Errorf("a minimum that its host does not hold: %v", err)
	}
}

// What is guaranteed rises first, each by its own, in small steps, until a host or the
// pool is full; that are the floors of the filling.
func TestOverHostsWhatIsGuaranteedIsFilledFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const scale, steps = 1000, 2000
		q := draw(t, scale)
		for i := range q.Groups {
			q.Groups[i].Guarantee, q.Groups[i].Others = 0, nil
		}
		q = locate(t, q, scale)
		s, err := dominant.Policy{}.Share(q)
		if err != nil {
			t.Fatal(err)
		}
		checkRows(t, q, s.Units)
		differs := ""
		for _, finer := range []int{1, 10, 100} {
			if differs = apart(q, s.Units, slow(q, guaranteed(q, finer*steps), finer*steps), steps); differs == "" {
				return
			}
		}
		t.Fatalf("%s\n%+v", differs, q)
	})
}

// guaranteed are the floors with what is guaranteed, as parts of the capacities.
func guaranteed(q *policy.Question, steps int) [][]float64 {
	floors, lacks := floorsOf(q), make([][]float64, len(q.Workloads))
	for i, w := range q.Workloads {
		for r, of := range q.Resources {
			v := w.Wants[r]
			due := float64(min(max(v.Demand, v.Min), v.Guarantee)) / of.Capacity
			lacks[i] = append(lacks[i], math.Max(0, due-floors[i][r]))
		}
	}
	rows := rowsOf(q)
	used := func(row constraint) (sum float64) {
		for i, f := range row.takes {
			sum += f * floors[i][row.resource]
		}
		return sum
	}
	stopped := make([][]bool, len(q.Workloads))
	for i := range stopped {
		stopped[i] = make([]bool, len(q.Resources))
	}
	for range steps {
		for i := range floors {
			for r := range floors[i] {
				if !stopped[i][r] {
					floors[i][r] += lacks[i][r] / float64(steps)
				}
			}
		}
		for _, row := range rows {
			if used(row) < row.units/q.Resources[row.resource].Capacity {
				continue
			}
			for i, f := range row.takes {
				if f > 0 && !stopped[i][row.resource] {
					stopped[i][row.resource] = true
					floors[i][row.resource] -= lacks[i][row.resource] / float64(steps)
				}
			}
		}
	}
	return floors
}
