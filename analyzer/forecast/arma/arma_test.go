package arma_test

import (
	"math"
	"testing"

	"github.com/trimtab/trimtab/analyzer/forecast/arma"
)

// observed returns the model after all of y, and y as it gets to see it.
func observed(y []float64) *arma.Model {
	m := &arma.Model{}
	for i := range y {
		m.See(y[max(0, i-511) : i+1])
	}
	return m
}

func TestAMeanRevertingSeriesIsExpectedBackAtItsMean(t *testing.T) {
	y := make([]float64, 3000)
	dev := 0.0
	for i := range y {
		// A fixed disturbance that looks like noise.
		dev = 0.8*dev + math.Sin(float64(i*i)*0.7)
		y[i] = 10 + dev
	}
	y = append(y, 14)
	_, mean := observed(y).Path(200)
	if math.Abs(mean-10) > 0.5 {
		t.Errorf("200 reports from 14 on the mean is expected at %v, want about 10", mean)
	}
	high, _ := observed(y).Path(1)
	if high < 11.5 || high > 14.5 {
		t.Errorf("the report after 14 is expected at %v, want a return of about a fifth", high)
	}
}

func TestAConstantIsExpectedToStay(t *testing.T) {
	y := make([]float64, 600)
	for i := range y {
		y[i] = 7
	}
	if high, mean := observed(y).Path(12); high != 7 || mean != 7 {
		t.Errorf("%v, %v, want 7", high, mean)
	}
}

func TestTheHighestOfThePathIsNeverUnderItsMean(t *testing.T) {
	for _, turn := range []float64{1, -1} {
		y := make([]float64, 400)
		for i := range y {
			y[i] = 5 + math.Pow(turn, float64(i)) + math.Sin(float64(i*i))
		}
		for h := 1; h < 40; h++ {
			if high, mean := observed(y).Path(h); high < mean {
				t.Errorf("%d ahead: highest %v under the mean %v", h, high, mean)
			}
		}
	}
}
