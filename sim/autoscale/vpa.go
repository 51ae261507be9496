package autoscale

import (
	"math"
	"time"
)

const (
	margin = 0.15
	// The least recommendations: cores, bytes.
	leastCPU, leastMemory = 0.025, 250 << 20
	// mostParts is the largest recommendation, in thousandths of a core or in bytes.
	mostParts = 1e14
	// peakWindow is the window of which only the highest memory usage counts.
	peakWindow = 24 * time.Hour
	// After an OOM a pod counts as having used bump times as much, and at least leastBump more.
	bump, leastBump = 1.2, 100 << 20
	// After 12 h an updater also changes a pod within the bounds, if its request differs by 10%
	// from the target.
	settled, worth = 12 * time.Hour, 0.1
)

// Recommendation is the target of one resource with its bounds.
type Recommendation struct{ Lower, Target, Upper float64 }

// VPA recommends CPU and memory of one container from the usage of all its pods.
type VPA struct {
	// Bounds of resourcePolicy; 0: none.
	MinCPU, MaxCPU, MinMemory, MaxMemory float64
	cpu, memory                          *Histogram
	first, last                          time.Time
	samples                              int
	// The window of memory that ends at windowEnd: the highest usage, and what the newest OOM in it
	// asks for; the larger one is in the histogram.
	windowEnd        time.Time
	peak, peakOfOOMs float64
}

// NewVPA returns a VPA without samples.
func NewVPA() *VPA { return &VPA{cpu: NewHistogram(0.01, 1000), memory: NewHistogram(1e7, 1e12)} }

// CPU adds the CPU usage of a pod over a minute, in cores.
func (v *VPA) CPU(at time.Time, usage float64) {
	if !(usage >= 0 && usage <= 1e9) {
		return
	}
	if v.first.IsZero() {
		v.first = at
	}
	if at.After(v.last) {
		v.last = at
	}
	v.samples++
	v.cpu.Add(at, float64(milli(usage))/1000, leastWeight)
}

// Memory adds the memory usage of a pod, in bytes. Only the highest of each 24 h counts.
func (v *VPA) Memory(at time.Time, bytes float64) {
	if bytes >= 0 && bytes <= math.MaxFloat64 {
		v.addMemory(at, math.Trunc(bytes), &v.peak)
	}
}

// OOM adds a kill for lack of memory of a pod with a request, in bytes: as if it had used 1.2 times the
// request or the highest usage of the window, and at least 100 MiB more than that.
func (v *VPA) OOM(at time.Time, request float64) {
	if !(request >= 0 && request <= math.MaxFloat64) {
		return
	}
	used := math.Max(math.Trunc(request), v.peak)
	v.addMemory(at, math.Max(used+leastBump, math.Trunc(used*bump)), &v.peakOfOOMs)
}

// addMemory enters a usage if it is the highest of its window. A window counts as of its end.
func (v *VPA) addMemory(at time.Time, bytes float64, peak *float64) {
	if v.windowEnd.IsZero() {
		v.windowEnd = at
	}
	highest := math.Max(v.peak, v.peakOfOOMs)
	switch {
	case !at.Before(v.windowEnd):
		v.windowEnd = v.windowEnd.Add(at.Sub(v.windowEnd).Truncate(peakWindow) + peakWindow)
		v.peak, v.peakOfOOMs = 0, 0
	case highest != 0 && bytes > highest:
		v.memory.Remove(v.windowEnd, highest, 1)
	default:
		return
	}
	*peak = bytes
	v.memory.Add(v.windowEnd, bytes, 1)
}

// confidence returns the days of history; with one sample a minute over N days it is N.
func (v *VPA) confidence() float64 {
	return math.Min(float64(v.last.Sub(v.first))/float64(24*time.Hour), float64(v.samples)/(24*60))
}

// Recommend returns the recommendations for CPU and memory; false: there are no samples.
func (v *VPA) Recommend() (cpu, memory Recommendation, ok bool) {
	if v.samples == 0 {
		return cpu, memory, false
	}
	return v.recommend(v.cpu, 1000, leastCPU, v.MinCPU, v.MaxCPU), v.recommend(v.memory, 1, leastMemory, v.MinMemory, v.MaxMemory), true
}

// recommend computes in whole parts of a core or in bytes, rounded down at every step, as the
// recommender does.
func (v *VPA) recommend(h *Histogram, parts, least, lo, hi float64) Recommendation {
	c := v.confidence()
	bound := func(q, multiplier, exponent float64) float64 {
		a := math.Trunc(h.Quantile(q) * parts)
		a += math.Trunc(a * margin)
		if multiplier > 0 {
			a = math.Trunc(math.Min(a*math.Pow(1+multiplier/c, exponent), mostParts))
		}
		a = math.Max(math.Max(a, math.Trunc(least*parts))/parts, lo)
		if hi > 0 {
			a = math.Min(a, hi)
		}
		return a
	}
	return Recommendation{bound(0.5, 0.001, -2), bound(0.9, 0, 0), bound(0.95, 1, 1)}
}

// Update returns the request that a pod should have: the target if the present request is outside
// the bounds, or off by a tenth after 12 h. It counts in thousandths of a core.
func (r Recommendation) Update(request float64, age time.Duration) float64 {
	has := milli(request)
	out := has < milli(r.Lower) || has > milli(r.Upper)
	of := math.Max(float64(has), 1)
	off := age >= settled && math.Abs(of-float64(milli(r.Target)))/of >= worth
	if out || off {
		return r.Target
	}
	return request
}
