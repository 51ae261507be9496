package gp

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/walk"
)

// Process is the learner; make one with [New].
type Process struct {
	level, z float64
	state    state
	fit      fit
}

// state is all that a snapshot holds.
type state struct {
	Level float64   `json:"level"`
	Mode  walk.Mode `json:"mode,omitempty"`
	Bins  []bin     `json:"bins,omitempty"`
	Watch watch     `json:"watch"`
}

var _ learn.Learner = (*Process)(nil)

// New returns an empty learner whose bounds hold at the given level in (0, 1).
func New(level float64) (*Process, error) {
	if !(level > 0 && level < 1) {
		return nil, trimtab.Invalidf("make gp: level %v: want a number in (0, 1)", level)
	}
	return &Process{level: level, z: math.Sqrt2 * math.Erfinv(level), state: state{Level: level}}, nil
}

// Name returns "gp/1".
func (p *Process) Name() string { return "gp/1" }

// Reports returns how many reports the bins hold; forgetting lowers it.
func (p *Process) Reports() int {
	n := 0.0
	for i := range p.state.Bins {
		n += p.state.Bins[i].N
	}
	return int(math.Round(n))
}

// Changes returns how often the change test made the learner forget.
func (p *Process) Changes() int { return p.state.Watch.Changes }

// Falls reports whether, somewhere in the visited range, more resource makes
// the performance worse beyond doubt; the mean falls there.
func (p *Process) Falls() bool { return p.fit.falls }

// Observe reads one report. A load of 0 shows nothing about a/l: such a report is accepted and
// not kept. The first report decides whether the performance is a fraction of requests, a number
// with declared noise, or one without; later ones that say less count with the typical weight.
// Only a number over 1 after fractions makes the learner start again.
func (p *Process) Observe(o learn.Observation) error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	if o.Load == 0 {
		return nil
	}
	s := &p.state
	if s.Mode == "" || s.Mode == walk.Fraction && o.Performance > 1 && o.Requests == 0 {
		*s = state{Level: p.level, Mode: walk.ModeOf(o)}
		p.fit.clear()
	}
	r, changed := walk.ReportOf(s.Mode, o, s.Bins, func(b *bin) *walk.Moments { return &b.Moments }), everything
	if again := s.Watch.see(&p.fit, r); again != nil {
		s.Bins = s.Bins[:0]
		for _, v := range again {
			s.add(v.Report)
		}
	} else {
		changed = s.add(r)
	}
	if len(s.Watch.Now) == 0 {
		for i := range s.Bins {
			s.Bins[i].Fresh = 0
		}
	}
	p.refit(changed)
	return nil
}

func (p *Process) refit(changed int) { p.fit.update(&p.state, p.z, changed) }

// asGuess is as how many reports the curve of a former version counts.
const asGuess = 12

// Revise says that another version runs from now on. What was learnt stays as a guess: all of it
// counts as a round of reports at most.
func (p *Process) Revise() {
	s := &p.state
	n := 0.0
	for i := range s.Bins {
		n += s.Bins[i].N
	}
	for i := range s.Bins {
		s.Bins[i].Fade(min(1, asGuess/n))
	}
	s.Watch.calm()
	if len(s.Bins) > 0 {
		p.refit(everything)
	}
}

// Predict returns the band at the given allocation and load.
func (p *Process) Predict(allocation, load float64) trimtab.Band {
	return p.fit.predict(allocation, load)
}

// Bends returns the allocations at which the curve bends under the given load.
func (p *Process) Bends(load float64) []float64 { return p.fit.bends(load) }
