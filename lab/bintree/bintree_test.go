package bintree_test

import (
	"math"
	"testing"
	"time"

	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/learntest"
	"github.com/trimtab/trimtab/lab/bintree"
)

func TestBintreeIsALearner(t *testing.T) { learntest.Run(t, fresh) }

func TestALevelOutsideZeroToOneIsRefused(t *testing.T) {
	for _, v := range []float64{0, 1, -1, math.NaN(), math.Inf(1)} {
		if l, err := bintree.New(v); err == nil {
			t.Errorf("level %v: %v", v, l)
		}
	}
}

// observe teaches n reports of 200 requests of an exact performance.
func observe(t *testing.T, l learn.Learner, n int, a, load, p float64) {
	t.Helper()
	for i := range n {
		o := learn.Observation{Time: time.Unix(int64(i), 0), Allocation: a, Load: load, Performance: p, Requests: 200}
		if err := l.Observe(o); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBandsAreWiderForLoadsThatWereNotSeen(t *testing.T) {
	l := fresh()
	for i := range 300 {
		a := 5 + 10*math.Abs(math.Sin(float64(i)/7))
		observe(t, l, 1, a, 10, 0.9/(1+math.Exp(-6*(a/10-0.8))))
	}
	width := func(load float64) float64 {
		b := l.Predict(0.8*load, load)
		return b.Upper - b.Lower
	}
	if near, far := width(10), width(30); far < 1.5*near {
		t.Errorf("width %v at the seen load, %v at three times it", near, far)
	}
}

func TestRequestsThatFailTogetherWidenTheBand(t *testing.T) {
	steady, bursty := fresh(), fresh()
	for i := range 200 {
		a := 8 + float64(i%10)/2
		observe(t, steady, 1, a, 10, 0.8+0.01*float64(i%3-1))
		observe(t, bursty, 1, a, 10, 0.8+0.19*float64((i/3)%3-1))
	}
	s, b := steady.Predict(10, 10), bursty.Predict(10, 10)
	if b.Upper-b.Lower < 2*(s.Upper-s.Lower) {
		t.Errorf("steady %+v, bursty %+v", s, b)
	}
}

func TestAReportThatSaysLessThanTheOthersDoesNotWipeThem(t *testing.T) {
	l := fresh()
	observe(t, l, 100, 10, 10, 0.9)
	if err := l.Observe(learn.Observation{Allocation: 10, Load: 10, Performance: 0.9}); err != nil {
		t.Fatal(err)
	}
	if l.Reports() != 101 {
		t.Errorf("%d reports", l.Reports())
	}
	if err := l.Observe(learn.Observation{Allocation: 10, Load: 10, Performance: 400}); err != nil {
		t.Fatal(err)
	}
	if b := l.Predict(10, 10); l.Reports() != 1 || b.Upper < 400 || b.Lower > 400 {
		t.Errorf("after a number where there were fractions: %d reports, %+v", l.Reports(), b)
	}
}

func TestOneOutlierDoesNotMakeItForget(t *testing.T) {
	l, err := bintree.New(level)
	if err != nil {
		t.Fatal(err)
	}
	observe(t, l, 100, 10, 10, 0.9)
	for range 20 {
		observe(t, l, 1, 10, 10, 0)
		observe(t, l, 20, 10, 10, 0.9)
	}
	if l.Changes() != 0 || l.Reports() < 500 {
		t.Errorf("%d changes, %d reports", l.Changes(), l.Reports())
	}
}

func TestAQuietServiceIsNotForgotten(t *testing.T) {
	changes := 0
	for seed := range uint64(5) {
		for _, c := range learntest.Curves() {
			l, err := bintree.New(level)
			if err != nil {
				t.Fatal(err)
			}
			env := learntest.NewEnvironment(c, 500+seed)
			env.Scale = 0.2
			for range 1000 {
				if err := l.Observe(env.Next()); err != nil {
					t.Fatal(err)
				}
			}
			changes += l.Changes()
		}
	}
	if changes > 2 {
		t.Errorf("%d changes found in 40,000 reports without one", changes)
	}
}

func FuzzRestoreIsTotal(f *testing.F) { learntest.FuzzRestore(f, fresh) }
