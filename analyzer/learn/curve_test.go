package learn_test

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
)

// known is a learner that knows a curve and counts how often it is asked.
type known struct {
	learn.Plain

	at    func(allocation float64) trimtab.Band
	asked int
}

func (*known) Name() string                    { return "known" }
func (*known) Observe(learn.Observation) error { return nil }
func (*known) Reports() int                    { return 1 }
func (*known) Snapshot() ([]byte, error)       { return nil, nil }
func (*known) Restore([]byte) error            { return nil }

func (k *known) Predict(allocation, _ float64) trimtab.Band {
	k.asked++
	return k.at(allocation)
}

// drawKnown draws a curve that rises along lines and by steps, over [1, 100].
func drawKnown(t *rapid.T) *known {
	n := rapid.IntRange(1, 40).Draw(t, "corners")
	var at, height []float64
	for range n {
		at = append(at, math.Exp(rapid.Float64Range(0, math.Log(100)).Draw(t, "at")))
		height = append(height, rapid.Float64Range(0, 1).Draw(t, "height"))
	}
	slices.Sort(at)
	slices.Sort(height)
	stepwise := rapid.Bool().Draw(t, "in steps")
	return &known{at: func(a float64) trimtab.Band {
		i, _ := slices.BinarySearch(at, a)
		var v float64
		switch {
		case i == 0:
			v = height[0]
		case i == n || stepwise:
			v = height[i-1]
		default:
			v = height[i-1] + (a-at[i-1])/(at[i]-at[i-1])*(height[i]-height[i-1])
		}
		return trimtab.Band{Lower: v / 2, Mean: v, Upper: min(1, v*1.2)}
	}}
}

func TestACurveReadOffWhereItBendsIsAsNearAsOneReadOffEverywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k := drawKnown(t)
		got := learn.CurveOf(k, 1, 1, 100, 0.9)
		if k.asked > 1025 {
			t.Fatalf("asked %d times", k.asked)
		}
		var all []trimtab.Knot
		for i := range 1025 {
			a := math.Exp(math.Log(100) * float64(i) / 1024)
			all = append(all, trimtab.Knot{Allocation: a, Band: k.at(a)})
		}
		want := &trimtab.Curve{Load: 1, Level: 0.9, Knots: learn.Thin(all, trimtab.MaxKnots)}
		off := func(c *trimtab.Curve) (sum float64) {
			for i := range 2000 {
				a := math.Exp(math.Log(100) * (float64(i) + 0.5) / 2000)
				sum += math.Abs(c.Eval(a).Mean-k.at(a).Mean) / 2000
			}
			return sum
		}
		if g, w := off(got), off(want); g > w+1e-3 {
			t.Fatalf("off the truth by %v on average, read off everywhere by %v", g, w)
		}
	})
}

func TestAFlatCurveIsAskedForSeldom(t *testing.T) {
	k := &known{at: func(float64) trimtab.Band { return trimtab.Band{Lower: 0.4, Mean: 0.5, Upper: 0.6} }}
	if c := learn.CurveOf(k, 1, 1, 100, 0.9); k.asked > 100 || len(c.Knots) != 2 {
		t.Errorf("asked %d times for %d knots", k.asked, len(c.Knots))
	}
}

// stepped is a learner whose curve rises from one whole unit to the next.
type stepped struct{ known }

func (*stepped) Bends(load float64) []float64 {
	var out []float64
	for i := range 90 {
		out = append(out, load*float64(10+i))
	}
	return out
}

// A step from 24 to 25 units must not be seen as one from 23.9 to 25.1.
func TestACurveHasTheStepsWhereTheLearnerSaysThatTheyAre(t *testing.T) {
	height := func(a float64) float64 {
		below := math.Floor(a)
		of := func(units float64) float64 { return 0.1 * math.Floor(units/25) }
		return of(below) + (a-below)*(of(below+1)-of(below))
	}
	s := &stepped{known{at: func(a float64) trimtab.Band {
		v := height(a / 3)
		return trimtab.Band{Lower: v, Mean: v, Upper: v}
	}}}
	c := learn.CurveOf(s, 3, 3, 300, 0.9)
	for a := 10.0; a < 99; a++ {
		if got := c.Eval(3 * a).Mean; math.Abs(got-height(a)) > 1e-9 {
			t.Errorf("%v units: %v, want %v", a, got, height(a))
		}
	}
}

func TestACurveBetweenNeighbouringNumbersHasAnEnd(t *testing.T) {
	for _, x := range []struct{ least, most float64 }{
		{4, math.Nextafter(math.Nextafter(4, 5), 5)}, {4, 4 * (1 + 1e-14)}, {1e-13, 1e-12}, {1e200, 1e202},
	} {
		k := &known{at: func(a float64) trimtab.Band {
			if a > x.least {
				return trimtab.Band{Lower: 1, Mean: 1, Upper: 1}
			}
			return trimtab.Band{}
		}}
		if c := learn.CurveOf(k, 1, x.least, x.most, 0.9); c == nil || c.Validate() != nil || k.asked > 2100 {
			t.Errorf("from %v to %v: %+v, asked %d times", x.least, x.most, c, k.asked)
		}
	}
}
