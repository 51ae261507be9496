package colocate

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/planner/reclaim"
)

// shop is a service with one job beside it, which gets what the policy says.
type shop struct {
	*policy
	o           Observation
	slack, load float64
	limit, top  float64
}

func newShop(t *testing.T, share float64) *shop {
	s := &shop{policy: rhythm(t), slack: 0.9, load: 0.5, limit: 0.1, top: 0.75}
	s.o = Observation{Time: time.Unix(1e9, 0), Capacity: Amounts{cores: 40}, Jobs: []Job{{Job: reclaim.Job{ID: "a"}, State: Running, Has: Amounts{cores: 20}}}}
	s.o.Services = []Service{{Workload: "shop", Slack: &s.slack, Load: &s.load, Share: share, SlackLimit: &s.limit, LoadLimit: &s.top}}
	return s
}

func (s *shop) tick() (d Decision) {
	d = s.Decide(&s.o)
	for _, c := range d.Changes {
		j := &s.o.Jobs[0]
		switch c.Act {
		case Kill, Suspend:
			j.State = Suspended
		default:
			j.State, j.Has = Running, c.To
		}
	}
	s.o.Time = s.o.Time.Add(2 * time.Second)
	return d
}

func (s *shop) ticks(n int) (d Decision) {
	for range n {
		d = s.tick()
	}
	return d
}

func (s *shop) has() float64 { return s.o.Jobs[0].Has[cores] }

func (s *shop) standing() *standing { return s.Services["shop"] }

func TestTheNoiseOfTheLoadMovesNoCeiling(t *testing.T) {
	s, r := newShop(t, 1), rand.New(rand.NewPCG(1, 1))
	s.ticks(60)
	s.slack = -0.5
	s.tick()
	s.slack = 0.3
	seen := map[float64]bool{}
	for range 200 {
		s.load = 0.5 * math.Exp(0.02*r.NormFloat64())
		s.tick()
		seen[s.bound(&s.round, cores, -shift, 0)] = true
	}
	rises := 0.0
	for v := range seen {
		if v < 20 {
			t.Errorf("a ceiling of %v cores, %v were in force", v, seen)
		}
		rises++
	}
	if rises > 20 {
		t.Errorf("%v ceilings within 400 s of one load", rises)
	}
}

func TestAMissIsBlamedOnAServpodByItsPartOfTheTailAndOnAllWhenThatIsNotEnough(t *testing.T) {
	lost := func(share float64, misses int) float64 {
		s := newShop(t, share)
		s.slack = 0.05 // as it is: neither growth nor a cut
		s.limit = 0.06
		s.ticks(3)
		for range misses {
			s.standing().Episode, s.slack = false, -1
			s.tick()
			s.o.Jobs[0].State, s.o.Jobs[0].Has = Running, Amounts{cores: 20}
			s.slack = 0.05
			s.tick()
		}
		return 20 - s.bound(&s.round, cores, 0, 0)
	}
	large, small := lost(0.8, 1), lost(0.01, 1)
	if large != 4 || small != 0.5 {
		t.Errorf("a Servpod with 80%% of the contribution gives %v of 20 cores, one with 1%% %v: want 4 and a tenth of 5", large, small)
	}
	if again := lost(0.01, 5); again < 5 {
		t.Errorf("after five misses one with 1%% gives %v: want as much as any", again)
	}
}

func TestGrowthLeavesSlackBeyondItsNoise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		noise float64
		grows bool
	}{{0.02, true}, {0.18, false}} {
		s := newShop(t, 1)
		s.limit, s.slack = 0.01, 0.2
		s.ticks(2)
		s.standing().Ceilings = map[string]ceiling{cores: make(ceiling, bins+1)}
		s.standing().Ceilings[cores].lower(0, 20)
		for range 100 {
			s.slack = math.Max(0.02, 0.2+c.noise*r.NormFloat64()) // never below its limit
			s.tick()
		}
		if got := s.has() > 30; got != c.grows {
			t.Errorf("slack of 0.2 ± %v: it has %v cores of a ceiling of 20", c.noise, s.has())
		}
	}
}

func TestMissesMakeGrowthKeepFurtherAwayAndTicksWithoutLetItComeNear(t *testing.T) {
	s := &standing{}
	for range 5 {
		s.spend(true)
	}
	far := s.Care
	for range 5 * rare {
		s.spend(false)
	}
	if far < 2 || s.Care > 0.1 {
		t.Errorf("%v after 5 misses, %v after %d ticks without", far, s.Care, 5*rare)
	}
}

