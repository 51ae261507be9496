package contribution

import (
	"fmt"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
)

// Variation selects the divisor of the sum of squares in V.
type Variation string

// The variations. "" means Paper.
const (
	// Paper divides by m(m-1), as equation (4) is printed.
	Paper Variation = "paper"
	// Population divides by m.
	Population Variation = "population"
	// Sample divides by m-1.
	Sample Variation = "sample"
)

// greatest is the largest accepted time: with it, squares and sums of many squares are finite.
const greatest = 1e100

// Series has the mean sojourn time of one component at each load level.
type Series struct {
	Name    string
	Sojourn []float64
}

// Profile is the input: the measurement of one application at m load levels. All times have the
// same unit.
type Profile struct {
	Components []Series
	// Tail is the tail latency of whole requests at each level.
	Tail []float64
	// Paths are the paths that requests take through components; nil: unknown.
	Paths [][]string
	// Loads are the loads of the levels. CoV has, by component, the coefficients of variation of
	// its sojourn times at these. Both are optional.
	Loads []float64
	CoV   map[string][]float64
	// Alpha has, by component, values of α that are known without Paths.
	Alpha     map[string]float64
	Variation Variation
	// Clamp counts a negative contribution as 0.
	Clamp bool
}

// Contribution is the result for one component.
type Contribution struct {
	Name string `json:"name"`
	// Mean is the mean sojourn time over the levels, in the unit of the input.
	Mean  float64 `json:"mean"`
	P     float64 `json:"P"`
	Rho   float64 `json:"rho"`
	V     float64 `json:"V"`
	Alpha float64 `json:"alpha"`
	C     float64 `json:"C"`
	// CNorm is this component's part of the sum of contributions.
	CNorm float64 `json:"C_norm"`
	// Step is the amount by which algorithm 1 lowers the slacklimit at a time.
	Step float64 `json:"step"`
	// LoadLimit is the load above which no best-effort work should run beside the component; nil:
	// no level is too high, or it is unknown.
	LoadLimit *float64 `json:"loadlimit"`
}

// Result has the contributions in order of the components, and the critical path if paths are
// known.
type Result struct {
	Components   []Contribution
	CriticalPath []string
}

// Compute returns the contributions. Its errors are trimtab.ErrInvalid.
func (p Profile) Compute() (Result, error) {
	if err := p.validate(); err != nil {
		return Result{}, err
	}
	out := Result{Components: make([]Contribution, len(p.Components))}
	total := 0.0
	for i, s := range p.Components {
		out.Components[i] = Contribution{Name: s.Name, Mean: mean(s.Sojourn), Alpha: 1}
		total += out.Components[i].Mean
	}
	out.CriticalPath = p.alphas(out.Components)
	sum := 0.0
	for i := range out.Components {
		c := &out.Components[i]
		if total > 0 {
			c.P = c.Mean / total
		}
		c.Rho = pearson(p.Components[i].Sojourn, p.Tail)
		c.V = p.variation(p.Components[i].Sojourn, c.Mean)
		c.C = c.Alpha*c.Rho*c.P*c.V + 0 // no negative zero
		if p.Clamp {
			c.C = max(0, c.C)
		}
		c.LoadLimit = p.loadLimit(c.Name)
		sum += c.C
	}
	for i := range out.Components {
		c := &out.Components[i]
		c.CNorm = 1 / float64(len(out.Components))
		if sum != 0 {
			c.CNorm = c.C / sum
		}
		c.Step = 1 - c.CNorm
	}
	return out, nil
}

// constant reports whether all values are equal up to rounding errors, which would otherwise look
// like noise.
func constant(v []float64) bool {
	least, most := slices.Min(v), slices.Max(v)
	return most-least <= 1e-12*most
}

func mean(v []float64) float64 {
	if constant(v) {
		return v[0]
	}
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// pearson returns equation (3): Σ dx dy / √(Σ dx² Σ dy²).
func pearson(x, y []float64) float64 {
	if constant(x) || constant(y) {
		return 0
	}
	mx, my := mean(x), mean(y)
	var xx, yy, xy float64
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		xx, yy, xy = xx+dx*dx, yy+dy*dy, xy+dx*dy
	}
	d := math.Sqrt(xx) * math.Sqrt(yy)
	if d == 0 {
		return 0
	}
	return max(-1, min(1, xy/d))
}

