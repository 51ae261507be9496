package walk

import (
	"math"

	"github.com/trimtab/trimtab"
)

// Moments are the weighted moments of reports. Sums are centred on the means,
// so nothing cancels.
type Moments struct {
	// N is how many reports count here, W the sum of their weights. Fresh are those of N that a
	// learner judges separately, if it does.
	N     float64 `json:"n"`
	Fresh float64 `json:"fresh,omitempty"`
	W     float64 `json:"w"`
	// X, L, P are the weighted means of log2(a/l), ln(load), performance.
	X float64 `json:"x"`
	L float64 `json:"l"`
	P float64 `json:"p"`
	// XX, LL, PP, XL, XP, LP are the weighted sums of products of deviations.
	XX float64 `json:"xx"`
	LL float64 `json:"ll"`
	PP float64 `json:"pp"`
	XL float64 `json:"xl"`
	XP float64 `json:"xp"`
	LP float64 `json:"lp"`
}

// One returns the moments of a single report.
func One(r Report) Moments { return Moments{N: 1, W: r.W, X: r.X, L: r.L, P: r.P} }

// Merge adds all that o holds, by the pairwise update of means and products.
func (m *Moments) Merge(o *Moments) {
	w := m.W + o.W
	if !(w > 0) {
		return
	}
	share := o.W / w
	x, l, p := o.X-m.X, o.L-m.L, o.P-m.P
	between := m.W * share
	m.XX += o.XX + x*x*between
	m.LL += o.LL + l*l*between
	m.PP += o.PP + p*p*between
	m.XL += o.XL + x*l*between
	m.XP += o.XP + x*p*between
	m.LP += o.LP + l*p*between
	m.X += x * share
	m.L += l * share
	m.P += p * share
	m.W = w
	m.N += o.N
	m.Fresh += o.Fresh
}

// Fade keeps the means and the share f of all weight.
func (m *Moments) Fade(f float64) {
	m.N *= f
	m.W *= f
	m.XX *= f
	m.LL *= f
	m.PP *= f
	m.XL *= f
	m.XP *= f
	m.LP *= f
}

// Validate refuses what reports could not have made.
func (m *Moments) Validate() error {
	if !(m.N > 0 && m.N <= math.MaxInt32 && m.W > 0 && m.XX >= 0 && m.LL >= 0 && m.PP >= 0) {
		return trimtab.Invalidf("%v reports of weight %v", m.N, m.W)
	}
	return nil
}
