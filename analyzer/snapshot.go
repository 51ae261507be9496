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

// snapshotKind is the version of the format of a workload's state.
const snapshotKind = "learn/1"

// saved is the state of one workload that outlives the process.
type saved struct {
	Workload string `json:"workload"`
	// Closed is the number of the last closed interval of length ReportNS, so that nothing is
	// learned twice.
	Closed   int64  `json:"closed"`
	ReportNS int64  `json:"report_ns"`
	Learner  string `json:"learner,omitempty"`
	Curve    []byte `json:"curve,omitempty"`
	Proxy    []byte `json:"proxy,omitempty"`
	// Fixed is the curve for a fixed quota.
	Fixed []byte `json:"fixed,omitempty"`
	// Others has the further resources by name.
	Others     map[string]savedAxis `json:"others,omitempty"`
	Forecaster string               `json:"forecaster,omitempty"`
	Load       []byte               `json:"load,omitempty"`
	// Versions are the versions that the curve was learned from.
	Versions []string `json:"versions,omitempty"`
	// Queue is the state of the queue's model.
	Queue *savedQueue `json:"queue,omitempty"`
	// Recent are the latest rates, with which the next one is averaged.
	Recent []rate `json:"recent,omitempty"`
	// Loads are the loads of the instances: without them all would count as serving the same load
	// after a restart.
	Loads []report.SavedLoad `json:"loads,omitempty"`
	// Contributions has the load levels from which contributions to the tail are computed.
	Contributions *contribution.State `json:"contributions,omitempty"`
	// Observed is the summary of a discovered workload.
	Observed *observed `json:"observed,omitempty"`
	// Memory is what was learnt of the memory of instances.
	Memory []savedMemory `json:"memory,omitempty"`
	// Application is the state of the application of which the workload is the entry.
	Application *savedApplication `json:"application,omitempty"`
}

// savedQueue is the state of a queue that outlives the process: its model, and the sums whose ratio
// is the cost of a request.
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

// Snapshot returns the state of each workload that has reports, by name.
func (a *Analyzer) Snapshot() map[string][]byte {
	out := map[string][]byte{}
	for _, name := range a.States() {
		if b, ok := a.State(name); ok {
			out[name] = b
		}
	}
	return out
}

// States returns the names of the workloads that have reports.
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
	s := saved{Workload: w.spec.Name, Closed: w.intervals.closed, ReportNS: int64(w.config.Report), Recent: w.expected.recent, Queue: w.queueing.save(), Loads: w.samples.join.Save(), Observed: w.observed, Memory: w.memories.save()}
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

// Restore restores the state of the workload of that name. A learner or forecaster of another
// version starts anew, and so do loads of another interval.
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

// load restores s. After an error the caller must call begin.
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
	if err == nil {
		err = w.memories.restore(s.Memory)
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
