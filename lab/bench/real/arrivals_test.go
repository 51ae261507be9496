package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab/lab/services/shape"
)

func TestArrivalsFollowTheLoadAndTheSeed(t *testing.T) {
	for _, s := range shape.All() {
		arrivalsFollow(t, s)
	}
}

func arrivalsFollow(t *testing.T, s shape.Scenario) {
	whole, cost := 30*time.Minute, 10*time.Millisecond
	for i := range 3 {
		in := arrivals(&s, i, whole, 0.66, cost, 7)
		want := 0.0
		for at := time.Duration(0); at < whole; at += time.Second {
			want += s.Load(i, at, whole) * 0.66 / cost.Seconds()
		}
		if got := float64(len(in)); math.Abs(got-want) > 4*math.Sqrt(want) {
			t.Errorf("%s, service %d: %v arrivals, want about %.0f", s.Name, i, got, want)
		}
		if !slices.IsSortedFunc(in, func(a, b arrival) int { return int(a.At - b.At) }) {
			t.Errorf("%s, service %d: not in order", s.Name, i)
		}
		if again := arrivals(&s, i, whole, 0.66, cost, 7); !slices.Equal(in, again) {
			t.Errorf("%s, service %d: the same seed gave other arrivals", s.Name, i)
		}
		if other := arrivals(&s, i, whole, 0.66, cost, 8); slices.Equal(in, other) {
			t.Errorf("%s, service %d: another seed gave the same arrivals", s.Name, i)
		}
	}
}
