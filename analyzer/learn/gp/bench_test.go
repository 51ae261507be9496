package gp_test

import (
	"fmt"
	"testing"

	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/learntest"
)

func taught(b *testing.B, n int) (learn.Learner, *learntest.Environment) {
	b.Helper()
	l, env := fresh(), learntest.NewEnvironment(learntest.Curves()[0], 1)
	for range n {
		if err := l.Observe(env.Next()); err != nil {
			b.Fatal(err)
		}
	}
	return l, env
}

func BenchmarkObserve(b *testing.B) {
	for _, n := range []int{60, 600, 2160, 20000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l, env := taught(b, n)
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
}

func BenchmarkPredict(b *testing.B) {
	for _, n := range []int{60, 600, 2160, 20000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			l, _ := taught(b, n)
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				l.Predict(float64(1+i%40), 20)
			}
		})
	}
}

func BenchmarkCurveOf(b *testing.B) {
	l, _ := taught(b, 2160)
	b.ReportAllocs()
	for b.Loop() {
		learn.CurveOf(l, 20, 0.1, 40, 0.9)
	}
}
