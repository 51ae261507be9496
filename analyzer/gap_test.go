package analyzer_test

import (
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab/analyzer/forecast"
)

// counting notes reports as 1 and missing ones as 0.
type counting struct {
	forecast.Forecaster
	seen *[]int
}

func (c counting) Observe(load float64) error {
	*c.seen = append(*c.seen, 1)
	return c.Forecaster.Observe(load)
}

func (c counting) Skip(n int) {
	for range n {
		*c.seen = append(*c.seen, 0)
	}
}

func TestTheForecasterIsToldOfEachIntervalWithoutALoad(t *testing.T) {
	c := config("checkout")
	var seen []int
	inner := c.Forecaster
	c.Workloads[0].Forecaster = func() forecast.Forecaster { return counting{inner(), &seen} }
	a := make1(t, c)
	for _, n := range []int{3, 4, 8, 9} {
		a.Step(sec(float64(n)+1.1), sketch("checkout", n, 30, 20))
		a.Step(sec(float64(n)+1.1).Add(10*time.Second), nil)
	}
	if want := []int{1, 1, 0, 0, 0, 1, 1}; !slices.Equal(seen, want) {
		t.Errorf("%v, want %v", seen, want)
	}
}
