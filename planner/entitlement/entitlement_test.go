package entitlement_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/planner/entitlement"
)

type parts = map[string]entitlement.Part

func member(name, group string, weight, least float64) entitlement.Member {
	return entitlement.Member{Name: name, Group: group, Part: entitlement.Part{Weight: weight, Least: least}}
}

func TestEntitlementsHonourGuaranteesAndTheTreeOfGroups(t *testing.T) {
	for name, c := range map[string]struct {
		groups parts
		of     []entitlement.Member
		want   map[string]float64
	}{
		"by weight":                          {nil, []entitlement.Member{member("a", "", 3, 0), member("b", "", 0, 0)}, map[string]float64{"a": 6, "b": 2}},
		"a guarantee of less than by weight": {nil, []entitlement.Member{member("a", "", 0, 1), member("b", "", 0, 0)}, map[string]float64{"a": 4, "b": 4}},
		"a guarantee of more":                {nil, []entitlement.Member{member("a", "", 0, 6), member("b", "", 0, 0), member("c", "", 0, 0)}, map[string]float64{"a": 6, "b": 1, "c": 1}},
		"guarantees of more than there is":   {nil, []entitlement.Member{member("a", "", 0, 12), member("b", "", 0, 4)}, map[string]float64{"a": 6, "b": 2}},
		"a group counts as one":              {nil, []entitlement.Member{member("a", "g/x", 0, 0), member("b", "g/x", 0, 0), member("c", "", 0, 0)}, map[string]float64{"a": 2, "b": 2, "c": 4}},
		"a group of some weight": {parts{"g": {Weight: 3}}, []entitlement.Member{member("a", "g", 2, 0), member("b", "g", 0, 0), member("c", "", 0, 0)},
			map[string]float64{"a": 4, "b": 2, "c": 2}},
		"a group with a guarantee": {parts{"g": {Least: 6}}, []entitlement.Member{member("a", "g", 0, 0), member("b", "g", 0, 0), member("c", "", 0, 0)},
			map[string]float64{"a": 3, "b": 3, "c": 2}},
		"the guarantee of one of a group": {nil, []entitlement.Member{member("a", "g", 0, 5), member("b", "g", 0, 0), member("c", "", 0, 0)},
			map[string]float64{"a": 5, "b": 0, "c": 3}},
	} {
		got := entitlement.Divide(8, c.of, c.groups)
		for w, want := range c.want {
			if math.Abs(got[w]-want) > 1e-9 {
				t.Errorf("%s: %s is entitled to %v, want %v", name, w, got[w], want)
			}
		}
	}
}

func TestEntitlementsSumToTheCapacityAndNobodyIsBelowAGuaranteeThatFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var of []entitlement.Member
		sum := 0.0
		for i := range rapid.IntRange(1, 8).Draw(t, "workloads") {
			c := member(fmt.Sprint(i), rapid.SampledFrom([]string{"", "g", "g/h", "k"}).Draw(t, "group"),
				rapid.Float64Range(0.1, 10).Draw(t, "weight"), rapid.SampledFrom([]float64{0, 0.5, 1, 3}).Draw(t, "guarantee"))
			of, sum = append(of, c), sum+c.Least
		}
		groups := parts{"g": {Weight: rapid.Float64Range(0.1, 10).Draw(t, "weight of g")}}
		got, all := entitlement.Divide(8, of, groups), 0.0
		for _, c := range of {
			all += got[c.Name]
			if sum <= 8 && got[c.Name] < c.Least-1e-9 {
				t.Errorf("%s is entitled to %v, and was guaranteed %v", c.Name, got[c.Name], c.Least)
			}
		}
		if math.Abs(all-8) > 1e-9 {
			t.Errorf("the sum is %v", all)
		}
	})
}
