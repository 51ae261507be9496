package welfare

import (
	"math"
	"sort"
)

// least returns the fewest units in [lo, hi] with a utility of at least t; hi if there are none.
func (u *utility) least(t int64, lo, hi int) int {
	if u.fall != nil {
		return lo + sort.Search(hi-lo, func(i int) bool { return u.value(lo+i) >= t })
	}
	if len(u.worth) == 0 {
		for _, p := range u.top {
			u.worth = append(u.worth, u.steps(p))
		}
	}
	i := sort.Search(len(u.worth), func(i int) bool { return u.worth[i] >= t }) // the first knot with a utility of at least t
	if i == len(u.worth) {
		return max(lo, hi)
	}
	if i > 0 {
		lo = max(lo, min(int(math.Min(u.at[i-1], float64(hi)))+1, hi)) // the knot before is below t
	} else {
		return lo
	}
	hi = max(lo, int(math.Min(math.Ceil(u.at[i]), float64(hi))))
	if lo == hi {
		return lo
	}
	return u.leastBetween(i, t, lo, hi)
}

// leastBetween does the same between knots i-1 and i, where the first is below t. It first tries
// where a straight line between them reaches t: most utilities are linear there.
func (u *utility) leastBetween(i int, t int64, lo, hi int) int {
	has := func(k int) bool { return u.steps(u.between(i, float64(k))) >= t }
	x0, x1, u0, u1 := u.at[i-1], u.at[i], float64(u.worth[i-1]), float64(u.worth[i])
	guess := min(max(int(math.Ceil(x0+(float64(t)-u0)/(u1-u0)*(x1-x0))), lo), hi)
	from, to := lo, hi // to reaches t, or is hi; no allocation below from does
	if guess == hi || has(guess) {
		if guess == lo || !has(guess-1) {
			return guess
		}
		to = guess - 1
	} else {
		from = guess + 1
	}
	return from + sort.Search(to-from, func(n int) bool { return has(from + n) })
}
