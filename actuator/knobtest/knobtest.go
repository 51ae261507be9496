// Package knobtest is the contract of [actuator.Knob] as a test suite. Every
// kind of knob runs it, on the real thing where the host has it.
//
// It also tests the contracts of Floor and Effective if the knob's [actuator.Traits] have them. It
// does not test what only one kind has, such as owners, parents and versions.
//
//	func TestCPUMeetsTheContractOfKnobs(t *testing.T) {
//		knobtest.Run(t, func(t *testing.T) knobtest.Fixture { … })
//	}
package knobtest

import (
	"context"
	"math"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// Fixture is one target with its knob, created again for each test.
type Fixture struct {
	// Knob must work, and must be writable.
	Knob actuator.Knob
	// Reopen makes a knob from an Undo, as another process would.
	Reopen func(undo []byte) (actuator.Knob, error)
	// Least and Most bound the values to try, 0 < Least < Most.
	Least, Most float64
	// Unlimited is the value that the knob stores for unlimited if its values have an upper end, as
	// a switch's do; nil: unlimited itself.
	Unlimited *trimtab.Amount
	// Vanish removes the target.
	Vanish func()
	// Use makes the target use an amount, whatever the limit; it is for knobs with a floor. nil:
	// the test cannot.
	Use func(v float64)
	// TakeEffect makes the value written last take effect. A knob with Effective needs it.
	TakeEffect func()
}

// test is one test of the suite.
type test struct {
	name string
	run  func(t testing.TB, f Fixture)
}

// Run runs the suite.
func Run(t *testing.T, open func(t *testing.T) Fixture) {
	tests := []test{
		{"ItSaysWhatItIs", itSaysWhatItIs},
		{"ANearestValueReadsBackAsItself", aNearestValueReadsBack},
		{"NearestIsMonotoneAndItsOwnFixedPoint", nearestIsMonotone},
		{"UnlimitedIsAValue", unlimitedIsAValue},
		{"UndoReopensTheSameKnob", undoReopens},
		{"ReopenRefusesWhatItDidNotWrite", reopenRefuses},
		{"ACancelledContextHasNoEffect", cancelled},
		{"AnInvalidAmountHasNoEffect", invalid},
		{"AVanishedTargetIsAnError", vanished},
		{"CloseReleasesWhatItHasOpenAndChangesNothing", closes},
	}
	can := open(t).Knob.Traits()
	if can.Floor != nil {
		tests = append(tests, test{"WhatIsInUseIsNotTakenAway", floored})
	}
	if can.Effective != nil {
		tests = append(tests, test{"WhatIsInForceIsToldBesideWhatWasAskedFor", delayed})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(t, open(t)) })
	}
}

func itSaysWhatItIs(t testing.TB, f Fixture) {
	if f.Knob.String() == "" || f.Knob.Resource() == "" || len(f.Knob.Undo()) == 0 {
		t.Errorf("string %q, resource %q, undo %q: want all three", f.Knob.String(), f.Knob.Resource(), f.Knob.Undo())
	}
	if err := f.Knob.Probe(t.Context()); err != nil {
		t.Errorf("probe: %v", err)
	}
	before := read(t, f.Knob)
	if err := f.Knob.MayWrite(t.Context()); err != nil {
		t.Errorf("may write: %v", err)
	}
	if got := read(t, f.Knob); got != before {
		t.Errorf("asking whether it may be written changed %v to %v", before, got)
	}
	if v := read(t, f.Knob); v.Validate() != nil {
		t.Errorf("read %v: %v", v, v.Validate())
	}
}

func aNearestValueReadsBack(t testing.TB, f Fixture) {
	read(t, f.Knob)
	random := source(t)
	for range 100 {
		v := trimtab.Units(f.Least + random.Float64()*(f.Most-f.Least))
		want := f.Knob.Nearest(v)
		write(t, f.Knob, want)
		if got := read(t, f.Knob); got != want {
			t.Fatalf("wrote %v, nearest to %v: read %v", want, v, got)
		}
	}
}

