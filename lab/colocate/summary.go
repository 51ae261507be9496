package colocate

import (
	"maps"
	"math"
	"slices"

	"github.com/trimtab/trimtab/lab"
	control "github.com/trimtab/trimtab/planner/colocate"
)

// Summary is the answer for one policy: the mean of its runs, and what it is beside
// others.
type Summary struct {
	Policy string `json:"policy"`
	Figures
	// StdErr are standard errors over the runs; nil: one run tells nothing of them.
	StdErr *Spread `json:"stderr,omitempty"`
	// Against is present where the policies to compare with were played.
	Against
}

// Spread are standard errors of means.
type Spread struct {
	EMU  float64 `json:"emu"`
	Work float64 `json:"be_throughput"`
	CPU  float64 `json:"cpu"`
	Band float64 `json:"membw"`
	Held float64 `json:"slo_held"`
	Lost float64 `json:"lost_be_hours"`
}

// Against compares a policy; nil: the other was not played.
type Against struct {
	// OverHeracles is EMU over that of Heracles, less 1, mean over the services, and
	// LeastOver that of the service that gains the least.
	OverHeracles *float64 `json:"emu_over_heracles,omitempty"`
	LeastOver    *float64 `json:"least_emu_over_heracles,omitempty"`
	// OfOracle is the best-effort work as a share of the oracle's, EMUOfOracle EMU.
	OfOracle    *float64 `json:"be_of_oracle,omitempty"`
	EMUOfOracle *float64 `json:"emu_of_oracle,omitempty"`
	// LostOf is the lost work as a share of that under indiscriminate reclamation.
	LostOf *float64 `json:"lost_of_indiscriminate,omitempty"`
}

// Summarize sums up all policies.
func Summarize(outcomes []Outcome) []Summary {
	means := map[string]Figures{}
	for i := range outcomes {
		means[outcomes[i].Policy] = Mean(outcomes[i].Runs)
	}
	var out []Summary
	for i := range outcomes {
		o := &outcomes[i]
		s := Summary{Policy: o.Policy, Figures: means[o.Policy], StdErr: spreadOf(o.Runs)}
		s.compare(means)
		out = append(out, s)
	}
	return out
}

func spreadOf(runs []Figures) *Spread {
	if len(runs) < 2 {
		return nil
	}
	of := func(v func(*Figures) float64) float64 {
		var all []float64
		for i := range runs {
			all = append(all, v(&runs[i]))
		}
		return lab.StatOf(all).StdErr
	}
	return &Spread{
		EMU: of(func(f *Figures) float64 { return f.EMU }), Work: of(func(f *Figures) float64 { return f.Work }),
		CPU: of(func(f *Figures) float64 { return f.CPU }), Band: of(func(f *Figures) float64 { return f.Band }),
		Held: of(func(f *Figures) float64 { return f.Held }), Lost: of(func(f *Figures) float64 { return f.Lost }),
	}
}

func (s *Summary) compare(means map[string]Figures) {
	if h, ok := means[control.Heracles]; ok {
		sum, least := 0.0, math.Inf(1)
		for _, name := range slices.Sorted(maps.Keys(s.Services)) { // in order: sums of floats depend on it
			over := s.Services[name].EMU/h.Services[name].EMU - 1
			sum, least = sum+over/float64(len(s.Services)), math.Min(least, over)
		}
		s.OverHeracles, s.LeastOver = &sum, &least
	}
	if o, ok := means[Oracle]; ok {
		emu := s.EMU / o.EMU
		s.EMUOfOracle = &emu
		if o.Work > 0 {
			work := s.Work / o.Work
			s.OfOracle = &work
		}
	}
	if o, ok := means[control.Indiscriminate]; ok && o.Lost > 0 {
		lost := s.Lost / o.Lost
		s.LostOf = &lost
	}
}
