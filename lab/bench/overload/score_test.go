package main

import (
	"math"
	"testing"
	"time"
)

// step is a course with a step from 1 to 11 s.
func step() course {
	return course{Before: time.Second, Step: 10 * time.Second, After: 8 * time.Second, Low: 1, High: 2}
}

func TestGoodputIsWhatWasAnsweredWithinTheSLOInTheStepOverTheCapacity(t *testing.T) {
	sec, ms := time.Second, time.Millisecond
	out := []outcome{
		{request: request{0, normal}, End: answered, Took: ms, Tries: 1},                             // before the step
		{request: request{2 * sec, critical}, End: answered, Took: 100 * ms, Tries: 1},               // in time
		{request: request{3 * sec, normal}, End: answered, Took: 300 * ms, Tries: 1},                 // late
		{request: request{4 * sec, low}, End: shed, Tries: 1, Shed: 1, ShedAt: 4 * sec},              // refused
		{request: request{5 * sec, low}, End: gaveUp, Took: sec, Tries: 3, Shed: 1, ShedAt: 5 * sec}, // refused, then given up
		{request: request{12 * sec, normal}, End: shed, Tries: 1, Shed: 1, ShedAt: 12 * sec},         // soon after
		{request: request{17 * sec, normal}, End: shed, Tries: 1, Shed: 1, ShedAt: 17 * sec},         // long after
	}
	f := score(out, step(), 200*ms, 0.2)
	if f.Goodput != 0.5 || f.Shed != 0.25 || f.GaveUp != 0.25 || f.Failed != 0 || f.Late != 1 || f.Tries != 9 {
		t.Errorf("%+v", f)
	}
	if f.First == nil || math.Abs(*f.First-3000) > 1e-6 {
		t.Errorf("first shed %v, want 3000 ms after the step began", f.First)
	}
	if *f.Critical != 1 || *f.Normal != 0 || *f.Low != 0 || *f.P50 != 100 || *f.P99 != 300 {
		t.Errorf("%+v", f)
	}
}

func TestWhatWasNotSeenIsMissingAndNotZero(t *testing.T) {
	f := score(nil, step(), time.Second, 1)
	if f.P50 != nil || f.First != nil || f.Critical != nil || f.Goodput != 0 {
		t.Errorf("%+v", f)
	}
	if cells := (&row{Name: "x", figures: f}).cells(); cells[2] != "–" || cells[6] != "–" || cells[8] != "–" {
		t.Errorf("%q", cells)
	}
	if a, b := len((&row{}).cells()), len((&row{Missing: "why"}).cells()); a != b {
		t.Errorf("%d cells, %d without figures", a, b)
	}
}

func TestArrivalsFollowTheStepAndTheSeed(t *testing.T) {
	c := course{Before: 10 * time.Second, Step: 10 * time.Second, After: 10 * time.Second, Low: 50, High: 200}
	in := c.arrivals(1)
	count := map[bool]int{}
	classes := map[string]int{}
	for k, r := range in {
		if k > 0 && r.At < in[k-1].At || r.At >= c.whole() {
			t.Fatalf("arrival %d at %v", k, r.At)
		}
		count[r.At >= c.Before && r.At < c.end()]++
		classes[r.Class]++
	}
	// Means 2000 and 1000, standard deviations 45 and 32.
	if math.Abs(float64(count[true])-2000) > 200 || math.Abs(float64(count[false])-1000) > 150 {
		t.Errorf("%d in the step, %d outside", count[true], count[false])
	}
	n := float64(len(in))
	if math.Abs(float64(classes[critical])/n-0.1) > 0.03 || math.Abs(float64(classes[low])/n-0.3) > 0.05 {
		t.Errorf("%v", classes)
	}
	again := c.arrivals(1)
	if len(again) != len(in) || again[len(in)-1] != in[len(in)-1] || len(c.arrivals(2)) == len(in) {
		t.Error("the same seed has to give the same arrivals, another one others")
	}
}