// source makes random numbers from a seed that is printed.
func source(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func nearestIsMonotone(t testing.TB, f Fixture) {
	read(t, f.Knob)
	random := source(t)
	for range 1000 {
		a, b := math.Exp(random.NormFloat64()*5), math.Exp(random.NormFloat64()*5)
		x, y := f.Knob.Nearest(trimtab.Units(min(a, b))), f.Knob.Nearest(trimtab.Units(max(a, b)))
		if y.Less(x) {
			t.Fatalf("nearest of %v is %v, of %v is %v", min(a, b), x, max(a, b), y)
		}
		if again := f.Knob.Nearest(x); again != x {
			t.Fatalf("nearest of %v is %v", x, again)
		}
	}
}

func unlimitedIsAValue(t testing.TB, f Fixture) {
	write(t, f.Knob, trimtab.Units(f.Least))
	write(t, f.Knob, trimtab.Unlimited())
	if got := read(t, f.Knob); got != f.unlimited() {
		t.Errorf("wrote unlimited, read %v, want %v", got, f.unlimited())
	}
	if got := f.Knob.Nearest(trimtab.Unlimited()); got != f.unlimited() {
		t.Errorf("nearest of unlimited is %v, want %v", got, f.unlimited())
	}
	if above := f.Knob.Nearest(trimtab.Units(1e12)); f.unlimited().Less(above) {
		t.Errorf("unlimited is %v, and nearest of 1e12 is %v", f.unlimited(), above)
	}
}

// unlimited returns the value that the knob stores for unlimited.
func (f *Fixture) unlimited() trimtab.Amount {
	if f.Unlimited != nil {
		return *f.Unlimited
	}
	return trimtab.Unlimited()
}

func undoReopens(t testing.TB, f Fixture) {
	write(t, f.Knob, trimtab.Units(f.Most))
	other, err := f.Reopen(f.Knob.Undo())
	if err != nil {
		t.Fatalf("reopen: %v", err)
	}
	if got, want := read(t, other), read(t, f.Knob); got != want {
		t.Errorf("the reopened knob reads %v, the first %v", got, want)
	}
	want := other.Nearest(trimtab.Units(f.Least))
	write(t, other, want)
	if got := read(t, f.Knob); got != want {
		t.Errorf("the reopened knob wrote %v, the first reads %v", want, got)
	}
}

func reopenRefuses(t testing.TB, f Fixture) {
	for _, undo := range []string{"", "{}", "null", "[]", "\x00", `{"kind":"other/1"}`} {
		if k, err := f.Reopen([]byte(undo)); err == nil {
			t.Errorf("reopen %q: %v, want an error", undo, k)
		}
	}
}

func cancelled(t testing.TB, f Fixture) {
	write(t, f.Knob, trimtab.Units(f.Most))
	before := read(t, f.Knob)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Knob.Write(ctx, trimtab.Units(f.Least)); err == nil {
		t.Error("write with a cancelled context: no error")
	}
	if _, err := f.Knob.Read(ctx); err == nil {
		t.Error("read with a cancelled context: no error")
	}
	if got := read(t, f.Knob); got != before {
		t.Errorf("it wrote: %v became %v", before, got)
	}
}

func invalid(t testing.TB, f Fixture) {
	write(t, f.Knob, trimtab.Units(f.Most))
	before := read(t, f.Knob)
	for _, v := range []trimtab.Amount{
		trimtab.Units(math.NaN()), trimtab.Units(math.Inf(1)), trimtab.Units(-1), {Value: 1, Unlimited: true},
	} {
		if err := f.Knob.Write(t.Context(), v); err == nil {
			t.Errorf("write %v: no error", v)
		}
	}
	if got := read(t, f.Knob); got != before {
		t.Errorf("it wrote: %v became %v", before, got)
	}
}

func vanished(t testing.TB, f Fixture) {
	write(t, f.Knob, trimtab.Units(f.Most))
	f.Vanish()
	if err := f.Knob.Probe(t.Context()); err == nil {
		t.Error("probe: no error")
	}
	if err := f.Knob.MayWrite(t.Context()); err == nil {
		t.Error("may write: no error")
	}
	if v, err := f.Knob.Read(t.Context()); err == nil {
		t.Errorf("read %v: no error", v)
	}
	if err := f.Knob.Write(t.Context(), trimtab.Units(f.Least)); err == nil {
		t.Error("write: no error")
	}
	if f.Knob.String() == "" || len(f.Knob.Undo()) == 0 {
		t.Error("it forgot what it is")
	}
}

func closes(t testing.TB, f Fixture) {
	write(t, f.Knob, f.Knob.Nearest(trimtab.Units(f.Least)))
	before := read(t, f.Knob)
	open := descriptors(t)
	for range 10 {
		k, err := f.Reopen(f.Knob.Undo())
		if err != nil {
			t.Fatalf("reopen: %v", err)
		}
		read(t, k)
		for _, when := range []string{"the first", "the second"} {
			if err := k.Close(); err != nil {
				t.Errorf("close for %s time: %v", when, err)
			}
		}
		if k.String() == "" || k.Resource() == "" || len(k.Undo()) == 0 {
			t.Error("it forgot what it is")
		}
	}
	// A server in this process closes its side of a connection a moment later.
	for until := time.Now().Add(5 * time.Second); descriptors(t) > open && time.Now().Before(until); {
		time.Sleep(time.Millisecond)
	}
	if now := descriptors(t); now > open {
		t.Errorf("%d files are open, %d were before", now, open)
	}
	if now := read(t, f.Knob); now != before {
		t.Errorf("closing changed %v to %v", before, now)
	}
}

// descriptors counts the files that this process has open.
func descriptors(t testing.TB) int {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skipf("open files cannot be counted: %v", err)
	}
	return len(all)
}

func read(t testing.TB, k actuator.Knob) trimtab.Amount {
	t.Helper()
	v, err := k.Read(t.Context())
	if err != nil {
		t.Fatalf("read %s: %v", k, err)
	}
	return v
}

func write(t testing.TB, k actuator.Knob, v trimtab.Amount) {
	t.Helper()
	if err := k.Write(t.Context(), v); err != nil {
		t.Fatalf("write %v to %s: %v", v, k, err)
	}
}
