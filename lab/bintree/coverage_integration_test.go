//go:build integration

package bintree_test

import (
	"slices"
	"testing"

	"github.com/trimtab/trimtab/analyzer/learn/learntest"
)

func TestCoverageOfAllCurvesHoldsTheLevelOverManySeeds(t *testing.T) {
	curves := slices.Concat(learntest.Curves(), profiles(t))
	for _, scale := range []float64{1, 0.05} {
		t.Logf("requests per report times %v", scale)
		judge(t, learntest.Coverage(fresh, curves, learntest.Plan{Seeds: 40, Scale: scale, From: 10_000}))
	}
}

func TestMemoryIsBoundedAfterManyReports(t *testing.T) {
	learntest.MemoryIsBounded(t, fresh, 100_000)
}
