package microservices

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/sim"
)

func TestServicesAreTheColumnsOfTheLogs(t *testing.T) {
	names := Names()
	if len(names) != Count || !slices.IsSorted(names) {
		t.Error(names)
	}
	share := 0.0
	for _, c := range classes() {
		share += c.Share
		for i, v := range c.Visits {
			if v < 0 || v > 1 {
				t.Errorf("%s calls %s %v times", c.Name, names[i], v)
			}
		}
	}
	if math.Abs(share-1) > 1e-12 {
		t.Errorf("shares of the classes add up to %v", share)
	}
}

// one is a network of one service without abandonment to speak of.
func one(work float64) *Network {
	var s [Count]Service
	for i := range s {
		s[i] = Service{Work: 1e-6, Aside: i > 0}
	}
	s[0].Work = work
	c := Class{Share: 1}
	c.Visits[0] = 1
	return New(s[:], []Class{c})
}

func cpus(n float64) []float64 { return slices.Repeat([]float64{n}, Count) }

func TestBelowSaturationTheSojournTimeIsThatOfMM1(t *testing.T) {
	for _, load := range []float64{0.1, 0.5, 0.9} {
		n := one(4)
		var w Window
		for range 10 {
			w = n.Play(cpus(2), load*2/0.004, 1)
		}
		want := 4 / (1 - load) // a little less: some clients give up
		if math.Abs(w.Sojourn[0]/want-1) > 0.05 {
			t.Errorf("load %v: %v ms, want %v", load, w.Sojourn[0], want)
		}
		// One exponential time: P99 = ln 100 times its mean.
		if got := w.P99 - floor; math.Abs(got/(want*math.Log(100))-1) > 0.07 {
			t.Errorf("load %v: P99 %v, want %v", load, got, want*math.Log(100))
		}
	}
}

func TestWhatWaitsCarriesOverAndDrains(t *testing.T) {
	n := one(4)
	quiet := n.Play(cpus(2), 250, 1)
	over := n.Play(cpus(2), 600, 1)
	longer := n.Play(cpus(2), 600, 1)
	after := n.Play(cpus(2), 450, 1)
	for range 20 {
		n.Play(cpus(2), 250, 1)
	}
	again := n.Play(cpus(2), 250, 1)
	if !(longer.P99 > over.P99 && over.P99 > 5*quiet.P99 && after.P99 > quiet.P99 && longer.Completed < 1) {
		t.Errorf("P99 %v, overload %v, %v, after it %v", quiet.P99, over.P99, longer.P99, after.P99)
	}
	if math.Abs(again.P99/quiet.P99-1) > 0.05 {
		t.Errorf("P99 %v, before the overload %v", again.P99, quiet.P99)
	}
}

func TestMoreCPUsNeverMakeItSlower(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shares := make([]float64, Count)
		for i := range shares {
			shares[i] = rapid.Float64Range(1, 40).Draw(t, "cpus")
		}
		rate := rapid.Float64Range(1, 6000).Draw(t, "rate")
		a, b := HotelReservation(), HotelReservation()
		i := rapid.IntRange(0, Count-1).Draw(t, "service")
		more := slices.Clone(shares)
		more[i] += rapid.Float64Range(0.1, 20).Draw(t, "more")
		for range 3 {
			less, better := a.Play(shares, rate, 1), b.Play(more, rate, 1)
			if better.Sojourn[i] > less.Sojourn[i]*(1+1e-9) || better.P99 > less.P99*1.001+0.01 {
				t.Fatalf("%v: %v ms and P99 %v, with more %v and %v", Names()[i], less.Sojourn[i], less.P99, better.Sojourn[i], better.P99)
			}
		}
	})
}

func TestTheTailIsThatOfSumsOfExponentialTimes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, means := range [][]float64{{10}, {10, 10, 10}, {1, 2, 3, 40}, {5, 5, 5, 5, 5, 30}} {
		p := part{weight: 1}
		for _, m := range means {
			p.mean += m
			p.variance += m * m
		}
		draws := make([]float64, 100_000)
		for i := range draws {
			for _, m := range means {
				draws[i] += m * r.ExpFloat64()
			}
		}
		want := lab.Quantile(draws, 0.99)
		if got := tail([]part{p}, 0.01); math.Abs(got/want-1) > 0.08 {
			t.Errorf("%v: %v, drawn %v", means, got, want)
		}
	}
}

const header = "t_start_s,dur_s,load,avg_latency_ms,p99_ms,stddev_latency_ms,"

