package fingerprint

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
	"unsafe"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/num"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// failer is a test, or a property.
type failer interface {
	Helper()
	Fatal(...any)
}

// programme makes samples of 100 ms.
type programme struct {
	r  *rand.Rand
	at time.Time
}

func newProgramme(seed uint64) *programme {
	return &programme{rand.New(rand.NewPCG(seed, 1)), noon}
}

// runs lets w observe a phase for some samples, its CPI with a scatter of 2%.
func (p *programme) runs(t failer, w *Workload, samples int, cpi, mpki, references float64, alone bool) (out []Judgement) {
	t.Helper()
	for range samples {
		p.at = p.at.Add(100 * time.Millisecond)
		j, ok, err := w.Observe(p.at, Sample{
			Length: 100 * time.Millisecond, CPI: Counted(cpi * math.Exp(0.02*p.r.NormFloat64())), MPKI: Counted(mpki * math.Exp(0.05*p.r.NormFloat64())),
			References: Counted(references * math.Exp(0.02*p.r.NormFloat64())), Cores: Counted(4),
		}, alone)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			out = append(out, j)
		}
	}
	return out
}

// learned is a workload that was alone for a minute in each of two phases, the
// second of which has four times the CPI.
func learned(t testing.TB) (*Workload, *programme) {
	w, p := New(), newProgramme(1)
	for range 6 {
		p.runs(t, w, 100, 0.5, 1, 3, true)
		p.runs(t, w, 100, 2, 20, 40, true)
	}
	return w, p
}

func TestASlowdownWithinAPhaseIsFoundThoughTheProgramHasSlowerPhases(t *testing.T) {
	w, p := learned(t)
	for _, j := range p.runs(t, w, 50, 0.5, 1, 3, false) {
		if j.Anomaly {
			t.Fatalf("an anomaly at its usual CPI: %+v", j)
		}
	}
	found := p.runs(t, w, 50, 0.56, 2, 3, false)
	last := found[len(found)-1]
	if !last.Anomaly || math.Abs(last.Slowdown-1.12) > 0.02 || last.CPI.Model != Phases || !last.MPKI.Over {
		t.Errorf("12%% slower for 5 s: %+v", last)
	}
}

func TestAnAnomalyEndsWithTheSlowdown(t *testing.T) {
	w, p := learned(t)
	p.runs(t, w, 100, 0.7, 1, 3, false)
	after := p.runs(t, w, 50, 0.5, 1, 3, false)
	if after[len(after)-1].Anomaly {
		t.Errorf("still an anomaly after 5 s: %+v", after[len(after)-1])
	}
}

func TestAPhaseThatWasNotSeenIsNoAnomaly(t *testing.T) {
	w, p := learned(t)
	for _, j := range p.runs(t, w, 100, 8, 200, 400, false) {
		if j.Anomaly || j.CPI.Over || j.CPI.Model != Unknown || j.Slowdown != 0 {
			t.Fatalf("%+v", j)
		}
	}
}

func TestMoreMissesThatCostNothingAreNoAnomaly(t *testing.T) {
	w, p := learned(t)
	for _, j := range p.runs(t, w, 100, 0.5, 16, 3, false) {
		if j.Anomaly || !j.MPKI.Over {
			t.Fatalf("%+v", j)
		}
	}
}

func TestASlowdownThatIsTooSmallToFeelIsNoAnomalyHoweverNarrowTheDistribution(t *testing.T) {
	w, at := New(), noon
	r := rand.New(rand.NewPCG(3, 1))
	anomalies := 0
	for i := range 2000 {
		cpi := 1.9 * (1 + 0.001*r.NormFloat64())
		if i > 1000 {
			cpi *= 1.04
		}
		at = at.Add(500 * time.Millisecond)
		j, _, err := w.Observe(at, Sample{Length: 500 * time.Millisecond, CPI: Counted(cpi), References: Counted(10)}, i <= 1000)
		if err != nil {
			t.Fatal(err)
		}
		if j.Anomaly {
			anomalies++
		}
	}
	if anomalies > 0 {
		t.Errorf("%d anomalies", anomalies)
	}
}

func TestTheGateTakesGammaAndRefusesPhases(t *testing.T) {
	for _, c := range []struct {
		phases []float64
		holds  bool
	}{{[]float64{1}, true}, {[]float64{1, 1.3}, false}, {[]float64{1, 4}, false}} {
		w, at := New(), noon
		values := ownQuantiles(Distribution{Gamma, 60, 1.0 / 60}, 100)
		for i := range 2000 {
			phase := i / 50 % len(c.phases)
			at = at.Add(Window)
			if _, _, err := w.Observe(at, Sample{Length: Window, CPI: Counted(c.phases[phase] * values[mix(uint64(i))%100]), References: Counted(c.phases[phase] * 10)}, true); err != nil {
				t.Fatal(err)
			}
		}
		if fit, ok := w.CPI().Fit(); !ok || fit.Holds != c.holds {
			t.Errorf("phases %v: %+v", c.phases, fit)
		}
	}
}

