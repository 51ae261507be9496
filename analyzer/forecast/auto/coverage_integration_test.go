//go:build integration

package auto_test

import "testing"

// TestCoverageOnWholeRecordedLoads also takes the loads second by second.
func TestCoverageOnWholeRecordedLoads(t *testing.T) { coverage(t, 1<<30, 0) }
