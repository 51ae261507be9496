package machines

import "math"

// block is how many machines are processed together, column by column: their sums stay in the
// cache.
const block = 512

// scan is one pass over the loads of all machines.
type scan struct {
	// weight is that of the index which the pass computes, nil: not in it.
	weight func(*Dimension) *float64
	// all: every dimension in use is required, and thresholds apply. Else the pass needs only
	// those of its index.
	all bool
	// own holds thresholds against the machine's own capacity as well.
	own bool
}

func loadWeight(d *Dimension) *float64  { return d.Load }
func queueWeight(d *Dimension) *float64 { return d.Queue }

// rank marks the machines for which a value is missing, or over its threshold
// (B3), and ranks those that nothing speaks against by the index.
func (x *Index[F]) rank(s scan) {
	x.ranks = x.ranks[:0]
	var sums [block]float64
	for lo := 0; lo < len(x.why); lo += block {
		hi := min(lo+block, len(x.why))
		clear(sums[:])
		for d := range x.config.Dimensions {
			dim := &x.config.Dimensions[d]
			if s.all && dim.used() || s.weight(dim) != nil {
				x.add(&s, d, lo, sums[:hi-lo])
			}
		}
		for i, sum := range sums[:hi-lo] {
			if math.IsNaN(sum) || math.IsInf(sum, 0) {
				x.why[lo+i] |= Missing
			}
			if x.why[lo+i] == 0 {
				x.ranks = append(x.ranks, ranked[F]{F(sum), uint32(lo + i)})
			}
		}
	}
}

// add adds weight times the normalised value of one dimension to the sums of
// the machines from lo on. A missing value makes its sum missing.
func (x *Index[F]) add(s *scan, dimension, lo int, sums []float64) {
	dim := &x.config.Dimensions[dimension]
	w, threshold, most := 0.0, math.Inf(1), x.unit(dimension)
	if p := s.weight(dim); p != nil {
		w = *p
	}
	if s.all && dim.Threshold != nil {
		threshold = *dim.Threshold
	}
	load := x.columns.load[dimension][lo : lo+len(sums)]
	for i, v := range load {
		y := float64(v) / most
		if y > threshold {
			x.why[lo+i] |= Overloaded
		}
		sums[i] += float64(w * y) // the conversion forbids a fused operation: the same bits on every processor
	}
	if !s.own || math.IsInf(threshold, 1) {
		return
	}
	for i, c := range x.columns.capacity[dimension][lo : lo+len(sums)] {
		if float64(load[i]) > threshold*float64(c) { // never without a capacity
			x.why[lo+i] |= Overloaded
		}
	}
}

// unit returns the normaliser of a dimension.
func (x *Index[F]) unit(dimension int) float64 {
	if most := x.largest[dimension]; most > 0 {
		return most
	}
	return 1
}

// Indices returns lIndex and qIndex of the machine at a position, as of the
// last [Index.Filter]; NaN where a value is missing.
func (x *Index[F]) Indices(at uint32) (load, queue float64) {
	for d := range x.config.Dimensions {
		dim := &x.config.Dimensions[d]
		y := float64(x.columns.load[d][at]) / x.unit(d)
		if dim.Load != nil {
			load += float64(*dim.Load * y)
		}
		if dim.Queue != nil {
			queue += float64(*dim.Queue * y)
		}
	}
	return load, queue
}
