package policy_test

import (
	"errors"
	"math"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

func TestSharesThatAreNoSharesAreRefused(t *testing.T) {
	for _, parts := range [][]policy.Part{
		{{Host: 2, Share: 1}},
		{{Host: -1, Share: 1}},
		{{Host: 0, Share: 0.5}, {Host: 0, Share: 0.5}},
		{{Host: 1, Share: 0.5}, {Host: 0, Share: 0.5}},
		{{Host: 0, Share: 0}},
		{{Host: 0, Share: math.NaN()}},
		{{Host: 0, Share: 0.6}, {Host: 1, Share: 0.5}},
	} {
		p := &policy.Problem{Units: 1, Unit: 1, Hosts: []policy.Host{{Units: 1}, {Units: 1}}, Workloads: []policy.Workload{{Name: "a", Weight: 1, Parts: parts}}}
		if err := p.ValidateHosts(); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%v: %v", parts, err)
		}
	}
	for _, units := range []float64{-1, math.NaN(), math.Inf(1)} {
		p := &policy.Problem{Units: 1, Unit: 1, Hosts: []policy.Host{{Units: units}}}
		if err := p.ValidateHosts(); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("a host of %v units: %v", units, err)
		}
	}
}
