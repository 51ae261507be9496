package learntest

import (
	"testing"

	"github.com/trimtab/trimtab/analyzer/learn"
)

// FuzzRestore checks that a learner can learn and predict after it restored any bytes that it
// accepts as a snapshot.
func FuzzRestore(f *testing.F, make func() learn.Learner) {
	l := make()
	env := NewEnvironment(Curves()[0], 1)
	for range 30 {
		if err := l.Observe(env.Next()); err != nil {
			f.Fatal(err)
		}
	}
	state, err := l.Snapshot()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(state)
	f.Add([]byte("trimtab " + l.Name() + " 00000000\n{}"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := make()
		if l.Restore(b) != nil {
			return
		}
		for range 20 {
			if err := l.Observe(env.Next()); err != nil {
				t.Fatal(err)
			}
		}
		l.Revise()
		if b := l.Predict(1, 1); !(b.Lower <= b.Mean && b.Mean <= b.Upper) {
			t.Fatalf("%+v", b)
		}
	})
}
