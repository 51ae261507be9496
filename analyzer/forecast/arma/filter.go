package arma

import "math"

// filter is an ARMA(1,1) around a mean, with its state after the last report.
type filter struct {
	Mu    float64 `json:"mu"`
	Phi   float64 `json:"phi"`
	Theta float64 `json:"theta"`
	// Dev and Err are the last deviation from the mean and the last residual.
	Dev  float64 `json:"dev"`
	Err  float64 `json:"err"`
	Seen int     `json:"seen"`
}

// reach bounds |φ| and |θ|: stationary and invertible.
const reach = 0.995

// stable reports whether the coefficients are inside their bounds.
func (f *filter) stable() bool {
	return math.Abs(f.Phi) <= reach && math.Abs(f.Theta) <= reach
}

// step reads the next report.
func (f *filter) step(y float64) {
	if f.Seen == 0 && f.Mu == 0 {
		f.Mu, f.Phi = y, 0.9
	}
	dev, err := y-f.Mu, 0.0
	if f.Seen > 0 {
		err = dev - f.Phi*f.Dev - f.Theta*f.Err
	}
	f.Dev, f.Err = dev, err
	f.Seen = min(f.Seen+1, math.MaxInt32)
}

// path returns the highest and the mean of the expected next h reports:
//
//	y[t+k] = μ + φ^(k−1) (φ dev + θ err)
//
// It is monotone in k, or alternates about μ and shrinks when φ < 0.
func (f *filter) path(h int) (high, mean float64) {
	first := f.Phi*f.Dev + f.Theta*f.Err
	last := first * math.Pow(f.Phi, float64(h-1))
	high = f.Mu + math.Max(first, last)
	if f.Phi < 0 && h > 1 {
		high = f.Mu + math.Max(first, f.Phi*first)
	}
	mean = f.Mu + first*(1-math.Pow(f.Phi, float64(h)))/((1-f.Phi)*float64(h))
	return high, mean
}

// refit sets μ to the mean of y, and φ and θ to the least conditional sum of
// squares, by a pattern search from where they are.
func (f *filter) refit(y []float64) {
	if len(y) < 8 {
		return
	}
	mu := 0.0
	for i, v := range y {
		mu += (v - mu) / float64(i+1)
	}
	f.Mu = mu
	best := sumOfSquares(y, mu, f.Phi, f.Theta)
	for step := 0.2; step > 0.01; {
		moved := false
		for _, d := range [4][2]float64{{step, 0}, {-step, 0}, {0, step}, {0, -step}} {
			phi, theta := clamp(f.Phi+d[0]), clamp(f.Theta+d[1])
			if s := sumOfSquares(y, mu, phi, theta); s < best*(1-1e-9) {
				f.Phi, f.Theta, best, moved = phi, theta, s, true
				break
			}
		}
		if !moved {
			step /= 2
		}
	}
	f.rewind(y)
}

// rewind sets the state to that after all but the last report of y, which the caller is about to
// take.
func (f *filter) rewind(y []float64) {
	dev, err := y[0]-f.Mu, 0.0
	for _, v := range y[1 : len(y)-1] {
		d := v - f.Mu
		err = d - f.Phi*dev - f.Theta*err
		dev = d
	}
	f.Dev, f.Err = dev, err
}

func clamp(v float64) float64 { return math.Max(-reach, math.Min(reach, v)) }

func sumOfSquares(y []float64, mu, phi, theta float64) float64 {
	sum, dev, err := 0.0, y[0]-mu, 0.0
	for _, v := range y[1:] {
		d := v - mu
		err = d - phi*dev - theta*err
		dev = d
		sum += err * err
	}
	return sum
}
