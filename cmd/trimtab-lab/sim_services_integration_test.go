//go:build integration

package main

import "testing"

// The tests of the simulated services play a short time of a few; here are all scenarios,
// objectives and seeds.
func TestTheSimulatedServicesOverMoreSeeds(t *testing.T) {
	t.Parallel()
	t.Run("the defaults keep up", func(t *testing.T) { allKeepUp(t, 4*few) })
	t.Run("nobody is harmed", func(t *testing.T) { nobodyIsHarmed(t, 4*few, 600) })
	t.Run("nobody is lowered", func(t *testing.T) { nobodyIsLowered(t, 4*few, 100, 160, 240) })
}

// allKeepUp plays all scenarios and objectives.
func allKeepUp(t *testing.T, seeds int) {
	for scenario, objectives := range map[string][]string{
		"peaks":    {"njc", "egalitarian", "social"},
		"doubling": {"njc"}, // here and below the pool has enough, and all objectives plan by need
		"slower":   {"njc"},
	} {
		t.Run(scenario, func(t *testing.T) { keepsUp(t, seeds, scenario, objectives...) })
	}
}
