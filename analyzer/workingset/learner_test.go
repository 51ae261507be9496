package workingset

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var begin = time.Unix(1_700_000_000, 0).UTC().Truncate(time.Hour)

// play gives a learner the use at each step of a time.
func play(l *Learner, from time.Time, length, step time.Duration, use func(since time.Duration) float64) time.Time {
	for at := time.Duration(0); at < length; at += step {
		l.Take(from.Add(at), use(from.Add(at).Sub(begin)))
	}
	return from.Add(length)
}

func constant(v float64) func(time.Duration) float64 { return func(time.Duration) float64 { return v } }

func need(t testing.TB, l *Learner, at time.Time) Need {
	t.Helper()
	n, ok := l.Need(at)
	if !ok {
		t.Fatal("no need")
	}
	return n
}

func TestTheNextHourExceedsTheNeedAsRarelyAsIsSaid(t *testing.T) {
	const runs, played = 200, 30 // hours; the first is the first to be judged after 29
	over := 0
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 1))
		var l Learner
		at := play(&l, begin, (played-1)*time.Hour, 5*time.Minute, func(time.Duration) float64 { return 100 + 10*r.NormFloat64() })
		limit, most := need(t, &l, at).Limit, 0.0
		for range 12 {
			most = math.Max(most, 100+10*r.NormFloat64())
		}
		if most > limit {
			over++
		}
	}
	// At most 1 in 30 by the bound; three standard errors are 8 runs.
	if over > runs/played+8 || over == 0 {
		t.Errorf("%d of %d next hours are above the need", over, runs)
	}
}

func TestADailyPeakCostsNoMoreThanItself(t *testing.T) {
	var l Learner
	daily := func(since time.Duration) float64 {
		if h := int(since.Hours()) % 24; h == 9 {
			return 300
		}
		return 100
	}
	at := play(&l, begin, 4*24*time.Hour, time.Minute, daily)
	if n := need(t, &l, at); n.Limit != 300 || !n.Learnt {
		t.Errorf("%+v", n)
	}
}

func TestAPeakThatCameOnceIsForgottenAfterEightDays(t *testing.T) {
	var l Learner
	at := play(&l, begin, 30*time.Hour, time.Minute, constant(100))
	at = play(&l, at, time.Minute, time.Minute, constant(900))
	at = play(&l, at, 7*24*time.Hour, 5*time.Minute, constant(100))
	if n := need(t, &l, at); n.Limit < 900 {
		t.Errorf("after seven days: %+v", n)
	}
	at = play(&l, at, 26*time.Hour, 5*time.Minute, constant(100))
	if n := need(t, &l, at); n.Limit != 100 {
		t.Errorf("after more than eight days: %+v", n)
	}
}

func TestAStartIsApartFromTheSteadyState(t *testing.T) {
	var l Learner
	at := play(&l, begin, 25*time.Hour, time.Minute, constant(100))
	l.Start(at)
	at = play(&l, at, 10*time.Minute, time.Minute, constant(500))
	at = play(&l, at, 2*time.Hour, time.Minute, constant(100))
	if n := need(t, &l, at); n.Limit != 100 || !n.Learnt {
		t.Errorf("once it has started: %+v", n)
	}
	at = play(&l, at, time.Minute, time.Minute, constant(20)) // it fell by more than half: a new process
	if n := need(t, &l, at); n.Limit != 500 || n.Learnt {
		t.Errorf("while it starts: %+v", n)
	}
}

func TestMoreThanWasSeenIsNeededAtFirst(t *testing.T) {
	var l Learner
	at := play(&l, begin, 30*time.Minute, time.Minute, constant(100))
	if n := need(t, &l, at); n.Limit < 114 || n.Learnt || n.Why == "" {
		t.Errorf("%+v", n)
	}
	at = play(&l, at, 12*time.Hour, time.Minute, constant(100))
	at = play(&l, at, 11*time.Hour, time.Minute, constant(100))
	if n := need(t, &l, at); n.Limit < 114 || !n.Learnt {
		t.Errorf("before the last hour of the day, which may be its highest: %+v", n)
	}
	at = play(&l, at, time.Hour, time.Minute, constant(100))
	if n := need(t, &l, at); n.Limit != 100 {
		t.Errorf("after a day: %+v", n)
	}
}

