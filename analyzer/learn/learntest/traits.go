package learntest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
)

// Traits checks the contract of learn.Learner without the learning, for a learner that cannot be
// saved, or whose bounds do not hold; [Run] checks it, too.
func Traits(t *testing.T, make func() learn.Learner) {
	for _, c := range []struct {
		name string
		f    func(*testing.T, func() learn.Learner)
	}{
		{"AWrapperKeepsWhatALearnerCanDo", func(t *testing.T, make func() learn.Learner) {
			Wraps(t, make, func(l learn.Learner) learn.Learner { return wrapper{l} })
		}},
		{"ToAskWhatALearnerCanTellChangesNothing", asked},
		{"OfNothingALearnerTellsNothing", untaught},
		{"AnotherVersionMakesNoBandNarrower", revised},
	} {
		t.Run(c.name, func(t *testing.T) { c.f(t, make) })
	}
}

// telling is what a learner reports of itself beside its bands.
type telling struct {
	Falls   bool
	Changes int
	Bends   [][]float64
}

// String leaves out where the bends are.
func (t telling) String() string {
	return fmt.Sprintf("falls %v, %d changes, %d bends", t.Falls, t.Changes, len(t.Bends[2]))
}

func told(l learn.Learner) telling {
	out := telling{Falls: l.Falls(), Changes: l.Changes()}
	for _, load := range []float64{0, 1e-300, 1, 20, math.MaxFloat64} {
		out.Bends = append(out.Bends, l.Bends(load))
	}
	return out
}

// wrapper wraps a learner as a caller would that changes one method.
type wrapper struct{ learn.Learner }

// Name is another one.
func (w wrapper) Name() string { return "wrapped " + w.Learner.Name() }

// Wraps compares the learners that make returns with wrapped ones: also on a curve that falls,
// after a change, and with another version.
func Wraps(t *testing.T, make func() learn.Learner, wrap func(learn.Learner) learn.Learner) {
	t.Helper()
	for _, k := range append(kinds(), HardCurves()[3]) {
		l, w := make(), wrap(make())
		bare, in := NewEnvironment(k, 21), NewEnvironment(k, 21)
		check := func(when string) {
			t.Helper()
			same(t, l, w)
			a, b := learn.CurveOf(l, 20, 0.1, 80, 0.9), learn.CurveOf(w, 20, 0.1, 80, 0.9)
			if !reflect.DeepEqual(a, b) {
				t.Fatalf("%s %s: the wrapper's curve is another", k.Name, when)
			}
		}
		teach(t, l, bare, 300)
		teach(t, w, in, 300)
		check("at first")
		bare.Factor, in.Factor = 0.5, 0.5
		teach(t, l, bare, 60)
		teach(t, w, in, 60)
		check("after a drop")
		l.Revise()
		w.Revise()
		check("of another version")
	}
}

func asked(t *testing.T, make func() learn.Learner) {
	for _, k := range kinds() {
		l, env, changes := make(), NewEnvironment(k, 22), 0
		for range 10 {
			teach(t, l, env, 40)
			before, first := bands(l), told(l)
			if again := told(l); !reflect.DeepEqual(first, again) || !slices.Equal(before, bands(l)) {
				t.Fatalf("%s: asked once: %v; asked twice: %v", k.Name, first, again)
			}
			if first.Changes < changes {
				t.Fatalf("%s: %d changes, %d before", k.Name, first.Changes, changes)
			}
			changes = first.Changes
			for _, a := range l.Bends(20) {
				if !(a > 0) || math.IsInf(a, 0) {
					t.Fatalf("%s: bends at %v", k.Name, a)
				}
			}
			env.Factor *= 0.8
		}
	}
}

func untaught(t *testing.T, make func() learn.Learner) {
	l, revised := make(), make()
	if l.Falls() || l.Changes() != 0 {
		t.Errorf("falls %v, %d changes", l.Falls(), l.Changes())
	}
	revised.Revise()
	same(t, l, revised)
}

func revised(t *testing.T, make func() learn.Learner) {
	for _, k := range kinds() {
		l, env := make(), NewEnvironment(k, 23)
		teach(t, l, env, 600)
		in := func() (out []trimtab.Band) { // the visited range
			for i := range 50 {
				x := k.Low + (k.High-k.Low)*(float64(i)+0.5)/50
				out = append(out, l.Predict(x*20, 20))
			}
			return out
		}
		before := in()
		l.Revise()
		for i, b := range in() {
			if was := before[i]; b.Upper-b.Lower < (was.Upper-was.Lower)*(1-1e-9) {
				t.Fatalf("%s: %+v before, %+v of another version", k.Name, was, b)
			}
		}
		teach(t, l, env, 60)
		for _, b := range bands(l) {
			if !(b.Lower <= b.Mean && b.Mean <= b.Upper) {
				t.Fatalf("%s: %+v", k.Name, b)
			}
		}
	}
}
