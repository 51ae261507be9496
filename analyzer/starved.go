package analyzer

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn/declared"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/quantity"
)

// The kernel's measurements count if requests say nothing, or not everything: no span covers the
// wait before it begins, in an accept queue or an event loop, and a service that answers nothing
// sends no spans. A workload is starved while it uses all that it has and has to wait, and idle
// while nothing is asked of it:
//
//	waits      throttled >= 0.9, or waited >= 4 use and waited >= load · latency,
//	           or queued >= 5, and throttled >= 0.5 or waited >= use
//	starved    use >= 0.9 of its allocation and it waits, for at least 3 s; it ends after 3 s
//	           without that, or once it surely does not wait: throttled is measured as < 0.1,
//	           and nothing else shows a wait
//	idle       load is measured as 0, and use <= 0.02 cores of each instance over the last minute;
//	           or load alone for RestAfter, where use is not measured
//
// waited is the number of seconds per second for which its threads waited for a CPU, added up over
// all threads. queued is the number of connections that wait to be accepted.
//
// A window is undecided if the workload uses all that it has, and something that might show a wait
// was not measured although it was recently. It neither adds to starvation nor ends it, for at most
// 10 s.
//
// With a CPU that is used to 90%, a thread waits several times as long as it runs, and requests may
// still be in time: so all requests together must have waited longer than the latency limit of the
// SLO. Connections also wait for a single-threaded service that has all the CPU time that it can
// use: they only count if something kept it from a CPU.

const (
	// stoppedNearly is the fraction of throttled periods that counts as nearly all, stoppedOften as
	// many, stoppedSeldom as hardly any.
	stoppedNearly, stoppedOften, stoppedSeldom = 0.9, 0.5, 0.1
	// fewQueued is a number of waiting connections that is not due to chance. waitsLonger is how
	// many times longer than they run threads wait if they are kept from a CPU.
	fewQueued, waitsLonger = 5, 4
	// starvedLeast is the least time after which a workload counts as starved, or no longer so.
	// maxStarved is the longest time that is counted. maxUntold is for how long in a row it may be
	// unknown whether the workload waits.
	starvedLeast, maxStarved, maxUnreported = 3 * time.Second, 10 * time.Minute, 10 * time.Second
	// idleFor is how long a workload must be idle, each instance using at most idleCores, which is what
	// an idle runtime uses.
	idleFor   = time.Minute
	idleCores = 0.02
	// hungry is the guess by which fraction of its allocation a workload needs more for each second
	// that it is starved, and mostHungry the largest fraction.
	hungry, mostHungry = 0.1, 0.5
)

// Fallbacks that need no declaration: see standIn.
const (
	ByStarvation = "starvation"
	ByIdleness   = codes.ByIdleness
)

// mayWait returns for how many seconds per second all arriving requests may wait in total without
// missing the SLO.
func (w *workload) mayWait() float64 {
	if w.last.Load == nil {
		return 0
	}
	return *w.last.Load * w.spec.SLO.Latency.Seconds()
}

// waits reports whether the workload had to wait in a window, however large its allocation.
func (u *used) waits(may float64) bool {
	return u.throttled >= stoppedNearly || u.kept(may) ||
		u.queued >= fewQueued && (u.throttled >= stoppedOften || u.waited > 0 && u.waited >= u.cores)
}

// kept reports whether threads waited for a CPU in a window for much longer than they ran, and for
// longer in total than the SLO allows all requests.
func (u *used) kept(may float64) bool {
	return u.waited > 0 && u.waited >= waitsLonger*u.cores && u.waited >= may
}

// starving reports whether the workload used its whole allocation (had) in a window, and had to
// wait.
func (u *used) starving(may float64, held *allocation) (had float64, yes bool) {
	if !u.waits(may) {
		return 0, false
	}
	f := held.during(u.from, u.to, 0)
	return f.Mean, f.Known && !f.Amount.Unlimited && u.cores >= 0.9*f.Mean
}

// unreported reports whether a window is undecided: the workload may have used all that it had, nothing
// shows a wait, and a measurement that usually comes (a bit in usually) is missing.
func (u *used) unreported(usually uint8, may float64, held *allocation) bool {
	f := held.during(u.from, u.to, 0)
	return !f.Known || !f.Amount.Unlimited && u.cores >= 0.9*f.Mean && u.known&usually != usually && !u.waits(may)
}

// calm reports whether hardly any period of a window was throttled, by measurement.
func (u *used) calm() bool { return u.known&knowsStops != 0 && u.throttled < stoppedSeldom }

