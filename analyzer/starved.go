package analyzer

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn/declared"
)

// What the kernel tells of a workload counts where its requests tell nothing, or less than all:
// the wait before a span begins, in an accept queue or an event loop, is in nobody's span, and a
// service that answers nothing any more sends none. It is starved while it uses all that it has
// and is stopped in nearly all periods of its limit, and idle where nobody asks anything of it:
//
//	starved    throttled >= 0.9 and use >= 0.9 of what it has, for 3 s and longer
//	idle       load is measured as 0, and use <= 0.02 cores over the last minute

const (
	// stoppedNearly is the share of the periods of a limit that are nearly all.
	stoppedNearly = 0.9
	// starvedLeast is the least time in which a workload is starved, maxStarved the longest
	// that is counted: a few windows of use, and more than anybody waits.
	starvedLeast, maxStarved = 3 * time.Second, 10 * time.Minute
	// idleFor is how long a workload has been idle at least, with at most idleCores: what a
	// runtime uses that waits.
	idleFor   = time.Minute
	idleCores = 0.02
	// hungry is by what part of what it has a workload is guessed to need more for each second
	// that it starves, and mostHungry the most that is guessed.
	hungry, mostHungry = 0.1, 0.5
)

// Stand-ins that nobody declares: see standIn.
const (
	ByStarvation = "starvation"
	ByIdleness   = "no load"
)

// starved is for how long the workload has been starved, up to the newest sample, and what it
// had in that; 0: it is not.
func (w *workload) starved(now time.Time) (long time.Duration, had float64) {
	q := &w.queueing
	n := len(q.used)
	if n == 0 || now.Sub(q.used[n-1].to) > w.staleAfter(trimtab.Usage) {
		return 0, 0
	}
	for k := n - 1; k >= 0 && q.used[k].throttled >= stoppedNearly && w.stopped(q.used[k]); k-- {
		long += q.used[k].to.Sub(q.used[k].from)
		had = math.Max(had, w.during(q.used[k].from, q.used[k].to, 0).Mean)
	}
	if long < starvedLeast {
		return 0, 0
	}
	return min(long, maxStarved), had
}

// idle reports whether a source outside the workload measures no load of it, and it uses no CPU.
func (w *workload) idle(now time.Time) bool {
	s, m := w.samples[trimtab.Load], w.missing[trimtab.Load]
	if w.LoadFrom != FromPrometheus || s == nil || s.Value != 0 || now.Sub(s.Time) > w.staleAfter(trimtab.Load) || m != nil && m.Time.After(s.Time) {
		return false
	}
	n := len(w.queueing.used)
	if n == 0 || now.Sub(w.queueing.used[n-1].to) > w.staleAfter(trimtab.Usage) {
		return false
	}
	to := w.queueing.used[n-1].to
	cores, known := w.queueing.use(to.Add(-idleFor), to)
	return known && cores <= idleCores
}

// inferred stands in for what is missing where the kernel tells enough: a workload that starves
// may be raised, and one that is idle needs its least.
func (w *workload) inferred(now time.Time, hold *trimtab.Held) standIn {
	if w.learner == nil || !(w.Max > 0) {
		return standIn{}
	}
	name, amount := "", 0.0
	if long, had := w.starved(now); hold != nil && long > 0 {
		name, amount = ByStarvation, had*(1+math.Min(hungry*long.Seconds(), mostHungry))
	} else if hold == nil && w.last.Performance == nil && w.idle(now) {
		name, amount = ByIdleness, math.Max(w.Min, idleCores)
	}
	if name == "" {
		return standIn{}
	}
	d := declared.Demand{Amount: math.Min(amount, w.most()), Target: w.Target}
	load := 0.0
	if l := w.forecastLoad(); l != nil && name == ByStarvation {
		load = l.Upper
	}
	if d.Validate() != nil {
		return standIn{}
	}
	if c := d.Curve(load, w.Min, w.most(), w.config.Level); c != nil {
		return standIn{name, c}
	}
	return standIn{}
}

// starves enters what the kernel tells of a workload's want. Requests that were answered before
// it began tell nothing of those that wait.
func (w *workload) starves(e *trimtab.Estimate, now time.Time) {
	long, had := w.starved(now)
	if long == 0 {
		return
	}
	e.Starved = trimtab.SecondsOf(long)
	if e.Hold == nil {
		return
	}
	e.Allocation = &had
	if now.Sub(w.last.PerfAt) > w.lateAfter(trimtab.Performance) {
		e.Performance, e.Requests, e.Latency = nil, 0, nil
	}
	hold := *e.Hold
	hold.Text += fmt.Sprintf("; it uses all of its %.3g cores and waits", had)
	e.Hold = &hold
}
