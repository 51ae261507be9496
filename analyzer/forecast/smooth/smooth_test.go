package smooth_test

import (
	"math"
	"testing"

	"github.com/trimtab/trimtab/analyzer/forecast/smooth"
)

func last(y []float64) float64 {
	m := &smooth.Model{}
	for i := range y {
		m.See(y[:i+1])
	}
	_, mean := m.Path(12)
	return mean
}

func TestNoiseIsAveragedOut(t *testing.T) {
	y := make([]float64, 500)
	for i := range y {
		y[i] = 10 + math.Sin(float64(i*i))
	}
	if v := last(y); math.Abs(v-10) > 0.3 {
		t.Errorf("the level of noise of 1 about 10 is %v", v)
	}
}

func TestALevelThatWandersIsFollowedFast(t *testing.T) {
	y := make([]float64, 500)
	for i := range y {
		y[i] = 10 + 5*math.Sin(float64(i)/8)
	}
	if v, want := last(y), y[len(y)-1]; math.Abs(v-want) > 1 {
		t.Errorf("level %v, the last report is %v", v, want)
	}
}

func TestTheFirstReportsAreAveraged(t *testing.T) {
	if v := last([]float64{4}); v != 4 {
		t.Errorf("after one report of 4: %v", v)
	}
}
