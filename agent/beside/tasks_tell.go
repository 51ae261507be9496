package beside

import (
	"context"
	"strings"
	"time"

	"github.com/trimtab/trimtab/actuator/placed"
	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/planner/throttle"
	"github.com/trimtab/trimtab/speculation"
)

// tell updates the metrics, and publishes this host's state: at once if an attempt changed, else
// every few seconds. A message may be lost; the next one contains the whole state again.
func (h *taskHost) tell(ctx context.Context, _ time.Time, d throttle.Decision) {
	now, m := h.clock(), h.machine(d.Blocked)
	h.show(m, d.Events)
	said := signature(m)
	if said == h.shown.said && now-h.shown.at < tellMachine {
		return
	}
	h.shown.said, h.shown.at = said, now
	m.Report = h.ledger.Report(h.clock())
	m.Epoch, m.Sequence = h.ledger.Newest()
	if err := h.publish(ctx, m.Brief()); err != nil && ctx.Err() == nil {
		h.logger.Debug("tell of speculative tasks", "err", err)
	}
}

// signature returns a text that changes whenever the state must be published at once. It leaves out
// which list was received last, since the planner's lists answer reports.
func signature(m *speculation.Machine) string {
	var b strings.Builder
	for i := range m.Attempts {
		a := &m.Attempts[i]
		b.WriteString(a.AttemptID.String() + " " + string(a.State) + " " + string(a.Class) + "\n")
	}
	return b.String()
}

// machine builds the report, without its number.
func (h *taskHost) machine(blocked throttle.Reason) *speculation.Machine {
	now := h.clock()
	m := &speculation.Machine{Host: h.host, Pool: h.pool, Time: time.Now().Round(0).UTC(), Life: h.life, Load: map[string]float64{}, Capacity: map[string]float64{},
		Blocked: string(blocked), Attempts: []speculation.Attempt{}}
	for name, l := range h.loads.levels {
		m.Load[name], m.Capacity[name] = max(0, l.Used), l.Capacity
	}
	m.CPI, m.MPKI = h.signals.Means(now, "")
	m.Signals = h.signals.Shown(now)
	for _, a := range h.ledger.Attempts() {
		t := h.attempt(&a)
		switch {
		case t.State == speculation.AttemptQueued:
			m.Waiting++
		case t.State != speculation.AttemptRunning && t.State != speculation.AttemptFrozen:
		case t.Class == speculation.RegularTask:
			m.Regular++
		default:
			m.Running++
		}
		m.Attempts = append(m.Attempts, t)
	}
	return m
}

// attempt builds the report of one attempt. An attempt that is being started is reported as queued,
// since the host may still refuse it.
func (h *taskHost) attempt(a *placed.Attempt) speculation.Attempt {
	i := h.known.infos[a.AttemptID]
	t := speculation.Attempt{AttemptID: a.AttemptID, Class: a.Class, Reason: a.Why}
	switch a.State {
	case placed.Queued:
		t.State = speculation.AttemptQueued
		return t
	case placed.Refused:
		t.State = speculation.AttemptRefused
		return t
	case placed.Ended:
		t.State, t.LastLines = speculation.AttemptEnded, i.LastLines
	case placed.Running:
		switch i.State {
		case "", task.Starting:
			t.State = speculation.AttemptQueued
			return t
		case task.Frozen:
			t.State = speculation.AttemptFrozen
		default:
			t.State = speculation.AttemptRunning
		}
	}
	if a.State == placed.Running {
		t.LastLines = fewLines(i.LastLines)
	}
	t.Started, t.Ended, t.Outcome, t.Code, t.Problem, t.Output = i.Started, i.Ended, string(i.Outcome), i.Code, i.Problem, i.Output
	if i.Class != "" {
		t.Class = speculation.TaskClass(i.Class)
	}
	if i.Reason != "" {
		t.Reason = i.Reason
	}
	t.Progress = progressOf(i)
	return t
}

// How much of the last output of a running task is reported: the rest follows when it has ended.
const (
	fewLastLines = 5
	fewLastBytes = 1 << 10
)

