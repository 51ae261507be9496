package services

import (
	"math"
	"math/rand/v2"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab/services/shown"
)

// settled is how many seconds a replay runs before requests count, and replayed how many seconds
// of them count. Curves are looked at every lookEvery seconds, at so many allocations.
const settled, replayed, lookEvery, allocations = 100, 600, 60, 10

// shownEvery is the same in whole seconds for the curves that windows are compared with.
const shownEvery = int(shown.Every)

// Vary draws how much the work of the requests of each service varies, from nearly not at all to
// as much as an exponential one, by a seed: the truth is another in every run then, as bands
// claim to hold for services of which nothing is known.
func (s *Scenario) Vary(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0x76617279))
	for i := range s.Services {
		s.Services[i].Spread = 0.1 + 0.9*r.Float64()
	}
}

// learnt is the curve of a service as it was told at a time, in seconds.
type learnt struct {
	at    float64
	curve *trimtab.Curve
}

// look keeps the curves of this second.
func (c *closed) look(t float64) {
	for i := range c.scenario.Services {
		if e := c.loop.Estimate(c.scenario.Services[i].Name); math.Mod(t, shown.Every) == 0 && e != nil && e.Curve != nil {
			c.curves[i] = append(c.curves[i], learnt{t, e.Curve})
		}
	}
}

// truth tells what a service really has in time at an allocation under a constant load: the same
// arrivals are played behind a quota of that size.
type truth struct {
	Service
	coming []Request
}

// newTruth is that of a load in requests per second that are so many times as dear as Cost.
func newTruth(of *Service, load, dearer float64) *truth {
	t := &truth{Service: *of}
	t.Load, t.Dearer = func(float64) float64 { return load }, func(float64) float64 { return dearer }
	t.coming = draw(&t.Service, settled+replayed, 1)
	return t
}

// at is the share in time with so many cores.
func (t *truth) at(cores float64) float64 {
	q := &queue{Service: &t.Service, coming: t.coming, quota: cores}
	for k := range int((settled + replayed) / step) {
		now := float64(k) * step
		if k%steps == 0 || q.open() > 0 && (len(q.waiting) > 0 || q.coming[0].At < now+step) {
			q.advance(now, k%steps)
		}
	}
	in, all := 0.0, 0.0
	for _, a := range q.done {
		if a.at < settled || a.at > settled+replayed-timeout {
			continue // those that came last may still wait
		}
		if all++; a.met(t.Latency) {
			in++
		}
	}
	return in / all
}

// Covered says how often the bands of curves held the truth: all points, and those at the knee,
// where 1 to 99% of the requests are in time. Width is the sum of the widths of the bands there.
// Shown compares what was delivered with the bands of before, by service and overall: see
// [shown.Tally].
type Covered struct {
	Points, Inside, Knee, KneeInside, Width float64
	Shown                                   shown.Tally
}

// Cover compares the curves of a run with the truth, each at the load that it is of, at
// allocations from what is asked for to the pool, in equal ratios. A rule has no curves.
func (s *Scenario) Cover(r *Result) (out Covered) {
	out.Shown = s.shown(r)
	for i, all := range r.curves {
		v := &s.Services[i]
		for _, l := range all {
			if math.Mod(l.at, lookEvery) != 0 {
				continue
			}
			dearer := 1.0
			if v.Dearer != nil {
				dearer = v.Dearer(l.at)
			}
			really, least := newTruth(v, l.curve.Load, dearer), l.curve.Load*v.Cost*dearer
			for k := range allocations {
				a := least * math.Pow(s.Pool/least, (float64(k)+0.5)/allocations)
				if a <= s.Pool {
					out.point(l.curve.Eval(a), really.at(a))
				}
			}
		}
	}
	return out
}

// shown compares each window of a run with the curve of its begin. An instance on another host
// has another effective allocation, which a curve does not know: of two hosts nothing is compared.
func (s *Scenario) shown(r *Result) (out shown.Tally) {
	if s.Places != nil {
		return out
	}
	for i, all := range r.curves {
		for _, l := range all {
			from, to := int(l.at), int(l.at)+shownEvery
			if from < shown.Learning || to > s.Seconds-timeout {
				continue
			}
			w := shown.Window{Seconds: shown.Every, Allocation: s.effective(r, i, from, to), Open: [2]float64{r.open[i][from-1], r.open[i][to-1]}}
			for _, a := range r.answers[i] {
				if a.at >= l.at && a.at < float64(to) {
					if w.Requests++; a.met(s.Services[i].Latency) {
						w.InTime++
					}
				}
			}
			out.Add(l.curve, w)
		}
	}
	return out
}

// effective is the effective allocation of a service in the seconds from one to before another:
// its quota, or what it had of a shared pool.
func (s *Scenario) effective(r *Result, i, from, to int) float64 {
	amount, all, others := 0.0, 0.0, 0.0
	for j := range s.Services {
		sum := 0.0
		for k := from; k < to; k++ {
			sum += r.Shares[j][k]
		}
		if all += sum; j == i {
			amount = sum
		} else {
			others += r.used[j][to-1] - r.used[j][from-1]
		}
	}
	n := float64(to - from)
	if !r.shares {
		return amount / n
	}
	return shown.Effective(s.Pool*amount/all, s.Pool, others/n)
}

// point enters one.
func (c *Covered) point(b trimtab.Band, truth float64) {
	in := 0.0
	if b.Lower <= truth+1e-9 && truth <= b.Upper+1e-9 {
		in = 1
	}
	if c.Points, c.Inside = c.Points+1, c.Inside+in; truth > 0.01 && truth < 0.99 {
		c.Knee, c.KneeInside, c.Width = c.Knee+1, c.KneeInside+in, c.Width+b.Upper-b.Lower
	}
}

// Add joins what other runs showed.
func (c *Covered) Add(o Covered) {
	c.Points, c.Inside = c.Points+o.Points, c.Inside+o.Inside
	c.Knee, c.KneeInside, c.Width = c.Knee+o.Knee, c.KneeInside+o.KneeInside, c.Width+o.Width
	c.Shown.Join(o.Shown)
}