func TestWhatIsNotAloneIsNotLearned(t *testing.T) {
	w, p := learned(t)
	p.runs(t, w, 10, 0.5, 1, 3, false)
	before := w.CPI().moments
	rate := w.FalseAlarms()
	p.runs(t, w, 600, 0.8, 9, 3, false)
	if w.CPI().moments != before || w.FalseAlarms() != rate {
		t.Errorf("%+v after, %+v before", w.CPI().moments, before)
	}
	if j := p.runs(t, w, 50, 0.8, 9, 3, false); !j[len(j)-1].Anomaly {
		t.Errorf("a slowdown became usual: %+v", j)
	}
}

func TestAFalseAlarmIsCountedBeforeItIsLearned(t *testing.T) {
	w, p := learned(t)
	before := w.FalseAlarms()
	p.runs(t, w, 50, 0.7, 1, 3, true) // slower, and the host says that it is alone
	if after := w.FalseAlarms(); after.Alarms <= before.Alarms || after.Judged != before.Judged+10 {
		t.Errorf("%+v after, %+v before", after, before)
	}
	p.runs(t, w, 1200, 0.7, 1, 3, true)
	j := p.runs(t, w, 50, 0.7, 1, 3, true)
	if last := j[len(j)-1]; last.Anomaly {
		t.Errorf("two minutes alone at a new CPI are still an anomaly: %+v", last)
	}
}

func TestNonsenseIsRefusedAndChangesNothing(t *testing.T) {
	w, p := learned(t)
	before, err := w.Save()
	if err != nil {
		t.Fatal(err)
	}
	recent, at := w.recent, w.at
	good := Sample{Length: time.Second, CPI: Counted(1)}
	for _, bad := range []Sample{
		{}, {Length: -time.Second, CPI: Counted(1)}, {Length: time.Hour, CPI: Counted(1)},
		{Length: time.Second, CPI: Counted(0)}, {Length: time.Second, CPI: Counted(-1)}, {Length: time.Second, CPI: Counted(math.NaN())},
		{Length: time.Second, CPI: Counted(math.Inf(1))}, {Length: time.Second, CPI: Counted(1e7)},
		{Length: time.Second, CPI: Counted(1), MPKI: Counted(math.NaN())}, {Length: time.Second, CPI: Counted(1), MPKI: Counted(-1)},
		{Length: time.Second, CPI: Counted(1), References: Counted(math.Inf(1))}, {Length: time.Second, CPI: Counted(1), Cores: Counted(math.NaN())},
	} {
		if _, _, err := w.Observe(p.at.Add(time.Second), bad, true); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	for _, late := range []time.Time{p.at, p.at.Add(-time.Nanosecond), p.at.Add(-gap)} {
		if _, _, err := w.Observe(late, good, true); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("a sample at %v after one at %v: %v", late, p.at, err)
		}
	}
	after, err := w.Save()
	if err != nil || string(before) != string(after) || w.recent != recent || w.at != at {
		t.Errorf("nonsense changed the fingerprint, or %v", err)
	}
}

func TestMissingCountersAreMissing(t *testing.T) {
	w, p := learned(t)
	before := w.CPI().moments.n
	for range 100 {
		p.at = p.at.Add(100 * time.Millisecond)
		if _, ok, err := w.Observe(p.at, Sample{Length: 100 * time.Millisecond}, true); ok || err != nil {
			t.Fatalf("a judgement of nothing, or %v", err)
		}
	}
	if w.CPI().moments.n != before {
		t.Errorf("%d windows learned of nothing", w.CPI().moments.n-before)
	}
	p.at = p.at.Add(time.Second)
	j, ok, err := w.Observe(p.at, Sample{Length: time.Second, CPI: Counted(0.5), References: Counted(3)}, true)
	if !ok || err != nil || j.MPKI.Model != Unknown || j.MPKI.Value != 0 || w.MPKI().moments.n == w.CPI().moments.n {
		t.Errorf("MPKI that was not counted: %+v, %v, %v", j, ok, err)
	}
}

func TestEvidenceDoesNotOutliveAGap(t *testing.T) {
	w, p := learned(t)
	p.runs(t, w, 10, 0.7, 1, 3, false) // two of the three windows that it takes
	p.at = p.at.Add(time.Minute)
	if j := p.runs(t, w, 5, 0.7, 1, 3, false); j[0].Anomaly {
		t.Errorf("%+v", j)
	}
}

func TestAClockThatIsSetBackCostsEvidenceOnly(t *testing.T) {
	w, p := learned(t)
	known := w.CPI().moments
	p.runs(t, w, 10, 0.7, 1, 3, false)
	p.at = p.at.AddDate(-1, 0, 0)
	if j := p.runs(t, w, 5, 0.7, 1, 3, false); j[0].Anomaly || j[0].CPI.Model != Phases {
		t.Errorf("%+v", j)
	}
	if j := p.runs(t, w, 50, 0.7, 1, 3, false); !j[9].Anomaly || w.CPI().moments != known {
		t.Errorf("%+v", j)
	}
}

func TestARestoredFingerprintJudgesTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := New(), newProgramme(rapid.Uint64().Draw(t, "seed"))
		for range rapid.IntRange(0, 8).Draw(t, "phases") {
			p.runs(t, w, rapid.IntRange(1, 100).Draw(t, "samples"), rapid.Float64Range(0.1, 9).Draw(t, "cpi"), 1, rapid.Float64Range(0, 50).Draw(t, "references"), true)
		}
		snapshot, err := w.Save()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Restore(snapshot)
		if err != nil {
			t.Fatal(err)
		}
		w.window, w.recent = window{}, 0
		q := *p
		q.r = rand.New(rand.NewPCG(7, 7))
		p.r = rand.New(rand.NewPCG(7, 7))
		one := p.runs(t, w, 100, 1, 2, 5, true)
		if other := q.runs(t, again, 100, 1, 2, 5, true); !reflect.DeepEqual(one, other) {
			t.Fatalf("%+v, restored %+v", one, other)
		}
	})
}

func TestADamagedSnapshotIsRefused(t *testing.T) {
	w, _ := learned(t)
	good, err := w.Save()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 200 {
		bad := append([]byte{}, good...)
		bad[i*len(bad)/200] ^= 4
		if _, err := Restore(bad); !errors.Is(err, num.ErrSeal) {
			t.Fatalf("byte %d: %v", i*len(bad)/200, err)
		}
	}
	for _, s := range []savedWorkload{
		{CPI: savedIndicator{N: 1, Mean: -1}}, {CPI: savedIndicator{Margin: 9}}, {MPKI: savedIndicator{Kept: []float32{1}}},
		{CPI: savedIndicator{Cells: map[int]spread{cells: {N: 1}}}}, {CPI: savedIndicator{Cells: map[int]spread{-1: {N: 1}}}},
		{CPI: savedIndicator{Cells: map[int]spread{0: {N: -1}}}}, {CPI: savedIndicator{N: 9, Mean: 1, Kept: []float32{0}}},
		{MPKI: savedIndicator{Fitted: true}}, {CPI: savedIndicator{N: 9, Mean: 1e300}},
	} {
		sealed, err := num.Seal(kind, s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Restore(sealed); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

func TestWhatIsKnownOfAWorkloadIsBounded(t *testing.T) {
	var s Summary
	if size := unsafe.Sizeof(s); size > 128 {
		t.Errorf("a summary takes %d bytes, want at most 128", size)
	}
	w, p := New(), newProgramme(4)
	for i := range 300 {
		p.runs(t, w, 50, 0.5+float64(i%7), float64(i), math.Exp(float64(i%20)-7), true)
	}
	size := int(unsafe.Sizeof(*w)) + 4*(cap(w.cpi.keep.values)+cap(w.mpki.keep.values))
	t.Logf("%d bytes for a workload, %d for its summary", size, unsafe.Sizeof(s))
	if size > 16<<10 {
		t.Errorf("a workload takes %d bytes, want at most 16 KiB", size)
	}
	if s = w.Summary(); s.At == 0 || s.CPI.Windows == 0 || s.CPI.Value == 0 {
		t.Errorf("%+v", s)
	}
}

func TestNoInputMakesAJudgementThatIsNoNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		values := []float64{0, 1e-300, 1e-6, 1e-3, 0.5, 1, 2, 1000, 1e6, math.NaN(), math.Inf(1)}[:rapid.IntRange(1, 11).Draw(t, "values")]
		reading := func() Reading { return Reading{values[r.IntN(len(values))], r.IntN(9) > 0} }
		w, at := New(), noon
		for range rapid.IntRange(1, 2000).Draw(t, "samples") {
			s := Sample{Length: time.Duration(r.Int64N(int64(time.Second))), CPI: reading(), MPKI: reading(), References: reading(), Cores: reading()}
			at = at.Add(time.Duration(r.Int64N(int64(2*time.Second)) - 1000))
			j, _, _ := w.Observe(at, s, r.IntN(50) > 0)
			for _, v := range []float64{j.CPI.Boundary, j.CPI.Typical, j.CPI.Value, j.MPKI.Boundary, j.MPKI.Typical, j.Slowdown} {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("%+v after %+v", j, s)
				}
			}
		}
		snapshot, err := w.Save()
		if err == nil {
			_, err = Restore(snapshot)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// BenchmarkObserve is a sample of 100 ms of a workload alone: a fifth of them
// complete a window, and are judged and learned.
func BenchmarkObserve(b *testing.B) {
	w, p := learned(b)
	b.ReportAllocs()
	for b.Loop() {
		p.runs(b, w, 1, 0.5, 1, 3, true)
	}
}
