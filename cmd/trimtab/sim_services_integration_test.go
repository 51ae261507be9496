//go:build integration

package main

import "testing"

// The tests of the simulated services play a few seeds of each scenario; here are
// twice as many.
func TestTheSimulatedServicesOverMoreSeeds(t *testing.T) {
	t.Parallel()
	t.Run("the defaults keep up", func(t *testing.T) { allKeepUp(t, 4*few) })
	t.Run("nobody is harmed", func(t *testing.T) { nobodyIsHarmed(t, 4*few) })
	t.Run("nobody is lowered", func(t *testing.T) { nobodyIsLowered(t, 4*few) })
}
