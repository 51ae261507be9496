package baseline

import "math"

// ernest fits the time that a unit of performance takes, y = 1/p, by
// non-negative least squares, and demands the least allocation at which it
// meets the SLO.
type ernest struct{ fits map[string]*fit }

// terms is the number of features.
const terms = 4

// features are those of Ernest at allocation a and load l.
func features(a, l float64) [terms]float64 { return [terms]float64{1, l / a, math.Log(a), a} }

// fit holds the sums of one job's least squares.
type fit struct {
	gram  [terms][terms]float64
	right [terms]float64
	theta [terms]float64
}

func (f *fit) add(x [terms]float64, y float64) {
	for i := range x {
		f.right[i] += x[i] * y
		for k := range x {
			f.gram[i][k] += x[i] * x[k]
		}
	}
}

// sweeps of coordinate descent; each solves one coefficient exactly.
const sweeps = 200

// solve minimises |Xθ − y|² over θ >= 0, from the last answer on.
func (f *fit) solve() {
	for range sweeps {
		for i := range f.theta {
			if f.gram[i][i] <= 0 {
				continue
			}
			rest := f.right[i]
			for k := range f.theta {
				if k != i {
					rest -= f.gram[i][k] * f.theta[k]
				}
			}
			f.theta[i] = math.Max(0, rest/f.gram[i][i])
		}
	}
}

func (f *fit) at(a, l float64) float64 {
	y := 0.0
	for i, x := range features(a, l) {
		y += f.theta[i] * x
	}
	return y
}

func (e *ernest) demand(j *Job) float64 {
	f := e.fits[j.Name]
	if f == nil {
		f = &fit{}
		e.fits[j.Name] = f
	}
	if j.Units > 0 && j.Load > 0 {
		f.add(features(float64(j.Units), j.Load), 1/math.Max(j.Performance, 1e-3*j.SLO))
		f.solve()
	}
	for a := max(j.Min, 1); a < j.Max; a++ {
		if f.at(float64(a), j.Load) <= 1/j.SLO {
			return float64(a)
		}
	}
	return float64(j.Max)
}
