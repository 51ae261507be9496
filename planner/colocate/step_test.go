package colocate_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/internal/hosttest"
	"github.com/trimtab/trimtab/pipeline/steptest"
	"github.com/trimtab/trimtab/planner/colocate"
	"github.com/trimtab/trimtab/planner/issue"
)

// shared are the resources of the host of the tests.
func shared() (all []issue.Resource) {
	for _, name := range []string{"cores", "cpu", "weight", "running", "alive", "memory", "llc", "membw", "frequency", "network"} {
		all = append(all, issue.Resource{Name: name})
	}
	return all
}

func config() colocate.StepConfig {
	return colocate.StepConfig{Pool: "jobs", Host: "h", Policy: colocate.Rhythm, Mode: trimtab.Act, Resources: shared(), Services: []string{"shop"}}
}

// knobs are those of one job that has so many cores.
func knobs(job string, cores float64) []hosttest.Knob {
	knob := func(resource string, low, high, now float64) hosttest.Knob {
		return hosttest.Knob{KnobID: trimtab.KnobID{Workload: "batch", Instance: job, Resource: resource}, Min: low, Max: high, Mode: trimtab.Act, Now: trimtab.Units(now)}
	}
	return []hosttest.Knob{knob("cores", 1, 8, cores), knob("running", 0, 1, 1), knob("alive", 0, 1, 1), knob("weight", 1, 10000, 100)}
}

// site is a step beside the simulated host that it plans for.
type site struct {
	t    interface{ Fatalf(string, ...any) }
	step *colocate.Step
	host *hosttest.Host
	now  time.Time
	give func(now time.Time, in trimtab.Value) []trimtab.Value
	// plans are all that came out.
	plans []*trimtab.Plan
}

func newSite(t interface{ Fatalf(string, ...any) }, c colocate.StepConfig, knobs ...hosttest.Knob) *site {
	step, err := colocate.NewStep(c)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return &site{t: t, step: step, give: step.Step, now: t0, host: hosttest.New("h", "jobs", map[string]float64{"cores": 8, "cpu": 8, "memory": 16 * gib}, knobs...)}
}

// tell gives the step a value and carries out what comes out, at once.
func (s *site) tell(in trimtab.Value) {
	for _, v := range s.give(s.now, in) {
		p := v.(*trimtab.Plan)
		s.plans = append(s.plans, p)
		if err := p.Validate(); err != nil {
			s.t.Fatalf("%v", err)
		}
		s.tell(s.host.Handle(s.now, p))
	}
	if sum := s.host.Given("cores", s.now); sum > 8+1e-9 {
		s.t.Fatalf("%v cores of 8 are given", sum)
	}
}

// period is one tick, with a shop that stands as told.
func (s *site) period(slack, load float64) {
	s.now = s.now.Add(2 * time.Second)
	s.host.Tick(s.now)
	s.tell(s.host.Holding(s.now))
	if load >= 0 {
		s.tell(shop(s.now, slack, load))
	}
	s.tell(nil)
}

func (s *site) periods(n int, slack, load float64) {
	for range n {
		s.period(slack, load)
	}
}

func shop(now time.Time, slack, load float64) *colocation.Contributions {
	tail, half, limit := (1-slack)*0.2, 0.3, 0.76
	return &colocation.Contributions{Workload: "shop", Time: now, Window: 2, Load: load * 1000, MaxLoad: 1000, SLO: 0.2, Quantile: 0.99, Tail: &tail, Requests: 100, Levels: 3,
		Servpods: []colocation.Servpod{
			{Component: "db", Host: "h", Contribution: 0.4, LoadLimit: &limit, SlackLimit: &half, Origin: colocation.FromHistory, SlackOrigin: colocation.FromSearch},
			{Component: "web", Host: "elsewhere", Contribution: 0.4},
		}}
}

func (s *site) has(job, resource string) float64 {
	return s.host.Knob(trimtab.KnobID{Pool: "jobs", Host: "h", Workload: "batch", Instance: job, Resource: resource}).Now.Value
}

