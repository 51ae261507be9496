package drf

import (
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// times are what repeats of one thing took, in seconds.
type times struct {
	// wall is by the clock; cpu is what the calling thread was on a processor,
	// which other programs lengthen less.
	wall, cpu []float64
}

// time runs f once more. The caller holds on to its thread.
func (t *times) time(f func()) {
	start, used := time.Now(), threadSeconds()
	f()
	t.cpu = append(t.cpu, threadSeconds()-used)
	t.wall = append(t.wall, time.Since(start).Seconds())
}

// over is the least of t over the least of floor, and the median of their
// ratios repeat by repeat.
func over(t, floor []float64) (least, paired float64) {
	ratios := make([]float64, len(t))
	for k := range t {
		ratios[k] = t[k] / floor[k]
	}
	slices.Sort(ratios)
	return slices.Min(t) / slices.Min(floor), ratios[len(ratios)/2]
}

func threadSeconds() float64 {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) != nil {
		return math.NaN()
	}
	return float64(t.Sec) + float64(t.Nsec)/1e9
}
