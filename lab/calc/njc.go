package calc

import (
	"io"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/fair"
)

// NJC divides one capacity by Cilantro's procedure of no justified complaints:
//
//	in:  {"capacity": R, "demands": [d_j], "weights": [w_j] (optional)}
//	out: {"allocation", "share", "unused", "useful", "f_njc"}
//
// See package fair for what they mean.
func NJC(r io.Reader) (any, error) {
	var in struct {
		Capacity float64   `json:"capacity"`
		Demands  []float64 `json:"demands"`
		Weights  []float64 `json:"weights,omitempty"`
	}
	if err := Decode(r, &in); err != nil {
		return nil, err
	}
	for i, d := range in.Demands {
		if d < 0 {
			return nil, trimtab.Invalidf("row %d: demand %v: want >= 0", i, d)
		}
	}
	for i, w := range in.Weights {
		if w <= 0 {
			return nil, trimtab.Invalidf("row %d: weight %v: want > 0", i, w)
		}
	}
	return fair.NJC(in.Capacity, in.Demands, in.Weights)
}
