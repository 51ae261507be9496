package main

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTheBuiltInDayIsScaledToItsBounds(t *testing.T) {
	r, err := openRecording("", 2)
	if err != nil {
		t.Fatal(err)
	}
	c := r.fit(90*time.Second, low, high)
	if a, b := slices.Min(c.shares), slices.Max(c.shares); math.Abs(a-low) > 1e-12 || math.Abs(b-high) > 1e-12 {
		t.Errorf("from %v to %v", a, b)
	}
	for at := time.Duration(0); at <= c.whole; at += time.Second {
		if v := c.at(at); v < low-1e-12 || v > high+1e-12 {
			t.Errorf("%v at %v", v, at)
		}
	}
}

func TestTheRecordedDayIsTheOneThatIsBuiltIn(t *testing.T) {
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: no recorded loads")
	}
	r, err := openRecording(dir, 2)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range aDay() {
		mean := 0.0
		for _, v := range r.Counts[20*i : 20*i+20] {
			mean += v / 20
		}
		if math.Abs(mean-want) > 0.51 {
			t.Errorf("at %d min: %v a minute, built in %v", 20*i, mean, want)
		}
	}
}

func TestArrivalsFollowTheCourseAndAreTheSameForASeed(t *testing.T) {
	c := course{[]float64{0.2, 0.9, 0.2}, 100 * time.Second}
	a, b := c.arrivals(200, 7), c.arrivals(200, 7)
	if !slices.Equal(a, b) || !slices.IsSorted(a) {
		t.Error("not the same, or not in order")
	}
	// 200/s at a mean load of 0.55 for 100 s; the standard deviation is 105.
	if n := float64(len(a)); math.Abs(n-11000) > 420 {
		t.Errorf("%v requests, want about 11000", n)
	}
}

func TestALineThatIsNoCountIsAnError(t *testing.T) {
	for _, bad := range []string{"datetime,view\nx\n", "t,v\na,-1\n", "t,v\na,b\n", "t,v\na,NaN\n"} {
		if v, err := readCounts(strings.NewReader(bad)); err == nil {
			t.Errorf("%q: %v", bad, v)
		}
	}
	if v, err := readCounts(strings.NewReader("datetime,view\n1995,44\n1995,124\n")); err != nil || !slices.Equal(v, []float64{44, 124}) {
		t.Errorf("%v, %v", v, err)
	}
}
