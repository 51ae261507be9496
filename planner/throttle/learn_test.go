package throttle

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/num"
)

func TestBeforeTheSensitivityIsKnownTheConfiguredFractionIsFreed(t *testing.T) {
	for _, c := range []struct {
		fraction float64
		want     int
	}{{1e-9, 1}, {0.2, 4}, {0.25, 5}, {1, 10}} { // at most half
		cfg := one()
		cfg.Proof.Fraction = c.fraction
		h := newHost(t, cfg)
		for i := range 20 {
			h.add(fmt.Sprint(i), Second, float64(i)/20)
		}
		h.base["shop"] = 2
		if d := h.ticks(1); len(d.Throttled) != c.want {
			t.Errorf("fraction %v: %d throttled, want %d", c.fraction, len(d.Throttled), c.want)
		}
	}
}

// "By using this model, we could infer the proper slice of resources for rapid
// performance recovery" (6.2).
func TestHowMuchIsFreedFollowsTheLearnedSensitivity(t *testing.T) {
	h := newHost(t, one())
	for i := range 20 {
		h.add(fmt.Sprint(i), Second, float64(i)/20) // each holds 1 of 64 cores
	}
	h.tick()
	s := &h.Policy.lras.present[0].sensitivity
	for i := range 20 { // 5% of the boundary for each core
		x := float64(1+i%4) / 64
		s.learn([]float64{x, 0}, 64*0.05*x+0.001*float64(i%3-1))
	}
	h.base["shop"] = 1.15 * 1.32
	if d := h.ticks(1); len(d.Throttled) != 7 { // 7 · 5% ≥ 32%
		t.Errorf("%d throttled", len(d.Throttled))
	}
	if mean, deviation, trials := slopeOf(h, s); math.Abs(mean-0.05) > 0.002 || !(deviation > 0 && deviation < 0.005) || trials != 20 {
		t.Errorf("%v ± %v after %d trials", mean, deviation, trials)
	}
}

func TestProofsTeachTheSensitivity(t *testing.T) {
	h := newHost(t, one())
	for i := range 6 {
		h.add(fmt.Sprint(i), Second, float64(i)/10)
	}
	h.hurts("5", "shop", 1)
	h.ticks(30)
	if mean, deviation, trials := slopeOf(h, &h.Policy.lras.present[0].sensitivity); trials < 4 || !(mean > 0) || !(deviation > 0) {
		t.Errorf("%v ± %v after %d trials", mean, deviation, trials)
	}
}

// slopeOf is by how much the excess of a signal falls for each core that is freed, with
// one standard deviation, and after how many trials.
func slopeOf(h *host, s *sensitivity) (mean, deviation float64, trials int) {
	of := h.capacity[0]
	return s.b[0] / of, math.Sqrt(s.p[0]*s.c/s.a) / of, s.n
}

// The slow way: the weighted normal equations, with the fading of the prior.
func TestTheSensitivityIsTheRegressionByItsNormalEquations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		s := newSensitivity(make([]Resource, 2))
		// A = P⁻¹ and A b, by which observations add up.
		a, rhs := [2][2]float64{{1 / wide, 0}, {0, 1 / wide}}, [2]float64{}
		for range rapid.IntRange(1, 40).Draw(t, "trials") {
			x := []float64{rng.Float64(), rng.Float64()}
			y := 2*x[0] - x[1] + 0.1*rng.NormFloat64()
			det := a[0][0]*a[1][1] - a[0][1]*a[1][0]
			if a[1][1]/det*fade <= wide && a[0][0]/det*fade <= wide {
				for i := range a {
					for j := range a[i] {
						a[i][j] /= fade
					}
					rhs[i] /= fade
				}
			}
			for i := range x {
				for j := range x {
					a[i][j] += x[i] * x[j]
				}
				rhs[i] += x[i] * y
			}
			s.learn(x, y)
		}
		det := a[0][0]*a[1][1] - a[0][1]*a[1][0]
		want := [2]float64{(a[1][1]*rhs[0] - a[0][1]*rhs[1]) / det, (a[0][0]*rhs[1] - a[1][0]*rhs[0]) / det}
		for i := range want {
			if math.Abs(s.b[i]-want[i]) > 1e-5*(1+math.Abs(want[i])) {
				t.Fatalf("slopes %v, want %v", s.b, want)
			}
		}
	})
}

