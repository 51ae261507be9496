package calc

import (
	"io"

	"github.com/trimtab/trimtab/analyzer/fingerprint"
)

// LLA approximates the load level of a series by algorithms 1 and 2 of ROSE:
//
//	in:  {"data": […], "k": 5, "p": 1.5, "quartile": "linear"|"exclusive"|"tukey"}
//	out: {"value", "branch": "monotone"|"short"|"segments-monotone"|"segments-mean",
//	      "segment_means": […]}
//
// All but data may be left out, with what stands here. See package fingerprint.
func LLA(r io.Reader) (any, error) {
	var in struct {
		Data     []float64 `json:"data"`
		K        *int      `json:"k,omitempty"`
		P        *float64  `json:"p,omitempty"`
		Quartile string    `json:"quartile,omitempty"`
	}
	if err := Decode(r, &in); err != nil {
		return nil, err
	}
	a := fingerprint.Default()
	if in.K != nil {
		a.K = *in.K
	}
	if in.P != nil {
		a.P = *in.P
	}
	if in.Quartile != "" {
		a.Quartile = fingerprint.Quartile(in.Quartile)
	}
	level, err := a.Of(in.Data)
	if err != nil {
		return nil, err
	}
	if level.Means == nil {
		level.Means = []float64{}
	}
	return level, nil
}
