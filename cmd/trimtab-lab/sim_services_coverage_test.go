package main

import (
	"math"
	"testing"

	"github.com/trimtab/trimtab/lab/services"
)

// A tenth of the truths may lie outside of a band of level 0.9. What differs by itself is a
// service in a seed; three standard deviations of so many are chance. `make bench` plays more.
func TestBandsHoldTheTruthWhereNothingBindsAtTimesAndAlways(t *testing.T) {
	t.Parallel()
	const seeds, level = 2, 0.9
	for _, of := range []struct {
		scenario, signal string
		cores            float64
	}{{"peaks", "spans", 2}, {"peaks", "promql", 2}, {"tight", "spans", 0.66}, {"over132", "spans", 0.66}} {
		t.Run(of.scenario+" by "+of.signal, func(t *testing.T) {
			s, err := services.Named(of.scenario, 120)
			if err != nil {
				t.Fatal(err)
			}
			s.Pool = of.cores
			var all services.Covered
			for seed := range uint64(seeds) {
				s.Vary(seed + 1)
				r, err := (&simServicesCmd{}).one(s, "njc", of.signal, seed+1)
				if err != nil {
					t.Fatal(err)
				}
				all.Add(s.Cover(r))
			}
			chance := 3 * math.Sqrt(level*(1-level)/float64(seeds*len(s.Services)))
			t.Logf("%+v", all)
			if all.Knee < 20 || all.Inside < (level-chance)*all.Points {
				t.Errorf("%v of %v inside", all.Inside, all.Points)
			}
		})
	}
}
