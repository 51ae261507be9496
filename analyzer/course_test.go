package analyzer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// past is one way in which a load may have gone on so far.
type past struct {
	run
	p float64
}

// everyPast is the slow and obvious course: it goes through all ways in which the
// load may have stayed, jumped or bent before each report, and weighs each by how
// likely it makes the reports.
func everyPast(loads []float64, seconds float64) (mean float64) {
	var pasts []past
	for i, load := range loads {
		known, spread := 0.0, 0.0
		for _, h := range pasts {
			known += h.p * math.Max(0, h.load)
		}
		noise := func(at float64) float64 { return math.Max(math.Max(at, known/2), 1/seconds) / seconds }
		if i == 0 {
			s := steep * load
			pasts = []past{{run{load: load, vl: noise(load)}, 0.5}, {run{load: load, vl: noise(load), vs: s * s}, 0.5}}
			continue
		}
		ahead, known := []past(nil), 0.0
		for _, h := range pasts {
			h.load += h.slope * seconds
			h.vl, h.vls = h.vl+2*h.vls*seconds+h.vs*seconds*seconds, h.vls+h.vs*seconds
			ahead, known = append(ahead, h), known+h.p*math.Max(0, h.load)
		}
		noise = func(at float64) float64 { return math.Max(math.Max(at, known/2), 1/seconds) / seconds }
		for _, h := range ahead {
			spread += h.p * (h.vl + (h.load-known)*(h.load-known))
		}
		s, far := steep*math.Max(known, 1/seconds), wide*math.Max(math.Max(known, load), 1/seconds)
		var after []past
		sum := 0.0
		for _, h := range ahead {
			for _, way := range []past{{h.run, 1 - jumps - bends},
				{run{load: known, vl: far * far}, jumps / 2}, {run{load: known, vl: far * far, vs: s * s}, jumps / 2},
				{run{load: known, vl: spread}, bends / 2}, {run{load: known, vl: spread, vs: s * s}, bends / 2}} {
				// Of a Poisson count n where μ are expected, Stirling makes
				// n^−½ exp(−(n ln n/μ − n + μ)).
				v, n, μ := way.vl+noise(way.load), load*seconds, noise(way.load)*seconds*seconds
				off := μ
				if n > 0 {
					off = n*math.Log(n/μ) - n + μ
				}
				way.p *= h.p * math.Exp(-off*noise(way.load)/v) / math.Sqrt(way.vl+noise(load))
				gl, gs := way.vl/v, way.vls/v
				miss := load - way.load
				way.run = run{load: way.load + gl*miss, slope: way.slope + gs*miss,
					vl: way.vl - gl*way.vl, vls: way.vls - gl*way.vls, vs: way.vs - gs*way.vls}
				after, sum = append(after, way), sum+way.p
			}
		}
		for i := range after {
			after[i].p /= sum
		}
		pasts = after
	}
	for _, h := range pasts {
		mean += h.p * math.Max(0, h.load+3*h.slope)
	}
	return mean
}

func TestTheCourseIsTheMeanOverAllPastsOfTheLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		loads := rapid.SliceOfN(rapid.Float64Range(0, 60), 1, 5).Draw(t, "loads")
		seconds := rapid.Float64Range(0.2, 2).Draw(t, "seconds")
		var c course
		for _, v := range loads {
			c.see(v, seconds, 1)
		}
		// What is next to impossible is left out.
		if got, want := c.in(3), everyPast(loads, seconds); math.Abs(got-want) > 0.01*slices.Max(loads)+0.001 {
			t.Fatalf("%v over %v s each: %v in 3 s, by all pasts %v", loads, seconds, got, want)
		}
	})
}

func TestNoReportMakesACourseThatIsNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c course
		for range rapid.IntRange(1, 60).Draw(t, "reports") {
			any := func(name string) float64 {
				return rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 100), rapid.Float64Range(1, huge)).Draw(t, name)
			}
			c.see(any("load"), any("seconds"), any("each"))
			if v := c.in(4); !(v >= 0) || math.IsInf(v, 0) {
				t.Fatalf("%v is expected: %+v", v, c.runs)
			}
		}
		if len(c.runs) > maxRuns {
			t.Fatalf("%d runs", len(c.runs))
		}
	})
}

func poisson(rng *rand.Rand, mean float64) float64 {
	n := 0.0
	for at := rng.ExpFloat64(); at < mean; at += rng.ExpFloat64() {
		n++
	}
	return n
}

// missing plays a load of so much at each second, told by counts of which each
// request stands for each, and returns the errors, as root mean squares, of the
// course and of the mean of the last five seconds, ahead seconds later.
func missing(t *testing.T, load func(k float64) float64, each, ahead float64) (ours, last float64) {
	t.Helper()
	const seconds, plays = 40, 300
	rng := rand.New(rand.NewPCG(1, 2))
	for range plays {
		var c course
		mean := 0.0
		for k := range seconds {
			v := each * poisson(rng, load(float64(k))/each)
			c.see(v, 1, each)
			if k >= seconds-maxJoined {
				mean += v / maxJoined
			}
		}
		// A report tells the middle of its second.
		truth := load(seconds - 1 + ahead)
		ours, last = ours+(c.in(ahead)-truth)*(c.in(ahead)-truth), last+(mean-truth)*(mean-truth)
	}
	return math.Sqrt(ours / plays), math.Sqrt(last / plays)
}

func TestALoadThatStaysIsKnownBetterThanByItsLastSeconds(t *testing.T) {
	for _, each := range []float64{1, 10} {
		if ours, last := missing(t, func(float64) float64 { return 13 }, each, 0); !(ours < 0.8*last) {
			t.Errorf("each request stands for %v: an error of %.2f, by the last seconds %.2f", each, ours, last)
		}
	}
}

func TestALoadThatRisesEvenlyIsExpectedWhereItWillBe(t *testing.T) {
	rise := func(k float64) float64 { return 10 + 0.6*math.Max(0, k-20) }
	if ours, last := missing(t, rise, 1, 5); !(ours < 0.7*last) {
		t.Errorf("an error of %.2f, by the last seconds %.2f", ours, last)
	}
}

func TestALoadThatDoublesIsToldInTwoSeconds(t *testing.T) {
	double := func(k float64) float64 {
		if k < 38 {
			return 13
		}
		return 26
	}
	if ours, last := missing(t, double, 1, 0); !(ours < 0.8*last) {
		t.Errorf("an error of %.2f, by the last seconds %.2f", ours, last)
	}
}