func TestAfterAKillMoreIsNeededThanTheLimit(t *testing.T) {
	var l Learner
	at := play(&l, begin, 26*time.Hour, time.Minute, func(since time.Duration) float64 { return 100 + 30*float64(int(since.Minutes())%2) })
	l.Killed(at, 200)
	at = play(&l, at, time.Hour, time.Minute, constant(100))
	if n := need(t, &l, at); n.Limit != 200*1.2+30 {
		t.Errorf("within a day: %+v", n)
	}
	at = play(&l, at, 24*time.Hour, time.Minute, constant(100))
	if n := need(t, &l, at); n.Limit > 200 {
		t.Errorf("after a day: %+v", n)
	}
}

func TestWhatAProbeFoundHoldsForUsesThatWereNoHigherThanAtIt(t *testing.T) {
	var l Learner
	at := play(&l, begin, 30*time.Hour, time.Minute, constant(100))
	l.Take(at, 60) // what is left when it ends
	for _, need := range []float64{0, -1, math.NaN(), 100, 200} {
		if l.Probed(5*time.Minute, need); need0(t, &l, at) != 100 {
			t.Errorf("a probe that found %v counts", need)
		}
	}
	if l.Probed(5*time.Minute, 60); need0(t, &l, at) != 60 {
		t.Errorf("need %v", need0(t, &l, at))
	}
	var high Learner
	at = play(&high, begin, 5*time.Hour, time.Minute, constant(200))
	at = play(&high, at, 30*time.Hour, time.Minute, constant(100))
	if high.Probed(5*time.Minute, 60); high.base(3, at) != 200 || high.base(0, at) != 100 {
		t.Errorf("higher uses count as %v, the last one as %v", high.base(3, at), high.base(0, at))
	}
}

func need0(t *testing.T, l *Learner, at time.Time) float64 { return need(t, l, at).Limit }

func TestWithoutReadingsThereIsNoNeed(t *testing.T) {
	var l Learner
	if _, ok := l.Need(begin); ok {
		t.Error("nothing was read")
	}
	for _, v := range []float64{math.NaN(), math.Inf(1), -1} {
		l.Take(begin, v)
	}
	if !cmp.Equal(l, Learner{}) {
		t.Errorf("invalid readings taught %+v", l)
	}
	at := play(&l, begin, 2*time.Hour, time.Minute, constant(100))
	if _, ok := l.Need(at.Add(2 * time.Hour)); ok {
		t.Error("its last reading is two hours old")
	}
}

// Whatever comes, the need is a number, at least the present use, and the state survives JSON.
func TestTheNeedIsNeverBelowTheUseAndTheStateSurvivesARestart(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var l, again Learner
		at := begin
		for range rapid.IntRange(1, 60).Draw(r, "readings") {
			at = at.Add(time.Duration(rapid.IntRange(-5, 7200).Draw(r, "seconds")) * time.Second)
			switch rapid.IntRange(0, 9).Draw(r, "what") {
			case 0:
				l.Start(at)
			case 1:
				l.Killed(at, rapid.Float64().Draw(r, "limit"))
			default:
				l.Take(at, rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1e12)).Draw(r, "use"))
			}
			text, err := json.Marshal(&l)
			if err != nil {
				r.Fatal(err)
			}
			again = Learner{}
			if err := json.Unmarshal(text, &again); err != nil {
				r.Fatal(err)
			}
			n, ok := l.Need(at)
			m, also := again.Need(at)
			if ok != also || n != m {
				r.Fatalf("%+v, after a restart %+v", n, m)
			}
			if ok && !(n.Limit >= l.Use && n.Limit <= math.MaxFloat64) {
				r.Fatalf("%+v for a use of %v", n, l.Use)
			}
		}
	})
}

