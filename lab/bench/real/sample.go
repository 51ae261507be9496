package main

import (
	"context"
	"math"
	"time"
)

// sampleEvery is how often quotas are read, to see their sum; look is how
// often they are compared for moves and kept for figures.
const (
	sampleEvery = 100 * time.Millisecond
	look        = time.Second
)

// sample is one look at the quotas, in cores.
type sample struct {
	At    time.Duration
	Cores [3]float64
	Used  [3]time.Duration
}

// watched is what sampling a run showed.
type watched struct {
	Samples []sample
	// Highest is the largest sum of quotas that was seen, in cores.
	Highest float64
}

// watch samples until ctx ends.
func (h *host) watch(ctx context.Context, begin time.Time) (watched, error) {
	var w watched
	tick := time.NewTicker(sampleEvery)
	defer tick.Stop()
	next := time.Duration(0)
	for {
		cores, steady, err := h.quotas(ctx)
		if ctx.Err() != nil {
			return w, nil
		}
		if err != nil {
			return w, err
		}
		if steady {
			w.Highest = max(w.Highest, math.Round((cores[0]+cores[1]+cores[2])*1e6)/1e6)
		}
		if at := time.Since(begin); at >= next {
			used, err := h.usage()
			if err != nil {
				return w, err
			}
			w.Samples = append(w.Samples, sample{At: at, Cores: cores, Used: used})
			next = max(next+look, at)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return w, nil
		}
	}
}

// moves counts changes of the quota of each service from one look to the next,
// at or after from.
func (w *watched) moves(from time.Duration) (out [3]int) {
	for k := 1; k < len(w.Samples); k++ {
		for i := range out {
			if w.Samples[k].At >= from && w.Samples[k].Cores[i] != w.Samples[k-1].Cores[i] {
				out[i]++
			}
		}
	}
	return out
}
