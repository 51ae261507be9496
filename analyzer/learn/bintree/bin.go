package bintree

// bin is a leaf: the weighted moments of the reports whose log2(a/l) fell into
// one cell. Sums are centred on the means, so nothing cancels.
type bin struct {
	// Cell is floor(log2(a/l) * 2^depth).
	Cell int `json:"cell"`
	// N is how many reports count here, W the sum of their weights.
	N float64 `json:"n"`
	W float64 `json:"w"`
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

// merge adds all that o holds, by the pairwise update of means and products.
func (b *bin) merge(o *bin) {
	w := b.W + o.W
	if !(w > 0) {
		return
	}
	share := o.W / w
	x, l, p := o.X-b.X, o.L-b.L, o.P-b.P
	between := b.W * share
	b.XX += o.XX + x*x*between
	b.LL += o.LL + l*l*between
	b.PP += o.PP + p*p*between
	b.XL += o.XL + x*l*between
	b.XP += o.XP + x*p*between
	b.LP += o.LP + l*p*between
	b.X += x * share
	b.L += l * share
	b.P += p * share
	b.W = w
	b.N += o.N
}

// fade keeps the means and the share f of all weight.
func (b *bin) fade(f float64) {
	b.N *= f
	b.W *= f
	b.XX *= f
	b.LL *= f
	b.PP *= f
	b.XL *= f
	b.XP *= f
	b.LP *= f
}

// noise returns the weighted sum of squares of the performance around its
// line over log2(a/l) inside the bin, and its degrees of freedom.
func (b *bin) noise() (squares, freedom float64) {
	if b.N >= 4 && b.XX > 0 {
		return max(0, b.PP-b.XP*b.XP/b.XX), b.N - 2
	}
	return b.PP, max(0, b.N-1)
}

// byLoad returns the weighted sums LL and LP with the part that log2(a/l)
// explains taken out: what the load did at equal a/l.
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