func TestALeakIsNamedTenMinutesBeforeItsKill(t *testing.T) {
	const limit, runs = 1000, 100
	late := 0
	for seed := range uint64(runs) {
		r := rand.New(rand.NewPCG(seed, 2))
		var l Learner
		noise := 2 + 8*r.Float64()
		at := play(&l, begin, 26*time.Hour, time.Minute, func(time.Duration) float64 { return 400 + noise*r.NormFloat64() })
		lasts := time.Duration(math.Exp(math.Log(45)+r.Float64()*math.Log(32)) * float64(time.Minute)) // 45 minutes to a day
		named := false
		for since := time.Duration(0); since < lasts-10*time.Minute && !named; since += 10 * time.Second {
			l.Take(at.Add(since), 400+600*float64(since)/float64(lasts)+noise*r.NormFloat64())
			named = l.Growth(limit) != nil
		}
		if !named {
			late++
			continue
		}
		g := l.Growth(limit)
		if rate := 600 / lasts.Seconds(); g.Least > rate*1.3 || g.Rate < rate/2 || g.Rate > rate*2 || g.Left > lasts {
			t.Errorf("seed %d: %v left at %v to %v, true rate %v, lasts %v", seed, g.Left, g.Least, g.Rate, rate, lasts)
		}
		if n := need(t, &l, l.Last); n.Learnt {
			t.Errorf("seed %d: a leak is learnt: %+v", seed, n)
		}
	}
	if late > runs/20 {
		t.Errorf("%d of %d leaks are named later", late, runs)
	}
}

func TestWhatALeakUsedIsForgottenWhenTheProcessRestarts(t *testing.T) {
	for _, end := range []func(l *Learner, at time.Time){
		func(l *Learner, at time.Time) { l.Start(at) },
		func(l *Learner, at time.Time) { l.Killed(at, 1000) },
	} {
		var l Learner
		at := play(&l, begin, 30*time.Hour, time.Minute, constant(400))
		for since := time.Duration(0); since < 6*time.Hour-time.Minute; since += time.Minute {
			l.Take(at.Add(since), 400+600*since.Hours()/6)
			l.Leak(at.Add(since), l.Growth(1000))
		}
		at = at.Add(6 * time.Hour)
		if n := need(t, &l, at); n.Learnt || l.Leaks.IsZero() || n.Limit < 900 {
			t.Errorf("while it leaks: %+v", n)
		}
		end(&l, at)
		at = play(&l, at, 26*time.Hour, time.Minute, constant(400))
		if n := need(t, &l, at); !n.Learnt || n.Limit > 800 {
			t.Errorf("a day after the restart: %+v", n)
		}
	}
}

func TestAKillAtItsLimitIsAUseOfThatLimit(t *testing.T) {
	var l Learner
	at := play(&l, begin, 30*time.Hour, time.Minute, constant(150))
	l.Killed(at, 200)
	at = play(&l, at, 30*time.Hour, time.Minute, constant(150))
	if n := need(t, &l, at); n.Limit != 200 {
		t.Errorf("%+v", n)
	}
}

func TestWhatIsNoLeakIsNotNamed(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	hours := func(d time.Duration) float64 { return d.Hours() }
	for name, use := range map[string]func(time.Duration) float64{
		"a day":          func(d time.Duration) float64 { return 500 + 300*math.Sin(2*math.Pi*hours(d)/24) },
		"a cache fills":  func(d time.Duration) float64 { return 200 + 600*(1-math.Exp(-hours(d)/0.4)) },
		"a collector":    func(d time.Duration) float64 { return 300 + 400*math.Mod(hours(d)*2, 1) },
		"a random walk":  walk(r),
		"one step":       func(d time.Duration) float64 { return 300 + 300*math.Floor(math.Min(1, hours(d)/20)) },
		"steps each day": func(d time.Duration) float64 { return 300 + 50*math.Mod(math.Floor(hours(d)/12), 2) },
	} {
		var l Learner
		named := 0
		for at := time.Duration(0); at < 5*24*time.Hour; at += time.Minute {
			l.Take(begin.Add(at), use(at)+3*r.NormFloat64())
			if g := l.Growth(1000); g != nil && named == 0 {
				named++
				t.Errorf("%s: after %v: %s", name, at, fmt.Sprintf("%+v", *g))
			}
		}
	}
}

// walk is a use that wanders between 300 and 700.
func walk(r *rand.Rand) func(time.Duration) float64 {
	v := 500.0
	return func(time.Duration) float64 {
		v = math.Min(700, math.Max(300, v+2*r.NormFloat64()))
		return v
	}
}