func TestAJobGrowsWhileTheServiceIsCalm(t *testing.T) {
	s := newSite(t, config(), knobs("a", 1)...)
	if s.periods(20, 0.9, 0.2); s.has("a", "cores") != 8 || s.has("a", "weight") != 1 {
		t.Errorf("%v cores, weight %v; %+v", s.has("a", "cores"), s.has("a", "weight"), s.step.Status())
	}
}

func TestAServiceThatMissesItsSLOFreezesTheJobThatLosesLeast(t *testing.T) {
	s := newSite(t, config(), append(knobs("a", 2), knobs("b", 2)...)...)
	s.periods(3, 0.2, 0.2)
	checkpoint, none := time.Second, time.Hour
	s.tell(&colocate.Progress{Job: "batch/b", Time: s.now, SinceCheckpoint: &checkpoint})
	s.tell(&colocate.Progress{Job: "batch/a", Time: s.now, SinceCheckpoint: &none})
	if s.period(-0.1, 0.2); s.has("a", "running") != 1 || s.has("b", "running") != 0 || s.has("b", "alive") != 1 {
		t.Errorf("a %v, b %v: want b frozen", s.has("a", "running"), s.has("b", "running"))
	}
}

func TestAKilledJobThatIsStartedAgainWaitsForItsTurnWithTheLeast(t *testing.T) {
	c := config()
	c.Policy = colocate.Indiscriminate // kills at the first miss
	s := newSite(t, c, knobs("a", 4)...)
	s.periods(3, 0.2, 0.2)
	if s.period(-0.1, 0.2); s.has("a", "alive") != 0 || s.has("a", "running") != 0 || s.has("a", "cores") != 1 {
		t.Errorf("alive %v, running %v, %v cores: want it killed, and what starts in its place frozen with the least",
			s.has("a", "alive"), s.has("a", "running"), s.has("a", "cores"))
	}
	if first := s.plans[len(s.plans)-1].Actions[0]; first.Resource != "alive" {
		t.Errorf("%s is first: a job that is slowed or frozen ends later", first.Resource)
	}
}

func TestAKilledJobThatDoesNotEndKeepsWhatItHasAndIsNotRunAgain(t *testing.T) {
	c := config()
	c.Policy = colocate.Indiscriminate
	all := append(knobs("a", 4), knobs("b", 1)...)
	for i := range all {
		if all[i].Instance == "a" && all[i].Resource == "alive" {
			all[i].Delay = time.Hour // its processes wait for a device
		}
	}
	memory := func(job string) hosttest.Knob {
		return hosttest.Knob{KnobID: trimtab.KnobID{Workload: "batch", Instance: job, Resource: "memory"}, Max: 16 * gib, Mode: trimtab.Act, Now: trimtab.Units(10 * gib)}
	}
	s := newSite(t, c, append(all, memory("a"))...)
	s.periods(3, 0.2, 0.2)
	s.period(-0.1, 0.2)
	id := trimtab.KnobID{Pool: "jobs", Host: "h", Workload: "batch", Instance: "b", Resource: "alive"}
	s.periods(2, 0.9, 0.2)
	s.host.Knob(id).Now = trimtab.Units(1) // somebody starts b again
	s.periods(40, 0.9, 0.2)
	status := s.step.Status()
	if s.has("a", "running") != 0 || s.has("a", "cores") != 1 || len(status.Ending) != 1 || status.Ending[0].ID != "batch/a" || status.Ending[0].State != colocate.Ending {
		t.Errorf("a: running %v, %v cores, status %+v", s.has("a", "running"), s.has("a", "cores"), status.Ending)
	}
	if got := status.Observed.Capacity; got["memory"] != 6*gib || got["cores"] != 7 {
		t.Errorf("others may have %v: want all but what a has", got)
	}
	if len(status.Observed.Jobs) != 1 || status.Observed.Jobs[0].ID != "batch/b" {
		t.Errorf("%+v", status.Observed.Jobs)
	}
}