func TestWithHalfOfTheErrorBudgetSpentNothingIsTriedThatWasNotProven(t *testing.T) {
	s := newShop(t, 1)
	s.ticks(2)
	s.standing().Ceilings = map[string]ceiling{cores: make(ceiling, bins+1)}
	s.standing().Ceilings[cores].lower(0, 22)
	s.standing().Missed = 0.01
	if s.ticks(60); s.has() != 22 {
		t.Errorf("%v cores, want 22, its ceiling", s.has())
	}
	if s.ticks(2000); s.has() <= 22 {
		t.Errorf("%v cores long after", s.has())
	}
}

func TestAboveTheLoadlimitJobsAreTriedWhenSlackWasMeasuredThereForAMinute(t *testing.T) {
	s := newShop(t, 1)
	s.ticks(5)
	s.load = 0.85
	if d := s.tick(); d.Verb != SuspendBE {
		t.Fatalf("%+v, want the loadlimit to hold", d)
	}
	if d := s.ticks(above - 5); d.Verb != SuspendBE {
		t.Errorf("%+v before %d ticks", d, above)
	}
	s.ticks(10)
	if s.o.Jobs[0].State != Running || s.has() > 10 {
		t.Errorf("%s with %v cores: want it small again, nothing is proven at this load", s.o.Jobs[0].State, s.has())
	}
	before := s.has()
	if s.ticks(20); s.has() <= before {
		t.Errorf("%v cores, had %v: want growth with slack", s.has(), before)
	}
	s.slack = -0.1
	s.tick()
	s.slack = 0.9
	if d := s.tick(); d.Verb != SuspendBE {
		t.Errorf("%+v after a miss: want the loadlimit to hold again", d)
	}
}

func TestAPeakOverTheLoadlimitSuspendsAtOnce(t *testing.T) {
	s := newShop(t, 1)
	s.ticks(100)
	for range 10 {
		s.load = 0.5
		s.ticks(10)
		s.load = 0.85
		if d := s.tick(); d.Verb != SuspendBE {
			t.Fatalf("%+v", d)
		}
	}
}

func TestHostsOfOneServiceTryAtDifferentTimes(t *testing.T) {
	times := map[time.Time]int{}
	for _, host := range []string{"a", "b", "c", "d", "e", "f"} {
		s := newShop(t, 1)
		s.Host = host
		s.round.o = &s.o
		try := s.tryOf(cores)
		try.Wait = 20
		s.postpone(&s.round, cores, try)
		if wait := try.Next.Sub(s.o.Time); wait < 20*time.Second || wait > 60*time.Second {
			t.Errorf("%v, want 40 s and half of it more or less", wait)
		}
		times[try.Next.Truncate(2*time.Second)]++
	}
	if len(times) < 4 {
		t.Errorf("%v", times)
	}
}

// The first part of Rhythm alone tells Servpods apart as both do: only which jobs go, and
// how, is the second.
func TestWithoutDistinguishableReclamationServpodsAreToldApart(t *testing.T) {
	ceilingOf := func(share float64) float64 {
		s := newShop(t, share)
		p, err := New(Indiscriminate, Config{})
		if err != nil {
			t.Fatal(err)
		}
		s.policy = p.(*policy)
		s.ticks(60)
		had := s.has()
		s.slack = -0.5
		if d := s.tick(); d.Verb != StopBE || len(d.Changes) != 1 || d.Changes[0].Act != Kill {
			t.Fatalf("%+v", d)
		}
		return s.standing().Ceilings[cores].at(s.load) / had
	}
	if most, least := ceilingOf(0.1), ceilingOf(1); !(most > least && most < 1) {
		t.Errorf("after a miss jobs may have %.2f of what they had beside a Servpod with a tenth of the contribution, %.2f beside one with all", most, least)
	}
}

func TestASlacklimitThatAllowsNothingCountsAsNotKnown(t *testing.T) {
	for _, name := range []string{Rhythm, Indiscriminate} {
		s := newShop(t, 1)
		p, err := New(name, Config{})
		if err != nil {
			t.Fatal(err)
		}
		s.policy, s.limit = p.(*policy), 1
		if d := s.ticks(3); d.Verb != AllowBEGrowth {
			t.Errorf("%s: %+v", name, d)
		}
		if l := s.inForce(&s.o.Services[0]); l.SlackLimit != leastSlack || l.SlackOrigin != colocation.FromSearch {
			t.Errorf("%s: %+v", name, l)
		}
	}
}
