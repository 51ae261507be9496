package learntest

import (
	"fmt"
	"testing"

	"github.com/trimtab/trimtab/analyzer/learn"
)

func taught(b *testing.B, l learn.Learner, n int) (learn.Learner, *Environment) {
	b.Helper()
	env := NewEnvironment(Curves()[0], 1)
	for range n {
		if err := l.Observe(env.Next()); err != nil {
			b.Fatal(err)
		}
	}
	return l, env
}

// each runs f for learners that were taught so many reports.
func each(b *testing.B, make func() learn.Learner, f func(b *testing.B, l learn.Learner, env *Environment)) {
	for _, n := range []int{60, 600, 2160, 20000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l, env := taught(b, make(), n)
			f(b, l, env)
		})
	}
}

// BenchmarkObserve is the time of one report.
func BenchmarkObserve(b *testing.B, fresh func() learn.Learner) {
	each(b, fresh, func(b *testing.B, l learn.Learner, env *Environment) {
		next := make([]learn.Observation, 1000)
		for i := range next {
			next[i] = env.Next()
		}
		b.ReportAllocs()
		b.ResetTimer()
		for i := range b.N {
			if err := l.Observe(next[i%len(next)]); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkPredict is the time of one query.
func BenchmarkPredict(b *testing.B, fresh func() learn.Learner) {
	each(b, fresh, func(b *testing.B, l learn.Learner, _ *Environment) {
		b.ReportAllocs()
		b.ResetTimer()
		for i := range b.N {
			l.Predict(float64(1+i%40), 20)
		}
	})
}

// BenchmarkCurveOf is the time of one curve after 2,160 reports.
func BenchmarkCurveOf(b *testing.B, fresh func() learn.Learner) {
	l, _ := taught(b, fresh(), 2160)
	b.ReportAllocs()
	for b.Loop() {
		learn.CurveOf(l, 20, 0.1, 40, 0.9)
	}
}
