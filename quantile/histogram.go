// Package quantile counts values so that any quantile of them can be told to
// within 1% of its value, and so that counts of parts add up to exactly the
// count of the whole: a histogram whose bucket borders grow geometrically,
//
//	bucket i holds (γ^(i-1), γ^i],  γ = 1.02,  1 ns to 31 years in seconds.
//
// Source: C. Masson, J. Rim, H. Lee, DDSketch, PVLDB 12(12), 2019, section 2.
//
// It travels inside sketches, as JSON: [i, weight] of each bucket that holds
// something. It keeps no values, and forgets none.
//
//	var h quantile.Histogram
//	h.Add(0.12, 1)
//	p99, ok := h.Quantile(0.99) // not ok: empty
package quantile

import (
	"encoding/json"
	"fmt"
	"math"
	"sort"
)

// gamma is the ratio of neighbouring bucket borders: any quantile is
// exact to (gamma-1)/(gamma+1) = 1% of its value.
const gamma = 1.02

// The buckets cover 1 ns to about 31 years when the unit is seconds; smaller
// positive values count as the first bucket, larger ones as the last.
const (
	minBucket = -1046 // ceil(ln 1e-9 / ln gamma)
	maxBucket = 1046
)

// Histogram counts non-negative values in buckets whose borders grow
// geometrically; bucket i holds (gamma^(i-1), gamma^i]. Two histograms of the
// same stream split in any way merge to the identical histogram. Counts are
// real numbers, since a sampled span stands for several. The zero value is
// empty and ready. At most 2,093 buckets, so at most 17 KiB.
type Histogram struct {
	// counts[k] is the weight in bucket first+k.
	first  int
	counts []float64
	zero   float64
	total  float64
	sum    float64
}

// Add counts v with the given weight. Values that are NaN, infinite or
// negative, and weights that are not finite and positive, are not counted:
// the caller flags those.
func (h *Histogram) Add(v, weight float64) {
	if !(v >= 0) || math.IsInf(v, 0) || !(weight > 0) || math.IsInf(weight, 0) {
		return
	}
	h.total += weight
	h.sum += inSumUnits(v * weight)
	if v == 0 {
		h.zero += weight
		return
	}
	h.bucket(bucketOf(v), weight)
}

// inSumUnits rounds v to multiples of 2^-30 (1 ns when the unit is seconds), so
// that sums are exact, and the same in any order, up to 2^23.
func inSumUnits(v float64) float64 {
	const units = 1 << 30
	if v >= 1<<23 {
		return v
	}
	return math.RoundToEven(v*units) / units
}

// perLog is 1 / ln gamma.
const perLog = 1 / 0.01980262729617973

// bucketOf returns the bucket of v > 0: ceil(ln v / ln gamma), within range.
//
// With v = m 2^e and r = (m-√2)/(m+√2), ln m = ln √2 + 2 (r + r³/3 + r⁵/5 + …),
// |r| < 0.172, which is good to 1e-9 of a bucket. Values nearer than 1e-6 to a
// border are left to math.Log, so that the result is always the one that it
// gives, in a third of the time.
func bucketOf(v float64) int {
	if v < 1e-9 {
		return minBucket
	}
	bits := math.Float64bits(v)
	e := int(bits>>52) - 1023
	m := math.Float64frombits(bits&(1<<52-1) | 1023<<52)
	r := (m - math.Sqrt2) / (m + math.Sqrt2)
	q := r * r
	qq := q * q // in pairs, so that the processor can work on several at a time
	log := r * ((2 + q*(2.0/3)) + qq*((2.0/5+q*(2.0/7))+qq*(2.0/9+q*(2.0/11))))
	x := (log+math.Ln2/2+float64(e)*math.Ln2)*perLog + 2048 // > 0: cutting off is rounding down
	i := int(x)
	if part := x - float64(i); part < 1e-6 || part > 1-1e-6 {
		i = int(math.Ceil(math.Log(v)*perLog)) + 2047
	}
	return max(minBucket, min(maxBucket, i-2047))
}

// bucket adds weight to bucket i, widening the window when needed.
func (h *Histogram) bucket(i int, weight float64) {
	if k := i - h.first; k < 0 || k >= len(h.counts) {
		h.widen(i, i)
	}
	h.counts[i-h.first] += weight
}

// widen extends the window to the buckets from first to last, and some beyond.
func (h *Histogram) widen(first, last int) {
	switch {
	case len(h.counts) == 0:
		h.first = first - 8
		h.counts = make([]float64, last-first+32)
		return
	case first < h.first:
		first -= 16
	default:
		first = h.first
	}
	if end := h.first + len(h.counts); last < end {
		last = end - 1
	} else {
		last += 16
	}
	grown := make([]float64, last-first+1)
	copy(grown[h.first-first:], h.counts)
	h.first, h.counts = first, grown
}

// Merge adds all that other counted.
func (h *Histogram) Merge(other *Histogram) {
	h.zero += other.zero
	h.total += other.total
	h.sum += other.sum
	first, last := 0, len(other.counts)-1
	for first <= last && !(other.counts[first] > 0) {
		first++
	}
	for last >= first && !(other.counts[last] > 0) {
		last--
	}
	if first > last {
		return
	}
	from := other.first + first
	if from < h.first || other.first+last >= h.first+len(h.counts) {
		h.widen(from, other.first+last)
	}
	to := h.counts[from-h.first:]
	for k, c := range other.counts[first : last+1] {
		if c > 0 {
			to[k] += c
		}
	}
}

