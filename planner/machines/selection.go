package machines

import (
	"cmp"
	"math/bits"
	"slices"
)

// ranked is a machine and the number by which it is ranked.
type ranked[F Number] struct {
	key F
	at  uint32
}

// before orders by key, ties by position: no two are equal.
func (a ranked[F]) before(b ranked[F]) bool {
	return a.key < b.key || a.key == b.key && a.at < b.at
}

func (a ranked[F]) compare(b ranked[F]) int {
	return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.at, b.at))
}

// few is a length at which sorting is as quick as selecting.
const few = 24

// lowest returns the k lowest of r, in any order: it permutes r so that they are at its front. It
// takes linear time, by quickselect; after 2 log2(n) rounds it sorts what is left, since machines
// choose their reports, and so could choose bad pivots.
func lowest[F Number](r []ranked[F], k int) []ranked[F] {
	k = min(k, len(r))
	part(r, k, 2*bits.Len(uint(len(r))))
	return r[:k]
}

// part brings the k lowest of r to its front in at most so many rounds.
func part[F Number](r []ranked[F], k, rounds int) {
	lo, hi := 0, len(r) // r[:lo] are among the lowest, r[hi:] are not
	for ; lo < k && k < hi; rounds-- {
		if hi-lo <= few || rounds <= 0 {
			slices.SortFunc(r[lo:hi], ranked[F].compare)
			return
		}
		p := lo + split(r[lo:hi])
		if k <= p {
			hi = p
		} else {
			lo = p + 1
		}
	}
}

// split partitions r around a pivot and returns where that is.
func split[F Number](r []ranked[F]) int {
	n := len(r)
	m := median(r, n/4, n/2, n-1-n/4)
	r[m], r[n-1] = r[n-1], r[m]
	pivot, p := r[n-1], 0
	for i := range n - 1 {
		if r[i].before(pivot) {
			r[i], r[p] = r[p], r[i]
			p++
		}
	}
	r[p], r[n-1] = r[n-1], r[p]
	return p
}

// median returns which of three is the middle one.
func median[F Number](r []ranked[F], a, b, c int) int {
	if r[b].before(r[a]) {
		a, b = b, a
	}
	if r[c].before(r[b]) {
		b = c
		if r[b].before(r[a]) {
			b = a
		}
	}
	return b
}
