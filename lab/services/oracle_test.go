package services

import (
	"math"
	"slices"
	"testing"
)

// fixed is a scenario of constant needs, in parts of the pool.
func fixed(seconds int, needs ...float64) *Scenario {
	s := &Scenario{Pool: pool, Seconds: seconds, Services: three()}
	for i := range s.Services {
		s.Services[i].Load = func(float64) float64 { return needs[i] * pool / s.Services[i].Cost }
	}
	return s
}

func TestAnOracleIsNoWorseThanTheKernelByItsOwnMeasure(t *testing.T) {
	for _, name := range []string{"tight", "culprit", "over132"} {
		s, err := Named(name, 60)
		if err != nil {
			t.Fatal(err)
		}
		kernel, err := Rule(s, "weights", 3)
		if err != nil {
			t.Fatal(err)
		}
		for _, objective := range Objectives() {
			r, err := Rule(s, "oracle:"+objective, 3)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := r.Welfare.Of(objective)
			least, _ := kernel.Welfare.Of(objective)
			t.Logf("%s, %s: %.3f, the kernel alone %.3f", name, objective, got, least)
			if got < least-0.01 {
				t.Errorf("%s, %s: %.3f, the kernel alone %.3f", name, objective, got, least)
			}
		}
	}
}

func TestTheSocialOracleServesAllButOneWhereTwoFit(t *testing.T) {
	s := fixed(60, 0.44, 0.44, 0.44)
	r, err := Rule(s, "oracle:social", 1)
	if err != nil {
		t.Fatal(err)
	}
	shares := []float64{r.Share(0), r.Share(1), r.Share(2)}
	slices.Sort(shares)
	if shares[1] < 0.8 || r.Welfare.Social < 0.6 {
		t.Errorf("%.3f in time, social %.3f", shares, r.Welfare.Social)
	}
}

func TestWhoIsHeldBackHasACrumbAndTheOthersAsIfItWereNotThere(t *testing.T) {
	s := fixed(60, 0.44, 0.44, 0.44)
	coming := arrivals(s, 1)
	held, alone := begin(s, coming), begin(s, coming)
	alone.queues[2].coming = nil
	held.play(func(int) []float64 { return []float64{1, 1, 0} }, 0, s.Seconds)
	alone.play(func(int) []float64 { return []float64{1, 1, 1} }, 0, s.Seconds)
	if crumb := HeldBack * s.Pool * float64(s.Seconds); held.queues[2].used > crumb+1e-9 || held.queues[2].used < 0.5*crumb {
		t.Errorf("%v core-seconds, want %v", held.queues[2].used, crumb)
	}
	for i := range 2 {
		in, all := 0.0, 0.0
		for _, w := range [][]float64{held.windows(s)[i], alone.windows(s)[i]} {
			in, all = all, 0
			for _, v := range w[:len(w)-1] {
				all += v / float64(len(w)-1)
			}
		}
		if all-in > 0.06 {
			t.Errorf("service %d: %.3f in time, %.3f without the third", i, in, all)
		}
	}
}

func TestTheNJCOracleServesWhoStaysWithinItsPart(t *testing.T) {
	r, err := Rule(fixed(60, 0.9, 0.25, 0.25), "oracle:njc", 1)
	if err != nil {
		t.Fatal(err)
	}
	if r.Share(1) < 0.98 || r.Share(2) < 0.98 || r.Welfare.NJC < 0.98 {
		t.Errorf("%.3f and %.3f in time, njc %.3f", r.Share(1), r.Share(2), r.Welfare.NJC)
	}
}

func TestWorthIsByWindowsAndWithoutThoseInWhichNobodyAsked(t *testing.T) {
	none := math.NaN()
	w := Judge([][]float64{{1, 0.5, none}, {0.25, none, none}}, [][]float64{{1, 1, none}, {0.5, none, none}})
	want := Welfare{NJC: 0.5, Egalitarian: 0.375, Social: (0.625 + 0.5) / 2, Nash: 0.5}
	if math.Abs(w.NJC-want.NJC)+math.Abs(w.Egalitarian-want.Egalitarian)+math.Abs(w.Social-want.Social)+math.Abs(w.Nash-want.Nash) > 1e-9 {
		t.Errorf("%+v, want %+v", w, want)
	}
}

func TestAnOracleOfNoObjectiveIsAMistake(t *testing.T) {
	if _, err := Rule(fixed(60, 0.1, 0.1, 0.1), "oracle:luck", 1); err == nil {
		t.Error("it was played")
	}
}
