package colocate_test

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/planner/colocate"
	"github.com/trimtab/trimtab/planner/reclaim"
)

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
