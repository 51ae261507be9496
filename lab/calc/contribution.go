package calc

import (
	"io"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/contribution"
)

// contributionInput is what [Contribution] reads.
type contributionInput struct {
	Servpods []struct {
		Name    string    `json:"name"`
		Sojourn []float64 `json:"sojourn"`
	} `json:"servpods"`
	Tail    []float64            `json:"tail"`
	Paths   *[][]string          `json:"paths,omitempty"`
	Loads   []float64            `json:"loads,omitempty"`
	CoV     map[string][]float64 `json:"cov,omitempty"`
	Variant *struct {
		V        string `json:"V,omitempty"`
		Negative string `json:"negative,omitempty"`
	} `json:"variant,omitempty"`
}

// contributionOutput is what [Contribution] answers.
type contributionOutput struct {
	Servpods     []contribution.Contribution `json:"servpods"`
	CriticalPath []string                    `json:"critical_path"`
}

// Contribution says what each Servpod contributes to the tail of the latency:
//
//	in:  {"servpods": [{"name", "sojourn": [T_i^j]}], "tail": [T_tail^j],
//	      "paths": [[names]], "loads": […], "cov": {name: [CoV_j]},
//	      "variant": {"V": "paper"|"population"|"sample", "negative": "keep"|"clamp"}}
//	out: {"servpods": [{"name", "mean", "P", "rho", "V", "alpha", "C", "C_norm",
//	      "step", "loadlimit"}], "critical_path": [names] or null}
//
// All but servpods and tail may be left out. See package contribution.
func Contribution(r io.Reader) (any, error) {
	var in contributionInput
	if err := Decode(r, &in); err != nil {
		return nil, err
	}
	p := contribution.Profile{Tail: in.Tail, Loads: in.Loads, CoV: in.CoV}
	for _, s := range in.Servpods {
		p.Components = append(p.Components, contribution.Series{Name: s.Name, Sojourn: s.Sojourn})
	}
	if in.Paths != nil {
		p.Paths = *in.Paths
	}
	if v := in.Variant; v != nil {
		p.Variation = contribution.Variation(v.V)
		switch v.Negative {
		case "", "keep":
		case "clamp":
			p.Clamp = true
		default:
			return nil, trimtab.Invalidf("negative %.40q: want keep or clamp", v.Negative)
		}
	}
	result, err := p.Compute()
	if err != nil {
		return nil, err
	}
	return contributionOutput{result.Components, result.CriticalPath}, nil
}
