package fingerprint

import (
	"math"
	"slices"
)

// Quartile is a definition of the quartiles.
type Quartile string

// The definitions. With x_0 ≤ … ≤ x_{n-1}, a quartile at position h is x_⌊h⌋ + (h − ⌊h⌋) (x_⌊h⌋₊₁
// − x_⌊h⌋). "" means Linear.
const (
	// Linear is type 7 of Hyndman and Fan: h = (n−1) p.
	Linear Quartile = "linear"
	// Exclusive is their type 6: h = (n+1) p − 1, at least 0 and at most n−1.
	Exclusive Quartile = "exclusive"
	// Tukey uses the hinges: the medians of the lower and of the upper half, each including the
	// overall median if n is odd.
	Tukey Quartile = "tukey"
)

// positions returns h of the lower and of the upper quartile of n values.
func (q Quartile) positions(n int) (lower, upper float64) {
	last := float64(n - 1)
	switch q {
	case Exclusive:
		h := func(p float64) float64 { return max(0, min(last, (last+2)*p-1)) }
		return h(0.25), h(0.75)
	case Tukey:
		half := (n + 1) / 2
		h := float64(half-1) / 2
		return h, last - h
	default:
		return last * 0.25, last * 0.75
	}
}

// buckets is into how many buckets of equal width values are counted.
const buckets = 256

// few is up to how many values sorting is faster than counting.
const few = 48

// selector finds order statistics of values without sorting them all: it counts them into
// buckets, and only searches the wanted buckets. It takes O(n), and at worst O(n log n).
type selector struct {
	bucket []uint8
	taken  []float64
}

// quartiles returns both quartiles of v, which has at least one value.
func (s *selector) quartiles(v []float64, q Quartile) (lower, upper float64) {
	h1, h3 := q.positions(len(v))
	taken, skipped1, skipped3 := s.around(v, int(h1), int(h3))
	lower = between(taken, h1, skipped1)
	return lower, between(taken, h3, skipped3)
}

// between returns the value at position h of all values, of which taken are some; skipped smaller
// ones are left out. It changes the order of taken.
func between(taken []float64, h float64, skipped int) float64 {
	i := int(h)
	x := nth(taken, i-skipped)
	if f := h - float64(i); f > 0 {
		x += f * (slices.Min(taken[i+1-skipped:]) - x)
	}
	return x
}

// nth returns the value of rank r, with no larger one before it and no smaller one behind:
// quickselect (Hoare, 1961), with a sort if its pivots are bad.
func nth(v []float64, r int) float64 {
	all, from, to := v, 0, len(v) // what is not yet ordered
	for rounds := 0; to-from > 12; rounds++ {
		if rounds > 40 {
			break
		}
		a, b, c := all[from], all[(from+to)/2], all[to-1]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := from, to-1
		for i <= j {
			for all[i] < pivot {
				i++
			}
			for all[j] > pivot {
				j--
			}
			if i <= j {
				all[i], all[j] = all[j], all[i]
				i++
				j--
			}
		}
		switch { // from … j <= pivot, between them = pivot, i … to >= pivot
		case r <= j:
			to = j + 1
		case r >= i:
			from = i
		default:
			return all[r]
		}
	}
	slices.Sort(all[from:to])
	return all[r]
}

// around returns values that include those of rank i, i+1, j and j+1, and how many smaller ones
// than these are left out. i <= j.
func (s *selector) around(v []float64, i, j int) (taken []float64, skippedI, skippedJ int) {
	least, most := v[0], v[0]
	for _, x := range v { // seldom true, and without the NaN that min and max mind
		if x < least {
			least = x
		} else if x > most {
			most = x
		}
	}
	scale := (buckets - 1) / (most - least)
	if len(v) <= few || math.IsInf(scale, 0) {
		s.taken = append(s.taken[:0], v...)
		return s.taken, 0, 0
	}
	var count [buckets]int32
	s.bucket = slices.Grow(s.bucket[:0], len(v))[:len(v)]
	for k, x := range v {
		b := uint8((x - least) * scale)
		s.bucket[k] = b
		count[b]++
	}
	var wanted [buckets]bool
	below := 0
	for b, c := range count {
		// The bucket holds the ranks below … below+n−1.
		n := int(c)
		wanted[b] = holds(below, n, i) || holds(below, n, j)
		if !wanted[b] && below+n <= i {
			skippedI += n
		}
		if !wanted[b] && below+n <= j {
			skippedJ += n
		}
		below += n
	}
	s.taken = s.taken[:0]
	for k, b := range s.bucket {
		if wanted[b] {
			s.taken = append(s.taken, v[k])
		}
	}
	return s.taken, skippedI, skippedJ
}

// holds reports whether one of the n ranks from below on is r or r+1.
func holds(below, n, r int) bool { return n > 0 && below <= r+1 && r < below+n }
