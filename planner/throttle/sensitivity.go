package throttle

import "math"

// sensitivity predicts by how much a signal falls when resources are freed. It is a linear
// regression through the origin over the resources that a throttled task does not keep, learned
// online from trials.
//
//	Δe = Σ_r b_r x_r + noise     x_r: freed, as a part of the host's capacity
//	b ~ N(0, σ² P), σ² ~ IG(a, c)     before: P = 1e5 I, a = 1, c = 0.0025
//	K = P x / (1 + xᵀ P x),  d = Δe − bᵀ x
//	b ← b + K d,  P ← P − K xᵀ P,  a ← a + ½,  c ← c + d² / (2 (1 + xᵀ P x))
//
// Old trials are forgotten: before each trial P grows by 2% unless it is as wide as in the
// beginning, and a and c count at most 25 trials.
//
// Source: Bishop, Pattern Recognition and Machine Learning, 2006, 3.3 and exercise 3.12.
type sensitivity struct {
	// flows are the indices in Config.Resources of the resources of the regression.
	flows []int
	b, p  []float64
	// x and px are scratch space for one trial.
	x, px []float64
	a, c  float64
	n     int
}

const (
	wide, fade     = 1e5, 1.02
	priorA, priorC = 1, 0.0025
	mostA          = 25 / 2.0
	// enoughTrials is the number of trials that a prediction needs.
	enoughTrials = 3
)

func newSensitivity(resources []Resource) sensitivity {
	s := sensitivity{a: priorA, c: priorC}
	for k := range resources {
		if !resources[k].Stock {
			s.flows = append(s.flows, k)
		}
	}
	r := len(s.flows)
	s.b, s.p, s.x, s.px = make([]float64, r), make([]float64, r*r), make([]float64, r), make([]float64, r)
	for i := range r {
		s.p[i*r+i] = wide
	}
	return s
}

// learn updates the regression with one trial: freed are the resources that were freed, as
// fractions of the capacity; fell is by how much the signal fell.
func (s *sensitivity) learn(freed []float64, fell float64) {
	r := len(s.flows)
	s.read(freed)
	if s.norm() == 0 || math.IsNaN(fell) {
		return
	}
	s.forget()
	spread := 1 + s.spread()
	d := fell - s.mean()
	for i := range r {
		s.b[i] += s.px[i] / spread * d
	}
	for i := range r {
		for j := range r {
			s.p[i*r+j] -= s.px[i] * s.px[j] / spread
		}
		s.p[i*r+i] = max(s.p[i*r+i], 1e-9) // rounding errors must not make it negative
	}
	if s.a+0.5 > mostA {
		s.c *= (mostA - 0.5) / s.a
		s.a = mostA - 0.5
	}
	s.a += 0.5
	s.c = min(s.c+d*d/(2*spread), greatestAmount)
	s.n++
}

// forget widens P, to give old trials less weight.
func (s *sensitivity) forget() {
	r := len(s.flows)
	for i := range r {
		if s.p[i*r+i]*fade > wide {
			return
		}
	}
	for i := range s.p {
		s.p[i] *= fade
	}
}

// read sets x to the freed fractions of the resources of the regression.
func (s *sensitivity) read(freed []float64) {
	for i, k := range s.flows {
		s.x[i] = 0
		if k < len(freed) && freed[k] > 0 && freed[k] < 1e6 {
			s.x[i] = freed[k]
		}
	}
}

func (s *sensitivity) norm() (sum float64) {
	for _, v := range s.x {
		sum += v * v
	}
	return sum
}

func (s *sensitivity) mean() (sum float64) {
	for i := range s.b {
		sum += s.b[i] * s.x[i]
	}
	return sum
}

// spread returns xᵀ P x, and sets px to P x.
func (s *sensitivity) spread() (sum float64) {
	r := len(s.flows)
	for i := range r {
		s.px[i] = 0
		for j := range r {
			s.px[i] += s.p[i*r+j] * s.x[j]
		}
		sum += s.px[i] * s.x[i]
	}
	return max(sum, 0)
}

// fall predicts by how much the signal falls when the given fractions are freed: the mean and its
// standard deviation. It returns false if there were too few trials.
func (s *sensitivity) fall(freed []float64) (mean, deviation float64, ok bool) {
	if s.n < enoughTrials {
		return 0, 0, false
	}
	s.read(freed)
	return s.mean(), math.Sqrt(s.spread() * s.c / s.a), true
}
