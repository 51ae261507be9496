package colocate_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/colocate"
	"github.com/trimtab/trimtab/planner/reclaim"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const gib = 1 << 30

func ptr(v float64) *float64 { return &v }

// service stands as told, with the limits of the paper's MySQL.
func service(slack, load float64) colocate.Service {
	return colocate.Service{Workload: "shop", Slack: ptr(slack), Load: ptr(load), Share: 0.5, LoadLimit: ptr(0.76), SlackLimit: ptr(0.3)}
}

func job(id string, state colocate.State, cores float64) colocate.Job {
	j := colocate.Job{Job: reclaim.Job{ID: id}, State: state}
	if state != colocate.Waiting {
		j.Has = colocate.Amounts{"cores": cores}
	}
	return j
}

func policy(t interface{ Fatal(...any) }, name string) colocate.Policy {
	p, err := colocate.New(name, colocate.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// world applies what a policy decides, at once.
type world struct {
	p colocate.Policy
	o colocate.Observation
}

func newWorld(t *testing.T, name string, services []colocate.Service, jobs ...colocate.Job) *world {
	return &world{policy(t, name), colocate.Observation{Time: t0, Services: services, Jobs: jobs, Capacity: colocate.Amounts{"cores": 8}}}
}

func (w *world) tick() colocate.Decision {
	d := w.p.Decide(&w.o)
	for _, c := range d.Changes {
		apply(w.o.Jobs, c)
	}
	w.o.Time = w.o.Time.Add(2 * time.Second)
	return d
}

func (w *world) ticks(n int) (d colocate.Decision) {
	for range n {
		d = w.tick()
	}
	return d
}

func (w *world) running() (n int) {
	for _, j := range w.o.Jobs {
		if j.State == colocate.Running {
			n++
		}
	}
	return n
}

func apply(jobs []colocate.Job, c colocate.Change) {
	j := &jobs[slices.IndexFunc(jobs, func(j colocate.Job) bool { return j.ID == c.Job })]
	switch c.Act {
	case colocate.Kill:
		j.State, j.Has = colocate.Waiting, nil
	case colocate.Suspend:
		j.State = colocate.Suspended
	case colocate.Cut:
		j.Has = c.To
	default:
		j.State, j.Has = colocate.Running, c.To
	}
}

func acts(d colocate.Decision) string {
	var out []string
	for _, c := range d.Changes {
		out = append(out, fmt.Sprint(c.Act, " ", c.Job))
	}
	return fmt.Sprint(out)
}

func TestTheFirstRuleOfAlgorithm2ThatHoldsDecides(t *testing.T) {
	for _, c := range []struct {
		slack, load float64
		want        colocate.Verb
	}{
		{-0.01, 0.9, colocate.StopBE},
		{0.5, 0.77, colocate.SuspendBE},
		{0.14, 0.5, colocate.CutBE},
		{0.16, 0.5, colocate.DisallowBEGrowth},
		{0.31, 0.5, colocate.AllowBEGrowth},
	} {
		w := newWorld(t, colocate.Rhythm, []colocate.Service{service(c.slack, c.load)}, job("a", colocate.Running, 2))
		if d := w.tick(); d.Verb != c.want || d.By != "shop" || d.Why == "" {
			t.Errorf("slack %v, load %v: %+v, want %s", c.slack, c.load, d, c.want)
		}
	}
}

func TestTheStrictestOfSeveralServicesDecides(t *testing.T) {
	calm, tight := service(0.9, 0.1), service(0.1, 0.1)
	calm.Workload, tight.Workload = "a", "b"
	w := newWorld(t, colocate.Rhythm, []colocate.Service{calm, tight}, job("j", colocate.Running, 2))
	if d := w.tick(); d.Verb != colocate.CutBE || d.By != "b" || acts(d) != "[cut j]" || d.Changes[0].To["cores"] != 1 {
		t.Errorf("%+v", d)
	}
}

func TestStopKillsTheTopOfTheReclamationQueueAndSuspendsTheRestOfItsLevel(t *testing.T) {
	var jobs []colocate.Job
	for i, useless := range []float64{9, 1, 5, 3} {
		j := job(fmt.Sprint("j", i), colocate.Running, 1)
		j.Useless = useless
		jobs = append(jobs, j)
	}
	w := newWorld(t, colocate.Rhythm, []colocate.Service{service(-1, 0.1)}, jobs...)
	if d := w.tick(); acts(d) != "[kill j1 suspend j3]" { // half of four
		t.Errorf("%s", acts(d))
	}
}

func TestWhatWasMeasuredInPartBeforeAStopStopsNothingMore(t *testing.T) {
	w := newWorld(t, colocate.Heracles, []colocate.Service{service(-1, 0.1)}, job("a", colocate.Running, 1), job("b", colocate.Running, 1), job("c", colocate.Running, 1))
	w.o.Services[0].Window = 4 * time.Second
	var verbs []colocate.Verb
	for range 4 {
		verbs = append(verbs, w.tick().Verb)
	}
	want := []colocate.Verb{colocate.StopBE, colocate.DisallowBEGrowth, colocate.DisallowBEGrowth, colocate.StopBE}
	if !slices.Equal(verbs, want) || w.running() != 1 {
		t.Errorf("%v, %d run", verbs, w.running())
	}
}

func TestAStopThatFindsNoJobMakesGrowthWaitNoLonger(t *testing.T) {
	w := newWorld(t, colocate.Rhythm, []colocate.Service{service(-1, 0.1)}, job("a", colocate.Waiting, 0))
	for range 10 {
		w.tick()
	}
	w.o.Services[0] = service(0.9, 0.1)
	for n := range 4 {
		if w.tick(); w.running() == 1 {
			return
		} else if n == 3 {
			t.Errorf("nothing runs after 8 s without a miss")
		}
	}
}

func TestOneMeasurementStopsOnce(t *testing.T) {
	w := newWorld(t, colocate.Rhythm, []colocate.Service{service(-1, 0.1)}, job("a", colocate.Running, 1), job("b", colocate.Running, 1), job("c", colocate.Running, 1))
	w.o.Services[0].Share = 0.1
	w.tick()
	w.o.Services[0].Age = 2 * time.Second // still the same numbers
	if d := w.tick(); d.Verb != colocate.DisallowBEGrowth || w.running() != 2 {
		t.Errorf("%+v", d)
	}
	w.o.Services[0].Age = 0
	if d := w.tick(); d.Verb != colocate.StopBE || w.running() != 1 {
		t.Errorf("%+v", d)
	}
}

func TestTheLastCoreIsTakenBySuspending(t *testing.T) {
	w := newWorld(t, colocate.Rhythm, []colocate.Service{service(0.1, 0.1)}, job("a", colocate.Running, 2))
	if first, second := acts(w.tick()), acts(w.tick()); first != "[cut a]" || second != "[suspend a]" {
		t.Errorf("%s, then %s", first, second)
	}
}

func TestSuspendedJobsResumeTogetherOnceTheLoadFellByAMargin(t *testing.T) {
	w := newWorld(t, colocate.Rhythm, []colocate.Service{service(0.9, 0.8)}, job("a", colocate.Running, 3), job("b", colocate.Running, 2))
	if w.tick(); w.running() != 0 {
		t.Fatal("want both suspended")
	}
	*w.o.Services[0].Load = 0.75 // below the limit, not by 5% of it
	if d := w.ticks(20); d.Verb != colocate.DisallowBEGrowth || w.running() != 0 {
		t.Fatalf("%+v, %d run", d, w.running())
	}
	*w.o.Services[0].Load = 0.7
	if w.ticks(2); w.running() != 2 || w.o.Jobs[0].Has["cores"] != 3 {
		t.Errorf("%+v: want both as they were", w.o.Jobs)
	}
}

func TestGrowthWaitsLongerAfterEachReversal(t *testing.T) {
	w := newWorld(t, colocate.Rhythm, []colocate.Service{service(0.9, 0.1)}, job("a", colocate.Running, 2))
	grew := func() (ticks int) {
		*w.o.Services[0].Slack = 0.9
		for had := w.o.Jobs[0].Has["cores"]; w.o.Jobs[0].Has["cores"] <= had; ticks++ {
			w.tick()
		}
		return ticks
	}
	first := grew()
	*w.o.Services[0].Slack = 0.1
	if w.tick().Verb != colocate.CutBE {
		t.Fatal("a cut waited")
	}
	second := grew()
	*w.o.Services[0].Slack = 0.1
	w.tick()
	if third := grew(); first != 2 || second != 4 || third != 8 {
		t.Errorf("after %d, %d and %d ticks", first, second, third)
	}
}

func TestNothingGrowsBeforeNumbersOfTheTimeAfterTheLastGrowth(t *testing.T) {
	w := newWorld(t, colocate.Rhythm, []colocate.Service{service(0.9, 0.1)}, job("a", colocate.Running, 1))
	w.ticks(2)
	for age := 2 * time.Second; age <= 8*time.Second; age += 2 * time.Second {
		w.o.Services[0].Age = age + time.Second
		if d := w.tick(); len(d.Changes) > 0 {
			t.Fatalf("%v: %+v", age, d)
		}
	}
	w.o.Services[0].Age = 0
	if d := w.tick(); acts(d) != "[grow a]" {
		t.Errorf("%+v", d)
	}
}

func TestMissingNumbersStopGrowthAndThenSuspend(t *testing.T) {
	for name, lose := range map[string]func(s *colocate.Service){
		"no slack":  func(s *colocate.Service) { s.Slack = nil },
		"no load":   func(s *colocate.Service) { s.Load = nil },
		"NaN":       func(s *colocate.Service) { s.Slack = ptr(math.NaN()) },
		"infinite":  func(s *colocate.Service) { s.Load = ptr(math.Inf(1)) },
		"negative":  func(s *colocate.Service) { s.Load = ptr(-1) },
		"too old":   func(s *colocate.Service) { s.Age = 10*time.Second + 1 },
		"in future": func(s *colocate.Service) { s.Age = -time.Second },
	} {
		w := newWorld(t, colocate.Rhythm, []colocate.Service{service(0.9, 0.1)}, job("a", colocate.Running, 1))
		lose(&w.o.Services[0])
		for i := range 5 { // 0 to 8 s
			if d := w.tick(); d.Verb != colocate.DisallowBEGrowth || len(d.Changes) > 0 {
				t.Fatalf("%s, tick %d: %+v", name, i, d)
			}
		}
		if d := w.ticks(2); d.Verb != colocate.SuspendBE || w.running() > 0 {
			t.Errorf("%s: %+v", name, d)
		}
	}
}

func TestWithoutAServiceJobsGrowToTheCapacity(t *testing.T) {
	w := newWorld(t, colocate.Rhythm, nil, job("a", colocate.Waiting, 0), job("b", colocate.Waiting, 0))
	if d := w.ticks(20); d.Verb != colocate.AllowBEGrowth || w.o.Jobs[0].Has["cores"]+w.o.Jobs[1].Has["cores"] != 8 {
		t.Errorf("%+v", w.o.Jobs)
	}
}

func TestMemoryInUseIsNotCut(t *testing.T) {
	a := job("a", colocate.Running, 4)
	a.Has["memory"], a.Least = 2*gib, colocate.Amounts{"memory": 2*gib - 4096}
	b := job("b", colocate.Running, 4)
	b.Has["memory"] = 2 * gib // nobody knows what of it is in use
	w := newWorld(t, colocate.Rhythm, []colocate.Service{service(0.1, 0.1)}, a, b)
	w.o.Services[0].Share = 1
	w.o.Capacity["memory"] = 8 * gib
	if w.tick(); w.o.Jobs[0].Has["memory"] != 2*gib-4096 || w.o.Jobs[1].Has["memory"] != 2*gib || w.o.Jobs[0].Has["cores"] != 3 {
		t.Errorf("%+v", w.o.Jobs)
	}
}

func TestJobsSlowDownWhileThePackageIsHotAndTheServiceSlow(t *testing.T) {
	a := job("a", colocate.Running, 8)
	a.Has["frequency"] = 2600
	w := newWorld(t, colocate.Rhythm, []colocate.Service{service(0.9, 0.1)}, a)
	w.o.Capacity["frequency"] = 2600
	w.o.Services[0].Frequency, w.o.Services[0].LeastFrequency = 2000, 2200
	w.o.Power = &colocate.Power{Draws: 81, TDP: 100}
	if w.ticks(3); w.o.Jobs[0].Has["frequency"] != 2300 {
		t.Errorf("%v, want three steps of 100 MHz", w.o.Jobs[0].Has)
	}
	w.o.Services[0].Frequency, w.o.Power.Draws = 2300, 78
	if w.ticks(5); w.o.Jobs[0].Has["frequency"] != 2300 {
		t.Errorf("%v, want no rise above 75%%", w.o.Jobs[0].Has)
	}
	w.o.Power.Draws = 70
	if w.ticks(2); w.o.Jobs[0].Has["frequency"] != 2500 {
		t.Errorf("%v, want two steps up", w.o.Jobs[0].Has)
	}
}

func TestJobsShareWhatServpodsLeaveOfTheLink(t *testing.T) {
	w := newWorld(t, colocate.Rhythm, []colocate.Service{service(0.9, 0.1)}, job("a", colocate.Waiting, 0), job("b", colocate.Waiting, 0))
	w.o.Capacity["network"] = 1e9
	w.o.Link = &colocate.Link{Bandwidth: 1000, Used: 500} // 1000 − 1.2 · 500
	w.ticks(6)
	if a, b := w.o.Jobs[0].Has["network"], w.o.Jobs[1].Has["network"]; a != 200 || b != 200 {
		t.Errorf("%v and %v, want 200 each", a, b)
	}
}

func TestDeflationTakesTheSameShareOfAllAndKillsNobody(t *testing.T) {
	a, b := job("a", colocate.Running, 1), job("b", colocate.Running, 1)
	a.Has, b.Has = colocate.Amounts{"cpu": 4}, colocate.Amounts{"cpu": 2}
	w := newWorld(t, colocate.Deflation, []colocate.Service{service(-1, 0.99)}, a, b)
	w.o.Capacity = colocate.Amounts{"cpu": 8}
	if w.tick(); w.o.Jobs[0].Has["cpu"] != 3.6 || w.o.Jobs[1].Has["cpu"] != 1.8 {
		t.Errorf("%+v", w.o.Jobs)
	}
	if w.ticks(100); w.running() != 2 {
		t.Errorf("%+v", w.o.Jobs)
	}
}

func TestHeraclesHasOneRuleForAllOfAService(t *testing.T) {
	for load, want := range map[float64]colocate.Verb{0.84: colocate.AllowBEGrowth, 0.86: colocate.SuspendBE} {
		w := newWorld(t, colocate.Heracles, []colocate.Service{service(0.11, load)}, job("a", colocate.Running, 1))
		if d := w.tick(); d.Verb != want {
			t.Errorf("%v: %+v", load, d)
		}
	}
}

func TestWithoutAPolicyNothingRuns(t *testing.T) {
	w := newWorld(t, colocate.None, nil, job("a", colocate.Running, 1), job("b", colocate.Waiting, 0))
	if d := w.tick(); acts(d) != "[suspend a]" {
		t.Errorf("%+v", d)
	}
}

func TestAPolicyThatCannotBeIsRefused(t *testing.T) {
	for _, c := range []colocate.Config{{Period: -1}, {MaxAge: -1}, {Start: colocate.Amounts{"cpu": math.NaN()}}, {Step: colocate.Amounts{"cpu": -1}}} {
		if _, err := colocate.New(colocate.Rhythm, c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := colocate.New("best", colocate.Config{}); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error(err)
	}
}

// wild draws numbers of which some make no sense.
func wild(t *rapid.T, most float64, what string) float64 {
	switch rapid.IntRange(0, 30).Draw(t, what+" is") {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(1)
	case 2:
		return -1
	}
	return rapid.Float64Range(0, most).Draw(t, what)
}

var resources = []string{"cores", "cpu", "llc", "membw", "memory", "network", "frequency"}

func amounts(t *rapid.T, what string) colocate.Amounts {
	out := colocate.Amounts{}
	for _, name := range resources {
		if rapid.IntRange(0, 4).Draw(t, what+" has "+name) > 0 {
			most := 24.0
			if name == "memory" {
				most = 32 * gib
			}
			out[name] = wild(t, most, what+" "+name)
		}
	}
	return out
}

func maybe(t *rapid.T, most float64, what string) *float64 {
	if rapid.IntRange(0, 5).Draw(t, what+" missing") == 0 {
		return nil
	}
	v := wild(t, most, what)
	if rapid.IntRange(0, 3).Draw(t, what+" below 0") == 0 {
		v = -v
	}
	return &v
}

// disturb draws what changes between two ticks.
func disturb(t *rapid.T, o *colocate.Observation) {
	o.Time = o.Time.Add(time.Duration(rapid.IntRange(0, 4000).Draw(t, "ms")) * time.Millisecond)
	o.Services = nil
	for i := range rapid.IntRange(0, 3).Draw(t, "services") {
		s := colocate.Service{Workload: fmt.Sprint("s", i), Age: time.Duration(rapid.IntRange(-1, 25).Draw(t, "age")) * time.Second, Share: wild(t, 1, "share"),
			Slack: maybe(t, 1, "slack"), Load: maybe(t, 1, "load"), LoadLimit: maybe(t, 1, "loadlimit"), SlackLimit: maybe(t, 1, "slacklimit"),
			Frequency: wild(t, 3000, "frequency"), LeastFrequency: wild(t, 3000, "least frequency")}
		o.Services = append(o.Services, s)
	}
	if rapid.IntRange(0, 3).Draw(t, "capacity changes") == 0 {
		o.Capacity = amounts(t, "host")
	}
	o.Power, o.Link = nil, nil
	if rapid.Bool().Draw(t, "power") {
		o.Power = &colocate.Power{Draws: wild(t, 200, "draws"), TDP: wild(t, 200, "TDP")}
	}
	if rapid.Bool().Draw(t, "link") {
		o.Link = &colocate.Link{Bandwidth: wild(t, 20, "link"), Used: wild(t, 20, "used")}
	}
	for i := range o.Jobs {
		j := &o.Jobs[i]
		j.Loss, j.Useless, j.Attained = wild(t, 10, "L")-5, wild(t, 10, "U"), wild(t, 10, "attained")
		j.Predictable = rapid.Bool().Draw(t, "predictable")
		if rapid.IntRange(0, 3).Draw(t, "least known") == 0 {
			j.Least = colocate.Amounts{"memory": wild(t, 2*gib, "in use")}
		}
		if rapid.IntRange(0, 30).Draw(t, "done") == 0 {
			j.State, j.Has = colocate.Waiting, nil
		}
	}
}

// had is what jobs have of a resource together, and whether all of it makes sense.
func had(o *colocate.Observation, name string) (sum float64, ok bool) {
	ok = true
	for _, j := range o.Jobs {
		if j.State == colocate.Running || j.State == colocate.Suspended && name == "memory" {
			if v, given := j.Has[name]; given {
				ok = ok && v >= 0 && v <= 1e18
				sum += v
			}
		}
	}
	return sum, ok
}

func TestJobsNeverHaveMoreThanTheCapacityNotEvenInBetween(t *testing.T) {
	for _, name := range []string{colocate.None, colocate.Heracles, colocate.Indiscriminate, colocate.Rhythm, colocate.Deflation} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				p := policy(t, name)
				o := colocate.Observation{Time: t0, Capacity: amounts(t, "host")}
				for i := range rapid.IntRange(0, 6).Draw(t, "jobs") {
					o.Jobs = append(o.Jobs, colocate.Job{Job: reclaim.Job{ID: fmt.Sprint("j", i)}, State: colocate.Waiting})
				}
				for range rapid.IntRange(1, 25).Draw(t, "ticks") {
					disturb(t, &o)
					check(t, name, &o, p.Decide(&o))
				}
			})
		})
	}
}