func TestJobsAreFrozenAboveTheLoadlimitAndComeBackWithAtLeastWhatTheyHad(t *testing.T) {
	s := newSite(t, config(), append(knobs("a", 3), knobs("b", 2)...)...)
	if s.periods(2, 0.9, 0.8); s.has("a", "running") != 0 || s.has("b", "running") != 0 || s.has("a", "cores") != 1 {
		t.Fatalf("want both frozen, with one core each")
	}
	if s.periods(3, 0.9, 0.5); s.has("a", "running") != 1 || s.has("b", "running") != 1 || s.has("a", "cores") < 3 || s.has("b", "cores") < 2 {
		t.Errorf("want both back: %v, %v", s.has("a", "cores"), s.has("b", "cores"))
	}
}

func TestAServiceThatWasNeverHeardOfIsMissing(t *testing.T) {
	s := newSite(t, config(), knobs("a", 1)...)
	if s.periods(5, 0, -1); s.has("a", "cores") != 1 || s.has("a", "running") != 1 {
		t.Errorf("want the job as it was")
	}
	if s.periods(3, 0, -1); s.has("a", "running") != 0 {
		t.Errorf("want it suspended")
	}
}

func TestAJobThatSomebodyElseTurnsIsOnlyAdvisedOn(t *testing.T) {
	s := newSite(t, config(), append(knobs("a", 2), knobs("b", 2)...)...)
	s.periods(4, 0.9, 0.2)
	s.host.Knob(trimtab.KnobID{Pool: "jobs", Host: "h", Workload: "batch", Instance: "a", Resource: "cores"}).Now = trimtab.Units(1)
	s.period(0.9, 0.8)
	last := s.plans[len(s.plans)-1]
	if s.has("a", "running") != 1 || s.has("b", "running") != 0 {
		t.Errorf("a runs %v, b %v", s.has("a", "running"), s.has("b", "running"))
	}
	advised := false
	for _, a := range last.Actions {
		if a.Instance == "a" {
			advised = a.Mode == trimtab.Recommend && a.Resource == "running"
		}
	}
	if !advised || !strings.Contains(last.Held["batch"].Text, "somebody else") || !strings.Contains(s.step.Status().Contested["batch/a"], "somebody else") {
		t.Errorf("%+v", last)
	}
}

func TestInModeRecommendNothingIsTurned(t *testing.T) {
	c := config()
	c.Mode = ""
	s := newSite(t, c, knobs("a", 2)...)
	s.periods(5, -1, 0.9)
	if s.has("a", "alive") != 1 || s.has("a", "weight") != 100 || len(s.plans) == 0 || s.plans[0].Actions[0].Mode != trimtab.Recommend {
		t.Errorf("%+v", s.plans)
	}
}

func TestAHostWithoutKnobsSaysWhichAreMissing(t *testing.T) {
	s := newSite(t, config(), knobs("a", 2)[:2]...)
	s.period(0.9, 0.2)
	if got := fmt.Sprint(s.step.Status().Missing); got != "[alive cpu frequency llc memory membw network]" {
		t.Error(got)
	}
	if s.period(-1, 0.2); s.has("a", "running") != 0 { // it cannot be killed here
		t.Error("want it suspended")
	}
}

func TestAPauseHoldsEverythingAndKeepsTheLease(t *testing.T) {
	s := newSite(t, config(), knobs("a", 2)...)
	s.periods(3, 0.9, 0.2)
	had := s.has("a", "cores")
	s.tell(&trimtab.Command{Pool: "jobs", Verb: trimtab.Pause, Time: s.now})
	if s.periods(30, 0.9, 0.9); s.has("a", "cores") != had || s.has("a", "running") != 1 || !s.step.Status().Paused {
		t.Errorf("%v cores, had %v", s.has("a", "cores"), had)
	}
	s.tell(&trimtab.Command{Pool: "jobs", Verb: trimtab.Resume, Time: s.now})
	if s.period(0.9, 0.9); s.has("a", "running") != 0 {
		t.Error("want it suspended")
	}
}

