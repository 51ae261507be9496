package trimtab

import (
	"errors"
	"math"
	"testing"
)

func TestAnEnvelopeIsARangeAroundItsTarget(t *testing.T) {
	good := func() Envelope {
		return Envelope{Floor: 0.3, Target: 1, Ceiling: 4, Budget: 0.04, Late: 0.006, Lend: true, Borrow: true, Burst: 1}
	}
	for name, e := range map[string]Envelope{"full": good(), "zero": {}, "still": {Floor: 1, Target: 1, Ceiling: 1}, "three fields": {Floor: 1, Target: 2, Ceiling: 3}} {
		if err := e.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(*Envelope){
		"floor over target":   func(e *Envelope) { e.Floor = 1.1 },
		"target over ceiling": func(e *Envelope) { e.Target = 4.1 },
		"NaN":                 func(e *Envelope) { e.Target = math.NaN() },
		"infinite":            func(e *Envelope) { e.Ceiling = math.Inf(1) },
		"negative":            func(e *Envelope) { e.Floor = -1 },
		"budget of a year":    func(e *Envelope) { e.Budget = 3e7 },
		"NaN budget":          func(e *Envelope) { e.Budget = Seconds(math.NaN()) },
		"all late":            func(e *Envelope) { e.Late = 1 },
		"burst over ceiling":  func(e *Envelope) { e.Burst = 5 },
	} {
		e := good()
		if change(&e); !errors.Is(e.Validate(), ErrInvalid) {
			t.Errorf("%s: %v", name, e.Validate())
		}
	}
}

func TestAnEnvelopeThatNeitherLendsNorBorrowsStaysAtItsTarget(t *testing.T) {
	e := Envelope{Floor: 1, Target: 2, Ceiling: 3}
	if e.Least() != 2 || e.Most() != 2 {
		t.Errorf("from %v to %v", e.Least(), e.Most())
	}
	if e.Lend, e.Borrow = true, true; e.Least() != 1 || e.Most() != 3 {
		t.Errorf("from %v to %v", e.Least(), e.Most())
	}
}
