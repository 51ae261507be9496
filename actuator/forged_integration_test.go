//go:build integration

package actuator_test

import "testing"

func TestNoneOfAHundredThousandForgedPlansGetsPastTheHostsOwnBounds(t *testing.T) {
	forgeries(t, 100_000)
}
