package shape

import (
	"errors"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

func TestEveryScenarioFitsThePoolWithHeadroomButThoseThatShowOverload(t *testing.T) {
	for _, s := range All() {
		highest := 0.0
		for at := time.Duration(0); at < s.Length && s.Over; at += time.Second {
			sum := 0.0
			for i := range 3 {
				sum += s.Load(i, at, s.Length) * s.Size(i, at, s.Length)
			}
			highest = max(highest, sum)
		}
		if s.Over {
			if highest < 1.05 {
				t.Errorf("%s asks for at most %.3f of the pool", s.Name, highest)
			}
			continue
		}
		for at := time.Duration(0); at < s.Length; at += time.Second {
			sum := 0.0
			for i := range 3 {
				sum += s.Load(i, at, s.Length) * s.Size(i, at, s.Length)
			}
			if sum < 0.3 || sum > 0.78 {
				t.Errorf("%s at %v asks for %.3f of the pool", s.Name, at, sum)
			}
		}
	}
}

func TestEqualSharesAreTooLittleSometimesExceptUnderNoise(t *testing.T) {
	for _, s := range All() {
		highest := 0.0
		for at := time.Duration(0); at < s.Length; at += time.Second {
			for i := range 3 {
				highest = max(highest, s.Load(i, at, s.Length)*s.Size(i, at, s.Length))
			}
		}
		if !s.Over && (highest > 1./3) == (s.Name == "noise") {
			t.Errorf("%s: the highest load is %.3f of the pool", s.Name, highest)
		}
	}
}

func TestThePeakMovesFromOneServiceToTheNext(t *testing.T) {
	s := All()[0]
	for i := range 3 {
		peak := s.Wave.Period * time.Duration(2*i+1) / 6
		for _, at := range []time.Duration{peak, peak + s.Wave.Period} {
			if got := s.Load(i, at, s.Length); got < s.Wave.Peak-1e-3 {
				t.Errorf("service %d at %v: %.3f, want its peak", i, at, got)
			}
			for k := range 3 {
				if got := s.Load(k, at, s.Length); k != i && got > s.Wave.Base+0.05 {
					t.Errorf("service %d at the peak of %d: %.3f", k, i, got)
				}
			}
		}
	}
}

func TestAWaveFitsIntoAShorterRun(t *testing.T) {
	s := All()[0]
	whole := time.Minute
	for i := range 3 {
		if got := s.Load(i, whole*time.Duration(2*i+1)/6, whole); got < s.Wave.Peak-1e-3 {
			t.Errorf("service %d: %.3f, want its peak", i, got)
		}
	}
}

func TestEventsAreTheSuddenRises(t *testing.T) {
	for name, want := range map[string][]Event{
		"peaks":    nil,
		"noise":    nil,
		"doubling": {{At: 2 * time.Minute, Service: 0}},
		"slower":   {{At: 3 * time.Minute, Service: 1}},
	} {
		found, err := Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		got := found[0].Events(6 * time.Minute)
		if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestAnUnknownScenarioIsAMistake(t *testing.T) {
	if _, err := Find([]string{"peaks", "tsunami"}); !errors.Is(err, trimtab.ErrInvalid) {
		t.Error(err)
	}
}

func TestAnOverloadIsFromWhenToWhenAllAskForMoreThanThePool(t *testing.T) {
	for name, want := range map[string][]Span{
		"peaks":   nil,
		"over132": {{0, 4 * time.Minute}},
		"culprit": {{2 * time.Minute, 4 * time.Minute}},
		"unequal": {{2 * time.Minute, 4 * time.Minute}},
	} {
		found, err := Find([]string{name})
		if err != nil {
			t.Fatal(err)
		}
		if got := found[0].Overloads(found[0].Length); len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}
