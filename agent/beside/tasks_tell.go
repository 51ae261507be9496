package beside

import (
	"context"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/placed"
	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/planner/throttle"
)

// tell updates the counts, and publishes this host's state: at once if an attempt changed, else
// every few seconds. The kind is shed: the next message contains the same and more.
func (h *taskHost) tell(ctx context.Context, _ time.Time, _ throttle.Decision) {
	h.show()
	now, m := h.clock(), h.machine()
	said := signature(m)
	if said == h.told && now-h.toldAt < tellMachine {
		return
	}
	h.told, h.toldAt = said, now
	m.Report = h.ledger.Report(h.clock())
	m.Epoch, m.Sequence = h.ledger.Newest()
	if err := h.publish(ctx, m.Brief()); err != nil && ctx.Err() == nil {
		h.logger.Debug("tell of speculative tasks", "err", err)
	}
}

// signature changes when the state must be published at once. The receipt of a list is not part
// of it, since lists answer reports.
func signature(m *trimtab.Machine) string {
	var b strings.Builder
	for i := range m.Attempts {
		a := &m.Attempts[i]
		b.WriteString(a.AttemptID.String() + " " + string(a.State) + " " + string(a.Class) + "\n")
	}
	return b.String()
}

// machine returns the report, without its number.
func (h *taskHost) machine() *trimtab.Machine {
	now := h.clock()
	m := &trimtab.Machine{Host: h.host, Pool: h.pool, Time: time.Now().Round(0).UTC(), Life: h.life, Load: map[string]float64{}, Capacity: map[string]float64{},
		Blocked: string(h.decision.Blocked), Attempts: []trimtab.Attempt{}}
	for name, l := range h.loads.levels {
		m.Load[name], m.Capacity[name] = max(0, l.Used), l.Capacity
	}
	m.CPI, m.MPKI = h.signals.Means(now, "")
	m.Signals = h.signals.Shown(now)
	for _, a := range h.ledger.Attempts() {
		t := h.attempt(&a)
		switch {
		case t.State == trimtab.AttemptQueued:
			m.Waiting++
		case t.State != trimtab.AttemptRunning && t.State != trimtab.AttemptFrozen:
		case t.Class == trimtab.RegularTask:
			m.Regular++
		default:
			m.Running++
		}
		m.Attempts = append(m.Attempts, t)
	}
	return m
}

// attempt returns the report of one attempt. One that is being started counts as queued: it may
// yet be refused.
func (h *taskHost) attempt(a *placed.Attempt) trimtab.Attempt {
	i := h.infos[a.AttemptID]
	t := trimtab.Attempt{AttemptID: a.AttemptID, Class: a.Class, Reason: a.Why}
	switch a.State {
	case placed.Queued:
		t.State = trimtab.AttemptQueued
		return t
	case placed.Refused:
		t.State = trimtab.AttemptRefused
		return t
	case placed.Ended:
		t.State, t.LastLines = trimtab.AttemptEnded, i.LastLines
	case placed.Running:
		switch i.State {
		case "", task.Starting:
			t.State = trimtab.AttemptQueued
			return t
		case task.Frozen:
			t.State = trimtab.AttemptFrozen
		default:
			t.State = trimtab.AttemptRunning
		}
	}
	if a.State == placed.Running {
		t.LastLines = fewLines(i.LastLines)
	}
	t.Started, t.Ended, t.Outcome, t.Code, t.Problem, t.Output = i.Started, i.Ended, string(i.Outcome), i.Code, i.Problem, i.Output
	if i.Class != "" {
		t.Class = trimtab.TaskClass(i.Class)
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

// fewLines are the last of some lines.
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

// show counts what was decided.
func (h *taskHost) show() {
	m := h.machine()
	frozen := 0
	for i := range m.Attempts {
		if m.Attempts[i].State == trimtab.AttemptFrozen {
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
	if h.decision.Blocked != "" {
		blocked = 1
	}
	h.metrics.Gauge("trimtab_speculate_blocked", h.host).Set(blocked)
	h.showSignals(m.Signals)
	c := h.policy.Counts()
	for _, of := range []struct {
		name        string
		now, before uint64
	}{
		{"anomaly", c.Anomalies, h.counts.Anomalies}, {"noise", c.Noise, h.counts.Noise}, {"not ours", c.NotOurs, h.counts.NotOurs}, {"accused", c.Accusations, h.counts.Accusations},
		{"guilty", c.Proofs + c.Joint, h.counts.Proofs + h.counts.Joint}, {"innocent", c.FalseAccusations, h.counts.FalseAccusations}, {"undecided", c.Undecided, h.counts.Undecided},
	} {
		h.metrics.Counter("trimtab_speculate_verdicts_total", h.host, of.name).Add(float64(of.now - of.before))
	}
	h.counts = c
	for _, e := range h.decision.Events {
		if e.Kind != throttle.Noise {
			h.logger.Info("speculative tasks", "event", string(e.Kind), "task", e.Task, "workload", e.Victim, "signal", e.Signal, "samples", e.Samples)
		}
	}
}

// showSignals exports the signals as metrics, of the worst instance of each workload, and drops
// those that are no longer reported.
func (h *taskHost) showSignals(all []trimtab.ServiceSignal) {
	now := map[shownSignal]float64{}
	worst := func(name string, s *trimtab.ServiceSignal, v float64) {
		k := shownSignal{name, s.Workload, s.Signal}
		now[k] = max(v, now[k])
	}
	for i := range all {
		s := &all[i]
		if s.Boundary > 0 {
			worst("trimtab_speculate_signal_ratio", s, s.Value/s.Boundary)
		}
		if rate, known := s.FalseAlarmRate(); known {
			worst("trimtab_speculate_false_alarms_ratio", s, rate)
		}
		if s.Distance != nil {
			worst("trimtab_speculate_fit_distance", s, *s.Distance)
		}
	}
	for old := range h.shownSignals {
		if _, still := now[old]; !still {
			h.metrics.Forget(old.metric, h.host, old.workload, old.signal)
			delete(h.shownSignals, old)
		}
	}
	for k, v := range now {
		h.metrics.Gauge(k.metric, h.host, k.workload, k.signal).Set(v)
		h.shownSignals[k] = true
	}
}

// shownSignal is one series.
type shownSignal struct{ metric, workload, signal string }
