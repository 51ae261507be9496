package cilantro

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
	"github.com/trimtab/trimtab/sim"
)

// experiment runs policies through the steps of production.
func experiment(e *Environment, policies ...string) *Experiment {
	return &Experiment{Env: e, Run: policies, Frame: lab.Frame{Seeds: 2, First: 1}, Online: production(),
		Policies: []policy.Policy{welfare.Social{}, welfare.Egalitarian{}, fair.NJCPolicy{}}}
}

func TestAnyOrderOfRunsGivesTheSameFigures(t *testing.T) {
	play := func(runner func(n int, work func(int))) []Outcome {
		x := experiment(small(3, 12, 150), "social", "njc", "minerva", "evoalg-social", "oracle-social")
		x.Runner = runner
		out, err := x.Play()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	forth := play(nil)
	back := play(func(n int, work func(int)) {
		for i := n - 1; i >= 0; i-- {
			work(i)
		}
	})
	if d := cmp.Diff(forth, back); d != "" {
		t.Error(d)
	}
	if cmp.Equal(forth[0].Runs[0].Rounds, forth[0].Runs[1].Rounds) {
		t.Error("two seeds give one run")
	}
}

func TestTheSocialOracleIsTheBestOfAllAllocations(t *testing.T) {
	e := small(3, 2, 12)
	got := outcomeOf(t, e, Options{}, "oracle-social")
	for r := range e.Rounds {
		best := 0.0
		w := newWorld(e, Options{}, 1)
		truths := make([]truth, 3)
		for a := 1; a <= 10; a++ {
			for b := 1; a+b <= 11; b++ {
				for c := 1; a+b+c <= 12; c++ {
					w.begin(r, []int{a, b, c})
					sum := 0.0
					for k := r * Windows; k < (r+1)*Windows; k++ {
						for i := range truths {
							truths[i] = w.truth(i, k)
						}
						sum += score(truths, 12).Social / Windows
					}
					best = math.Max(best, sum)
				}
			}
		}
		if math.Abs(got.Rounds[r].Social-best) > 1e-9 {
			t.Errorf("round %d: %v, the best of all is %v", r, got.Rounds[r].Social, best)
		}
	}
}

func TestNoPolicyGivesMoreThanThereIs(t *testing.T) {
	e := small(4, 15, 160)
	x := experiment(e)
	for _, name := range x.Names() {
		m, err := x.maker(name)
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(e, Options{}, 1)
		c, err := m(w)
		if err != nil {
			t.Fatal(err)
		}
		truths, reports := make([]truth, 4), make([]Report, 4)
		for r := range e.Rounds {
			units, err := c.Decide(r)
			if err != nil {
				t.Fatal(name, err)
			}
			sum := 0
			for _, u := range units {
				sum += u
				if u < 1 {
					t.Errorf("%s: %v", name, units)
				}
			}
			if sum > e.Capacity {
				t.Fatalf("%s: %d of %d units in round %d", name, sum, e.Capacity, r)
			}
			w.begin(r, units)
			for k := r * Windows; k < (r+1)*Windows; k++ {
				w.window(k, truths, reports)
				c.Tell(k, reports)
			}
		}
	}
}

func TestLearningComesCloseToKnowing(t *testing.T) {
	e := small(4, 40, 160)
	x := experiment(e, "social", "oracle-social", "resource-fair")
	out, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	learnt, best, fair := Summarize(e, &out[0]), Summarize(e, &out[1]), Summarize(e, &out[2])
	if learnt.Last.Social < best.Last.Social-0.03 || learnt.Last.Social < fair.Last.Social+0.02 {
		t.Errorf("social welfare at the end: %.3f learnt, %.3f at best, %.3f without feedback", learnt.Last.Social, best.Last.Social, fair.Last.Social)
	}
	if len(learnt.Coverage) != 4 || len(fair.Coverage) != 0 {
		t.Errorf("coverage %v and %v", learnt.Coverage, fair.Coverage)
	}
	if learnt.StdErr["social"] <= 0 || fair.Moved != 0 {
		t.Errorf("standard error %v, resource-fair moved %v", learnt.StdErr["social"], fair.Moved)
	}
}

func TestAPolicyThatLearnsIsPlayedWithTheGuardBesideItself(t *testing.T) {
	play := func(both, guarded bool) []Outcome {
		x := experiment(small(4, 12, 60), "social", "resource-fair")
		x.Both, x.Online.Guard = both, guarded
		out, err := x.Play()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	both, off, on := play(true, false), play(false, false), play(false, true)
	if d := cmp.Diff(both[0].Runs, off[0].Runs); d != "" {
		t.Errorf("without the guard: %s", d)
	}
	if d := cmp.Diff(both[0].Guarded, on[0].Runs); d != "" {
		t.Errorf("with the guard: %s", d)
	}
	if cmp.Equal(off[0].Runs, on[0].Runs) {
		t.Error("the guard changes nothing")
	}
	if both[1].Guarded != nil || off[0].Guarded != nil {
		t.Error("a second figure for what has none")
	}
}

func TestWithTheGuardAStepIsAThirdOfThePoolUnlessItIsSet(t *testing.T) {
	for want, o := range map[int]Online{0: {}, 333: {Guard: true}, 7: {Guard: true, Step: 7}} {
		if got := o.step(1000); got != want {
			t.Errorf("%+v: %d units, want %d", o, got, want)
		}
	}
}

func TestDriftBeginsAtHalfOfTheRun(t *testing.T) {
	e := small(3, 10, 150)
	with := outcomeOf(t, e, Options{Drift: Drift{[]string{"db0j1"}, 0.5}}, "resource-fair")
	without := outcomeOf(t, e, Options{}, "resource-fair")
	for r := range e.Rounds {
		if fell := with.Rounds[r].Social < without.Rounds[r].Social; fell != (r >= 5) {
			t.Errorf("round %d: %v against %v", r, with.Rounds[r].Social, without.Rounds[r].Social)
		}
	}
}

func TestAddedUnitsServeAfterTheirStartup(t *testing.T) {
	e := small(2, 2, 100)
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	w := newWorld(e, Options{Startup: 20 * time.Second}, 1)
	w.begin(0, []int{10, 10})
	w.begin(1, []int{20, 5})
	var serving []float64
	for k := Windows; k < 2*Windows; k++ {
		serving = append(serving, w.serving(0, k))
	}
	if serving[0] != 10 || serving[3] != 20 || serving[11] != 20 || w.serving(1, Windows) != 5 {
		t.Errorf("%v; a fall serves %v", serving, w.serving(1, Windows))
	}
}

func TestAQueueCarriesOver(t *testing.T) {
	e := small(2, 2, 100)
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	w := newWorld(e, Options{Queues: true}, 1)
	w.begin(0, []int{1, 99})
	var first, last truth
	for k := range Windows {
		last = w.truth(0, k)
		if k == 0 {
			first = last
		}
	}
	if w.jobs[0].backlog <= 0 || last.performance > first.performance-0.05 {
		t.Fatalf("backlog %v, performance from %v to %v", w.jobs[0].backlog, first.performance, last.performance)
	}
	w.begin(1, []int{50, 50})
	w.truth(0, Windows)
	for k := Windows + 1; k < 2*Windows; k++ {
		last = w.truth(0, k)
	}
	if w.jobs[0].backlog != 0 || last.performance < 0.9 {
		t.Errorf("backlog %v, performance %v after ten windows of enough", w.jobs[0].backlog, last.performance)
	}
}

func TestAJobThatLeavesInMidRoundIsNoLongerScoredAndFreesItsUnits(t *testing.T) {
	e := small(3, 24, 90)
	o := Options{Leave: map[string]float64{"mltj1": 12.5}}
	x := experiment(e, "social")
	x.Options = o
	out, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	m, err := x.maker("social")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(e, o, 1)
	c, err := m(w)
	if err != nil {
		t.Fatal(err)
	}
	truths, reports := make([]truth, 3), make([]Report, 3)
	var before, after []int
	for r := range e.Rounds {
		units, _ := c.Decide(r)
		if r == 12 {
			before = append(before, units...)
		}
		after = append(after[:0], units...)
		w.begin(r, units)
		for k := r * Windows; k < (r+1)*Windows; k++ {
			w.window(k, truths, reports)
			c.Tell(k, reports)
			// Jobs are in order of name: db0j1, db1j1, mltj1.
			if gone := k >= 150; reports[2].Silent != gone || truths[2].absent != gone {
				t.Fatalf("window %d: silent %v", k, reports[2].Silent)
			}
		}
	}
	if after[2] != 1 || after[0]+after[1] <= before[0]+before[1] {
		t.Errorf("%v before, %v long after", before, after)
	}
	if out[0].Runs[0].Utility[2] <= 0 {
		t.Error("its time there does not count")
	}
}

func TestARunAtTheHighestLoadThereCanBeEnds(t *testing.T) {
	e := small(3, 1, 300)
	for i := range e.Jobs {
		e.Jobs[i].Scale = min(e.Jobs[i].Scale, 1)
	}
	for i := range e.Trace {
		e.Trace[i] = MostLoad
	}
	outcomeOf(t, e, Options{}, "resource-fair")
}

func TestARunThatIsToldToStopEndsInThatRound(t *testing.T) {
	asked := 0
	x := experiment(small(3, 20, 300), "resource-fair")
	x.Stop = func() bool {
		asked++
		return asked > 5
	}
	if out, err := x.Play(); !errors.Is(err, sim.ErrStopped) || out != nil {
		t.Errorf("%v, %v", out, err)
	}
	// Five rounds, the sixth of the first run, the first of the second, the end.
	if asked != 8 {
		t.Errorf("asked %d times", asked)
	}
}

func TestOneSeedTellsNothingOfTheStandardError(t *testing.T) {
	x := experiment(small(3, 4, 150), "social")
	x.Seeds = 1
	out, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	if s := Summarize(x.Env, &out[0]); len(s.StdErr) != 0 {
		t.Errorf("%v", s.StdErr)
	}
}

func TestAJobThatReportsNothingHasNoFigures(t *testing.T) {
	x := experiment(small(3, 4, 150), "social")
	x.Options.Arrive = map[string]float64{"db1j1": 3.99} // in the last window, which it is not in for all of
	out, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	s := Summarize(x.Env, &out[0])
	for what, of := range map[string]map[string]float64{"coverage": s.Coverage, "utility": s.Utility, "allocation": s.Allocation} {
		if _, ok := of["db1j1"]; ok || len(of) != 2 {
			t.Errorf("%s %v", what, of)
		}
	}
}

func TestAJobWithoutLoadHasNoCoverage(t *testing.T) {
	x := experiment(small(3, 4, 150), "social")
	for i := range x.Env.Trace {
		x.Env.Trace[i] = 0
	}
	out, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	// The third trains under a load of its own.
	if s := Summarize(x.Env, &out[0]); len(s.Coverage) != 1 || s.Coverage["mltj1"] <= 0 {
		t.Errorf("%v", s.Coverage)
	}
}

func TestOfSeveralMistakesTheFirstIsAlwaysTheSame(t *testing.T) {
	e := small(3, 20, 150)
	o := Options{Lies: map[string]float64{"b": 1, "a": 1, "db0j1": -1}, Leave: map[string]float64{"c": 1}}
	const jobs = "job,workload_type,slo_type,slo,utility_shape,trace_scale,weight\na,x,latency,?,linear,?,?\n"
	for range 50 {
		if err := o.Validate(e); err == nil || !strings.Contains(err.Error(), "lie a: no such job") {
			t.Fatal(err)
		}
		if _, err := ReadJobs(strings.NewReader(jobs), "jobs.csv"); err == nil || !strings.Contains(err.Error(), "slo is") {
			t.Fatal(err)
		}
	}
}

func TestAnObjectiveOfTheOperatorsIsWhatItIsWorthToIt(t *testing.T) {
	e := small(3, 10, 8) // too few for any of them
	own := welfare.Own{Title: "sum(weight * u)", Scale: 1}
	units := func(favourite int) []float64 {
		x := experiment(e, own.Name())
		x.Policies, x.Online = []policy.Policy{own}, Online{Step: 50}
		worths := make([]func(float64) float64, 3)
		for i := range worths {
			worths[i] = func(p float64) float64 {
				if i != favourite {
					return 0
				}
				return min(p/e.Jobs[i].SLO, 1)
			}
		}
		x.Online.Worths = map[string][]func(float64) float64{own.Name(): worths}
		out, err := x.Play()
		if err != nil {
			t.Fatal(err)
		}
		return out[0].Runs[0].Utility
	}
	for i := range 3 {
		got, other := units(i), units((i+1)%3)
		if got[i] <= other[i] {
			t.Errorf("job %d has utility %v as all that counts, else %v", i, got[i], other[i])
		}
	}
}

func TestThePublishedTreeLearnsWithConstantsOfTheProfile(t *testing.T) {
	e := small(4, 40, 160)
	x := experiment(e, "social", "resource-fair")
	x.Online.Learner = PublishedTree
	out, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	learnt, fair := Summarize(e, &out[0]), Summarize(e, &out[1])
	if learnt.Last.Social < fair.Last.Social+0.02 || len(learnt.Coverage) != 4 {
		t.Errorf("social welfare at the end: %.3f, %.3f without feedback; coverage %v", learnt.Last.Social, fair.Last.Social, learnt.Coverage)
	}
	// It takes whatever a profile can be.
	for _, p := range []*Profile{{X: []float64{0, 1e-12}, P: []float64{0, 1e15}}, {X: []float64{1, 1e15}, P: []float64{0, 1e-300}}} {
		if err := p.validate("p"); err != nil {
			t.Fatal(err)
		}
		PublishedTree(p)
	}
}

func TestExtraNoiseLowersWhatFractionsNearOneReport(t *testing.T) {
	e := small(3, 1, 300)
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	const seeds = 400
	bias := make([]float64, 3)
	for seed := range uint64(seeds) {
		w := newWorld(e, Options{Noise: 0.2}, seed)
		w.begin(0, []int{100, 100, 100})
		truths, reports := make([]truth, 3), make([]Report, 3)
		w.window(0, truths, reports)
		for i := range reports {
			bias[i] += (reports[i].Performance/truths[i].performance - 1) / seeds
		}
	}
	// E[min(1, 1 + 0.2 z)] = 1 - 0.2/√(2π).
	if want := -0.2 / math.Sqrt(2*math.Pi); math.Abs(bias[0]-want) > 0.02 || math.Abs(bias[2]) > 0.03 {
		t.Errorf("reports are off by %.3f, want %.3f for a fraction near 1 and 0 for a rate", bias, want)
	}
}

func TestAStatedDemandStandsForReports(t *testing.T) {
	e := small(3, 20, 200)
	x := experiment(e, "njc")
	x.Options = Options{Demands: map[string]float64{"db0j1": 2}}
	out, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(e, x.Options, 1)
	want := 2 * w.demandAtMedian(0)
	if got := out[0].Runs[0].Rounds[19]; got.Useful <= 0 || want <= 0 {
		t.Fatal(got, want)
	}
	truthful := experiment(e, "njc")
	base, err := truthful.Play()
	if err != nil {
		t.Fatal(err)
	}
	if out[0].Runs[0].Allocation[0] < want-8 || out[0].Runs[0].Allocation[0] > want+12 {
		t.Errorf("%.1f units on average for a stated demand of %.1f (%.1f when it reports)", out[0].Runs[0].Allocation[0], want, base[0].Runs[0].Allocation[0])
	}
}

func TestAnExperimentThatIsStoppedReturnsThePoliciesThatWereFinished(t *testing.T) {
	x := experiment(small(3, 12, 150), "resource-fair", "oracle-social")
	finishedRuns := 0
	x.Done = func() { finishedRuns++ }
	x.Stop = func() bool { return finishedRuns >= x.Seeds }
	out, err := x.Play()
	if !errors.Is(err, sim.ErrStopped) || len(out) != 1 || out[0].Policy != x.Run[0] || len(out[0].Runs) != x.Seeds {
		t.Errorf("%d policies of %v: %v", len(out), x.Run, err)
	}
}
