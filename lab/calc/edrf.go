package calc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/drf"
)

// edrfInput is what [EDRF] reads.
type edrfInput struct {
	Capacities []float64    `json:"capacities"`
	Tenants    []edrfTenant `json:"tenants"`
}

type edrfTenant struct {
	Demand map[string]float64 `json:"demand"`
	Weight *edrfWeight        `json:"weight,omitempty"`
	Limit  *float64           `json:"limit,omitempty"`
}

// edrfWeight is one number for all resources, or one for each.
type edrfWeight struct {
	all  float64
	each map[string]float64
}

// errWeight is what a weight may be.
var errWeight = errors.New(`want a number or an object of numbers by resource, as in {"0": 2}`)

// UnmarshalJSON takes either form.
func (w *edrfWeight) UnmarshalJSON(b []byte) error {
	*w = edrfWeight{all: 1}
	if json.Unmarshal(b, &w.all) == nil && string(b) != "null" {
		return nil
	}
	var each map[string]*float64
	if err := json.Unmarshal(b, &each); err != nil || each == nil {
		return errWeight
	}
	w.all, w.each = 1, make(map[string]float64, len(each))
	for r, v := range each {
		if v == nil {
			return errWeight
		}
		w.each[r] = *v
	}
	return nil
}

// edrfOutput is what [EDRF] answers, in the order of the tenants.
type edrfOutput struct {
	Level      []float64            `json:"level"`
	Share      []float64            `json:"dominant_share"`
	Allocation []map[string]float64 `json:"allocation"`
	Saturated  []int                `json:"saturated"`
}

// EDRF divides several capacities by weighted extended dominant resource
// fairness:
//
//	in:  {"capacities": [c_r], "tenants": [{"demand": {"<r>": amount},
//	      "weight": w or {"<r>": w_ir} (default 1), "limit": L or null}]}
//	out: {"level": [x_i], "dominant_share": [s_i],
//	      "allocation": [{"<r>": amount}], "saturated": [r]}
//
// An allocation names the resources with a positive demand. A resource that a
// weight by resource leaves out has weight 1. See package drf.
func EDRF(r io.Reader) (any, error) {
	var in edrfInput
	if err := Decode(r, &in); err != nil {
		return nil, err
	}
	p := drf.Problem{Capacities: in.Capacities, Tenants: make([]drf.Tenant, len(in.Tenants))}
	for i := range in.Tenants {
		t, err := in.Tenants[i].tenant(len(in.Capacities))
		if err != nil {
			return nil, fmt.Errorf("row %d: %w", i, err)
		}
		p.Tenants[i] = t
	}
	s, err := drf.Solve(p)
	if err != nil {
		return nil, err
	}
	out := edrfOutput{s.Level, s.Share, make([]map[string]float64, len(p.Tenants)), s.Saturated}
	if out.Saturated == nil {
		out.Saturated = []int{}
	}
	for i, t := range p.Tenants {
		out.Allocation[i] = make(map[string]float64, len(t.Demands))
		for k, d := range t.Demands {
			if d.Amount > 0 {
				out.Allocation[i][strconv.Itoa(d.Resource)] = s.Allocation[i][k]
			}
		}
	}
	return out, nil
}

// tenant turns the names of resources into indices.
func (t *edrfTenant) tenant(resources int) (drf.Tenant, error) {
	out := drf.Tenant{Weight: 1, Limit: t.Limit, Demands: make([]drf.Demand, 0, len(t.Demand))}
	for name, amount := range t.Demand {
		r, err := resource(name, resources)
		if err != nil {
			return out, err
		}
		out.Demands = append(out.Demands, drf.Demand{Resource: r, Amount: amount})
	}
	slices.SortFunc(out.Demands, func(a, b drf.Demand) int { return a.Resource - b.Resource })
	if t.Weight == nil {
		return out, nil
	}
	out.Weight = t.Weight.all
	for name, w := range t.Weight.each {
		r, err := resource(name, resources)
		if err != nil {
			return out, fmt.Errorf("weight: %w", err)
		}
		if !(w > 0) {
			return out, trimtab.Invalidf("weight %v of resource %d: want > 0", w, r)
		}
		for k := range out.Demands {
			if out.Demands[k].Resource == r {
				out.Demands[k].Weight = w
			}
		}
	}
	return out, nil
}

// resource reads an index as JSON writes it: no sign, no leading zero.
func resource(name string, resources int) (int, error) {
	r, err := strconv.Atoi(name)
	if err != nil || strconv.Itoa(r) != name || r < 0 {
		return 0, trimtab.Invalidf("resource %.60q: want an index into capacities", name)
	}
	if r >= resources {
		return 0, trimtab.Invalidf("unknown resource %d: capacities has %d", r, resources)
	}
	return r, nil
}
