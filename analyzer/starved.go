package analyzer

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn/declared"
	"github.com/trimtab/trimtab/quantity"
)

// What the kernel tells of a workload counts where its requests tell nothing, or less than all:
// the wait before a span begins, in an accept queue or an event loop, is in nobody's span, and a
// service that answers nothing any more sends none. It is starved while it uses all that it has
// and waits, and idle where nobody asks anything of it:
//
//	waits      throttled >= 0.9, or waited >= 4 use and waited >= load · latency,
//	           or queued >= 5, and throttled >= 0.5 or waited >= use
//	starved    use >= 0.9 of what it has and it waits, for 3 s and longer; until it did not for
//	           3 s, or surely does not: throttled is measured as < 0.1, and nothing else tells
//	           of a wait
//	idle       load is measured as 0, and use <= 0.02 cores over the last minute
//
// A window in which it uses all that it has, and in which something was not measured that was
// lately and might tell of a wait, neither adds to starvation nor ends it, for 10 s at most.
//
// where waited is for how many seconds of each second its threads waited for a CPU, all together,
// and queued how many connections wait to be accepted. A CPU that is used at 0.9 makes a thread
// wait for several times as long as it runs, and that may be in time: so all requests together must
// have waited longer than the latency of the SLO. Connections also wait for a service that has all
// the CPU time that it can use, with one thread: they count where something kept it from a CPU.

const (
	// stoppedNearly is the share of the periods of a limit that are nearly all, stoppedOften half,
	// stoppedSeldom next to none.
	stoppedNearly, stoppedOften, stoppedSeldom = 0.9, 0.5, 0.1
	// fewQueued are more connections than wait by chance while a service looks elsewhere, and
	// waitsLonger is how much longer than they run threads wait that are kept from a CPU.
	fewQueued, waitsLonger = 5, 4
	// starvedLeast is the least time in which a workload is starved, and after which it is no
	// more; maxStarved the longest that is counted: a few windows of use, and more than anybody
	// waits. maxUntold is for how long in a row it may be not known whether it waits.
	starvedLeast, maxStarved, maxUntold = 3 * time.Second, 10 * time.Minute, 10 * time.Second
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

// mayWait is for how many seconds of each second all requests that come may wait together.
func (w *workload) mayWait() float64 {
	if w.last.Load == nil {
		return 0
	}
	return *w.last.Load * w.spec.SLO.Latency.Seconds()
}

// waits reports whether work waited in a window, whatever the workload has.
func (u *used) waits(may float64) bool {
	return u.throttled >= stoppedNearly || u.kept(may) ||
		u.queued >= fewQueued && (u.throttled >= stoppedOften || u.waited > 0 && u.waited >= u.cores)
}

// kept reports whether threads waited for a CPU in a window for much longer than they ran, and for
// longer than all requests that come may take.
func (u *used) kept(may float64) bool {
	return u.waited > 0 && u.waited >= waitsLonger*u.cores && u.waited >= may
}

// starving reports whether the workload used all that it has in a window, and waited; had is what
// it had.
func (u *used) starving(may float64, held *allocation) (had float64, yes bool) {
	if !u.waits(may) {
		return 0, false
	}
	f := held.during(u.from, u.to, 0)
	return f.Mean, f.Known && !f.Amount.Unlimited && u.cores >= 0.9*f.Mean
}

// untold reports whether a window in which nothing tells of a wait lacks some of what is usually
// told, by its bits: the workload may have used all that it had.
func (u *used) untold(usually uint8, may float64, held *allocation) bool {
	f := held.during(u.from, u.to, 0)
	return !f.Known || !f.Amount.Unlimited && u.cores >= 0.9*f.Mean && u.known&usually != usually && !u.waits(may)
}

// calm reports whether a quota surely stopped the workload in next to no period of a window.
func (u *used) calm() bool { return u.known&knowsStops != 0 && u.throttled < stoppedSeldom }

// starved is for how long the workload has been starved, up to the newest sample, and what it
// had in that; 0: it is not.
func (w *workload) starved(now time.Time) (long time.Duration, had float64) {
	all, may := w.queueing.used, w.mayWait()
	n := len(all)
	if n == 0 || now.Sub(all[n-1].to) > w.samples.staleAfter(quantity.Usage) {
		return 0, 0
	}
	// row is how long it starved without a break, in the order from the newest window back.
	var row, rest, untold time.Duration
	begun, usually := false, uint8(0)
	for k := range all {
		usually |= all[k].told
	}
	for k := n - 1; k >= 0; k-- {
		u := &all[k]
		length := u.to.Sub(u.from)
		if amount, yes := u.starving(may, &w.held); yes {
			long, row, rest, untold, had = long+length, row+length, 0, 0, math.Max(had, amount)
			begun = begun || row >= starvedLeast
			continue
		}
		if u.untold(usually, may, &w.held) {
			if untold += length; untold > maxUntold {
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

// idle reports whether a source outside the workload measures no load of it, and it uses no CPU.
func (w *workload) idle(now time.Time) bool {
	n := len(w.queueing.used)
	if !w.samples.idle(now) || n == 0 || now.Sub(w.queueing.used[n-1].to) > w.samples.staleAfter(quantity.Usage) {
		return false
	}
	to := w.queueing.used[n-1].to
	cores, known := w.queueing.use(to.Add(-idleFor), to)
	return known && cores <= idleCores
}

// inferred stands in for what is missing where the kernel tells enough: a workload that starves
// may be raised, and one that is idle needs its least.
func (w *workload) inferred(now time.Time, hold *trimtab.Held) standIn {
	if w.curves.learner == nil || !(w.spec.Max > 0) {
		return standIn{}
	}
	name, amount := "", 0.0
	if hold != nil {
		if long, had := w.starved(now); long > 0 {
			name, amount = ByStarvation, had*(1+math.Min(hungry*long.Seconds(), mostHungry))
		}
	} else if w.last.Performance == nil && w.idle(now) {
		name, amount = ByIdleness, math.Max(w.spec.Min, idleCores)
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

// noteWaits says of a workload that does not starve what waits all the same, and that something
// keeps it from what it has. Who uses the CPUs instead is not known here.
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