func TestAJobThatReportsLessOrNothingIsUnpredictable(t *testing.T) {
	s := newSite(t, config(), knobs("a", 2)...)
	elapsed := 100 * time.Second
	report := func(done float64) {
		s.tell(&colocate.Progress{Job: "batch/a", Time: s.now, Predict: colocate.PredictDataParallel, Done: &done, Elapsed: &elapsed})
	}
	predictable := func() bool { return s.step.Status().Observed.Jobs[0].Predictable }
	s.period(0.2, 0.2)
	if report(0.5); !func() bool { s.period(0.2, 0.2); return predictable() }() {
		t.Error("want it predicted")
	}
	if s.periods(31, 0.2, 0.2); predictable() {
		t.Error("silent for a minute: want it unpredictable")
	}
	report(0.6)
	if s.period(0.2, 0.2); !predictable() {
		t.Error("want it predicted again")
	}
	report(0.3)
	s.period(0.2, 0.2)
	report(0.9)
	if s.period(0.2, 0.2); predictable() {
		t.Error("it went back: want it unpredictable for good")
	}
}

func TestLimitsSayWhereTheyAreFrom(t *testing.T) {
	s := newSite(t, config(), knobs("a", 2)...)
	s.period(0.9, 0.2)
	if got := s.step.Status().Limits["shop"]; got != (colocate.Limits{LoadLimit: 0.76, SlackLimit: 0.3, LoadOrigin: colocation.FromHistory, SlackOrigin: colocation.FromSearch}) {
		t.Errorf("%+v", got)
	}
}

// life plays a host, a shop and people around a step.
func life(t *rapid.T, give func(now time.Time, in trimtab.Value) []trimtab.Value) {
	s := newSite(t, config(), append(knobs("a", 1), knobs("b", 2)...)...)
	s.give = give
	for range rapid.IntRange(8, 25).Draw(t, "events") {
		switch rapid.IntRange(0, 12).Draw(t, "event") {
		case 0:
			s.tell(&trimtab.Command{Pool: "jobs", Time: s.now, Workload: "batch", Plan: "1-1", Verb: rapid.SampledFrom([]trimtab.Verb{trimtab.Pause, trimtab.Resume, trimtab.Round, trimtab.Release, trimtab.Apply}).Draw(t, "verb")})
		case 1:
			id := trimtab.KnobID{Pool: "jobs", Host: "h", Workload: "batch", Instance: "a", Resource: "cores"}
			s.host.Knob(id).Now = trimtab.Units(1)
		case 2:
			k := s.host.Knob(trimtab.KnobID{Pool: "jobs", Host: "h", Workload: "batch", Instance: "b", Resource: "running"})
			k.Fails = !k.Fails
		default:
			s.period(rapid.Float64Range(-0.2, 1).Draw(t, "slack"), rapid.Float64Range(-0.1, 1).Draw(t, "load"))
		}
	}
}

