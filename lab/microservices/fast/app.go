package fast

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/lab/microservices"
)

const (
	count = microservices.Count
	// steps of a tick; a step is 20 ms.
	steps   = 5
	tickLen = 0.1 // s
	stepLen = tickLen / steps
	ticks   = 10 // per second
	// unstalled is the p99 without stalls, slo that of the SLO, slackSteps how many
	// steps a request may wait in between.
	unstalled, slo = 80.0, 200.0
	slackSteps     = 6
	lateGoal       = 0.01
	// scv of the CPU time of a visit, and clump; see doc.go.
	scv     = 8.0
	clump   = 24.0
	longest = 4095 // steps of delay that are told apart
)

// call is a service that a class of requests visits.
type call struct {
	service int
	share   float64
}

// App is the application under one load: what comes, and how long it waited.
type App struct {
	Load *Load
	// n is the number of requests per step; work the CPU time that comes, per service.
	n    []float32
	work [count][]float32
	// mean use and CPU time per request of each service, in cores and seconds.
	mean, perRequest [count]float64
	Used             float64

	classes []class
	delays  [count][]uint16
}

// class is a kind of request.
type class struct {
	share       float64
	sure, other []call
}

// NewApp draws the work that a load brings.
func NewApp(l *Load, seed uint64) *App {
	a1, b1 := lab.Seed(seed, 0x66617374)
	r := rand.New(rand.NewPCG(a1, b1))
	a := &App{Load: l, n: make([]float32, len(l.Rate)*ticks*steps)}
	net := microservices.HotelReservation()
	visits := [count]float64{}
	for _, c := range net.Classes {
		k := class{share: c.Share}
		for i, v := range c.Visits {
			visits[i] += c.Share * v
			switch {
			case v == 0 || net.Services[i].Aside:
			case v >= 1:
				k.sure = append(k.sure, call{i, 1})
			default:
				k.other = append(k.other, call{i, v})
			}
		}
		a.classes = append(a.classes, k)
	}
	for t := range a.n {
		lam := l.Rate[t/(ticks*steps)] * stepLen
		a.n[t] = float32(math.Max(0, math.Round(lam+math.Sqrt(lam)*r.NormFloat64())))
	}
	for i, s := range net.Services {
		w := s.Work / 1000
		spread := scv + clump*math.Min(1, visits[i])
		a.perRequest[i] = w * visits[i]
		a.work[i], a.delays[i] = make([]float32, len(a.n)), make([]uint16, len(a.n))
		sum := 0.0
		for t, n := range a.n {
			x := gamma(r, float64(n)*visits[i]/spread) * w * spread
			a.work[i][t] = float32(x)
			sum += x
		}
		a.mean[i] = sum / float64(len(l.Rate))
		a.Used += a.mean[i]
	}
	return a
}

// gamma draws from the gamma distribution of scale 1: G. Marsaglia, W. W. Tsang, "A
// simple method for generating gamma variables" (TOMS 2000).
func gamma(r *rand.Rand, shape float64) float64 {
	if shape <= 0 {
		return 0
	}
	boost := 1.0
	if shape < 1 {
		boost = math.Pow(r.Float64(), 1/shape)
		shape++
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		x := r.NormFloat64()
		v := 1 + c*x
		if v <= 0 {
			continue
		}
		v = v * v * v
		if u := r.Float64(); math.Log(u) < x*x/2+d-d*v+d*math.Log(v) {
			return d * v * boost
		}
	}
}

// forget clears delays before a run.
func (a *App) forget() {
	for i := range a.delays {
		clear(a.delays[i])
	}
}

// tell adds up the requests of step t by delay: weights of all classes, over the
// services that they visit.
func (a *App) tell(t int, yield func(delay int, share float64)) {
	any := false
	for i := range a.delays {
		if a.delays[i][t] > 0 {
			any = true
			break
		}
	}
	if !any {
		yield(0, 1)
		return
	}
	for k := range a.classes {
		c := &a.classes[k]
		d := 0
		for _, s := range c.sure {
			d += int(a.delays[s.service][t])
		}
		a.branch(c.other, t, d, c.share, yield)
	}
}

// branch tells both outcomes of each call that only some requests make.
func (a *App) branch(calls []call, t, d int, share float64, yield func(int, float64)) {
	for k, c := range calls {
		if x := int(a.delays[c.service][t]); x > 0 {
			a.branch(calls[k+1:], t, d+x, share*c.share, yield)
			share *= 1 - c.share
		}
	}
	yield(d, share)
}

// late is the share of requests of steps lo to hi that were late; 0 for none.
func (a *App) late(lo, hi int) float64 {
	all, late := 0.0, 0.0
	for t := max(0, lo); t < min(hi, len(a.n)); t++ {
		n := float64(a.n[t])
		all += n
		a.tell(t, func(d int, share float64) {
			if d > slackSteps {
				late += n * share
			}
		})
	}
	if all == 0 {
		return 0
	}
	return late / all
}

// p99 of steps lo to hi, in ms.
func (a *App) p99(lo, hi int) float64 {
	hist, all := make([]float64, longest+1), 0.0
	for t := max(0, lo); t < min(hi, len(a.n)); t++ {
		n := float64(a.n[t])
		all += n
		a.tell(t, func(d int, share float64) { hist[min(d, longest)] += n * share })
	}
	left := lateGoal * all
	for d := longest; d > 0; d-- {
		if left -= hist[d]; left < 0 {
			return unstalled + 1000*stepLen*float64(d)
		}
	}
	return unstalled
}

// onsets are the steps at which the rate jumps.
func (a *App) onsets() (out []int) {
	for s := warm(len(a.Load.Rate)) + 1; s < len(a.Load.Rate)-12; s++ {
		if a.Load.Rate[s] >= 2.5*a.Load.Rate[s-1] {
			out = append(out, s*ticks*steps)
		}
	}
	return out
}

// recoveries are the times, in s, from each onset until the p99 of a second is within
// the SLO; 10 for longer.
func (a *App) recoveries() (out []float64) {
	for _, o := range a.onsets() {
		back := 10.0
		for j := range 100 {
			if a.late(o+j*steps, o+j*steps+ticks*steps) <= lateGoal {
				back = float64(j) / ticks
				break
			}
		}
		out = append(out, back)
	}
	slices.Sort(out)
	return out
}

// warm is how many seconds of a run do not count.
func warm(seconds int) int { return min(600, seconds/2) }
