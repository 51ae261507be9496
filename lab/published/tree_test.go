package published_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/learntest"
	"github.com/trimtab/trimtab/lab/bintree"
	"github.com/trimtab/trimtab/lab/published"
)

func tree(t *testing.T, c published.Config) *published.Tree {
	t.Helper()
	out, err := published.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// teach gives n reports of 200 requests at uniform a/l to all learners.
func teach(t *testing.T, n int, seed uint64, at func(x float64) float64, to ...learn.Learner) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	for range n {
		x := 0.05 + 1.95*r.Float64()
		hits := 0.0
		for range 200 {
			if r.Float64() < at(x) {
				hits++
			}
		}
		for _, l := range to {
			if err := l.Observe(learn.Observation{Allocation: 20 * x, Load: 20, Performance: hits / 200, Requests: 200}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// inside returns the shares of [0.05, 2] where the truth is within the bounds
// and where the bounds cross.
func inside(bounds func(x float64) (lower, upper float64), at func(float64) float64) (share, crossed float64) {
	const points = 400
	for i := range points {
		x := 0.05 + 1.95*(float64(i)+0.5)/points
		lower, upper := bounds(x)
		if lower <= at(x) && at(x) <= upper {
			share += 1.0 / points
		}
		if lower > upper {
			crossed += 1.0 / points
		}
	}
	return share, crossed
}

func TestPublishedBoundsCrossAndMissTheTruthWhereValidOnesHold(t *testing.T) {
	at := learntest.Curves()[0].At
	p := tree(t, published.Config{Width: 2, Lipschitz: 2, Top: 1})
	valid, err := bintree.New(0.9)
	if err != nil {
		t.Fatal(err)
	}
	teach(t, 2160, 1, at, p, valid)
	share, crossed := inside(p.Bounds, at)
	held, none := inside(func(x float64) (float64, float64) {
		b := valid.Predict(20*x, 20)
		return b.Lower, b.Upper
	}, at)
	t.Logf("published: %.2f inside, %.2f crossed; valid: %.2f inside", share, crossed, held)
	if share > 0.6 || crossed < 0.2 {
		t.Errorf("published bounds: %.2f inside, %.2f crossed; want them to fail as measured", share, crossed)
	}
	if held < 0.87 || none > 0 {
		t.Errorf("valid bounds: %.2f inside, %.2f crossed", held, none)
	}
}

func TestPublishedBoundsNeverLearnADrop(t *testing.T) {
	at := learntest.Curves()[0].At
	p := tree(t, published.Config{Width: 2, Lipschitz: 2, Top: 1})
	teach(t, 600, 2, at, p)
	lower, _ := p.Bounds(1.5)
	teach(t, 6000, 3, func(x float64) float64 { return 0.7 * at(x) }, p)
	after, upper := p.Bounds(1.5)
	if after < lower {
		t.Errorf("the lower bound fell from %v to %v: bounds only tighten", lower, after)
	}
	if truth := 0.7 * at(1.5); truth >= after && truth <= upper {
		t.Errorf("the drop to %v is inside [%v, %v]", truth, after, upper)
	}
}

func TestWhatItPredictsIsInOrder(t *testing.T) {
	p := tree(t, published.Config{Width: 2, Lipschitz: 2, Top: 1})
	teach(t, 500, 4, learntest.Curves()[4].At, p)
	for i := range 300 {
		b := p.Predict(float64(i)/5, 20)
		if !(b.Lower >= 0 && b.Lower <= b.Mean && b.Mean <= b.Upper && b.Upper <= 1) {
			t.Fatalf("at %d: %+v", i, b)
		}
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	for _, c := range []published.Config{{}, {Width: 1, Lipschitz: math.NaN(), Top: 1}, {Width: math.Inf(1), Lipschitz: 1, Top: 1}} {
		if _, err := published.New(c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	p := tree(t, published.Config{Width: 2, Lipschitz: 2, Top: 1})
	for _, o := range []learn.Observation{{}, {Allocation: 1, Load: math.NaN(), Performance: 1}, {Allocation: 1, Load: 1, Performance: -1}, {Allocation: 1, Load: 1}} {
		if err := p.Observe(o); !errors.Is(err, trimtab.ErrInvalid) || p.Reports() != 0 {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := p.Snapshot(); !errors.Is(err, trimtab.ErrUnsupported) {
		t.Error(err)
	}
}

func TestThePublishedTreeAnswersWhatLearnersCanDo(t *testing.T) {
	learntest.Traits(t, func() learn.Learner { return tree(t, published.Config{Width: 2, Lipschitz: 2, Top: 1}) })
}