// variation returns equation (4).
func (p *Profile) variation(t []float64, mean float64) float64 {
	m := float64(len(t))
	if mean == 0 || m < 2 || constant(t) {
		return 0
	}
	squares := 0.0
	for _, x := range t {
		squares += (x - mean) * (x - mean)
	}
	switch p.Variation {
	case Population:
		squares /= m
	case Sample:
		squares /= m - 1
	default:
		squares /= m * (m - 1)
	}
	return math.Sqrt(squares) / mean
}

// alphas sets α by equation (6), and returns the critical path.
func (p *Profile) alphas(c []Contribution) []string {
	means := make(map[string]float64, len(c))
	for i := range c {
		means[c[i].Name] = c[i].Mean
		if a, ok := p.Alpha[c[i].Name]; ok {
			c[i].Alpha = a
		}
	}
	lengths := make([]float64, len(p.Paths))
	critical := -1
	for i, path := range p.Paths {
		for _, name := range path {
			lengths[i] += means[name]
		}
		if critical < 0 || lengths[i] > lengths[critical] {
			critical = i
		}
	}
	if critical < 0 {
		return nil
	}
	longest := map[string]float64{}
	for i, path := range p.Paths {
		for _, name := range path {
			longest[name] = max(longest[name], lengths[i])
		}
	}
	for i := range c {
		if length, ok := longest[c[i].Name]; ok && lengths[critical] > 0 {
			c[i].Alpha = length / lengths[critical]
		}
	}
	return p.Paths[critical]
}

// loadLimit returns the first load at which the CoV exceeds its mean over all levels; nil: none.
func (p *Profile) loadLimit(name string) *float64 {
	cov := p.CoV[name]
	if len(cov) == 0 {
		return nil
	}
	average := mean(cov)
	for j, v := range cov {
		if v > average {
			return &p.Loads[j]
		}
	}
	return nil
}

func (p *Profile) validate() error {
	if len(p.Components) == 0 || len(p.Tail) == 0 {
		return trimtab.Invalidf("contributions of %d components at %d levels: want at least one of each", len(p.Components), len(p.Tail))
	}
	switch p.Variation {
	case "", Paper, Population, Sample:
	default:
		return trimtab.Invalidf("variation %.40q: want %s, %s or %s", p.Variation, Paper, Population, Sample)
	}
	known := map[string]bool{}
	for i, s := range p.Components {
		if s.Name == "" || known[s.Name] {
			return trimtab.Invalidf("component %d: name %.60q: want one of its own", i, s.Name)
		}
		known[s.Name] = true
		if err := p.series("sojourn of "+s.Name, s.Sojourn); err != nil {
			return err
		}
	}
	if err := p.series("tail", p.Tail); err != nil {
		return err
	}
	if err := p.validLoads(known); err != nil {
		return err
	}
	return validPaths(p.Paths, known)
}

// series checks that v has one valid value for each level.
func (p *Profile) series(what string, v []float64) error {
	if len(v) != len(p.Tail) {
		return trimtab.Invalidf("%.80s: %d values, tail has %d", what, len(v), len(p.Tail))
	}
	for j, x := range v {
		if !(x >= 0 && x <= greatest) {
			return trimtab.Invalidf("%.80s: level %d: %v: want 0 to %g", what, j, x, greatest)
		}
	}
	return nil
}

func (p *Profile) validLoads(known map[string]bool) error {
	if len(p.Loads) > 0 || len(p.CoV) > 0 {
		if err := p.series("loads", p.Loads); err != nil {
			return err
		}
	}
	for name, v := range p.CoV {
		if !known[name] {
			return trimtab.Invalidf("cov: unknown component %.60q", name)
		}
		if err := p.series("cov of "+name, v); err != nil {
			return err
		}
	}
	return nil
}

func validPaths(paths [][]string, known map[string]bool) error {
	for i, path := range paths {
		seen := map[string]bool{}
		for _, name := range path {
			if !known[name] || seen[name] {
				return fmt.Errorf("path %d: %w", i, trimtab.Invalidf("component %.60q: want known ones, each once", name))
			}
			seen[name] = true
		}
	}
	return nil
}