func TestLogsAreReadAndWhatIsWrongIsNamed(t *testing.T) {
	head := header + strings.Join(Names(), ",")
	row := "30,30.5,89000,60,110,2," + strings.Repeat("8,", Count-1) + "7.5"
	got, err := ReadLog(strings.NewReader(head+"\n"+row+"\n"), "x.csv")
	if err != nil || len(got) != 1 || got[0].P99 != 110 || got[0].Completed != 89000 || got[0].CPUs[Count-1] != 7.5 {
		t.Errorf("%+v: %v", got, err)
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":     {"", "x.csv"},
		"no column": {strings.Replace(head, "consul", "conzul", 1) + "\n" + row, `"consul"`},
		"no row":    {head + "\n", "no window"},
		"NaN":       {head + "\n" + strings.Replace(row, "110", "NaN", 1), "x.csv:2: column p99_ms"},
		"negative":  {head + "\n" + strings.Replace(row, "7.5", "-1", 1), "x.csv:2: column user"},
		"short":     {head + "\n1,2,3\n", "x.csv"},
	} {
		if _, err := ReadLog(strings.NewReader(c.text), "x.csv"); !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzReadLogNeverPanics(f *testing.F) {
	f.Add(header + strings.Join(Names(), ",") + "\n1,30,1,1,1,1" + strings.Repeat(",8", Count))
	f.Fuzz(func(t *testing.T, text string) {
		log, err := ReadLog(strings.NewReader(text), "x.csv")
		if (err == nil) == (len(log) == 0) {
			t.Errorf("%d windows: %v", len(log), err)
		}
	})
}

// TestTheNetworkGivesTheFourRecordedMeans: Cilantro (OSDI'23), figure 12.
func TestTheNetworkGivesTheFourRecordedMeans(t *testing.T) {
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: it names the directory with cilantro/hotelres_log_*.csv")
	}
	for _, run := range Recorded() {
		f, err := os.Open(filepath.Join(dir, "cilantro", run.File))
		if err != nil {
			t.Fatal(err)
		}
		log, err := ReadLog(f, run.File)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		r := run.Play(log)
		t.Logf("%-14s speed %.2f: recorded %.0f ms, played %.0f, ratio %.3f, rank correlation %.2f", r.Run, r.Speed, r.Recorded, r.Played, r.Ratio, r.Correlation)
		if math.Abs(r.Ratio-1) > 0.2 {
			t.Errorf("%s: %v times what was recorded", r.Run, r.Ratio)
		}
	}
}

func experiment(rounds int, names ...string) *Experiment {
	return &Experiment{Run: names, Rounds: rounds, Frame: lab.Frame{Seeds: 2, First: 1}, Units: 160, Settings: Settings{Rate: OfferedRate, Speed: 1, Cold: true}}
}

func TestTheSameSeedsGiveTheSameBits(t *testing.T) {
	names := []string{EndToEnd, WithSpans, EvoAlg, EpsilonGreedy}
	a, err := experiment(12, names...).Play()
	if err != nil {
		t.Fatal(err)
	}
	b, err := experiment(12, names...).Play()
	if err != nil {
		t.Fatal(err)
	}
	for i := range a {
		for run := range a[i].P99 {
			if !slices.Equal(a[i].P99[run], b[i].P99[run]) {
				t.Errorf("%s, run %d: two answers", a[i].Policy, run)
			}
		}
	}
}

func TestEveryPolicyStaysWithinTheCapacityAndTheStep(t *testing.T) {
	for _, name := range []string{EndToEnd, WithSpans, EvoAlg, EpsilonGreedy, ResourceFair} {
		p, err := (&Experiment{Units: 160, Settings: Settings{Rate: OfferedRate, Speed: 1}}).policy(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		w := NewWorld(Settings{Rate: OfferedRate, Speed: 1, Seed: 1})
		var before []int
		for round := range 40 {
			units := p.next()
			sum := 0
			for i, u := range units {
				sum += u
				if u < leastUnits {
					t.Fatalf("%s, round %d: %d CPUs for %s", name, round, u, Names()[i])
				}
				if d := 0; before != nil && (name == EndToEnd || name == WithSpans) {
					if d = u - before[i]; d > stepUnits || -d > stepUnits {
						t.Fatalf("%s, round %d: %s moves by %d", name, round, Names()[i], d)
					}
				}
			}
			if sum > 160 {
				t.Fatalf("%s, round %d: %d CPUs", name, round, sum)
			}
			before = slices.Clone(units)
			r := w.Play(units)
			if err := p.tell(&r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestSpansReachTheBestStaticAllocationWithinARun(t *testing.T) {
	x := experiment(80, WithSpans, ResourceFair, BestStatic)
	x.Seeds = 1
	o, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	last := func(i int) float64 { return lab.Mean(o[i].P99[0][60:]) }
	if last(0) > 1.15*last(2) || last(0) > 0.45*last(1) {
		t.Errorf("last rounds: %v ms, resource-fair %v, best static %v", last(0), last(1), last(2))
	}
}

func TestTheBestIsKnownFromTheFirstP99ThatSaysAnything(t *testing.T) {
	best := slices.Repeat([]int{7}, Count)
	p := &told{policy: newTrying(160, 0, 1), best: best}
	for _, p99 := range []float64{most, 0.9 * most} {
		if u := p.next(); slices.Equal(u, best) {
			t.Fatal("the best is known from nothing")
		}
		if err := p.tell(&Report{P99: p99, CPUs: p.next()}); err != nil {
			t.Fatal(err)
		}
	}
	for _, p99 := range []float64{most / 2, most} {
		if err := p.tell(&Report{P99: p99, CPUs: p.next()}); err != nil {
			t.Fatal(err)
		}
		if u := p.next(); !slices.Equal(u, best) {
			t.Errorf("%v after a P99 of half the longest", u)
		}
	}
}

func TestExperimentsOutOfRangeAreRefused(t *testing.T) {
	for name, spoil := range map[string]func(*Experiment){
		"no round":  func(x *Experiment) { x.Rounds = 0 },
		"no seed":   func(x *Experiment) { x.Seeds = 0 },
		"few CPUs":  func(x *Experiment) { x.Units = 60 },
		"NaN":       func(x *Experiment) { x.Rate = math.NaN() },
		"scaling":   func(x *Experiment) { x.Scaling = 2 },
		"speed":     func(x *Experiment) { x.Speed = 0 },
		"no policy": func(x *Experiment) { x.Run = []string{"evo"} },
	} {
		x := experiment(1, ResourceFair)
		spoil(x)
		if _, err := x.Play(); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARunThatIsToldToStopEndsInThatRound(t *testing.T) {
	asked := 0
	x := experiment(20, ResourceFair)
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

func TestOneRunTellsNothingOfTheStandardError(t *testing.T) {
	one, two := []float64{100, 200}, []float64{300, 400}
	if s := Summarize(&Outcome{P99: [][]float64{one}}, 0); s.StdErr != nil {
		t.Errorf("one run: %v", *s.StdErr)
	}
	if s := Summarize(&Outcome{P99: [][]float64{one, two}}, 0); s.StdErr == nil || math.Abs(*s.StdErr-100) > 1e-9 {
		t.Errorf("runs of 150 and 350 ms: %v", s.StdErr)
	}
}

func TestASummaryCountsTheRoundsToTheLevel(t *testing.T) {
	o := &Outcome{Policy: "x", P99: [][]float64{make([]float64, 100)}, Compute: []time.Duration{time.Millisecond}}
	for r := range o.P99[0] {
		o.P99[0][r] = 100
		if r < 30 {
			o.P99[0][r] = 1000
		}
	}
	s := Summarize(o, 100)
	if s.Rounds == nil || *s.Rounds != 30 || s.Slowest == nil || *s.Slowest != 30 || s.P99 != 370 || s.Compute != 1 {
		t.Errorf("%+v", s)
	}
	if s := Summarize(o, 50); s.Rounds != nil || s.Slowest != nil {
		t.Errorf("reached: %+v", s)
	}
	later := slices.Clone(o.P99[0])
	copy(later, slices.Repeat([]float64{1000}, 50))
	never := slices.Repeat([]float64{1000}, 100)
	for _, c := range []struct {
		runs [][]float64
		want int
	}{{[][]float64{o.P99[0], later}, 50}, {[][]float64{later, o.P99[0]}, 50}, {[][]float64{o.P99[0], never, later}, -1}} {
		got := -1
		if s := Summarize(&Outcome{P99: c.runs}, 100); s.Slowest != nil {
			got = *s.Slowest
		}
		if got != c.want {
			t.Errorf("the slowest of %d runs took %d rounds, want %d", len(c.runs), got, c.want)
		}
	}
}

// With the guard, falls are small and few a round; an objective of one
// application must get there all the same. It is the default of production.
func TestTheGuardLetsAnApplicationGetFast(t *testing.T) {
	x := &Experiment{Run: []string{WithSpans, ResourceFair}, Rounds: 60, Frame: lab.Frame{Seeds: 1, First: 1}, Units: 160, Both: true,
		Settings: Settings{Rate: OfferedRate, Speed: 1}}
	out, err := x.Play()
	if err != nil {
		t.Fatal(err)
	}
	if out[1].Guarded != nil {
		t.Errorf("%s has no guard", out[1].Policy)
	}
	off, on, fair := lab.Mean(out[0].P99[0][40:]), lab.Mean(out[0].Guarded.P99[0][40:]), lab.Mean(out[1].P99[0][40:])
	t.Logf("P99 of the last third: %.0f ms, %.0f ms with the guard, %.0f ms with equal shares", off, on, fair)
	if on > 1.15*off || on > 0.5*fair {
		t.Errorf("P99 of the last third: %.0f ms with the guard, %.0f ms without, %.0f ms with equal shares", on, off, fair)
	}
}
