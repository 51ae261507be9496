package bintree_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/learntest"
	"github.com/trimtab/trimtab/lab/bintree"
)

const level = 0.9

func fresh() learn.Learner {
	l, err := bintree.New(level)
	if err != nil {
		panic(err)
	}
	return l
}

// profiles reads the four recorded profiles, or skips.
func profiles(t testing.TB) []learntest.Curve {
	t.Helper()
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: no recorded profiles")
	}
	var out []learntest.Curve
	for _, name := range []string{"craydb0", "craydb1", "craypredserv", "craymltrain"} {
		f, err := os.Open(filepath.Join(dir, "cilantro", "profile_"+name+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := learntest.ReadProfile(name, f, name == "craymltrain")
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// judge prints the table, and fails the test for each curve whose truth lies outside the
// confidence bounds more often than their level allows, unless that could be chance
// (probability of at least 0.1%).
func judge(t *testing.T, rows []learntest.Row) {
	t.Helper()
	t.Log("\n" + learntest.Table(rows))
	for _, r := range rows {
		if p := r.Likely(level); p < 1e-3 {
			t.Errorf("%s after %d reports: %d of %d points inside, probability %.2g at level %v", r.Curve, r.Count, r.Hits, r.Trials, p, level)
		}
	}
}

func TestCoverageOfSyntheticCurvesHoldsTheLevel(t *testing.T) {
	judge(t, learntest.Coverage(fresh, learntest.Curves(), learntest.Plan{Seeds: 20, Counts: []int{60, 600}}))
}

func TestCoverageWithFewRequestsPerReportHoldsTheLevel(t *testing.T) {
	judge(t, learntest.Coverage(fresh, learntest.Curves(), learntest.Plan{Seeds: 20, Scale: 0.05, Counts: []int{30, 60, 300}}))
}

func TestCoverageOfRecordedProfilesHoldsTheLevel(t *testing.T) {
	judge(t, learntest.Coverage(fresh, profiles(t), learntest.Plan{Seeds: 12}))
}
