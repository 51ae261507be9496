package analyzer

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
)

// savedApplication is what was learned over all members; it is saved with the entry.
type savedApplication struct {
	// Members names the workload of each dimension of Vector, in order.
	Members []string `json:"members"`
	Learner string   `json:"learner"`
	Vector  []byte   `json:"vector"`
	// Curves and Rates are the sojourn curves and visit rates of the members, in order.
	Curves [][]byte  `json:"curves"`
	Rates  []float64 `json:"rates"`
	Rate   float64   `json:"rate"`
}

func (p *application) names() []string {
	out := make([]string, len(p.members))
	for i, w := range p.members {
		out[i] = w.spec.Name
	}
	return out
}

func (p *application) save() (*savedApplication, error) {
	s := &savedApplication{Members: p.names(), Learner: p.vector.Name(), Rate: p.rate}
	var err error
	if s.Vector, err = p.vector.Snapshot(); err != nil {
		return nil, err
	}
	for i := range p.parts {
		b, err := p.parts[i].curve.Snapshot()
		if err != nil {
			return nil, err
		}
		s.Curves, s.Rates = append(s.Curves, b), append(s.Rates, p.parts[i].rate)
	}
	return s, nil
}

// restore restores what the same learner has learned over the same members, and ignores anything
// else. After an error nothing is known.
func (p *application) restore(s *savedApplication) error {
	if s == nil || s.Learner != p.vector.Name() || !slices.Equal(s.Members, p.names()) {
		return nil
	}
	if err := p.adopt(s); err != nil {
		_ = p.begin() // no error is possible: the same configuration was accepted before
		return err
	}
	return nil
}

func (p *application) adopt(s *savedApplication) error {
	if len(s.Curves) != len(p.parts) || len(s.Rates) != len(p.parts) {
		return trimtab.Invalidf("%d curves and %d rates of %d members", len(s.Curves), len(s.Rates), len(p.parts))
	}
	if err := p.vector.Restore(s.Vector); err != nil {
		return err
	}
	for _, r := range append([]float64{s.Rate}, s.Rates...) {
		if !(r >= 0) || math.IsInf(r, 0) {
			return trimtab.Invalidf("rate %v", r)
		}
	}
	for i := range p.parts {
		if err := p.parts[i].curve.Restore(s.Curves[i]); err != nil {
			return err
		}
		p.parts[i].rate = s.Rates[i]
	}
	p.rate = s.Rate
	return nil
}
