package arma

import (
	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast/conformal"
)

const (
	// window is how many reports the coefficients are fitted to.
	window = 512
	// every is how many reports lie between refits.
	every = 32
)

// Model is the point forecast; the zero value has seen nothing.
type Model struct{ state state }

// state is all that a snapshot holds.
type state struct {
	Since  int    `json:"since"` // reports since the last refit
	Filter filter `json:"filter"`
}

var _ conformal.Model = (*Model)(nil)

// Name returns "arma(1,1)".
func (m *Model) Name() string { return "arma(1,1)" }

// See reads the latest of recent.
func (m *Model) See(recent []float64) {
	s := &m.state
	if s.Since++; s.Since >= every || len(recent) == every/2 {
		s.Since = 0
		s.Filter.refit(recent[max(0, len(recent)-window):])
	}
	s.Filter.step(recent[len(recent)-1])
}

// Skip changes nothing: the next report counts as the one after the last.
func (m *Model) Skip(int) {}

// Ready is true after the first report.
func (m *Model) Ready() bool { return m.state.Filter.Seen > 0 }

// Path returns the highest and the mean of the expected next h reports.
func (m *Model) Path(h int) (high, mean float64) { return m.state.Filter.path(h) }

// Clone returns a copy.
func (m *Model) Clone() conformal.Model { c := *m; return &c }

// State is for snapshots.
func (m *Model) State() any { return &m.state }

// Check refuses coefficients out of their bounds.
func (m *Model) Check() error {
	if f := &m.state.Filter; !f.stable() || m.state.Since < 0 {
		return trimtab.Invalidf("arma: coefficients %v, %v", f.Phi, f.Theta)
	}
	return nil
}
