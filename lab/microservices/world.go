package microservices

import (
	"math"
	"math/rand/v2"

	"github.com/trimtab/trimtab/lab"
)

// World is the application in a cluster whose machines are not always equally
// fast, seen through measurements. It is not safe for concurrent use.
type World struct {
	network *Network
	// rate of requests offered, 1/s; speed of the machines.
	rate, speed float64
	scaling     float64
	cold        bool
	rand        *rand.Rand
	drift       float64
	window      int
}

// Settings say which world.
type Settings struct {
	// Rate of requests, in 1/s.
	Rate float64
	// Speed of the machines; 1 is that of the recorded Resource-Fair run.
	Speed float64
	// Scaling is how a service gains from more CPUs: c of them work as
	// 8 (c/8)^Scaling; 1, or 0: in proportion.
	Scaling float64
	// Cold begins with services that have just started.
	Cold bool
	// Seed of drift and noise.
	Seed uint64
}

// Fitted or read off the logs of the recorded runs.
const (
	// OfferedRate is the rate of the recorded runs, in 1/s: a client of wrk2
	// offers a constant one, which all windows without overload complete.
	OfferedRate = 2973
	// Speeds of the machines in the recorded runs, relative to the first: no
	// network with one speed for all gives the four means, see doc.go.
	fairSpeed, searchSpeed = 1.0, 2.587

	coldSeconds, coldSpeed = 450, 0.5   // every run begins with so many seconds above 6 s
	driftStd, driftKept    = 0.015, 0.9 // P99 of one allocation wanders over minutes
	noiseStd               = 0.08       // of a P99 from a window to the next
	spanStd                = 0.03       // of a mean sojourn time
	floorSpread            = 20.0       // ms; a P99 without load is uniform over it
)

// NewWorld returns a world at its first window.
func NewWorld(s Settings) *World {
	a, b := lab.Seed(s.Seed, 0x6d6963726f)
	return &World{network: HotelReservation(), rate: s.Rate, speed: s.Speed, scaling: s.Scaling, cold: s.Cold, rand: rand.New(rand.NewPCG(a, b))}
}

// Report is what a window shows to those who measure.
type Report struct {
	// P99 end to end, in ms, and the share of requests completed.
	P99, Completed float64
	// CPUs is what each service had.
	CPUs []int
	// Spans are per service, in the order of Names.
	Spans [Count]Span
}

// Span sums up the visits of one service, from spans.
type Span struct {
	// Rate of visits, in 1/s, and mean sojourn time, in ms.
	Rate, Mean float64
	// Called is how often requests that wait call it, per request.
	Called float64
}

// warmth is the share of its speed that the application has so long after it
// started.
func warmth(seconds float64) float64 {
	return math.Min(1, coldSpeed+(1-coldSpeed)*seconds/coldSeconds)
}

// effective is how many CPUs that scale in proportion do the work of those.
func effective(cpus []int, scaling float64) []float64 {
	const same = 8 // what equal shares are, at 152 CPUs
	out := make([]float64, len(cpus))
	for i, c := range cpus {
		out[i] = float64(c)
		if scaling > 0 && scaling != 1 {
			out[i] = same * math.Pow(out[i]/same, scaling)
		}
	}
	return out
}

// Play lets one window pass with so many CPUs per service.
func (w *World) Play(cpus []int) Report {
	w.drift = driftKept*w.drift + math.Sqrt(1-driftKept*driftKept)*driftStd*w.rand.NormFloat64()
	speed := w.speed * math.Exp(w.drift)
	if w.cold {
		speed *= warmth(float64(w.window) * WindowSeconds)
	}
	w.window++
	saw := w.network.Play(effective(cpus, w.scaling), w.rate, speed)
	r := Report{CPUs: append([]int(nil), cpus...), Completed: saw.Completed}
	r.P99 = math.Min(most, floor+w.rand.Float64()*floorSpread+(saw.P99-floor)*math.Exp(noiseStd*w.rand.NormFloat64()))
	for i := range r.Spans {
		s := &r.Spans[i]
		s.Rate = w.rate * w.network.rates[i]
		s.Mean = saw.Sojourn[i] * math.Exp(spanStd*w.rand.NormFloat64())
		if !w.network.Services[i].Aside {
			s.Called = w.network.rates[i]
		}
	}
	return r
}