// Scale multiplies all weights by a factor in [0, 1], to forget a part of the counts. Any other
// factor is ignored.
func (h *Histogram) Scale(factor float64) {
	if !(factor >= 0 && factor <= 1) {
		return
	}
	for i := range h.counts {
		h.counts[i] *= factor
	}
	h.zero, h.total, h.sum = h.zero*factor, h.total*factor, h.sum*factor
}

// Reset empties h and keeps its memory.
func (h *Histogram) Reset() {
	clear(h.counts)
	h.zero, h.total, h.sum = 0, 0, 0
}

// Settle makes the count what a reader of the wire form gets: the sum of the
// buckets in their order, which sampled weights may miss by a rounding. So a
// histogram that is handed over and one that travelled are the same.
func (h *Histogram) Settle() {
	h.total = h.zero
	for _, c := range h.counts {
		h.total += c
	}
}

// Bytes returns how much memory the buckets use.
func (h *Histogram) Bytes() int { return 8 * cap(h.counts) }

// Clone returns a copy that shares nothing with h.
func (h *Histogram) Clone() *Histogram {
	c := *h
	c.counts = append([]float64(nil), h.counts...)
	return &c
}

// Count returns the total weight, >= 0.
func (h *Histogram) Count() float64 { return h.total }

// Mean returns the weighted mean, and false when h is empty.
func (h *Histogram) Mean() (float64, bool) {
	if h.total <= 0 {
		return 0, false
	}
	return h.sum / h.total, true
}

// Quantile returns the value below which the share q in [0, 1] of the weight
// lies, within 1%, and false when h is empty or q is out of range.
func (h *Histogram) Quantile(q float64) (float64, bool) {
	if h.total <= 0 || !(q >= 0 && q <= 1) {
		return 0, false
	}
	rank := q * h.total
	seen := h.zero
	if seen > 0 && rank <= seen {
		return 0, true
	}
	last := 0.0
	for k, c := range h.counts {
		if c <= 0 {
			continue
		}
		last = bucketMiddle(h.first + k)
		if seen += c; seen >= rank {
			return last, true
		}
	}
	return last, true
}

// bucketMiddle is the point of bucket i whose relative error is the same to
// both borders: 2 gamma^i / (gamma+1).
func bucketMiddle(i int) float64 {
	return 2 * math.Pow(gamma, float64(i)) / (gamma + 1)
}

// FractionBelow returns the share of the weight at or below v, interpolated
// inside v's bucket, and false when h is empty or v is NaN.
func (h *Histogram) FractionBelow(v float64) (float64, bool) {
	if h.total <= 0 || math.IsNaN(v) {
		return 0, false
	}
	if v < 0 {
		return 0, true
	}
	below := h.zero
	if v > 0 {
		i := bucketOf(v)
		for k, c := range h.counts {
			switch b := h.first + k; {
			case b < i:
				below += c
			case b == i:
				low := math.Pow(gamma, float64(i-1))
				high := low * gamma
				below += c * max(0, min(1, (v-low)/(high-low)))
			}
		}
	}
	return min(1, below/h.total), true
}

// histogramJSON is the wire form: buckets as [index, weight] pairs.
type histogramJSON struct {
	Zero    float64      `json:"zero,omitempty"`
	Sum     float64      `json:"sum"`
	Buckets [][2]float64 `json:"buckets,omitempty"`
}

// MarshalJSON writes only the buckets that are not empty.
func (h Histogram) MarshalJSON() ([]byte, error) {
	out := histogramJSON{Zero: h.zero, Sum: h.sum}
	for k, c := range h.counts {
		if c > 0 {
			out.Buckets = append(out.Buckets, [2]float64{float64(h.first + k), c})
		}
	}
	return json.Marshal(out)
}

// UnmarshalJSON refuses buckets out of range and weights that are not finite
// and positive. (JSON has no infinity and no NaN.)
func (h *Histogram) UnmarshalJSON(b []byte) error {
	var in histogramJSON
	if err := json.Unmarshal(b, &in); err != nil {
		return fmt.Errorf("read histogram: %w", err)
	}
	if !(in.Zero >= 0) || !(in.Sum >= 0) {
		return fmt.Errorf("read histogram: zero %v, sum %v", in.Zero, in.Sum)
	}
	out := Histogram{zero: in.Zero, sum: in.Sum, total: in.Zero}
	sort.Slice(in.Buckets, func(i, j int) bool { return in.Buckets[i][0] < in.Buckets[j][0] })
	for _, p := range in.Buckets {
		i, weight := p[0], p[1]
		if i != math.Trunc(i) || i < minBucket || i > maxBucket || !(weight > 0) || math.IsInf(weight, 0) {
			return fmt.Errorf("read histogram: bucket %v with weight %v", i, weight)
		}
		out.bucket(int(i), weight)
		out.total += weight
	}
	if math.IsInf(out.total, 0) {
		return fmt.Errorf("read histogram: total weight %v", out.total)
	}
	*h = out
	return nil
}
