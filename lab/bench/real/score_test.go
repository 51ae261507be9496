package main

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/lab/services/shape"
)

// outcomes are requests at 1, 2 … per second, in time where the text has 'o'.
func outcomes(text string) []outcome {
	var out []outcome
	for k, c := range text {
		o := outcome{At: time.Duration(k) * time.Second, Took: 10 * ms, Sent: true}
		if c != 'o' {
			o.Took = time.Second
		}
		out = append(out, o)
	}
	return out
}

func TestAFailedRequestIsLateHoweverFast(t *testing.T) {
	o := outcome{Took: ms, Failed: true, Sent: true}
	if o.met(slo{Latency: time.Second}) {
		t.Error("it counted as in time")
	}
	if got := quantile([]outcome{o}, .95); got != 10000 {
		t.Errorf("p95 %v ms, want the clients' patience", got)
	}
}

func TestWindowsWithoutRequestsMeetTheSLO(t *testing.T) {
	s := slo{Latency: 100 * ms, Fraction: 0.95}
	got := windows(outcomes("oooooxoooo"), s, 5*time.Second, 15*time.Second)
	if len(got) != 3 || !got[0] || got[1] || !got[2] {
		t.Errorf("%v", got)
	}
}

func TestBetterForGoodIsAfterTheLastTime(t *testing.T) {
	for name, c := range map[string]struct {
		mine, theirs []int
		want         float64 // -1: never
	}{
		"from the start": {[]int{0, 0, 1}, []int{1, 2, 3}, 0},
		"after a tie":    {[]int{1, 1, 1}, []int{1, 1, 2}, 2},
		"lost again":     {[]int{0, 5, 6}, []int{1, 6, 6}, -1},
		"never":          {[]int{2, 3, 4}, []int{1, 2, 3}, -1},
	} {
		got := better(c.mine, c.theirs)
		if (got == nil) != (c.want < 0) || got != nil && *got != c.want {
			t.Errorf("%s: %v, want %v", name, seconds(got), c.want)
		}
	}
}

func TestBackIsTheFirstOfThreeGoodWindows(t *testing.T) {
	s := slo{Latency: 100 * ms, Fraction: 0.95}
	tr := &trial{whole: 60 * time.Second}
	e := shape.Event{At: 10 * time.Second}
	late, ok := "xxxxx", "ooooo"
	if got := back(outcomes(ok+ok+late+ok+late+ok+ok+ok), s, e, tr); got == nil || *got != 15 {
		t.Errorf("%v, want 15", seconds(got))
	}
	if got := back(outcomes(ok+ok+late+late+late+late+late+late+late+late+late+late), s, e, tr); got != nil {
		t.Errorf("%v, want never", *got)
	}
}

func TestMovesAreChangesBetweenLooks(t *testing.T) {
	w := watched{Samples: []sample{
		{At: 0, Cores: [3]float64{.2, .2, .2}}, {At: time.Second, Cores: [3]float64{.2, .2, .2}},
		{At: 2 * time.Second, Cores: [3]float64{.1, .3, .2}}, {At: 3 * time.Second, Cores: [3]float64{.1, .2, .2}},
	}}
	if got := w.moves(0); got != [3]int{1, 2, 0} {
		t.Errorf("%v", got)
	}
	if got := w.moves(3 * time.Second); got != [3]int{0, 1, 0} {
		t.Errorf("from 3 s: %v", got)
	}
}

func TestAnOverloadIsOvercomeWhenNearlyAllRequestsOfAllServicesAreInTime(t *testing.T) {
	ok, late := strings.Repeat("o", 5), strings.Repeat("x", 5)
	s := slo{Latency: 100 * ms}
	slos := [3]slo{s, s, s}
	good := outcomes(strings.Repeat(ok, 8))
	// The overload ends after 10 s; requests are in time again from 18 s on.
	if got := recovered([3][]outcome{outcomes(ok + ok + late + "xxxoo" + ok + ok + ok + ok), good, good}, slos, 10*time.Second, 40*time.Second); got == nil || *got != 8 {
		t.Errorf("%v, want 8", seconds(got))
	}
	// One late request of 30 is more than 1%.
	if got := recovered([3][]outcome{outcomes(ok + ok + ok + "oooox" + ok + ok + ok + ok), good, good}, slos, 10*time.Second, 29*time.Second); got != nil {
		t.Errorf("%v, want never before the end", *got)
	}
}
