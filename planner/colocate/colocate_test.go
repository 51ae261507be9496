package colocate_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

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

func TestStopTakesTheTopLevelOfTheReclamationQueueAndKillsWhenTheSLOIsMissedThreeTimesInARow(t *testing.T) {
	var jobs []colocate.Job
	for i, useless := range []float64{9, 1, 5, 3} {
		j := job(fmt.Sprint("j", i), colocate.Running, 1)
		j.Useless = useless
		jobs = append(jobs, j)
	}
	w := newWorld(t, colocate.Rhythm, []colocate.Service{service(-1, 0.1)}, jobs...)
	for _, want := range []string{"[suspend j1 suspend j3]", "[suspend j2]", "[kill j0]"} { // half of those that run
		if d := w.tick(); d.Verb != colocate.StopBE || acts(d) != want {
			t.Errorf("%s %s, want %s", d.Verb, acts(d), want)
		}
	}
}

func TestAfterAMissWhatWasProvenAtThisLoadComesBackAtOnce(t *testing.T) {
	w := newWorld(t, colocate.Rhythm, []colocate.Service{service(0.9, 0.1)}, job("a", colocate.Running, 1))
	w.ticks(60)
	most := w.o.Jobs[0].Has["cores"]
	bad := -0.1
	good := w.o.Services[0].Slack
	w.o.Services[0].Slack = &bad
	if d := w.tick(); acts(d) != "[suspend a]" {
		t.Fatal(acts(d))
	}
	w.o.Services[0].Slack = good
	if w.ticks(4); w.o.Jobs[0].Has["cores"] < math.Floor(most*0.75) || w.o.Jobs[0].State != colocate.Running {
		t.Errorf("%v of %v cores", w.o.Jobs[0].Has["cores"], most)
	}
}

func TestWhatWasMeasuredInPartBeforeAStopStopsNothingMore(t *testing.T) {
	w := newWorld(t, colocate.Rhythm, []colocate.Service{service(-1, 0.1)}, job("a", colocate.Running, 1), job("b", colocate.Running, 1), job("c", colocate.Running, 1))
	w.o.Services[0].Window, w.o.Services[0].Share = 4*time.Second, 0.1
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

func TestWithOneRuleForAllGrowthWaitsLongerAfterEachReversal(t *testing.T) {
	w := newWorld(t, colocate.Heracles, []colocate.Service{service(0.9, 0.1)}, job("a", colocate.Running, 2))
	grew := func() (ticks int) {
		*w.o.Services[0].Slack = 0.9
		for had := w.o.Jobs[0].Has["cores"]; w.o.Jobs[0].Has["cores"] <= had; ticks++ {
			w.tick()
		}
		return ticks
	}
	first := grew()
	*w.o.Services[0].Slack = 0.04
	if w.tick().Verb != colocate.CutBE {
		t.Fatal("a cut waited")
	}
	second := grew()
	*w.o.Services[0].Slack = 0.04
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

func TestAServiceThatUsesNothingSuspendsNoJobWhenItTellsNothing(t *testing.T) {
	w := newWorld(t, colocate.Rhythm, []colocate.Service{service(0.9, 0.1)}, job("a", colocate.Running, 1))
	w.o.Services[0].Slack, w.o.Services[0].Idle = nil, true
	if d := w.ticks(100); d.Verb != colocate.DisallowBEGrowth || len(d.Changes) > 0 || w.running() != 1 {
		t.Errorf("%+v", d)
	}
	w.o.Services[0].Idle = false
	if d := w.tick(); d.Verb != colocate.SuspendBE || w.running() > 0 {
		t.Errorf("it works again and tells nothing: %+v", d)
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
	w := newWorld(t, colocate.Heracles, []colocate.Service{service(0.9, 0.1)}, job("a", colocate.Waiting, 0), job("b", colocate.Waiting, 0))
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

// Section 5.2: "we just reclaim resources from all the co-located BE workloads
// without distinguishing their priorities".
func TestWithoutDistinguishableReclamationAllJobsGo(t *testing.T) {
	for name, want := range map[string]string{
		colocate.Heracles: "[kill a kill b]", colocate.Indiscriminate: "[kill a kill b]", colocate.Rhythm: "[suspend a]",
	} {
		w := newWorld(t, name, []colocate.Service{service(-0.1, 0.5)}, job("a", colocate.Running, 1), job("b", colocate.Running, 1))
		if d := w.tick(); acts(d) != want {
			t.Errorf("%s: %+v, want %s", name, d, want)
		}
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

func BenchmarkDecide(b *testing.B) {
	for _, size := range []struct{ jobs, services int }{{10, 2}, {100, 10}} {
		for _, name := range []string{colocate.Heracles, colocate.Rhythm} {
			for verb, slack := range map[colocate.Verb]float64{colocate.AllowBEGrowth: 0.9, colocate.CutBE: 0.01} {
				b.Run(fmt.Sprintf("%d jobs, %d services/%s/%s", size.jobs, size.services, name, verb), func(b *testing.B) {
					p, o := policy(b, name), crowd(size.jobs, size.services, slack)
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
}

// crowd is a host with so many jobs, which share the link already, and services.
func crowd(jobs, services int, slack float64) colocate.Observation {
	n := float64(jobs)
	o := colocate.Observation{Time: t0, Capacity: colocate.Amounts{"cores": 4 * n, "cpu": 4 * n, "llc": 4 * n, "membw": 100 * n, "memory": 1e11 * n, "network": 1e7 * n}}
	for i := range jobs {
		j := job(fmt.Sprint("job", i), colocate.Running, 2)
		j.Has = colocate.Amounts{"cores": 2, "cpu": 2, "llc": 1, "membw": 10, "memory": 2 * gib, "network": 1e7}
		j.Useless, j.Loss, j.Predictable = float64(i%7), float64(i%11), i%2 == 0
		o.Jobs = append(o.Jobs, j)
	}
	for i := range services {
		s := service(slack, 0.5)
		s.Workload, s.Share = fmt.Sprint("service", i), 0.3
		o.Services = append(o.Services, s)
	}
	return o
}
