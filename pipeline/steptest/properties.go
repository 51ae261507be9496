package steptest

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// sameBytes also tests with values that are copies, and with frames whose bytes are reused after
// the call.
func sameBytes(t *rapid.T, s *Suite) {
	l := s.live(t)
	step, gave := s.replay(l, nil)
	l.same("given the same", step, gave)

	step = s.New()
	gave = nil
	for _, c := range l.calls {
		in := copyOf(t, c.in)
		gave = append(gave, texts(t, step.Step(c.at, in))...)
		if f, ok := in.(*trimtab.SpanFrame); ok {
			for i := range f.Data {
				f.Data[i] = 0xff
			}
		}
	}
	l.same("given copies", step, gave)
}

func unchanged(t *rapid.T, s *Suite) {
	l := s.live(t)
	for i, c := range l.calls {
		if now := text(t, c.in); !bytes.Equal(now, c.took) {
			t.Fatalf("what call %d was given %s", i, differ(now, c.took))
		}
		for k, v := range c.out {
			if now := text(t, v); !bytes.Equal(now, c.gave[k]) {
				t.Fatalf("what call %d gave %s", i, differ(now, c.gave[k]))
			}
		}
	}
}

func travels(t *rapid.T, s *Suite) {
	for _, c := range s.live(t).calls {
		for _, v := range c.out {
			valid(t, v)
			b, err := codec.Encode(v, trimtab.Origin{})
			if err != nil {
				t.Fatal(err)
			}
			if back, _, err := codec.Decode(v.Kind(), b); err != nil {
				t.Fatal(err)
			} else if got, want := text(t, back), text(t, v); !bytes.Equal(got, want) {
				t.Fatalf("what is read of what was sent %s", differ(got, want))
			}
		}
	}
}

// valid fails for a value that cannot be published.
func valid(t *rapid.T, v trimtab.Value) {
	t.Helper()
	if v == nil {
		t.Fatal("nil comes out")
	}
	if err := v.Validate(); err != nil {
		t.Fatalf("%v\n%+v", err, v)
	}
	if _, err := codec.Encode(v, trimtab.Origin{}); err != nil {
		t.Fatal(err)
	}
}

func repeated(t *rapid.T, s *Suite) {
	l := s.live(t)
	var past []trimtab.Value
	step, gave := s.replay(l, func(_ int, c call) []call {
		calls := []call{c}
		if c.in != nil && slices.Contains(s.Repeats, c.in.Kind()) {
			past = append(past, c.in)
			if rapid.Bool().Draw(t, "at once") {
				calls = append(calls, c)
			}
		}
		if len(past) > 0 && rapid.IntRange(0, 3).Draw(t, "later") == 0 {
			calls = append(calls, call{at: c.at, in: rapid.SampledFrom(past).Draw(t, "again")})
		}
		return calls
	})
	l.same("given some again", step, gave)
}

func foreign(t *rapid.T, s *Suite) {
	l := s.live(t)
	step, gave := s.replay(l, func(_ int, c call) []call {
		if !rapid.Bool().Draw(t, "foreign before") {
			return []call{c}
		}
		v := s.Foreign(t, c.at)
		if err := v.Validate(); err != nil {
			t.Fatalf("the suite's own test gives an invalid value: %v", err)
		}
		return []call{{at: c.at, in: v}, c}
	})
	l.same("given what is not its own", step, gave)
}

// anyValue mixes valid values of every kind, whose numbers, names and times make no sense
// together, into a life. The step must not panic, and its state afterwards must be restorable.
func anyValue(t *rapid.T, s *Suite) {
	l := s.live(t)
	w := newWild(l)
	step := s.New()
	give := func(at time.Time, in trimtab.Value) {
		for _, v := range step.Step(at, in) {
			valid(t, v)
		}
	}
	for _, c := range l.calls {
		for range rapid.IntRange(0, 2).Draw(t, "wild before") {
			give(c.at, w.value(t, c.at))
		}
		give(c.at, c.in)
	}
	restore(t, s.New(), states(step))
}

