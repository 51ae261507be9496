package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/learntest"
)

// study configures a study of one curve: reports of allocations drawn uniformly from the curve's range, one
// draw per report, under a load that oscillates.
type study struct {
	// Seeds is the number of independent runs per curve, From the first seed.
	Seeds int
	From  uint64
	// Counts are the numbers of reports to look after, ascending.
	Counts []int
	// Drop, if not 0, is the factor on the performance for a further 120
	// reports, ten rounds, after the last count.
	Drop float64
}

// finding is the result for one curve at one count; a negative Count is that after the drop.
type finding struct {
	Curve string
	Count int
	// Share of the range inside the band, the mean over the seeds and 200
	// points; Worst is the worst seed's.
	Share, Worst float64
	// Width is the median over points of the mean width of the band relative
	// to that of Wilson's interval (for numbers: the normal one) for the
	// reports of one of 96 even bins, at least one report.
	Width float64
	// Hits of Trials independent points, one a seed, were inside.
	Hits, Trials int
	// Changes is how often the learners of all seeds forgot, in Rounds of 12 reports, until then.
	Changes, Rounds int

	// widths sum over the seeds the relative width at each point.
	widths []float64
}

// add adds the results of other seeds of the same study.
func (f *finding) add(o *finding) {
	mine, theirs := float64(f.Trials), float64(o.Trials)
	f.Share = (f.Share*mine + o.Share*theirs) / (mine + theirs)
	f.Worst = min(f.Worst, o.Worst)
	f.Hits, f.Trials = f.Hits+o.Hits, f.Trials+o.Trials
	f.Changes, f.Rounds = f.Changes+o.Changes, f.Rounds+o.Rounds
	f.widths = slices.Clone(f.widths)
	for i := range f.widths {
		f.widths[i] += o.widths[i]
	}
	f.Width = f.width()
}

// width is the median over points of the mean over seeds.
func (f *finding) width() float64 {
	sorted := slices.Sorted(slices.Values(f.widths))
	return sorted[points/2] / float64(f.Trials)
}

// join adds up what several runs of a study, of other seeds, found of the same
// curves at the same counts.
func join(runs ...[]finding) []finding {
	out := slices.Clone(runs[0])
	for _, more := range runs[1:] {
		for i := range out {
			out[i].add(&more[i])
		}
	}
	return out
}

// likely returns the probability of at most Hits hits were the level exact.
func (f finding) likely(level float64) float64 {
	return learntest.Row{Hits: f.Hits, Trials: f.Trials}.Likely(level)
}

// text is one line of a table whose header is header.
func (f finding) text() string {
	count := fmt.Sprint(f.Count)
	if f.Count < 0 {
		count = "drop"
	}
	return fmt.Sprintf("%-16s %6s %6.3f %6.3f %6.2f %5d/%-5d %8d/%d", f.Curve, count, f.Share, f.Worst, f.Width, f.Hits, f.Trials, f.Changes, f.Rounds)
}

// header is the head of a table of findings.
func header() string {
	return fmt.Sprintf("%-16s %6s %6s %6s %6s %11s %s", "curve", "count", "share", "worst", "width", "points", "  resets/rounds")
}

const points, drops = 200, 120

// of runs the study on one curve.
func (s study) of(fresh func() learn.Learner, c learntest.Curve) []finding {
	out := []finding{}
	for _, n := range s.Counts {
		out = append(out, finding{Curve: c.Name, Count: n, Worst: 1, Trials: s.Seeds})
	}
	if s.Drop != 0 {
		out = append(out, finding{Curve: c.Name, Count: -drops, Worst: 1, Trials: s.Seeds})
	}
	for i := range out {
		out[i].widths = make([]float64, points)
	}
	for seed := range s.Seeds {
		run := &uniform{curve: c, factor: 1, rand: rand.New(rand.NewPCG(s.From+uint64(seed), 99)), learner: fresh()}
		for i := range out {
			f := &out[i]
			if f.Count < 0 {
				run.factor, run.changes = s.Drop, run.learner.Changes()
				run.report(run.n + drops)
			} else {
				run.report(f.Count)
			}
			run.look(f, s.Seeds)
		}
	}
	for i := range out {
		out[i].Width = out[i].width()
	}
	return out
}

type uniform struct {
	curve   learntest.Curve
	factor  float64
	rand    *rand.Rand
	learner learn.Learner
	n       int
	load    float64
	changes int
}

// report teaches until n reports were made.
func (u *uniform) report(n int) {
	for ; u.n < n; u.n++ {
		c := u.curve
		x := c.Low + (c.High-c.Low)*u.rand.Float64()
		p := u.factor * c.At(x)
		u.load = 1
		if !c.Rate {
			u.load = math.Max(1, 20*(1+0.35*math.Sin(2*math.Pi*float64(u.n)/720))*(1+0.08*u.rand.NormFloat64()))
		}
		o := learn.Observation{Time: time.Unix(int64(10*u.n), 0), Allocation: x * u.load, Load: u.load}
		if c.Rate {
			o.Performance = math.Max(0, p*(1+0.03*u.rand.NormFloat64()))
		} else {
			o.Requests = math.Max(1, math.Round(10*u.load))
			o.Performance = learntest.Binomial(u.rand, int(o.Requests), p) / o.Requests
		}
		if err := u.learner.Observe(o); err != nil {
			panic(err)
		}
	}
}

// look adds one seed to f.
func (u *uniform) look(f *finding, seeds int) {
	share := 0.0
	pick := u.rand.IntN(points)
	since := u.n
	if f.Count < 0 {
		since = drops
	}
	for i := range points {
		x := u.curve.Low + (u.curve.High-u.curve.Low)*(float64(i)+0.5)/points
		b, truth := u.learner.Predict(x*u.load, u.load), u.factor*u.curve.At(x)
		if b.Lower <= truth+1e-9 && truth <= b.Upper+1e-9 {
			share += 1.0 / points
			if i == pick {
				f.Hits++
			}
		}
		f.widths[i] += (b.Upper - b.Lower) / u.plain(truth, since)
	}
	f.Share += share / float64(seeds)
	f.Worst = math.Min(f.Worst, share)
	f.Rounds += u.n / 12
	f.Changes += u.learner.Changes()
	if f.Count < 0 {
		f.Rounds, f.Changes = f.Rounds-(u.n-drops)/12, f.Changes-u.changes
	}
}

// plain is the width of the interval that the reports of one bin give alone.
func (u *uniform) plain(p float64, reports int) float64 {
	const z = 1.6448536269514722
	n := math.Max(1, float64(reports)/96)
	if u.curve.Rate {
		return 2 * z * 0.03 * p / math.Sqrt(n)
	}
	c := z * z / (200 * n)
	return 2 * math.Sqrt(c*(p*(1-p)+c/4)) / (1 + c)
}