// fewLines returns the last lines.
func fewLines(lines []string) []string {
	from, bytes := len(lines), 0
	for from > max(0, len(lines)-fewLastLines) && bytes+len(lines[from-1]) <= fewLastBytes {
		from--
		bytes += len(lines[from])
	}
	return lines[from:]
}

// progressOf returns the fraction of a task that is done, as the task reports it; nil: not known.
func progressOf(i task.Info) *float64 {
	r := i.Progress
	if r == nil {
		return nil
	}
	var done float64
	switch {
	case r.Done != nil:
		done = *r.Done
	case r.Step != nil && r.Steps != nil && *r.Steps > 0:
		done = *r.Step / *r.Steps
	default:
		return nil
	}
	if !(done >= 0 && done <= 1) {
		return nil
	}
	return &done
}

// show updates the metrics of decisions.
func (h *taskHost) show(m *speculation.Machine, events []throttle.Event) {
	frozen := 0
	for i := range m.Attempts {
		if m.Attempts[i].State == speculation.AttemptFrozen {
			frozen++
		}
	}
	for state, n := range map[string]int{"waiting": m.Waiting, "running": m.Running - frozen, "frozen": frozen, "regular": m.Regular} {
		h.metrics.Gauge("trimtab_speculate_tasks", h.host, state).Set(float64(n))
	}
	for name, l := range h.loads.levels {
		if l.Capacity > 0 {
			h.metrics.Gauge("trimtab_speculate_load_ratio", h.host, name).Set(l.Used / l.Capacity)
		}
	}
	blocked := 0.0
	if m.Blocked != "" {
		blocked = 1
	}
	h.metrics.Gauge("trimtab_speculate_blocked", h.host).Set(blocked)
	h.shown.show(m.Signals, h.host, h.metrics)
	c, before := h.policy.Counts(), &h.shown.counts
	for _, of := range []struct {
		name        string
		now, before uint64
	}{
		{"anomaly", c.Anomalies, before.Anomalies}, {"noise", c.Noise, before.Noise}, {"not ours", c.NotOurs, before.NotOurs}, {"accused", c.Accusations, before.Accusations},
		{"guilty", c.Proofs + c.Joint, before.Proofs + before.Joint}, {"innocent", c.FalseAccusations, before.FalseAccusations}, {"undecided", c.Undecided, before.Undecided},
	} {
		h.metrics.Counter("trimtab_speculate_verdicts_total", h.host, of.name).Add(float64(of.now - of.before))
	}
	h.shown.counts = c
	for _, e := range events {
		if e.Kind != throttle.Noise {
			h.logger.Info("speculative tasks", "event", string(e.Kind), "task", e.Task, "workload", e.Victim, "signal", e.Signal, "samples", e.Samples)
		}
	}
}

// shown has what was published and counted last.
type shown struct {
	said    string // see signature
	at      time.Duration
	counts  throttle.Counts
	signals map[shownSignal]bool // the existing series
}

// show sets the metrics of signals to those of the worst copy of each workload, and deletes series
// that are no longer reported.
func (s *shown) show(all []speculation.ServiceSignal, host string, metrics *metric.Set) {
	now := map[shownSignal]float64{}
	worst := func(name string, of *speculation.ServiceSignal, v float64) {
		k := shownSignal{name, of.Workload, of.Signal}
		now[k] = max(v, now[k])
	}
	for i := range all {
		of := &all[i]
		if of.Boundary > 0 {
			worst("trimtab_speculate_signal_ratio", of, of.Value/of.Boundary)
		}
		if rate, known := of.FalseAlarmRate(); known {
			worst("trimtab_speculate_false_alarms_ratio", of, rate)
		}
		if of.Distance != nil {
			worst("trimtab_speculate_fit_distance", of, *of.Distance)
		}
	}
	for old := range s.signals {
		if _, still := now[old]; !still {
			metrics.Forget(old.metric, host, old.workload, old.signal)
			delete(s.signals, old)
		}
	}
	for k, v := range now {
		metrics.Gauge(k.metric, host, k.workload, k.signal).Set(v)
		s.signals[k] = true
	}
}

// shownSignal identifies one series.
type shownSignal struct{ metric, workload, signal string }
