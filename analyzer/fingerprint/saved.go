package fingerprint

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/num"
)

// kind names the snapshot of a fingerprint.
const kind = "fingerprint/1"

// savedWorkload is what was learned, which outlives a process. Evidence of the last seconds does
// not.
type savedWorkload struct {
	CPI    savedIndicator `json:"cpi"`
	MPKI   savedIndicator `json:"mpki"`
	Alarms Rate           `json:"alarms"`
}

type savedIndicator struct {
	N           uint64         `json:"n"`
	Mean        float64        `json:"mean"`
	Log         float64        `json:"log"`
	Kept        []float32      `json:"kept"`
	Cells       map[int]spread `json:"cells"`
	Margin      float64        `json:"margin"`
	Next        uint64         `json:"next"`
	Fit         Fit            `json:"fit"`
	Fitted      bool           `json:"fitted"`
	PhaseAlarms Rate           `json:"phase_alarms"`
}

// Save returns a snapshot of what was learned.
func (w *Workload) Save() ([]byte, error) {
	return num.Seal(kind, savedWorkload{w.cpi.save(), w.mpki.save(), w.alarms})
}

// Restore returns a fingerprint that knows what was saved. The error is
// num.ErrSeal where the snapshot is damaged, trimtab.ErrInvalid where its numbers
// cannot be.
func Restore(snapshot []byte) (*Workload, error) {
	var s savedWorkload
	if err := num.Unseal(kind, snapshot, &s); err != nil {
		return nil, fmt.Errorf("restore fingerprint: %w", err)
	}
	w := New()
	if err := w.cpi.load(s.CPI); err != nil {
		return nil, fmt.Errorf("restore CPI: %w", err)
	}
	if err := w.mpki.load(s.MPKI); err != nil {
		return nil, fmt.Errorf("restore MPKI: %w", err)
	}
	w.alarms = s.Alarms
	return w, nil
}

func (i *Indicator) save() savedIndicator {
	s := savedIndicator{
		N: i.moments.n, Mean: i.moments.mean, Log: i.moments.log, Kept: i.keep.values, Cells: map[int]spread{},
		Margin: i.phases.margin, Next: i.next, Fit: i.fit, Fitted: i.fitted, PhaseAlarms: i.phaseAlarms,
	}
	for c, v := range i.phases.cell {
		if v.N > 0 {
			s.Cells[c] = v
		}
	}
	return s
}

// load fills in what was saved, if it can be.
func (i *Indicator) load(s savedIndicator) error {
	bounded := func(v ...float64) bool {
		for _, x := range v {
			if !(math.Abs(x) <= 1e12) {
				return false
			}
		}
		return true
	}
	d := s.Fit.Distribution
	if len(s.Kept) > kept || uint64(len(s.Kept)) > s.N || !bounded(s.Mean, s.Log, s.Margin, d.Shape, d.Scale, s.Fit.KS, s.Fit.Boundary) ||
		s.Margin < 0 || s.Margin > widest || s.N > 0 && s.Mean <= 0 || s.Fitted && (d.Family != i.family || d.Shape <= 0 || d.Scale <= 0) {
		return trimtab.Invalidf("%d windows of mean %v, %d kept, fit %+v", s.N, s.Mean, len(s.Kept), s.Fit)
	}
	for c, v := range s.Cells {
		if c < 0 || c >= cells || !(v.N > 0 && v.N <= most) || !bounded(float64(v.Mean), float64(v.Sum2)) || math.Abs(float64(v.Mean)) > 50 || v.Sum2 < 0 {
			return trimtab.Invalidf("phase %d: %+v", c, v)
		}
		i.phases.cell[c] = v
	}
	for _, x := range s.Kept {
		if !(x > 0 && x <= 1e7) {
			return trimtab.Invalidf("kept value %v", x)
		}
	}
	i.moments, i.keep.values = moments{s.N, s.Mean, s.Log}, s.Kept
	i.phases.margin, i.next, i.fit, i.fitted, i.phaseAlarms = s.Margin, s.Next, s.Fit, s.Fitted, s.PhaseAlarms
	return nil
}