// starved returns for how long the workload has been starved, up to the newest sample, and its
// allocation during that time; 0: it is not.
func (w *workload) starved(now time.Time) (long time.Duration, had float64) {
	all, may := w.queueing.used, w.mayWait()
	n := len(all)
	if n == 0 || now.Sub(all[n-1].to) > w.samples.staleAfter(quantity.Usage) {
		return 0, 0
	}
	// row is the length of the current run of starved windows, from the newest window backwards.
	var row, rest, untold time.Duration
	begun, usually := false, uint8(0)
	for k := range all {
		usually |= all[k].reported
	}
	for k := n - 1; k >= 0; k-- {
		u := &all[k]
		length := u.to.Sub(u.from)
		if amount, yes := u.starving(may, &w.held); yes {
			long, row, rest, untold, had = long+length, row+length, 0, 0, math.Max(had, amount)
			begun = begun || row >= starvedLeast
			continue
		}
		if u.unreported(usually, may, &w.held) {
			if untold += length; untold > maxUnreported {
				break
			}
			continue
		}
		if rest, row = rest+length, 0; rest >= starvedLeast || u.calm() && !u.waits(may) {
			break
		}
	}
	if !begun {
		return 0, 0
	}
	return min(long, maxStarved), had
}

// idle reports whether a source outside the workload reports load 0, and it uses no CPU, as far as
// that is measured.
func (w *workload) idle(now time.Time) bool {
	since, n := w.samples.idle(now), len(w.queueing.used)
	switch {
	case since.IsZero() || now.Sub(since) < w.spec.RestAfter:
		return false
	case n == 0:
		return w.spec.RestAfter > 0
	case now.Sub(w.queueing.used[n-1].to) > w.samples.staleAfter(quantity.Usage):
		return false
	}
	to := w.queueing.used[n-1].to
	cores, known := w.queueing.use(to.Add(-idleFor), to)
	return known && cores <= idleCores*w.copies()
}

// copies returns the number of its instances, at least 1.
func (w *workload) copies() float64 { return float64(max(1, w.held.Instances())) }

// inferred returns a fallback from the kernel's measurements: a starved workload may be raised, and
// an idle one needs its minimum.
func (w *workload) inferred(now time.Time, hold *trimtab.Held) standIn {
	if w.curves.learner == nil || !(w.spec.Max > 0) {
		return standIn{}
	}
	name, amount := "", 0.0
	if hold != nil {
		if long, had := w.starved(now); long > 0 {
			name, amount = ByStarvation, had*(1+math.Min(hungry*long.Seconds(), mostHungry))
		}
	} else if (w.last.Performance == nil || w.loadToCome() == 0) && w.idle(now) {
		name, amount = ByIdleness, math.Max(w.spec.Min, idleCores)*w.copies()
	}
	d, load := declared.Demand{Amount: math.Min(amount, w.held.most()), Target: w.spec.Target}, 0.0
	if name == ByStarvation {
		load = w.loadToCome()
	}
	if name != "" && d.Validate() == nil {
		if c := d.Curve(load, w.spec.Min, w.held.most(), w.config.Level); c != nil {
			return standIn{name, c}
		}
	}
	return standIn{}
}

// starves adds to an estimate that the workload is starved. Requests that were answered before the
// starvation began say nothing of those that wait, and are removed.
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
	if now.Sub(w.last.PerfAt) > w.samples.lateAfter(quantity.Performance) {
		e.Performance, e.Requests, e.Latency = nil, 0, nil
	}
	hold := *e.Hold
	hold.Text += fmt.Sprintf("; it uses all of its %.3g cores and waits", had)
	if wait := e.Waits(); wait != "" {
		hold.Text += ": " + wait
	}
	e.Hold = &hold
}

// noteWaits adds a note on a workload that is not starved, but whose connections wait or whose
// threads are kept from the CPUs. It is unknown here who uses these CPUs.
func (w *workload) noteWaits(e *trimtab.Estimate) {
	if e.Starved > 0 || len(e.Notes) >= trimtab.MaxNotes {
		return
	}
	all, may := w.queueing.used, w.mayWait()
	var long time.Duration
	for k := len(all) - 1; k >= 0 && long < starvedLeast && (all[k].known&knowsStops == 0 || all[k].calm()) && all[k].kept(may); k-- {
		long += all[k].to.Sub(all[k].from)
	}
	if long >= starvedLeast {
		u := &all[len(all)-1]
		of := ""
		if f := w.held.during(u.from, u.to, 0); f.Known && !f.Amount.Unlimited {
			of = fmt.Sprintf("of its %.3g ", f.Mean)
		}
		e.Notes = append(e.Notes, fmt.Sprintf("it gets %.3g %scores: its threads wait for a CPU, and trimtab sees no quota that stops it", u.cores, of))
		return
	}
	if wait := e.Waits(); wait != "" && len(all) > 0 && all[len(all)-1].queued >= fewQueued {
		e.Notes = append(e.Notes, wait)
	}
}
