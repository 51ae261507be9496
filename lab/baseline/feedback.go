package baseline

import "math"

// parties keeps a demand per job (PARTIES; A.3 of the source).
type parties struct{ wants map[string]float64 }

// The slack, as a share of the room above the SLO, below which a job counts as
// close to violating it, and above which as comfortable: PARTIES' own.
const (
	closeSlack, comfortableSlack = 0.05, 0.20
	upsize, downsize             = 20, 5
)

func (p *parties) demand(j *Job) float64 {
	want, ok := p.wants[j.Name]
	if !ok {
		want = float64(j.Units)
	}
	room := j.SLO
	if j.Fraction && j.SLO < 1 {
		room = 1 - j.SLO
	}
	switch slack := (j.Performance - j.SLO) / room; {
	case slack < closeSlack:
		want += upsize
	case slack > comfortableSlack:
		want -= downsize
	}
	want = bounded(want, j)
	p.wants[j.Name] = want
	return want
}

// hpa is the rule of the HorizontalPodAutoscaler, with its defaults: within a
// tenth of the target nothing changes, a step at most doubles, and the highest
// recommendation of the last five minutes counts.
type hpa struct{ recent map[string][]float64 }

const (
	tolerance = 0.1
	// stabilise is five minutes in rounds of two.
	stabilise = 3
)

func (h *hpa) demand(j *Job) float64 {
	want := float64(j.Units)
	if s := j.strain(); math.Abs(s-1) > tolerance {
		want = math.Ceil(math.Min(want*s, 2*want))
	}
	recent := h.recent[j.Name]
	if recent == nil {
		recent = []float64{float64(j.Units)} // what it had counts as recommended
	}
	recent = append(recent, want)
	if len(recent) > stabilise {
		recent = recent[1:]
	}
	h.recent[j.Name] = recent
	for _, v := range recent {
		want = math.Max(want, v)
	}
	return want
}

// pid is a controller on the relative error of the performance.
type pid struct{ of map[string]*control }

// control is the state of one job's controller.
type control struct {
	sum, last float64
	started   bool
}

// The gains; the sum of errors is held within ±1, so that it does not wind up
// while the capacity binds.
const proportional, integral, derivative = 0.5, 0.1, 0.1

func (p *pid) demand(j *Job) float64 {
	c := p.of[j.Name]
	if c == nil {
		c = &control{}
		p.of[j.Name] = c
	}
	e := math.Min(math.Max(math.Log(j.strain()), -0.5), 0.5)
	if j.strain() <= 0 {
		e = -0.5
	}
	change := 0.0
	if c.started {
		change = e - c.last
	}
	c.sum = math.Min(math.Max(c.sum+e, -1), 1)
	c.last, c.started = e, true
	return float64(j.Units) * (1 + proportional*e + integral*c.sum + derivative*change)
}
