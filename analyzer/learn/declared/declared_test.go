package declared_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn/declared"
)

func profile(t testing.TB, text string) *declared.Profile {
	t.Helper()
	p, err := declared.ReadProfile(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAProfileIsLinearBetweenItsPointsAndFlatAboveThem(t *testing.T) {
	p := profile(t, "allocation_per_load,performance\n# recorded in May\n0.1, 0.5\n0.2, 0.9\n0.3, 0.8\n")
	for a, want := range map[float64]float64{0: 0, 0.5: 0.25, 1: 0.5, 1.5: 0.7, 2: 0.9, 2.5: 0.9, 3: 0.9, 40: 0.9} {
		if got := p.Predict(a, 10).Mean; math.Abs(got-want) > 1e-12 {
			t.Errorf("%v for 10 requests/s: %v, want %v", a, got, want)
		}
	}
}

func TestACurveSaysWhatItsProfileSays(t *testing.T) {
	p := profile(t, "allocation_per_load,performance,lower,upper\n0.1,0.5,0.4,0.6\n0.2,0.9,0.9,0.95\n")
	rapid.Check(t, func(t *rapid.T) {
		load := rapid.Float64Range(0.1, 1000).Draw(t, "load")
		least := rapid.Float64Range(0, 10).Draw(t, "min")
		most := least + rapid.Float64Range(0.1, 100).Draw(t, "more")
		c := p.Curve(load, least, most, 0.9)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		a := rapid.Float64Range(least, most).Draw(t, "allocation")
		got, want := c.Eval(a), p.Predict(a, load)
		if math.Abs(got.Mean-want.Mean)+math.Abs(got.Lower-want.Lower)+math.Abs(got.Upper-want.Upper) > 1e-9 {
			t.Fatalf("at %v: %v, want %v", a, got, want)
		}
	})
}

func TestAProfileWithoutSenseIsRefusedWithItsLine(t *testing.T) {
	const head = "allocation_per_load,performance\n"
	for text, want := range map[string]string{
		"":                    "1: want the columns",
		"cores,p\n1,2\n":      "1: \"cores,p\"",
		head:                  "2: no points",
		head + "1,x\n":        "2: \"x\"",
		head + "1,NaN\n":      "2: \"NaN\"",
		head + "1,-1\n":       "2: \"-1\"",
		head + "0,1\n":        "2: allocation_per_load 0",
		head + "1,1\n\n1,2\n": "4: allocation_per_load 1",
		head + "1,1\n2\n":     "line 3",
		head + "1e99,1\n":     "2: \"1e99\"",
		"allocation_per_load,performance,lower,upper\n1,0.5,0.6,0.7\n": "2: performance 0.5 is not between",
	} {
		_, err := declared.ReadProfile(strings.NewReader(text))
		if !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestUtilityIsLinearUpToTheDemand(t *testing.T) {
	for name, utility := range map[string]func(float64) float64{
		"linear":    nil,
		"quadratic": func(p float64) float64 { m := math.Min(1, p/0.9); return m * m },
		"sqrt":      func(p float64) float64 { return math.Sqrt(math.Min(1, p/0.9)) },
	} {
		d := declared.Demand{Amount: 4, Target: 0.9, Utility: utility}
		c := d.Curve(0, 0.1, 8, 0.9)
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		worth := utility
		if worth == nil {
			worth = func(p float64) float64 { return math.Min(1, p/0.9) }
		}
		for a := 0.125; a <= 8; a += 0.125 {
			if got, want := worth(c.Eval(a).Mean), math.Min(1, a/4); math.Abs(got-want) > 1e-3 {
				t.Errorf("%s: %v of a demand of 4 is worth %v, want %v", name, a, got, want)
			}
		}
		if p := c.Eval(4).Lower; p < 0.9 {
			t.Errorf("%s: the demand gives %v, want the target", name, p)
		}
	}
}

func TestADemandOutOfRangeOfTheKnobStillHasACurve(t *testing.T) {
	for _, amount := range []float64{0.01, 100} {
		d := declared.Demand{Amount: amount, Target: 1}
		if err := d.Validate(); err != nil {
			t.Fatal(err)
		}
		if err := d.Curve(5, 0.1, 8, 0.9).Validate(); err != nil {
			t.Errorf("%v: %v", amount, err)
		}
	}
	for _, d := range []declared.Demand{{}, {Amount: 1}, {Amount: -1, Target: 1}, {Amount: math.NaN(), Target: 1}, {Amount: 1, Target: math.Inf(1)}} {
		if !errors.Is(d.Validate(), trimtab.ErrInvalid) {
			t.Errorf("%+v is taken", d)
		}
	}
}

func FuzzReadProfile(f *testing.F) {
	f.Add("allocation_per_load,performance\n0.1,0.5\n0.2,0.9\n", 10.0)
	f.Add("allocation_per_load,performance,lower,upper\n1e-300,1,0,1e15\n1e15,2,0,3\n", 1e-300)
	f.Fuzz(func(t *testing.T, text string, load float64) {
		p, err := declared.ReadProfile(strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, trimtab.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		if c := p.Curve(load, 0.1, 64, 0.9); c != nil {
			if err := c.Validate(); err != nil {
				t.Fatal(err)
			}
		}
	})
}
