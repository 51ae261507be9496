package gp

import (
	"math"
	"slices"
	"sort"

	"github.com/trimtab/trimtab/analyzer/learn/walk"
)

const (
	// maxBins bounds the bins; when one more is needed, two neighbours merge.
	maxBins = 128
	// finest is the width, in octaves of a/l, up to which a bin accepts reports beside it: 1.1%.
	finest = 1.0 / 128
	// maxReports is how many reports a bin remembers; further ones fade the others a little, so
	// that slow drift is followed.
	maxReports = 1024
)

// bin holds neighbouring reports on the axis x = log2(a/l).
type bin struct {
	// Low and High are the least and the highest x of its reports.
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	walk.Moments
}

// merge adds all that o holds.
func (b *bin) merge(o *bin) {
	b.Merge(&o.Moments)
	b.Low, b.High = min(b.Low, o.Low), max(b.High, o.High)
}

// lines returns what a straight line over x leaves unexplained inside the bin: the weighted sum
// of squares of the performance with its degrees of freedom, and the weighted sums LL and LP, the
// effect of the load at equal a/l.
func (b *bin) lines() (squares, freedom, ll, lp float64) {
	if b.N < 4 || !(b.XX > 0) {
		return b.PP, max(0, b.N-1), 0, 0
	}
	inverse := 1 / b.XX
	squares, freedom = max(0, b.PP-b.XP*b.XP*inverse), b.N-2
	ll = b.LL - b.XL*b.XL*inverse
	if ll < 1e-9*b.LL || ll <= 0 {
		return squares, freedom, 0, 0 // allocation never changed: the two cannot be told apart
	}
	return squares, freedom, ll, b.LP - b.XL*b.XP*inverse
}

// add adds r to the bin that contains it or is near, and returns its index; otherwise it creates
// a bin, and returns everything.
func (s *state) add(r walk.Report) (changed int) {
	one := bin{Low: r.X, High: r.X, Moments: walk.One(r)}
	one.Fresh = 1
	i := sort.Search(len(s.Bins), func(i int) bool { return s.Bins[i].High >= r.X })
	if at := s.home(i, r.X); at >= 0 {
		b := &s.Bins[at]
		if b.N > maxReports-1 {
			b.Fade((maxReports - 1) / b.N)
		}
		b.merge(&one)
		return at
	}
	if n := len(s.Bins); n == cap(s.Bins) && n >= maxBins/4 {
		s.Bins = slices.Grow(s.Bins, maxBins+1-n) // once, and no further
	}
	s.Bins = slices.Insert(s.Bins, i, one)
	if len(s.Bins) > maxBins {
		s.join()
	}
	return everything
}

// home returns the bin that accepts x, -1 if none does; i is the first bin that does not end
// before x.
func (s *state) home(i int, x float64) int {
	best, width := -1, finest
	if i < len(s.Bins) {
		b := &s.Bins[i]
		if b.Low <= x {
			return i
		}
		if w := b.High - x; w <= width {
			best, width = i, w
		}
	}
	if i > 0 {
		if b := &s.Bins[i-1]; x-b.Low <= width {
			best = i - 1
		}
	}
	return best
}

// join merges the two neighbours that are nearest and have the fewest reports: bins become narrow
// where reports are many, as the square root of their density.
func (s *state) join() {
	best, at := math.Inf(1), 0
	for i := range len(s.Bins) - 1 {
		a, b := &s.Bins[i], &s.Bins[i+1]
		if cost := (a.N + b.N) * (b.High - a.Low); cost < best {
			best, at = cost, i
		}
	}
	s.Bins[at].merge(&s.Bins[at+1])
	s.Bins = slices.Delete(s.Bins, at+1, at+2)
}
