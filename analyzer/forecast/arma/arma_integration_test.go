//go:build integration

package arma_test

import "testing"

func TestCoverageOnWholeRecordedLoads(t *testing.T) { coverage(t, 1<<30) }
