package fingerprint

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"
)

// Family is a distribution of the paper.
type Family string

// The families.
const (
	// Gamma has a shape k and a scale θ; the paper's for CPI.
	Gamma Family = "gamma"
	// ChiSquare has ν degrees of freedom and is Gamma with k = ν/2, θ = 2; the
	// paper's for MPKI.
	ChiSquare Family = "chi-square"
)

// beyond3Sigma is 1 − Φ(3), the mass of a normal distribution above +3 σ.
const beyond3Sigma = 0.0013498980316300946

// Distribution is a fitted one.
type Distribution struct {
	Family Family
	// Shape is k, or ν of a chi-square distribution; Scale is θ, or 2.
	Shape, Scale float64
}

// gamma returns k and θ.
func (d Distribution) gamma() (k, theta float64) {
	if d.Family == ChiSquare {
		return d.Shape / 2, 2
	}
	return d.Shape, d.Scale
}

// CDF returns P(X <= x).
func (d Distribution) CDF(x float64) float64 {
	k, theta := d.gamma()
	if x <= 0 {
		return 0
	}
	return mathext.GammaIncReg(k, x/theta)
}

// Boundary returns the value above which as much mass lies as above +3 σ of a
// normal distribution.
func (d Distribution) Boundary() float64 {
	k, theta := d.gamma()
	return theta * mathext.GammaIncRegCompInv(k, beyond3Sigma)
}

// KS returns the distance of Kolmogorov and Smirnov between d and sorted values:
//
//	max_i max( F(x_i) − i/n, (i+1)/n − F(x_i) )
func (d Distribution) KS(sorted []float64) float64 {
	worst, n := 0.0, float64(len(sorted))
	for i, x := range sorted {
		f := d.CDF(x)
		worst = max(worst, f-float64(i)/n, float64(i+1)/n-f)
	}
	return worst
}

// memory is as how many windows the past counts: from there on each new one has the weight
// 1/memory, and the earlier ones fade. At 0.5 s a window it is 4.5 h.
const memory = 1 << 15

// moments are the sums for a maximum likelihood fit of a series.
type moments struct {
	// n is how many values there were, without limit.
	n uint64
	// mean and log are of x and of ln x.
	mean, log float64
}

func (m *moments) add(x float64) {
	m.n++
	w := 1 / float64(min(m.n, memory))
	m.mean += w * (x - m.mean)
	m.log += w * (math.Log(x) - m.log)
}

// fit returns the distribution of greatest likelihood; false if there is none, as for a constant.
func (m *moments) fit(f Family) (Distribution, bool) {
	if m.n < 2 {
		return Distribution{}, false
	}
	if f == ChiSquare {
		// ψ(ν/2) = mean ln x − ln 2
		k, ok := inverseDigamma(m.log - math.Ln2)
		return Distribution{ChiSquare, 2 * k, 2}, ok
	}
	// ln k − ψ(k) = ln mean x − mean ln x
	k, ok := gammaShape(math.Log(m.mean) - m.log)
	return Distribution{Gamma, k, m.mean / k}, ok
}

// greatestShape bounds k: beyond it values are constant but for rounding.
const greatestShape = 1e9

// gammaShape solves ln k − ψ(k) = s.
//
// Source: Minka, Estimating a Gamma distribution, 2002, (8) and (10): Newton's
// method on 1/k.
func gammaShape(s float64) (float64, bool) {
	if !(s > 1/(2*greatestShape)) || s > 50 {
		return 0, false
	}
	k := (3 - s + math.Sqrt((s-3)*(s-3)+24*s)) / (12 * s)
	for range 20 {
		gap := math.Log(k) - mathext.Digamma(k) - s
		next := 1 / (1/k + gap/(k*k*(1/k-mathext.Zeta(2, k))))
		if !(next > 0) || math.Abs(next-k) <= 1e-12*k {
			break
		}
		k = next
	}
	return k, k < greatestShape
}

// inverseDigamma solves ψ(k) = y by Newton's method; ψ' is Zeta(2, ·).
//
// Source: Minka, Estimating a Dirichlet distribution, 2000, appendix C.
func inverseDigamma(y float64) (float64, bool) {
	if !(y > -1e3 && y < 20) {
		return 0, false
	}
	k := math.Exp(y) + 0.5
	if y < -2.22 {
		k = -1 / (y - mathext.Digamma(1))
	}
	for range 20 {
		step := (mathext.Digamma(k) - y) / mathext.Zeta(2, k)
		if k -= step; !(k > 0) {
			return 0, false
		}
		if math.Abs(step) <= 1e-12*k {
			break
		}
	}
	return k, true
}

// kept is how many values of a series are kept to compare with its fit.
const kept = 512

// keep is a uniform sample of a series, over all of it, or over the last [memory] values of a
// longer one. Which values it has depends only on their number.
type keep struct {
	values []float32
}

// add takes the n-th value, n from 1: each has the same chance to be kept
// (algorithm R, Vitter, 1985), with a hash of n for the draw.
func (k *keep) add(n uint64, x float64) {
	if len(k.values) < kept {
		k.values = append(k.values, float32(x))
		return
	}
	if slot := mix(n) % min(n, memory); slot < kept {
		k.values[slot] = float32(x)
	}
}

// sorted returns them in order.
func (k *keep) sorted() []float64 {
	out := make([]float64, len(k.values))
	for i, x := range k.values {
		out[i] = float64(x)
	}
	slices.Sort(out)
	return out
}

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x *= 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}
