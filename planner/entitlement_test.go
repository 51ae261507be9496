package planner

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"
)

// entitledTo divides 8 cores among workloads, written as group/name.
func entitledTo(groups []GroupConfig, of ...WorkloadConfig) map[string]float64 {
	p := &Planner{cfg: Config{Groups: groups}, resources: []Resource{{Name: "cpu", Capacity: 8, Unit: 0.01}}}
	for _, c := range of {
		p.workloads = append(p.workloads, &workload{WorkloadConfig: c, dials: []*dial{{Bounds: Bounds{Guarantee: c.Guarantee}}}})
	}
	return (&decision{planner: p}).entitlements()
}

func TestEntitlementsHonourGuaranteesAndTheTreeOfGroups(t *testing.T) {
	for name, c := range map[string]struct {
		groups []GroupConfig
		of     []WorkloadConfig
		want   map[string]float64
	}{
		"by weight":                          {nil, []WorkloadConfig{{Name: "a", Weight: 3}, {Name: "b"}}, map[string]float64{"a": 6, "b": 2}},
		"a guarantee of less than by weight": {nil, []WorkloadConfig{{Name: "a", Guarantee: 1}, {Name: "b"}}, map[string]float64{"a": 4, "b": 4}},
		"a guarantee of more":                {nil, []WorkloadConfig{{Name: "a", Guarantee: 6}, {Name: "b"}, {Name: "c"}}, map[string]float64{"a": 6, "b": 1, "c": 1}},
		"guarantees of more than there is":   {nil, []WorkloadConfig{{Name: "a", Guarantee: 12}, {Name: "b", Guarantee: 4}}, map[string]float64{"a": 6, "b": 2}},
		"a group counts as one":              {nil, []WorkloadConfig{{Name: "a", Group: "g/x"}, {Name: "b", Group: "g/x"}, {Name: "c"}}, map[string]float64{"a": 2, "b": 2, "c": 4}},
		"a group of some weight": {[]GroupConfig{{Path: "g", Weight: 3}}, []WorkloadConfig{{Name: "a", Group: "g", Weight: 2}, {Name: "b", Group: "g"}, {Name: "c"}},
			map[string]float64{"a": 4, "b": 2, "c": 2}},
		"a group with a guarantee": {[]GroupConfig{{Path: "g", Guarantee: 6}}, []WorkloadConfig{{Name: "a", Group: "g"}, {Name: "b", Group: "g"}, {Name: "c"}},
			map[string]float64{"a": 3, "b": 3, "c": 2}},
		"the guarantee of one of a group": {nil, []WorkloadConfig{{Name: "a", Group: "g", Guarantee: 5}, {Name: "b", Group: "g"}, {Name: "c"}},
			map[string]float64{"a": 5, "b": 0, "c": 3}},
	} {
		got := entitledTo(c.groups, c.of...)
		for w, want := range c.want {
			if math.Abs(got[w]-want) > 1e-9 {
				t.Errorf("%s: %s is entitled to %v, want %v", name, w, got[w], want)
			}
		}
	}
}

func TestEntitlementsSumToTheCapacityAndNobodyIsBelowAGuaranteeThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var of []WorkloadConfig
		sum := 0.0
		for i := range rapid.IntRange(1, 8).Draw(t, "workloads") {
			c := WorkloadConfig{Name: fmt.Sprint(i), Group: rapid.SampledFrom([]string{"", "g", "g/h", "k"}).Draw(t, "group"),
				Weight: rapid.Float64Range(0.1, 10).Draw(t, "weight"), Guarantee: rapid.SampledFrom([]float64{0, 0.5, 1, 3}).Draw(t, "guarantee")}
			of, sum = append(of, c), sum+c.Guarantee
		}
		groups := []GroupConfig{{Path: "g", Weight: rapid.Float64Range(0.1, 10).Draw(t, "weight of g")}}
		got, all := entitledTo(groups, of...), 0.0
		for _, c := range of {
			all += got[c.Name]
			if sum <= 8 && got[c.Name] < c.Guarantee-1e-9 {
				t.Errorf("%s is entitled to %v, and was guaranteed %v", c.Name, got[c.Name], c.Guarantee)
			}
		}
		if math.Abs(all-8) > 1e-9 {
			t.Errorf("the sum is %v", all)
		}
	})
}
