package bintree

import "github.com/trimtab/trimtab/analyzer/learn/walk"

// bin is a leaf: the reports whose log2(a/l) fell into one cell.
type bin struct {
	// Cell is floor(log2(a/l) * 2^depth).
	Cell int `json:"cell"`
	walk.Moments
}

// noise returns the weighted sum of squares of the performance around its
// line over log2(a/l) inside the bin, and its degrees of freedom.
func (b *bin) noise() (squares, freedom float64) {
	if b.N >= 4 && b.XX > 0 {
		return max(0, b.PP-b.XP*b.XP/b.XX), b.N - 2
	}
	return b.PP, max(0, b.N-1)
}

// byLoad returns the weighted sums LL and LP without the part that log2(a/l) explains: the effect
// of the load at equal a/l.
func (b *bin) byLoad() (ll, lp float64) {
	if b.N < 4 || !(b.XX > 0) {
		return 0, 0
	}
	ll = b.LL - b.XL*b.XL/b.XX
	lp = b.LP - b.XL*b.XP/b.XX
	if ll < 1e-9*b.LL || ll <= 0 {
		return 0, 0 // allocation never changed: the two cannot be told apart
	}
	return ll, lp
}