func TestTheStepMeetsTheContractOfSteps(t *testing.T) {
	steptest.Run(t, steptest.Suite{
		New: func() trimtab.Step {
			s, err := colocate.NewStep(config())
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
		Live:    func(t *rapid.T, l *steptest.Life) { life(t, l.Give) },
		Repeats: []trimtab.Kind{trimtab.KindHolding, trimtab.KindOutcome, colocation.KindContributions, trimtab.KindCommand},
		Foreign: func(t *rapid.T, now time.Time) trimtab.Value {
			h := hosttest.New("h", "q", map[string]float64{"cores": 4}, knobs("a", 1)...).Holding(now)
			elsewhere := hosttest.New("g", "jobs", map[string]float64{"cores": 4}, knobs("a", 1)...).Holding(now)
			c := shop(now, 0.5, 0.5)
			c.Workload, c.Servpods = "other", c.Servpods[1:]
			return rapid.SampledFrom([]trimtab.Value{h, elsewhere, c, &trimtab.Command{Pool: "q", Verb: trimtab.Pause, Time: now},
				&trimtab.Outcome{Pool: "jobs", Host: "g", Epoch: 1, Sequence: 1, Step: 1, Time: now}, &trimtab.Leader{Pool: "q", Epoch: 3}}).Draw(t, "foreign")
		},
		Forgets: "what the knobs hold and how services stand, which it hears again",
	})
}

func TestReportsOfJobsGiveTheSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sites []*site
		for range 2 {
			sites = append(sites, newSite(t, config(), append(knobs("a", 1), knobs("b", 2)...)...))
		}
		for range rapid.IntRange(1, 15).Draw(t, "periods") {
			done, slack, load := wild(t, 1, "done"), rapid.Float64Range(-0.2, 1).Draw(t, "slack"), rapid.Float64Range(0, 1).Draw(t, "load")
			elapsed := time.Duration(rapid.IntRange(-5, 500).Draw(t, "elapsed")) * time.Second
			for _, s := range sites {
				s.tell(&colocate.Progress{Job: "batch/a", Time: s.now.Add(time.Millisecond), Predict: colocate.PredictDataParallel, Done: &done, Elapsed: &elapsed})
				s.tell(&colocate.Surroundings{Time: s.now.Add(time.Millisecond), Capacity: colocate.Amounts{"cores": 6}, Power: &colocate.Power{Draws: done * 100, TDP: 90}})
				s.period(slack, load)
			}
		}
		if !reflect.DeepEqual(sites[0].plans, sites[1].plans) || !reflect.DeepEqual(sites[0].step.Snapshot(), sites[1].step.Snapshot()) {
			t.Fatalf("%+v, %+v", sites[0].plans, sites[1].plans)
		}
	})
}

func TestARestartKeepsTheLimitsThatWereFound(t *testing.T) {
	c := config()
	s := newSite(t, c, knobs("a", 2)...)
	unknown := func(slack float64) {
		s.now = s.now.Add(2 * time.Second)
		s.tell(s.host.Holding(s.now))
		in := shop(s.now, slack, 0.2)
		in.Servpods[0].SlackLimit = nil
		s.tell(in)
		s.tell(nil)
	}
	for range 1000 {
		unknown(0.6)
	}
	found := s.step.Status().Limits["shop"]
	next := newSite(t, c, knobs("a", 2)...)
	next.now = s.now
	if err := next.step.Restore("colocate", s.step.Snapshot()["colocate"]); err != nil {
		t.Fatal(err)
	}
	s.step, s.give, s.host = next.step, next.step.Step, next.host
	unknown(0.6)
	if got := s.step.Status().Limits["shop"]; got != found || found.SlackLimit >= 1 || found.SlackOrigin != colocation.FromSearch {
		t.Errorf("%+v, found %+v", got, found)
	}
}

func TestAJobWithoutALimitWaitsForItsTurnAndBeginsSmall(t *testing.T) {
	knob := func(resource string, low, high float64, now trimtab.Amount) hosttest.Knob {
		return hosttest.Knob{KnobID: trimtab.KnobID{Workload: "batch", Instance: "a", Resource: resource}, Min: low, Max: high, Mode: trimtab.Act, Now: now}
	}
	s := newSite(t, config(), knob("cpu", 0.01, 8, trimtab.Unlimited()), knob("running", 0, 1, trimtab.Units(1)))
	if s.period(0.9, 0.2); s.has("a", "running") != 0 || s.has("a", "cpu") != 0.01 {
		t.Errorf("running %v with %v cores: want it to wait", s.has("a", "running"), s.has("a", "cpu"))
	}
	for range 10 {
		if s.period(0.9, 0.2); s.has("a", "running") == 1 {
			break
		}
	}
	if got := s.has("a", "cpu"); got != 0.8 {
		t.Errorf("it began with %v cores, want a tenth of 8", got)
	}
}
