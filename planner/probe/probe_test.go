package probe

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const mib = 1 << 20

// service touches each byte of its hot part every second, and each of the cold one as rarely as coldEvery
// says. Its anonymous part cannot be taken.
type service struct {
	anonymous, hot, cold float64
	coldEvery            time.Duration
	// away are the parts that were reclaimed.
	hotAway, coldAway float64
	noise             *rand.Rand
	slo               bool
}

// take plays memory.reclaim: the kernel takes what was not touched for longest first, but for a fiftieth of
// it.
func (s *service) take(bytes float64) {
	cold := math.Min(0.98*bytes, s.cold-s.coldAway)
	s.coldAway += cold
	s.hotAway = math.Min(s.hot, s.hotAway+bytes-cold)
}

// second plays a second, and returns what it shows.
func (s *service) second() Reading {
	back := s.coldAway * math.Min(1, 1/s.coldEvery.Seconds())
	came := s.hotAway + back
	stall := math.Min(1, s.hotAway/(64*mib)) // 64 MiB a second from the disk
	s.hotAway, s.coldAway = 0, s.coldAway-back
	r := Reading{Usage: s.anonymous + s.hot + s.cold - s.coldAway, Anonymous: s.anonymous, Refaults: came * (0.95 + 0.1*s.noise.Float64()), Pressure: stall, Performance: math.NaN(), Target: math.NaN()}
	if s.slo {
		r.Target, r.Performance = 0.95, 1-stall
	}
	return r
}

// run probes a service to the end, and returns how many readings missed the SLO.
func run(t interface{ Fatalf(string, ...any) }, s *service, p *Probe) (*Result, int) {
	missed := 0
	for i := range 3600 {
		r := s.second()
		if r.Performance < r.Target {
			missed++
		}
		bytes, done := p.Next(time.Duration(i)*time.Second, r)
		if done != nil {
			return done, missed
		}
		s.take(bytes)
	}
	t.Fatalf("it does not end")
	return nil, 0
}

// The offline sweep of this service is known: it needs its anonymous and its hot part.
func TestTheWorkingSetIsWithinATenthOfASweep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &service{anonymous: rapid.Float64Range(1, 500).Draw(t, "anonymous") * mib, hot: rapid.Float64Range(20, 1000).Draw(t, "hot") * mib,
			cold: rapid.Float64Range(10, 1000).Draw(t, "cold") * mib, coldEvery: 24 * time.Hour, noise: rand.New(rand.NewPCG(1, 2)), slo: rapid.Bool().Draw(t, "slo")}
		r, missed := run(t, s, &Probe{Budget: 0.02})
		need := s.anonymous + s.hot
		if middle := (r.Low + r.High) / 2; !r.Found || middle > need*1.1 || middle < need*0.9 {
			t.Fatalf("it needs %.0f MiB: %+v", need/mib, r)
		}
		if missed > 1+r.Steps {
			t.Fatalf("%d readings missed the SLO in %d steps", missed, r.Steps)
		}
	})
}

func TestWhatTheKernelCannotTakeIsAnUpperBound(t *testing.T) {
	p := &Probe{}
	r := Reading{Usage: 100 * mib, Anonymous: 100 * mib, Refaults: 0, Pressure: 0, Target: math.NaN()}
	for i := range 40 {
		if _, done := p.Next(time.Duration(i)*time.Second, r); done != nil {
			if !done.Found || done.Low != 0 || done.High != 100*mib || done.Steps != 1 {
				t.Errorf("%+v", done)
			}
			return
		}
	}
	t.Error("it does not end")
}

// Linux counts no refault for a page that it finds in the swap cache.
func TestAUsageThatIsBackAboveTheStepWasNeeded(t *testing.T) {
	p, r := &Probe{}, Reading{Usage: 100 * mib, Target: math.NaN()}
	for i := range 40 {
		asked, done := p.Next(time.Duration(i)*time.Second, r)
		if asked > 0 {
			r.Usage += 2 * mib
		}
		if done != nil {
			if !done.Found || done.Low != 100*mib*(1-part) || done.High != 102*mib {
				t.Errorf("%+v", done)
			}
			return
		}
	}
	t.Error("it does not end")
}

func TestHarmEndsItInTheSameReadingAndNothingIsTakenAfterwards(t *testing.T) {
	calm := Reading{Usage: 100 * mib, Anonymous: 10 * mib, Performance: 1, Target: 0.95}
	for what, change := range map[string]func(*Reading){
		"tasks wait":       func(r *Reading) { r.Pressure = 0.06 },
		"it comes back":    func(r *Reading) { r.Refaults = 3 * mib },
		"the SLO":          func(r *Reading) { r.Performance = 0.5 },
		"missing usage":    func(r *Reading) { r.Usage = math.NaN() },
		"missing refaults": func(r *Reading) { r.Refaults = math.NaN() },
		"missing SLO":      func(r *Reading) { r.Performance = math.NaN() },
		"the load moves":   func(r *Reading) { r.Anonymous = 20 * mib },
	} {
		p, at := &Probe{}, time.Duration(0)
		asked := 0.0
		for ; asked == 0; at += time.Second {
			asked, _ = p.Next(at, calm)
		}
		r := calm
		r.Usage -= asked
		change(&r)
		_, done := p.Next(at, r)
		if done == nil || done.Found != (what == "tasks wait" || what == "it comes back" || what == "the SLO") || done.Why == "" {
			t.Errorf("%s: %+v", what, done)
			continue
		}
		if more, again := p.Next(at+time.Second, calm); more != 0 || again != done {
			t.Errorf("%s: it goes on", what)
		}
	}
}

func TestAServiceThatMissesItsSLOAnywayIsNotProbed(t *testing.T) {
	r := Reading{Usage: 100 * mib, Anonymous: mib, Performance: 0.5, Target: 0.95}
	if asked, done := new(Probe).Next(0, r); asked != 0 || done == nil || done.Found {
		t.Errorf("%v, %+v", asked, done)
	}
}

// Whatever is read, the probe asks for at most a part of the usage, and ends.
func TestItNeverTakesMoreThanAStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Probe{Budget: rapid.Float64Range(0, 1).Draw(t, "budget")}
		v := rapid.OneOf(rapid.Float64Range(0, 1e9), rapid.Just(math.NaN()), rapid.Just(-1.0), rapid.Just(math.Inf(1)))
		for i := range rapid.IntRange(1, 60).Draw(t, "readings") {
			r := Reading{Usage: rapid.Float64Range(1, 1e9).Draw(t, "usage"), Anonymous: v.Draw(t, "anon"), Refaults: rapid.Float64Range(0, 1e6).Draw(t, "refaults"), Pressure: v.Draw(t, "pressure"), Performance: v.Draw(t, "performance"), Target: v.Draw(t, "target")}
			asked, done := p.Next(time.Duration(i)*time.Second, r)
			if asked < 0 || asked > part*r.Usage || done != nil && (asked != 0 || done.Low < 0 || done.Low > done.High || math.IsNaN(done.High)) {
				t.Fatalf("%v, %+v", asked, done)
			}
		}
	})
}
