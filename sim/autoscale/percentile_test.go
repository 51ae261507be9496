package autoscale

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// within reports whether a is b but for the 1% of a bucket.
func within(a, b float64) bool { return math.Abs(a-b) <= 0.011*b }

func TestOfARequestByEKSThe95thPercentileOfUseIs87Percent(t *testing.T) {
	p := NewEKS()
	var uses []float64
	for m := range 24 * 60 {
		uses = append(uses, 1+math.Sin(float64(m)/230))
		p.Observe(at(time.Duration(m)*time.Minute), uses[m])
	}
	slices.Sort(uses)
	got, ok := p.Recommend()
	if p95 := uses[len(uses)*95/100]; !ok || !within(p95/got, 0.87) {
		t.Errorf("%v, %v: %v of it is the percentile, want 0.87", got, ok, p95/got)
	}
}

func TestEKSRecommendsNothingBefore12HoursOfHistory(t *testing.T) {
	p := NewEKS()
	for m := 0; m <= 12*60; m++ {
		p.Observe(at(time.Duration(m)*time.Minute), 1)
		if _, ok := p.Recommend(); ok != (m == 12*60) || p.Update(4) == 4 == ok {
			t.Fatalf("after %d minutes: %v, %v for a request of 4", m, ok, p.Update(4))
		}
	}
}

func TestADPARequestsThe95thPercentileOf8DaysAnd5Percent(t *testing.T) {
	p := NewDPA()
	if _, ok := p.Recommend(); ok {
		t.Error("it recommends without a reading")
	}
	// 6% of the time at 2, the rest at 1; nine days later none at 2.
	for m := range 17 * 24 * 60 {
		use := 1.0
		if m < 8*24*60 && m%100 < 6 {
			use = 2
		}
		p.Observe(at(time.Duration(m)*time.Minute), use)
		if m != 7*24*60 && m != 17*24*60-1 {
			continue
		}
		want := 2.1
		if m > 8*24*60 {
			want = 1.05
		}
		cpu, ok := p.Recommend()
		if !ok || !within(cpu, want) {
			t.Errorf("on minute %d: %v cores, want %v", m, cpu, want)
		}
	}
}

func TestARequestThatIsALittleOffStays(t *testing.T) {
	p := NewDPA()
	p.Observe(at(0), 1)
	to, _ := p.Recommend()
	for request, want := range map[float64]float64{to * 1.08: to * 1.08, to * 0.99: to * 0.99, to * 1.2: to, to * 0.96: to} {
		if got := p.Update(request); got != want {
			t.Errorf("of %v: %v, want %v", request, got, want)
		}
	}
}

// The window by the hour is that of the readings themselves, but for a bucket and the hour at its end.
func TestAPercentileIsThatOfTheReadingsInTheWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewDPA()
		var uses []float64
		var times []int
		second := 0
		for range rapid.IntRange(1, 200).Draw(t, "readings") {
			second += rapid.IntRange(1, 6*3600).Draw(t, "gap")
			use := rapid.Float64Range(0.01, 100).Draw(t, "use")
			p.Observe(at(time.Duration(second)*time.Second), use)
			uses, times = append(uses, use), append(times, second)
		}
		p.Observe(at(time.Duration(second)*time.Second), math.NaN())
		within := func(hours int) []float64 {
			var in []float64
			for i, s := range times {
				if second/3600-s/3600 <= hours {
					in = append(in, uses[i])
				}
			}
			slices.Sort(in)
			return in
		}
		in := within(8 * 24)
		got, ok := p.Recommend()
		k := 0.95 * float64(len(in))
		lo, hi := in[max(int(math.Ceil(k))-2, 0)], in[min(int(k)+1, len(in)-1)]
		if !ok || got/1.05 < lo*0.98 || got/1.05 > hi*1.02 {
			t.Fatalf("%v of %v: want between %v and %v", got/1.05, in, lo, hi)
		}
	})
}
