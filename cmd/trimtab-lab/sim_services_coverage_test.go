package main

import (
	"math"
	"testing"

	"github.com/trimtab/trimtab/lab/services"
)

// A tenth of the truths may lie outside of a band of level 0.9. What differs by itself is a
// service in a scenario; three standard deviations of so many are chance: of the services of one
// scenario, and of those of all. `make bench` plays more seeds.
func TestBandsHoldTheTruthWhereNothingBindsAtTimesAndAlways(t *testing.T) {
	t.Parallel()
	holds := func(t *testing.T, of *services.Covered, places int) {
		t.Helper()
		const level = 0.9
		t.Logf("%+v", *of)
		if chance := 3 * math.Sqrt(level*(1-level)/float64(places)); of.Inside < (level-chance)*of.Points {
			t.Errorf("%v of %v inside", of.Inside, of.Points)
		}
	}
	var all services.Covered
	places := 0
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
			s.Vary(1)
			r, err := (&simServicesCmd{}).one(s, "njc", of.signal, 1)
			if err != nil {
				t.Fatal(err)
			}
			c := s.Cover(r)
			if c.Knee < 10 {
				t.Errorf("%v points at the knee: too few to say anything", c.Knee)
			}
			holds(t, &c, len(s.Services))
			all.Add(c)
			places += len(s.Services)
		})
	}
	holds(t, &all, places)
}