func backwards(t *rapid.T, s *Suite) {
	l := s.live(t)
	s.replay(l, func(_ int, c call) []call {
		back := rapid.SampledFrom([]time.Duration{0, time.Millisecond, time.Second, time.Minute, time.Hour, 24 * 365 * 30 * time.Hour})
		c.at = c.at.Add(-back.Draw(t, "back"))
		return []call{c}
	})
}

func totals(t *rapid.T, s *Suite) {
	l := s.live(t)
	step := s.New()
	last := map[string]float64{}
	for _, c := range l.calls {
		step.Step(c.at, c.in)
		step.(trimtab.Counted).Counts(func(name string, value float64, labels ...string) {
			key := name + " " + strings.Join(labels, ",")
			if strings.HasSuffix(name, "_total") && value < last[key] {
				t.Fatalf("%s falls from %v to %v", key, last[key], value)
			}
			last[key] = value
		})
	}
}

func looked(t *rapid.T, s *Suite) {
	l := s.live(t)
	step := s.New()
	var gave [][]byte
	for _, c := range l.calls {
		gave = append(gave, texts(t, step.Step(c.at, c.in))...)
		if rapid.IntRange(0, 7).Draw(t, "look") == 0 {
			l.sameStates("looked at twice", step, step)
			if c, ok := step.(trimtab.Counted); ok {
				c.Counts(func(string, float64, ...string) {})
			}
		}
	}
	l.same("looked at", step, gave)
}

// restore gives a step the states, in an order that t draws.
func restore(t *rapid.T, step trimtab.Step, states map[string][]byte) {
	t.Helper()
	for _, name := range rapid.Permutation(slices.Sorted(maps.Keys(states))).Draw(t, "order") {
		if err := step.(trimtab.Snapshotter).Restore(name, bytes.Clone(states[name])); err != nil {
			t.Fatalf("restore what it saved as %s: %v", name, err)
		}
	}
}

func savedAgain(t *rapid.T, s *Suite) {
	l := s.live(t)
	step := s.New()
	restore(t, step, states(l.step))
	l.sameStates("restored", l.step, step)
}

func goesOn(t *rapid.T, s *Suite) {
	l := s.liveWithRests(t)
	if len(l.rests) == 0 {
		s.cases--
		return
	}
	r := rapid.SampledFrom(l.rests).Draw(t, "rest")
	step := s.New()
	restore(t, step, r.state)
	if r.calls > 0 {
		for _, v := range r.again {
			step.Step(l.calls[r.calls-1].at, v)
		}
	}
	var want, gave [][]byte
	for _, c := range l.calls[r.calls:] {
		want = append(want, c.gave...)
		gave = append(gave, texts(t, step.Step(c.at, c.in))...)
	}
	l.sameTexts("restored", want, gave)
	l.sameStates("restored", l.step, step)
}

func damaged(t *rapid.T, s *Suite) {
	l := s.live(t)
	all := states(l.step)
	if len(all) == 0 {
		s.cases--
		return
	}
	// A step that has seen nothing takes what is whole: the damage is why not.
	fresh, step := s.New(), s.New()
	for range 8 {
		name := rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(t, "state")
		state := bytes.Clone(all[name])
		at := rapid.IntRange(0, len(state)-1).Draw(t, "at")
		if rapid.Bool().Draw(t, "cut") {
			state = state[:at]
		} else {
			state[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		}
		if err := step.(trimtab.Snapshotter).Restore(name, state); !errors.Is(err, trimtab.ErrInvalid) {
			t.Fatalf("restore damaged %s: %v, want trimtab.ErrInvalid\n%s", name, err, state)
		}
	}
	for _, name := range []string{"", "no such state", "\x00"} {
		if err := step.(trimtab.Snapshotter).Restore(name, nil); err == nil {
			t.Fatalf("restore %q: no error", name)
		}
	}
	l.sameStates("given damaged states", fresh, step)
	var gave [][]byte
	for _, c := range l.calls {
		gave = append(gave, texts(t, step.Step(c.at, c.in))...)
	}
	l.same("given damaged states", step, gave)
}
