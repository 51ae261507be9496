package colocate

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab/planner/reclaim"
)

// beside is a policy that decides for a shop with a slack and a load, beside one job
// with so many cores of 20.
func beside(p *policy, at time.Time, slack, load, has float64) Decision {
	limit, top := 0.1, 0.95
	o := Observation{Time: at, Capacity: Amounts{cores: 20}, Jobs: []Job{{Job: reclaim.Job{ID: "j"}, State: Running, Has: Amounts{cores: has}}},
		Services: []Service{{Workload: "shop", Slack: &slack, Load: &load, Share: 0.5, SlackLimit: &limit, LoadLimit: &top}}}
	return p.Decide(&o)
}

func rhythm(t *testing.T) *policy {
	p, err := New(Rhythm, Config{})
	if err != nil {
		t.Fatal(err)
	}
	return p.(*policy)
}

func TestWhatWasTooMuchAtALoadIsTakenBeforeItGetsThere(t *testing.T) {
	p, at := rhythm(t), time.Unix(1e9, 0)
	beside(p, at, -0.1, 0.6, 16) // 16 cores were too many at 0.6
	for i := range 5 {
		beside(p, at.Add(time.Duration(2*i+2)*time.Second), 0.9, 0.2, 16)
	}
	d := beside(p, at.Add(time.Minute), 0.9, 0.65, 16)
	if len(d.Changes) != 1 || d.Changes[0].Act != Cut || d.Changes[0].To[cores] != 12 {
		t.Errorf("%+v, want a cut to three quarters", d)
	}
}

func TestGrowthToACeilingIsQuickAndBeyondItWaits(t *testing.T) {
	p, at, has := rhythm(t), time.Unix(1e9, 0), 8.0
	beside(p, at, -0.1, 0.6, 16)
	var grew []int
	for i := range 12 {
		d := beside(p, at.Add(time.Duration(2*i+2)*time.Second), 0.9, 0.6, has)
		if len(d.Changes) > 0 && d.Changes[0].Act == Grow {
			has = d.Changes[0].To[cores]
			grew = append(grew, i)
		}
	}
	if has != 14 || grew[0] != 1 || grew[3] != 4 || grew[4] != 7 {
		t.Errorf("it has %v, and grew at ticks %v: want 12 at tick 4, and a tenth of 20 more after eight calm ticks", has, grew)
	}
}

func TestAStepBeyondACeilingThatFailsLowersThatCeilingOnly(t *testing.T) {
	s := &standing{Ceilings: map[string]ceiling{cores: make(ceiling, bins+1), llc: make(ceiling, bins+1)}}
	s.Ceilings[cores].lower(0.5, 10)
	s.Ceilings[llc].lower(0.5, 4)
	p := rhythm(t)
	p.Services["shop"] = s
	now := time.Unix(1e9, 0)
	p.Tried = tried{Resource: llc, At: now.Add(-4 * time.Second)}
	slack, load, limit := -0.1, 0.5, 0.1
	p.Decide(&Observation{Time: now, Capacity: Amounts{cores: 20, llc: 20}, Jobs: []Job{{Job: reclaim.Job{ID: "j"}, State: Running, Has: Amounts{cores: 10, llc: 5}}},
		Services: []Service{{Workload: "shop", Slack: &slack, Load: &load, Share: 0.5, SlackLimit: &limit, LoadLimit: &limit}}})
	if s.Ceilings[cores].at(0.5) != 10 || s.Ceilings[llc].at(0.5) >= 5 {
		t.Errorf("%v", s.Ceilings)
	}
}

func TestACeilingHoldsAtEveryHigherLoadAndIsLiftedAtEveryLowerOne(t *testing.T) {
	c := make(ceiling, bins+1)
	c.lower(0.5, 10)
	c.lower(0.7, 6)
	c.raise(0.6, 12)
	for load, want := range map[float64]float64{0.52: 12, 0.6: 12, 0.71: 6, 1.5: 6} {
		if got := c.at(load); got != want {
			t.Errorf("at %v: %v, want %v", load, got, want)
		}
	}
	if got := c.at(0.3); got <= 1e18 {
		t.Errorf("at 0.3: %v, want none", got)
	}
}
