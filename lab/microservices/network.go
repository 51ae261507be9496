package microservices

import "math"

// Network is the application under load: what waits at each service carries
// over from window to window. It is not safe for concurrent use.
type Network struct {
	Services []Service
	Classes  []Class

	rates   [Count]float64 // visits per request
	waiting [Count]float64 // requests in each replica
}

// New returns the network with nothing waiting.
func New(services []Service, classes []Class) *Network {
	n := &Network{Services: services, Classes: classes}
	for c := range classes {
		for i, v := range classes[c].Visits {
			n.rates[i] += classes[c].Share * v
		}
	}
	return n
}

// HotelReservation returns the network with the fitted parameters.
func HotelReservation() *Network { return New(services(), classes()) }

const (
	// WindowSeconds is one window of the logs.
	WindowSeconds = 30.0
	// steps of a window, within which what waits is followed.
	steps = 3
	// patience is the mean time that a request waits before its client gives
	// up, and most the longest that was recorded, in ms.
	patience, most = 8000.0, 8000.0
	// floor is added to the sojourn times, in ms: with theirs, the P99 of the
	// recorded windows without overload begins at 100 ms.
	floor = 75.0
	// leastCPUs is what a service without any ready replica is served by.
	leastCPUs = 0.2
)

// Window is what one window shows.
type Window struct {
	// P99 and Mean are the latency end to end, in ms.
	P99, Mean float64
	// Sojourn is the mean time of a visit at each service, in ms.
	Sojourn [Count]float64
	// Completed is the share of requests that were answered.
	Completed float64
}

// Play lets one window pass: cpus per service, in the order of Names, the rate
// of requests (1/s, >= 0), and the speed of the machines (1 as fitted).
func (n *Network) Play(cpus []float64, rate, speed float64) Window {
	var w Window
	var parts [steps * 4]part
	k := 0
	given := 0.0
	for range steps {
		var sojourn [Count]float64
		for i := range sojourn {
			sojourn[i] = n.advance(i, math.Max(cpus[i], leastCPUs), rate, speed)
			w.Sojourn[i] += sojourn[i] / steps
			given += n.waiting[i] * math.Max(cpus[i], leastCPUs) / patience * 1000 / steps
		}
		for c := range n.Classes {
			p := n.sum(c, &sojourn)
			p.weight /= steps
			w.Mean += p.weight * p.mean
			if k < len(parts) {
				parts[k] = p
				k++
			}
		}
	}
	w.Completed = math.Max(0, 1-given/math.Max(rate, 1e-9))
	w.P99 = math.Min(most, floor+tail(parts[:k], 0.01))
	return w
}

// advance follows one service for a step: per replica, of which there is one
// per CPU,
//
//	dq/dt = λ − μ q/(1+q) − q/θ,    T = (1 + q)/μ,
//
// whose stationary point is that of M/M/1 below saturation, and which grows by
// λ − μ above. The step is implicit, so that it is stable for any length.
func (n *Network) advance(i int, cpus, rate, speed float64) float64 {
	const h = WindowSeconds / steps
	lambda := rate * n.rates[i] / cpus
	mu := speed * 1000 / n.Services[i].Work
	a := 1 + h*1000/patience
	b := n.waiting[i] + h*lambda
	c := a + h*mu - b
	q := (-c + math.Sqrt(c*c+4*a*b)) / (2 * a)
	n.waiting[i] = q
	return math.Min((1+q)/mu*1000, patience)
}
