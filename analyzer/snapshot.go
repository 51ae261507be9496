package analyzer

import (
	"fmt"
	"math"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/contribution"
	"github.com/trimtab/trimtab/analyzer/learn/queue"
	"github.com/trimtab/trimtab/analyzer/report"
	"github.com/trimtab/trimtab/internal/num"
)

// snapshotKind names the form of a workload's state.
const snapshotKind = "learn/1"

// saved is the state of one workload that outlives the process.
type saved struct {
	Workload string `json:"workload"`
	// Closed is the number of the last closed interval of length ReportNS,
	// so that what was learnt is not learnt again.
	Closed   int64  `json:"closed"`
	ReportNS int64  `json:"report_ns"`
	Learner  string `json:"learner,omitempty"`
	Curve    []byte `json:"curve,omitempty"`
	Proxy    []byte `json:"proxy,omitempty"`
	// Fixed is the curve of a fixed quota.
	Fixed []byte `json:"fixed,omitempty"`
	// Others are the further resources, by name.
	Others     map[string]savedAxis `json:"others,omitempty"`
	Forecaster string               `json:"forecaster,omitempty"`
	Load       []byte               `json:"load,omitempty"`
	// Versions are those that the curve was learnt from.
	Versions []string `json:"versions,omitempty"`
	// Queue is what is known of the workload as a queue.
	Queue *savedQueue `json:"queue,omitempty"`
	// Recent are the rates that the next one is joined with.
	Recent []rate `json:"recent,omitempty"`
	// Loads are those of the instances: without them all would be taken to serve
	// alike after a restart.
	Loads []report.SavedLoad `json:"loads,omitempty"`
	// Contributions are the loads by which components are told to add to the tail.
	Contributions *contribution.State `json:"contributions,omitempty"`
	// Observed is what was seen of a discovered workload.
	Observed *observed `json:"observed,omitempty"`
	// Application is that of which the workload is the entry.
	Application *savedApplication `json:"application,omitempty"`
}

// savedQueue is what a restart must not forget of a queue: its model, and the work
// and the requests whose ratio is the cost of one.
type savedQueue struct {
	Model    queue.State `json:"model"`
	Work     float64     `json:"work"`
	Requests float64     `json:"requests"`
}

func (q *queueing) save() *savedQueue {
	if q.model == nil {
		return nil
	}
	return &savedQueue{q.model.State(), q.work, q.requests}
}

func (q *queueing) load(s *savedQueue) error {
	if q.model == nil || s == nil {
		return nil
	}
	for _, v := range []float64{s.Work, s.Requests} {
		if !(v >= 0) || math.IsInf(v, 0) {
			return trimtab.Invalidf("restore queue: %v core-seconds of %v requests", s.Work, s.Requests)
		}
	}
	if err := q.model.Restore(s.Model); err != nil {
		return err
	}
	q.work, q.requests = s.Work, s.Requests
	return nil
}

// Snapshot returns the state of each workload that reported, by its name.
func (a *Analyzer) Snapshot() map[string][]byte {
	out := map[string][]byte{}
	for _, name := range a.States() {
		if b, ok := a.State(name); ok {
			out[name] = b
		}
	}
	return out
}

// States returns the names of the workloads that reported.
func (a *Analyzer) States() []string {
	out := make([]string, 0, len(a.workloads))
	for _, w := range a.workloads {
		if w.intervals.begun {
			out = append(out, w.spec.Name)
		}
	}
	return out
}

// State returns the state of one workload.
func (a *Analyzer) State(name string) ([]byte, bool) {
	w := a.find(name)
	if w == nil || !w.intervals.begun {
		return nil, false
	}
	b, err := w.save()
	return b, err == nil
}

func (w *workload) save() ([]byte, error) {
	s := saved{Workload: w.spec.Name, Closed: w.intervals.closed, ReportNS: int64(w.config.Report), Recent: w.expected.recent, Queue: w.queueing.save(), Loads: w.samples.join.Save(), Observed: w.observed}
	if live := w.tail.live; live != nil {
		s.Contributions = live.State()
	}
	err := w.curves.save(&s)
	if w.app != nil && w.app.entry == w && err == nil {
		s.Application, err = w.app.save()
	}
	if f := w.expected.forecaster; f != nil && err == nil {
		s.Forecaster = f.Name()
		s.Load, err = f.Snapshot()
	}
	if err != nil {
		return nil, fmt.Errorf("save %s: %w", w.spec.Name, err)
	}
	return num.Seal(snapshotKind, s)
}

// Restore takes the state of the workload of that name. A learner or
// forecaster of another version, and loads at another interval, start anew.
func (a *Analyzer) Restore(name string, state []byte) error {
	var s saved
	if err := num.Unseal(snapshotKind, state, &s); err != nil {
		return fmt.Errorf("restore %s: %w: %w", name, trimtab.ErrInvalid, err)
	}
	if s.Workload != name {
		return trimtab.Invalidf("restore %s: state of %.40q", name, s.Workload)
	}
	w := a.find(name)
	if w == nil {
		w = a.discover(name)
	}
	if w == nil {
		return fmt.Errorf("restore %s: no such workload: %w", name, trimtab.ErrStale)
	}
	if err := w.load(&s); err != nil {
		w.begin()
		return fmt.Errorf("restore %s: %w", name, err)
	}
	return nil
}

// load takes s over; after an error w must begin anew.
func (w *workload) load(s *saved) error {
	err := w.curves.load(s)
	if w.app != nil && w.app.entry == w && err == nil {
		err = w.app.restore(s.Application)
	}
	if live := w.tail.live; live != nil && err == nil {
		err = live.Restore(s.Contributions)
	}
	if err == nil {
		err = w.queueing.load(s.Queue)
	}
	if err == nil {
		err = w.samples.join.Restore(s.Loads)
	}
	if w.observed != nil && s.Observed != nil && err == nil {
		if err = s.Observed.valid(); err == nil {
			w.observed = s.Observed
		}
	}
	if err != nil || s.ReportNS != int64(w.config.Report) {
		return err
	}
	if f := w.expected.forecaster; f != nil && s.Forecaster == f.Name() {
		if err := f.Restore(s.Load); err != nil {
			return err
		}
	}
	if len(s.Recent) > maxJoined {
		return trimtab.Invalidf("%d recent rates", len(s.Recent))
	}
	w.intervals.closed, w.intervals.begun, w.expected.recent = s.Closed, true, s.Recent
	return nil
}
