package config_test

import (
	"os"
	"testing"

	"github.com/trimtab/trimtab/config"
)

func TestBoundsOfCacheAndBandwidthHaveKeysOfTheirOwn(t *testing.T) {
	text, err := os.ReadFile("testdata/good/rdt.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := config.Parse("rdt.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []struct {
		workload int
		resource string
		want     config.Bounds
	}{
		{0, "llc", config.Bounds{Min: 2, Max: 8}}, {1, "llc", config.Bounds{Min: 1, Max: 4}}, {1, "membw", config.Bounds{Min: 10, Max: 50}},
	} {
		if b, ok := c.Workloads[w.workload].Knob.BoundsOf(w.resource); !ok || b != w.want {
			t.Errorf("%s of workload %d: %+v, %v, want %+v", w.resource, w.workload, b, ok, w.want)
		}
	}
	if b, ok := c.Workloads[0].Knob.BoundsOf("membw"); ok {
		t.Errorf("checkout has %+v", b)
	}
}
