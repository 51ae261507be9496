package learn

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
)

const (
	// coarse is how many points of the same ratio are taken at first; finest is
	// the least share of the way from the least allocation to the most between
	// two points: 0.7% over three orders of magnitude, near the most where the
	// curve is steep.
	coarse, finest, near = 64, 1.0 / 1024, 4.0 / 1024
	// fine is how far, relative to the highest performance, a curve may be off
	// the straight line between two of its points without a point between
	// them; steep is the rise between two points that is worth a closer look.
	fine, steep = 1e-3, 0.03
)

// CurveOf returns what l knows at the given load (requests/s, > 0) for
// allocations from min to max (0 <= min < max, max >= Least, in the pool's
// unit), as data for the planner, or nil when l holds no report or an argument
// is out of range. Level is the level that l's bounds hold at.
//
// l is asked where it bends, when it is [Bending] and says where, and between
// as often as its answers are off a line, at about two thousand allocations at
// most, since learners resolve ratios of allocations. Bounds are made
// non-decreasing in the allocation, as the performance is, unless l is
// [Falling] and says that it falls. Of these points at most trimtab.MaxKnots
// stay, those where the curve bends most: see [Thin].
func CurveOf(l Learner, load, min, max float64, level float64) *trimtab.Curve {
	finite := !math.IsInf(load, 0) && !math.IsInf(max, 0) && load > 0 && min >= 0 && max > min && max >= Least
	if !finite || !(level > 0 && level < 1) || l.Reports() == 0 {
		return nil
	}
	f, ok := l.(Falling)
	var room [512]trimtab.Knot // rarely too little: every curve is read off anew at every report
	r := reading{learner: l, load: load, least: min, most: max, falls: ok && f.Falls(), knots: room[:0]}
	if low := max / 1000; min < low {
		// Ratios cannot start at 0: one knot there, the others above max/1000.
		r.add(trimtab.Knot{Allocation: min, Band: l.Predict(min, load)})
		r.least = low
	}
	r.all()
	if !r.falls {
		ascend(r.knots)
	}
	return &trimtab.Curve{Load: load, Level: level, Knots: Thin(r.knots, trimtab.MaxKnots)}
}

// reading is a curve that is being read off a learner, from left to right.
type reading struct {
	learner     Learner
	load        float64
	least, most float64
	// finest and near are the ratios of allocations that their shares of the
	// way are.
	finest, near float64
	falls        bool
	// off is fine in the performance's unit.
	off   float64
	knots []trimtab.Knot
}

// all takes the points to start from and, between them, those that are needed.
func (r *reading) all() {
	ratio := math.Log(r.most / r.least)
	r.finest, r.near = math.Exp(ratio*finest), math.Exp(ratio*near)
	var placesRoom [4 * coarse]float64
	places := placesRoom[:0]
	for i := range coarse {
		places = append(places, r.least*math.Exp(ratio*float64(i)/coarse))
	}
	places = append(places, r.most)
	if b, ok := r.learner.(Bending); ok {
		for _, a := range b.Bends(r.load) {
			if a > r.least && a < r.most {
				places = append(places, a)
			}
		}
		slices.Sort(places)
	}
	var pointsRoom [4 * coarse]trimtab.Knot
	points, top := pointsRoom[:0], 0.0
	for _, a := range places {
		points = append(points, r.at(a))
		top = max(top, points[len(points)-1].Mean)
	}
	r.off = fine * top
	r.add(points[0])
	for i := 1; i < len(points); i++ {
		r.halve(&points[i-1], &points[i])
	}
}

// halve takes what is needed after p, up to q.
func (r *reading) halve(p, q *trimtab.Knot) {
	rise, ratio := apart(&p.Band, &q.Band), q.Allocation/p.Allocation
	// Half way, as a ratio; there is nothing between neighbouring numbers.
	half := p.Allocation * math.Sqrt(ratio)
	if ratio > r.finest && half > p.Allocation && half < q.Allocation && (r.falls || rise > r.off) {
		k := r.at(half)
		t := (k.Allocation - p.Allocation) / (q.Allocation - p.Allocation)
		line := trimtab.Band{Lower: p.Lower + t*(q.Lower-p.Lower), Mean: p.Mean + t*(q.Mean-p.Mean), Upper: p.Upper + t*(q.Upper-p.Upper)}
		if apart(&k.Band, &line) > r.off || ratio > r.near && rise > steep/fine*r.off {
			r.halve(p, &k)
			r.halve(&k, q)
			return
		}
		r.add(k)
	}
	r.add(*q)
}

// apart is how far two bands differ at most.
func apart(a, b *trimtab.Band) float64 {
	return max(math.Abs(a.Lower-b.Lower), math.Abs(a.Mean-b.Mean), math.Abs(a.Upper-b.Upper))
}

// at asks for one allocation.
func (r *reading) at(a float64) trimtab.Knot {
	return trimtab.Knot{Allocation: a, Band: r.learner.Predict(a, r.load)}
}

// add appends a knot unless it is within rounding of the one before.
func (r *reading) add(k trimtab.Knot) {
	if n := len(r.knots); n == 0 || k.Allocation > r.knots[n-1].Allocation {
		r.knots = append(r.knots, k)
	}
}

// ascend makes all three curves non-decreasing, by the running maximum.
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