// check applies a decision, change by change.
func check(t *rapid.T, policy string, o *colocate.Observation, d colocate.Decision) {
	giving := false
	for _, c := range d.Changes {
		gives := c.Act == colocate.Resume || c.Act == colocate.Grow || c.Act == colocate.Start
		if giving && !gives {
			t.Fatalf("%s takes after it gave: %+v", d.Verb, d.Changes)
		}
		giving = gives
		if gives && d.Verb != colocate.AllowBEGrowth || c.Act == colocate.Kill && policy == colocate.Deflation {
			t.Fatalf("%s: %+v", d.Verb, c)
		}
		before := map[string]float64{}
		for _, name := range resources {
			before[name], _ = had(o, name)
		}
		apply(o.Jobs, c)
		for _, name := range resources {
			limit, known := o.Capacity[name]
			if !(known && limit >= 0 && limit <= 1e18) || name == "frequency" {
				continue
			}
			sum, ok := had(o, name)
			if ok && sum > limit*(1+1e-6)+1e-9 && (gives || sum > before[name]*(1+1e-6)) {
				t.Fatalf("%+v: %v of %s, of %v", c, sum, name, limit)
			}
		}
		for name, v := range c.To {
			if !(v >= 0 && v <= 1e18) {
				t.Fatalf("%+v: %v of %s", c, v, name)
			}
		}
	}
	if policy == colocate.Deflation {
		return
	}
	for _, name := range resources {
		limit, known := o.Capacity[name]
		if sum, ok := had(o, name); ok && known && limit >= 0 && limit <= 1e18 && name != "frequency" && sum > limit*(1+1e-6)+1e-9 && policy != colocate.None {
			t.Fatalf("%s: %v of %s at last, of %v: %+v", d.Verb, sum, name, limit, o.Jobs)
		}
	}
}

func TestThatWhichTakesAwayNeverWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := policy(t, colocate.Rhythm)
		o := colocate.Observation{Time: t0, Capacity: colocate.Amounts{"cores": 8}, Jobs: []colocate.Job{job("a", colocate.Running, 2), job("b", colocate.Running, 2)}}
		for range rapid.IntRange(0, 40).Draw(t, "ticks") {
			o.Services = []colocate.Service{service(rapid.Float64Range(-0.2, 1).Draw(t, "slack"), rapid.Float64Range(0, 1).Draw(t, "load"))}
			for _, c := range p.Decide(&o).Changes {
				apply(o.Jobs, c)
			}
			o.Time = o.Time.Add(2 * time.Second)
		}
		o.Jobs[0].State, o.Jobs[0].Has = colocate.Running, colocate.Amounts{"cores": 2}
		slack, load := rapid.Float64Range(-0.2, 0.149).Draw(t, "slack"), rapid.Float64Range(0, 1).Draw(t, "load")
		o.Services = []colocate.Service{service(slack, load)}
		want := colocate.CutBE
		if slack < 0 {
			want = colocate.StopBE
		} else if load > 0.76 {
			want = colocate.SuspendBE
		}
		if d := p.Decide(&o); d.Verb != want || len(d.Changes) == 0 {
			t.Fatalf("slack %v, load %v: %+v, want %s", slack, load, d, want)
		}
	})
}

func TestTheSameObservationsGiveTheSameDecisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{colocate.Heracles, colocate.Indiscriminate, colocate.Rhythm, colocate.Deflation}).Draw(t, "policy")
		p, q := policy(t, name), policy(t, name)
		o := colocate.Observation{Time: t0, Capacity: colocate.Amounts{"cores": 8, "llc": 11, "memory": 32 * gib}}
		for i := range rapid.IntRange(0, 6).Draw(t, "jobs") {
			o.Jobs = append(o.Jobs, colocate.Job{Job: reclaim.Job{ID: fmt.Sprint("j", i)}, State: colocate.Waiting})
		}
		for range 20 {
			o.Time = o.Time.Add(2 * time.Second)
			o.Services = []colocate.Service{service(rapid.Float64Range(-0.1, 1).Draw(t, "slack"), rapid.Float64Range(0, 0.8).Draw(t, "load"))}
			d, e := p.Decide(&o), q.Decide(&o)
			if !reflect.DeepEqual(d, e) {
				t.Fatalf("%+v, %+v", d, e)
			}
			for _, c := range d.Changes {
				apply(o.Jobs, c)
			}
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	for _, name := range []string{colocate.Heracles, colocate.Rhythm} {
		for verb, slack := range map[colocate.Verb]float64{colocate.AllowBEGrowth: 0.9, colocate.CutBE: 0.01} {
			b.Run(fmt.Sprint(name, "/", verb), func(b *testing.B) {
				p := policy(b, name)
				o := colocate.Observation{Time: t0, Capacity: colocate.Amounts{"cores": 400, "cpu": 400, "llc": 400, "membw": 1e4, "memory": 1e13, "network": 1e9}}
				for i := range 100 {
					j := job(fmt.Sprint("job", i), colocate.Running, 2)
					j.Has = colocate.Amounts{"cores": 2, "cpu": 2, "llc": 1, "membw": 10, "memory": 2 * gib, "network": 1e6}
					j.Useless, j.Loss, j.Predictable = float64(i%7), float64(i%11), i%2 == 0
					o.Jobs = append(o.Jobs, j)
				}
				for i := range 10 {
					s := service(slack, 0.5)
					s.Workload, s.Share = fmt.Sprint("service", i), 0.3
					o.Services = append(o.Services, s)
				}
				b.ReportAllocs()
				for b.Loop() {
					o.Time = o.Time.Add(2 * time.Second)
					if d := p.Decide(&o); d.Verb != verb {
						b.Fatal(d)
					}
				}
			})
		}
	}
}
