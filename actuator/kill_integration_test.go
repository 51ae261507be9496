//go:build integration

package actuator_test

import "testing"

func TestTwoHundredKilledActuatorsAreRestored(t *testing.T) { killAndRestore(t, 200) }
