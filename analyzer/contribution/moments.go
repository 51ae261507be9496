package contribution

import "math"

// Moments has sums over requests for one component at one load: of its sojourn time x and the
// latency y of the requests that visited it, both in seconds, with the weight of each request. They
// can be added over intervals, partitions and hosts.
type Moments struct {
	N             float64 `json:"n"`
	Sum           float64 `json:"sum"`
	Square        float64 `json:"square"`
	Latency       float64 `json:"latency"`
	LatencySquare float64 `json:"latency_square"`
	Cross         float64 `json:"cross"`
}

// Add adds a request.
func (m *Moments) Add(sojourn, latency, weight float64) {
	m.N += weight
	m.Sum += weight * sojourn
	m.Square += weight * sojourn * sojourn
	m.Latency += weight * latency
	m.LatencySquare += weight * latency * latency
	m.Cross += weight * sojourn * latency
}

// Merge adds the sums of o.
func (m *Moments) Merge(o Moments) {
	m.N += o.N
	m.Sum += o.Sum
	m.Square += o.Square
	m.Latency += o.Latency
	m.LatencySquare += o.LatencySquare
	m.Cross += o.Cross
}

// CoV returns the coefficient of variation of sojourn times, √(E x² − E² x)/E x, or 0 if there are
// none.
func (m *Moments) CoV() float64 {
	if m.N == 0 || m.Sum == 0 {
		return 0
	}
	mean := m.Sum / m.N
	return math.Sqrt(max(0, m.Square/m.N-mean*mean)) / mean
}

// Correlation returns Pearson's correlation between sojourn time and latency of requests, or 0 if
// either is constant.
func (m *Moments) Correlation() float64 {
	if m.N == 0 {
		return 0
	}
	x, y := m.Sum/m.N, m.Latency/m.N
	xx, yy := m.Square/m.N-x*x, m.LatencySquare/m.N-y*y
	// A tiny variance is a rounding error of a constant.
	if xx <= 1e-12*x*x || yy <= 1e-12*y*y {
		return 0
	}
	return max(-1, min(1, (m.Cross/m.N-x*y)/math.Sqrt(xx*yy)))
}