func TestTheDeviationOfASlopeIsHonest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	inside, all := 0, 0
	for range 300 {
		s := newSensitivity(make([]Resource, 1))
		slope := 10 * rng.Float64()
		for range 10 {
			x := 0.1 * rng.Float64()
			s.learn([]float64{x}, slope*x+0.05*rng.NormFloat64())
		}
		all++
		if math.Abs(s.b[0]-slope) <= 2*math.Sqrt(s.p[0]*s.c/s.a) {
			inside++
		}
	}
	if share := float64(inside) / float64(all); share < 0.9 {
		t.Errorf("%.1f%% of slopes within two deviations", 100*share)
	}
}

func TestTheEvidenceIsTheRatioOfLikelihoods(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "samples")
		over := rapid.IntRange(0, n).Draw(t, "over")
		e := newEvidence(over, n)
		q := min(max(float64(over)/float64(n+1), leastOver), mostOver)
		recovered, as := 1.0, 1.0
		for _, o := range rapid.SliceOfN(rapid.Bool(), 0, 20).Draw(t, "then") {
			e.add(o)
			if o {
				recovered, as = recovered*strays, as*q
			} else {
				recovered, as = recovered*(1-strays), as*(1-q)
			}
		}
		if math.Abs(e.sum-math.Log(recovered/as)) > 1e-9 {
			t.Fatalf("%v, want %v", e.sum, math.Log(recovered/as))
		}
	})
}

// The more victims watch, the likelier one of them looks well by chance.
func TestOfManyVictimsOneMustShowMore(t *testing.T) {
	e := newEvidence(8, 8)
	n := 0
	for e.word(0.02, 0.05, 1, 100) == open {
		e.add(false)
		n++
	}
	if got := e.word(0.02, 0.05, 50, 100); got != open {
		t.Errorf("after %d samples one of 50 says %v", n, got)
	}
}

// Wald's bounds: of many tests of a victim that goes on as it was, at most about alpha
// say that it recovered; of one that recovered, at most about beta that it did not.
func TestTheChancesOfErrorAreThoseConfigured(t *testing.T) {
	const tests, alpha, beta = 20_000, 0.02, 0.05
	rng := rand.New(rand.NewPCG(5, 6))
	count := func(chance float64, wrong word) (n int) {
		for range tests {
			e := newEvidence(7, 8)
			w := open
			for w == open {
				e.add(rng.Float64() < chance)
				w = e.word(alpha, beta, 1, 1000)
			}
			if w == wrong {
				n++
			}
		}
		return n
	}
	if n := count(7.0/9, cured); float64(n) > 1.2*alpha*tests {
		t.Errorf("%d of %d are said to have recovered", n, tests)
	}
	if n := count(strays, uncured); float64(n) > 1.2*beta*tests/(1-alpha) {
		t.Errorf("%d of %d that recovered are said not to have", n, tests)
	}
}

func TestWhatWasLearnedComesBackAndNonsenseDoesNot(t *testing.T) {
	h := newHost(t, one())
	for i := range 6 {
		h.add(fmt.Sprint(i), Second, float64(i)/10)
	}
	h.hurts("5", "shop", 1)
	h.ticks(30)
	state := h.Snapshot()[snapshotName]
	if len(state) == 0 {
		t.Fatal("no state")
	}
	again := newHost(t, one())
	if err := again.Restore(snapshotName, state); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again.Snapshot()[snapshotName], state) {
		t.Error("not the same state again")
	}
	again.tasks, again.hurt = h.tasks, h.hurt
	again.ticks(6) // the first that is accused is the one that was guilty
	if got := again.tasksOf(Accused); len(got) != 1 || got[0] != "5" {
		t.Errorf("accused %v", got)
	}
	for name, spoil := range map[string]func(in *snapshot){
		"verdicts":  func(in *snapshot) { in.Jobs["x"] = verdicts{Guilty: -1} },
		"slopes":    func(in *snapshot) { in.Victims[0].B = nil },
		"variance":  func(in *snapshot) { in.Victims[0].P[0] = 0 },
		"evidence":  func(in *snapshot) { in.Victims[0].A = 1e9 },
		"no signal": func(in *snapshot) { in.Victims[0].Signal = "" },
	} {
		var in snapshot
		if err := num.Unseal(snapshotKind, state, &in); err != nil {
			t.Fatal(err)
		}
		spoil(&in)
		b, err := num.Seal(snapshotKind, in)
		if err != nil {
			t.Fatal(err)
		}
		if err := newHost(t, one()).Restore(snapshotName, b); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := again.Restore("other", state); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error(err)
	}
	if err := again.Restore(snapshotName, state[:len(state)/2]); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error(err)
	}
}
