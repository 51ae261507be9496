package learn

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
)

const (
	// coarse is the number of points with equal ratios that are read first. finest is the least
	// distance of two points, as a fraction of the logarithmic range: 0.7% over three orders of
	// magnitude. near is the distance down to which steep parts are refined.
	coarse, finest, near = 64, 1.0 / 1024, 4.0 / 1024
	// fine is how far a curve may deviate from the straight line between two of its points,
	// relative to the highest performance; with more, a point is added between them. steep is the
	// rise between two points from which on a part counts as steep.
	fine, steep = 1e-3, 0.03
)

// CurveOf returns l's prediction at the given load (requests/s, > 0) for allocations from min to
// max (0 <= min < max, max >= Least, in the pool's unit), as data for the planner, or nil if l
// holds no report or an argument is out of range. Level is the level of l's bounds.
//
// It reads l at the allocations at which l says that it bends, and between them at points with
// equal ratios, refined where the curve is not straight: at most about two thousand allocations.
// The curve is made non-decreasing, unless l says that it falls. Of the points at most
// trimtab.MaxKnots are kept, those where the curve bends most: see [Thin].
func CurveOf(l Learner, load, min, max float64, level float64) *trimtab.Curve {
	finite := !math.IsInf(load, 0) && !math.IsInf(max, 0) && load > 0 && min >= 0 && max > min && max >= Least
	if !finite || !(level > 0 && level < 1) || l.Reports() == 0 {
		return nil
	}
	var room [512]trimtab.Knot // usually enough to avoid allocating: every report reads the curve anew
	knots := room[:0]
	r := reading{load: load, least: min, most: max, falls: l.Falls()}
	if low := max / 1000; min < low {
		// Points with equal ratios cannot start at 0: put one knot there, the others above
		// max/1000.
		knots = add(knots, r.at(l, min))
		r.least = low
	}
	knots = r.all(knots, l)
	if !r.falls {
		ascend(knots)
	}
	return &trimtab.Curve{Load: load, Level: level, Knots: Thin(knots, trimtab.MaxKnots)}
}

// reading is the state of reading a curve from a learner, from left to right. The knots are passed
// as arguments and not stored in it, since the compiler would then allocate them on the heap.
type reading struct {
	load        float64
	least, most float64
	// finest and near are the constants of that name as ratios of two allocations.
	finest, near float64
	falls        bool
	// off is the constant fine in the unit of the performance.
	off float64
}

// all reads the initial points, and further points between them where needed.
func (r *reading) all(knots []trimtab.Knot, l Learner) []trimtab.Knot {
	ratio := math.Log(r.most / r.least)
	r.finest, r.near = math.Exp(ratio*finest), math.Exp(ratio*near)
	bends := slices.DeleteFunc(l.Bends(r.load), func(a float64) bool { return !(a > r.least && a < r.most) })
	slices.Sort(bends) // usually sorted already
	var placesRoom [4 * coarse]float64
	places := placesRoom[:0]
	for i := range coarse {
		a := r.least * math.Exp(ratio*float64(i)/coarse)
		for len(bends) > 0 && bends[0] < a {
			places, bends = append(places, bends[0]), bends[1:]
		}
		places = append(places, a)
	}
	places = append(append(places, bends...), r.most)
	var pointsRoom [4 * coarse]trimtab.Knot
	points, top := pointsRoom[:0], 0.0
	for _, a := range places {
		points = append(points, r.at(l, a))
		top = max(top, points[len(points)-1].Mean)
	}
	r.off = fine * top
	knots = add(knots, points[0])
	for i := 1; i < len(points); i++ {
		knots = r.halve(knots, l, points[i-1], points[i])
	}
	return knots
}

// halve appends the points needed between p and q, and q.
func (r *reading) halve(knots []trimtab.Knot, l Learner, p, q trimtab.Knot) []trimtab.Knot {
	rise, ratio := apart(&p.Band, &q.Band), q.Allocation/p.Allocation
	// The geometric mean; there is none between neighbouring floating-point numbers.
	half := p.Allocation * math.Sqrt(ratio)
	if ratio > r.finest && half > p.Allocation && half < q.Allocation && (r.falls || rise > r.off) {
		k := r.at(l, half)
		t := (k.Allocation - p.Allocation) / (q.Allocation - p.Allocation)
		line := trimtab.Band{Lower: p.Lower + t*(q.Lower-p.Lower), Mean: p.Mean + t*(q.Mean-p.Mean), Upper: p.Upper + t*(q.Upper-p.Upper)}
		if apart(&k.Band, &line) > r.off || ratio > r.near && rise > steep/fine*r.off {
			return r.halve(r.halve(knots, l, p, k), l, k, q)
		}
		knots = add(knots, k)
	}
	return add(knots, q)
}

// apart returns the largest difference between two bands.
func apart(a, b *trimtab.Band) float64 {
	return max(math.Abs(a.Lower-b.Lower), math.Abs(a.Mean-b.Mean), math.Abs(a.Upper-b.Upper))
}

// at reads the curve at one allocation.
func (r *reading) at(l Learner, a float64) trimtab.Knot {
	return trimtab.Knot{Allocation: a, Band: l.Predict(a, r.load)}
}

// add appends a knot, unless it is at the same allocation as the one before.
func add(knots []trimtab.Knot, k trimtab.Knot) []trimtab.Knot {
	if n := len(knots); n == 0 || k.Allocation > knots[n-1].Allocation {
		knots = append(knots, k)
	}
	return knots
}

// ascend makes lower bound, mean and upper bound non-decreasing, by the running maximum.
func ascend(knots []trimtab.Knot) {
	var top trimtab.Band
	for i := range knots {
		b := &knots[i].Band
		top.Lower = max(top.Lower, b.Lower)
		top.Mean = max(top.Mean, b.Mean, top.Lower)
		top.Upper = max(top.Upper, b.Upper, top.Mean)
		*b = top
	}
}
