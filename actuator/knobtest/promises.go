package knobtest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// floored tests Floor of [actuator.Traits]: it is the least value that may be set, it covers the
// amount in use, and no write lowers the knob below it. A raise is always allowed, even to less
// than the floor. A reopened knob must do the same.
func floored(t testing.TB, f Fixture) {
	k := f.Knob
	inUse := 0.0
	use := func(v float64) {
		if f.Use != nil {
			inUse = v
			f.Use(v)
		}
	}
	use(f.Least)
	again, err := f.Reopen(k.Undo())
	if err != nil {
		t.Fatalf("reopen: %v", err)
	}
	if again.Traits().Floor == nil {
		t.Fatalf("the reopened %s promises no floor", again)
	}
	for _, k := range []actuator.Knob{k, again} {
		keepsTheFloor(t, k, f.Most, inUse)
	}
	if f.Use != nil {
		followsUse(t, k, f)
	}
	if err := again.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	unknown(t, f, func(ctx context.Context) error { _, err := k.Traits().Floor(ctx); return err })
}

// keepsTheFloor lowers a knob, first too far and then as far as it may.
func keepsTheFloor(t testing.TB, k actuator.Knob, most, inUse float64) {
	t.Helper()
	high := k.Nearest(trimtab.Units(most))
	write(t, k, high)
	floor := floorOf(t, k)
	if floor.Value < inUse {
		t.Errorf("the floor is %v, and %v are in use", floor, inUse)
	}
	if got := read(t, k); got != high {
		t.Errorf("asking for the floor changed %v to %v", high, got)
	}
	for _, part := range []float64{0, 0.5, 0.99} {
		below := k.Nearest(trimtab.Units(part * floor.Value))
		if !below.Less(floor) {
			continue
		}
		if err := k.Write(context.Background(), below); !errors.Is(err, trimtab.ErrRefused) {
			t.Errorf("write %v below the floor %v: error %v, want refused", below, floor, err)
		}
		if got := read(t, k); got != high {
			t.Errorf("it wrote: %v became %v", high, got)
		}
	}
	if got := k.Nearest(floor); got != floor {
		t.Errorf("the floor %v cannot be set: nearest to it is %v", floor, got)
	}
	write(t, k, floor)
	if got := read(t, k); got != floor {
		t.Errorf("wrote the floor %v, read %v", floor, got)
	}
}

// followsUse raises the usage above the set value, and lets it fall again.
func followsUse(t testing.TB, k actuator.Knob, f Fixture) {
	t.Helper()
	low := floorOf(t, k)
	write(t, k, low)
	f.Use(f.Most / 2)
	if now := floorOf(t, k); now.Value < f.Most/2 {
		t.Errorf("the floor is %v, and %v are in use", now, f.Most/2)
	}
	if v := k.Nearest(trimtab.Units(1.5 * low.Value)); v.Value < f.Most/2 {
		write(t, k, v) // a raise is allowed even if it stays below the floor
		if err := k.Write(context.Background(), low); !errors.Is(err, trimtab.ErrRefused) {
			t.Errorf("lowered from %v to %v with %v in use: error %v, want refused", v, low, f.Most/2, err)
		}
	}
	f.Use(f.Least)
	if now := floorOf(t, k); now != low {
		t.Errorf("as much is in use as before, and the floor is %v, not %v", now, low)
	}
	write(t, k, low)
}

// delayed tests Effective of [actuator.Traits]: after a write, Read returns the value set last, and
// Effective the value in force, which is the former value or one set since. A reopened knob must do
// the same.
func delayed(t testing.TB, f Fixture) {
	k := f.Knob
	if f.TakeEffect == nil {
		t.Fatalf("the fixture of %s says not how values take effect", k)
	}
	ask := func(v trimtab.Amount) {
		t.Helper()
		write(t, k, v)
		if got := read(t, k); got != v {
			t.Errorf("asked for %v, read %v", v, got)
		}
	}
	takesEffect := func() {
		t.Helper()
		f.TakeEffect()
		if asked, got := read(t, k), effective(t, k); got != asked {
			t.Errorf("%v was asked for and took effect, %v is in force", asked, got)
		}
	}
	ask(k.Nearest(trimtab.Units(f.Most)))
	takesEffect()
	may := []trimtab.Amount{effective(t, k)}
	for _, v := range []trimtab.Amount{k.Nearest(trimtab.Units(f.Least)), f.unlimited(), k.Nearest(trimtab.Units(f.Least))} {
		ask(v)
		may = append(may, v)
		if got := effective(t, k); !slices.Contains(may, got) {
			t.Errorf("%v is in force, none of %v", got, may)
		}
		if got := read(t, k); got != v {
			t.Errorf("asking what is in force changed %v to %v", v, got)
		}
	}
	again, err := f.Reopen(k.Undo())
	if err != nil {
		t.Fatalf("reopen: %v", err)
	}
	if again.Traits().Effective == nil {
		t.Fatalf("the reopened %s promises no delay", again)
	}
	if got := effective(t, again); !slices.Contains(may, got) {
		t.Errorf("by the reopened knob %v is in force, none of %v", got, may)
	}
	takesEffect()
	if got, want := effective(t, again), effective(t, k); got != want {
		t.Errorf("by the reopened knob %v is in force, by the first %v", got, want)
	}
	if err := again.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	unknown(t, f, func(ctx context.Context) error { _, err := k.Traits().Effective(ctx); return err })
}

// unknown tests that a call fails with a cancelled context, and when the target is gone.
func unknown(t testing.TB, f Fixture, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if ask(ctx) == nil {
		t.Errorf("with a cancelled context: no error")
	}
	f.Vanish()
	if ask(t.Context()) == nil {
		t.Errorf("of a vanished target: no error")
	}
}

func floorOf(t testing.TB, k actuator.Knob) trimtab.Amount {
	t.Helper()
	v, err := k.Traits().Floor(t.Context())
	if err == nil {
		err = v.Validate()
	}
	if err != nil || v.Unlimited {
		t.Fatalf("floor of %s: %v, %v", k, v, err)
	}
	return v
}

func effective(t testing.TB, k actuator.Knob) trimtab.Amount {
	t.Helper()
	v, err := k.Traits().Effective(t.Context())
	if err == nil {
		err = v.Validate()
	}
	if err != nil {
		t.Fatalf("what is in force of %s: %v, %v", k, v, err)
	}
	return v
}
