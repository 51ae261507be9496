package contribution

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/path"
)

// second is when request begins, after 2027 began.
func second(s int) int64 { return int64(1_800_000_000+s) * 1e9 }

// visits makes a request of stays in ms: name, own and wait.
func request(s int, visits ...path.Visit) *path.Request {
	r := &path.Request{Start: second(s), Adjusted: 1, Visits: visits}
	r.End = r.Start
	for _, v := range visits {
		r.End += int64(v.OnPath + v.OnPathWait)
	}
	return r
}

// in is a visit on the critical path.
func in(caller, name string, own, wait float64) path.Visit {
	d := func(ms float64) time.Duration { return time.Duration(ms * 1e6) }
	return path.Visit{Caller: caller, Component: name, Called: caller != "", Own: d(own), OnPath: d(own), Wait: d(wait), OnPathWait: d(wait)}
}

func TestLoadLevelsAreFoundInTheTrafficItself(t *testing.T) {
	var s Study
	for i := range 400 { // the load goes up and down between 1 and 8 a second
		rate := 1 + (i/20)%8
		for range rate {
			s.Add(request(i, in("", "web", 5, 0), in("web", "db", 2*float64(rate), 1)))
		}
	}
	a, err := s.Contributions()
	if err != nil {
		t.Fatal(err)
	}
	if len(a.Loads) < 5 || a.Loads[0] >= a.Loads[len(a.Loads)-1] || a.Requests != 1640 {
		t.Fatalf("loads %v of %v requests", a.Loads, a.Requests)
	}
	if c := a.Components[0]; c.Name != "db" || c.Rho < 0.95 || c.CNorm < 0.99 {
		t.Errorf("first %+v, want db: the tail grows with it alone", c)
	}
	if c := a.Components[1]; c.Rho != 0 || !near(c.Mean, 0.005) {
		t.Errorf("then %+v, want web, the same at every load", c)
	}
}

func TestAComponentOffTheCriticalPathCountsAsFarAsItIsNearIt(t *testing.T) {
	var s Study
	for i := range 100 {
		aside := path.Visit{Caller: "web", Component: "aside", Own: 40e6, Slack: 25e6}
		s.Add(request(i, in("", "web", 20, 0), in("web", "db", 80, 0), aside))
	}
	a, err := s.Contributions()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range a.Components {
		want := 1.0
		if c.Name == "aside" {
			want = 0.75 // 25 of 100 ms later it would be on the path
		}
		if !near(c.Alpha, want) {
			t.Errorf("%s: alpha %v, want %v", c.Name, c.Alpha, want)
		}
	}
}

func TestAStudyWithoutRequestsSaysSo(t *testing.T) {
	var s Study
	s.Add(&path.Request{})
	if _, err := s.Contributions(); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error(err)
	}
}

func TestTheMemoryOfAStudyDoesNotGrowWithTimeOrNames(t *testing.T) {
	var s Study
	for i := range 20_000 {
		s.Add(request(i*97, in("", "web", 5, 0), in("web", fmt.Sprint(i), 1, 0)))
	}
	if len(s.windows) > maxWindows || len(s.names) > maxComponents+1 {
		t.Errorf("%d windows, %d components", len(s.windows), len(s.names))
	}
	a, err := s.Contributions()
	if err != nil || math.Abs(a.Moments[Other].N-15_905) > 1 {
		t.Errorf("%v others, %v", a.Moments[Other].N, err)
	}
}

func TestMergedMomentsAreThoseOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 100), 0, 40)
		x := values.Draw(t, "x")
		y := rapid.SliceOfN(rapid.Float64Range(0, 100), len(x), len(x)).Draw(t, "y")
		cut := rapid.IntRange(0, len(x)).Draw(t, "cut")
		var all, a, b Moments
		for i := range x {
			all.Add(x[i], y[i], 1)
			if i < cut {
				a.Add(x[i], y[i], 1)
			} else {
				b.Add(x[i], y[i], 1)
			}
		}
		a.Merge(b)
		if !near(a.CoV(), all.CoV()) && math.Abs(a.CoV()-all.CoV()) > 1e-6 || math.Abs(a.Correlation()-all.Correlation()) > 1e-6 {
			t.Fatalf("%+v, want %+v", a, all)
		}
		// The squares of smaller differences are below what a float64 holds to full precision.
		precise := func(v []float64) bool { d := slices.Max(v) - slices.Min(v); return d == 0 || d > 1e-150 }
		if len(x) > 0 && precise(x) && precise(y) {
			if want := pearson(x, y); math.Abs(all.Correlation()-want) > 1e-3 {
				t.Fatalf("correlation %v, want %v of %v and %v", all.Correlation(), want, x, y)
			}
		}
	})
}
