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
	beside(p, at, -1, 0.6, 16) // 16 cores were too many at 0.6
	for i := range 5 {
		beside(p, at.Add(time.Duration(2*i+2)*time.Second), 0.9, 0.2, 16)
	}
	d := beside(p, at.Add(time.Minute), 0.9, 0.65, 16)
	if len(d.Changes) != 1 || d.Changes[0].Act != Cut || d.Changes[0].To[cores] != 14 {
		t.Errorf("%+v, want a cut by half of a quarter, as half of the tail is this Servpod's", d)
	}
}

func TestGrowthToACeilingIsQuickAndBeyondItWaits(t *testing.T) {
	p, at, has := rhythm(t), time.Unix(1e9, 0), 8.0
	beside(p, at, -0.1, 0.6, 16)
	grew := map[int]float64{}
	for i := range 20 {
		d := beside(p, at.Add(time.Duration(2*i+2)*time.Second), 0.9, 0.6, has)
		if len(d.Changes) > 0 && d.Changes[0].Act == Grow {
			grew[i] = d.Changes[0].To[cores] - has
			has = d.Changes[0].To[cores]
		}
	}
	for i := 1; i < 16; i++ {
		switch sum := grew[i] + grew[i+1] + grew[i+2] + grew[i+3]; {
		case i < 4 && grew[i] == 0:
			t.Errorf("no growth at tick %d: %v", i, grew)
		case i >= 9 && sum > 2:
			t.Errorf("more than a tenth of 20 within %d ticks from tick %d: %v", blamed, i, grew)
		}
	}
	if has <= 16 {
		t.Errorf("it has %v: want more than what was too much once", has)
	}
}

func TestAStepBeyondACeilingThatFailsLowersThatCeilingOnly(t *testing.T) {
	s := &standing{Ceilings: map[string]ceiling{cores: make(ceiling, bins+1), llc: make(ceiling, bins+1)}}
	s.Ceilings[cores].lower(0.5, 10)
	s.Ceilings[llc].lower(0.5, 4)
	p := rhythm(t)
	p.Services["shop"] = s
	now := time.Unix(1e9, 0)
	p.tryOf(llc)
	p.Tried = tried{Resource: llc, At: now.Add(-4 * time.Second)}
	slack, load, limit := -0.1, 0.5, 0.1
	p.Decide(&Observation{Time: now, Capacity: Amounts{cores: 20, llc: 20}, Jobs: []Job{{Job: reclaim.Job{ID: "j"}, State: Running, Has: Amounts{cores: 10, llc: 5}}},
		Services: []Service{{Workload: "shop", Slack: &slack, Load: &load, Share: 0.5, SlackLimit: &limit, LoadLimit: &limit}}})
	if s.Ceilings[cores].at(0.5) != 10 || s.Ceilings[llc].at(0.5) >= 5 {
		t.Errorf("%v", s.Ceilings)
	}
	if p.Tries[llc].Wait != 2*leastWait || !p.Tries[llc].Next.After(now) {
		t.Errorf("%+v: want a wait twice as long", p.Tries[llc])
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
