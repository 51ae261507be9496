package bintree_test

import (
	"testing"

	"github.com/trimtab/trimtab/analyzer/learn/learntest"
)

func BenchmarkObserve(b *testing.B) { learntest.BenchmarkObserve(b, fresh) }
func BenchmarkPredict(b *testing.B) { learntest.BenchmarkPredict(b, fresh) }
func BenchmarkCurveOf(b *testing.B) { learntest.BenchmarkCurveOf(b, fresh) }
