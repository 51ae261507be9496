package replay

import (
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/analyzer/learn"
)

// maxReports is the largest number of reports of one workload: two months at one every ten seconds.
const maxReports = 1 << 19

// report is one interval of a workload. Nil values are missing.
type report struct {
	at                            time.Time
	load, performance, allocation *float64
	// cost is the work of a request; nil: unknown. instances is how many instances served.
	cost      *float64
	instances int
}

// History has the record of each workload.
type History struct {
	config    analyzer.Config
	step      *analyzer.Analyzer
	workloads map[string]*workload
	learners  map[string]func() learn.Learner
}

// workload is the record of one workload.
type workload struct {
	hindsight learn.Learner
	reports   []report
	// counted says that performance is the share of a number of requests.
	counted bool
}

// New returns an empty history. c is the analyzer's configuration at the time
// of the recording; its learners learn in hindsight.
func New(c analyzer.Config) (*History, error) {
	h := &History{config: c, workloads: map[string]*workload{}, learners: map[string]func() learn.Learner{}}
	h.config.Workloads = slices.Clone(c.Workloads)
	h.config.Discover = false
	for i := range h.config.Workloads {
		w := &h.config.Workloads[i]
		if w.Learner == nil {
			continue
		}
		kept := &workload{hindsight: w.Learner()}
		h.workloads[w.Name], h.learners[w.Name] = kept, w.Learner
		w.Learner = func() learn.Learner { return tee{kept.hindsight, kept} }
	}
	return h, h.Begin()
}

// Begin starts a new analyzer, as the recorded process was restarted. Errors are those of the
// analyzer's configuration.
func (h *History) Begin() error {
	step, err := analyzer.New(h.config)
	h.step = step
	return err
}

// Step gives the analyzer one recorded call: a value, or nil for a tick.
func (h *History) Step(now time.Time, in trimtab.Value) {
	for _, v := range h.step.Step(now, in) {
		if e, ok := v.(*trimtab.Estimate); ok {
			h.take(e)
		}
	}
}

// take stores the report in an estimate.
func (h *History) take(e *trimtab.Estimate) {
	w := h.workloads[e.Workload]
	if w == nil || len(w.reports) >= maxReports {
		return
	}
	r := report{performance: e.Performance, allocation: e.Allocation, cost: e.Cost, instances: len(e.Shares)}
	for _, in := range e.Inputs {
		if in.Missing != "" || in.Name != "load" && in.Name != "performance" {
			continue
		}
		r.at = e.Time.Add(-in.Age.Duration()).Round(time.Millisecond)
		if in.Name == "load" {
			r.load = &in.Value
		}
	}
	if n := len(w.reports); r.at.IsZero() || n > 0 && !r.at.After(w.reports[n-1].at) {
		return
	}
	w.reports = append(w.reports, r)
}

// Workloads returns the names of the workloads that reported, in order.
func (h *History) Workloads() []string {
	var names []string
	for name, w := range h.workloads {
		if len(w.reports) > 0 {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// tee is a learner that also teaches the hindsight learner, which outlives the analyzer's.
type tee struct {
	learn.Learner
	of *workload
}

func (t tee) Observe(o learn.Observation) error {
	t.of.counted = t.of.counted || o.Requests > 0
	return t.Learner.Observe(o)
}

// Revise does nothing: the hindsight learner fits one curve to the whole recording.
func (tee) Revise() {}

// Snapshot and Restore do nothing: the hindsight learner reads the whole recording.
func (tee) Snapshot() ([]byte, error) { return nil, nil }

func (tee) Restore([]byte) error { return nil }
