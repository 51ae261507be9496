package bintree

import (
	"fmt"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/walk"
)

const (
	// maxBins bounds the leaves; when one more is needed, siblings merge.
	maxBins = 96
	// finest is the depth to start with: cells of 1/32 octave, 2.2% of a/l.
	finest = 5
	// maxReports is how many reports a bin remembers; further ones fade the others a little, so
	// that slow drift is followed.
	maxReports = 512
)

// Tree is the learner; make one with [New]. It implements learn.Learner.
type Tree struct {
	learn.Plain

	level, z float64
	state    state
	fit      fit
}

// state is all that a snapshot holds.
type state struct {
	Level float64   `json:"level"`
	Mode  walk.Mode `json:"mode,omitempty"`
	Depth int       `json:"depth"`
	Bins  []bin     `json:"bins,omitempty"`
	Watch watch     `json:"watch"`
}

var _ learn.Learner = (*Tree)(nil)

// New returns an empty learner whose bounds hold at the given level in (0, 1).
func New(level float64) (*Tree, error) {
	if !(level > 0 && level < 1) {
		return nil, trimtab.Invalidf("make bintree: level %v: want a number in (0, 1)", level)
	}
	return &Tree{level: level, z: math.Sqrt2 * math.Erfinv(level), state: state{Level: level, Depth: finest}}, nil
}

// Name returns "bintree/1".
func (t *Tree) Name() string { return "bintree/1" }

// Reports returns how many reports the bins hold; forgetting lowers it.
func (t *Tree) Reports() int {
	n := 0.0
	for i := range t.state.Bins {
		n += t.state.Bins[i].N
	}
	return int(math.Round(n))
}

// Changes returns how often the change test made the learner forget.
func (t *Tree) Changes() int { return t.state.Watch.Changes }

// Observe reads one report. A load of 0 shows nothing about a/l: such a report is accepted and
// not kept. The first report decides whether the performance is a fraction of requests, a number
// with declared noise, or one without; later ones that say less count with the typical weight.
// Only a number over 1 after fractions makes the learner start again.
func (t *Tree) Observe(o learn.Observation) error {
	if err := o.Validate(); err != nil {
		return fmt.Errorf("observe: %w", err)
	}
	if o.Load == 0 {
		return nil
	}
	if s := &t.state; s.Mode == "" || s.Mode == walk.Fraction && o.Performance > 1 && o.Requests == 0 {
		t.state = state{Level: t.level, Mode: walk.ModeOf(o), Depth: finest}
		t.fit = fit{}
	}
	r := walk.ReportOf(t.state.Mode, o, t.state.Bins, func(b *bin) *walk.Moments { return &b.Moments })
	if again := t.state.Watch.see(&t.fit, r); again != nil {
		t.state.Bins, t.state.Depth = nil, finest
		for _, old := range again {
			t.add(old)
		}
	} else {
		t.add(r)
	}
	t.refit()
	return nil
}

// add adds r to its bin, creating the bin if needed.
func (t *Tree) add(r walk.Report) {
	s := &t.state
	leaf := bin{Cell: cellOf(r.X, s.Depth), Moments: walk.One(r)}
	i, found := slices.BinarySearchFunc(s.Bins, leaf.Cell, func(b bin, cell int) int { return b.Cell - cell })
	if found {
		b := &s.Bins[i]
		if b.N > maxReports-1 {
			b.Fade((maxReports - 1) / b.N)
		}
		b.Merge(&leaf.Moments)
		return
	}
	s.Bins = slices.Insert(s.Bins, i, leaf)
	for len(s.Bins) > maxBins {
		s.coarsen()
	}
}

// cellOf is the index of x among cells of 2^-depth octaves.
func cellOf(x float64, depth int) int { return int(math.Floor(math.Ldexp(x, depth))) }

// coarsen goes up one level of the tree: siblings become their parent.
func (s *state) coarsen() {
	s.Depth--
	kept := s.Bins[:0]
	for _, b := range s.Bins {
		b.Cell >>= 1
		if n := len(kept); n > 0 && kept[n-1].Cell == b.Cell {
			kept[n-1].Merge(&b.Moments)
			continue
		}
		kept = append(kept, b)
	}
	s.Bins = kept
}

func (t *Tree) refit() {
	t.fit.update(t.state.Mode, t.state.Bins, t.state.Watch.Factor(), t.z)
}

// Predict returns the band at the given allocation and load.
func (t *Tree) Predict(allocation, load float64) trimtab.Band {
	return t.fit.predict(allocation, load)
}
