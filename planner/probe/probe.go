// Package probe finds how much memory an instance needs by taking some away and seeing whether it comes
// back, one reading a second:
//
//	reclaim 1/32 of the usage, wait 10 s           (memory.reclaim of version 2)
//	back   = refaults beyond those before, in bytes, while it waited
//	needed: back ≥ reclaimed, or back − back of the step before ≥ reclaimed/2
//	cold:   otherwise; take the next step
//
// The working set then lies between the usage after the step that was needed and before it. The step
// before counts since pages of all earlier steps come back now and then.
//
// Each later step begins where the one before ended, so the usage falls to the working set and stays
// there: what was taken and not missed is free. Where the kernel cannot take more (anonymous memory
// without swap, locked pages, pages in use), the usage is an upper bound of the working set.
//
// A step that hurts ends the probe at once, and what it took comes back by itself: the probe sets no
// limit, so nothing can be killed by it. It hurts if, in one reading,
//
//	pressure > pressure before + 5%      PSI, some
//	refaults > refaults before + 2% of the usage a second
//	SLO missed for more readings than the error budget allows: Budget of those since the begin
//
// A reading without the usage, the refaults or, if there is an SLO, the performance ends it as well, and
// gives no working set. So does a load that moves: anonymous memory that rose by more than a step.
//
// The probe needs a group that rests at its usage. It cannot tell a page that is needed once an hour from
// one that is never needed: what it waits for is 10 s. Source: memory.reclaim as in Meta's Senpai (Weiner
// et al., TMO, ASPLOS'22), which holds a pressure; this one looks for a knee, and ends.
package probe

import (
	"math"
	"time"
)

const (
	// part is a step, as a part of the usage; wait is how long it may come back.
	part, wait = 1.0 / 32, 10 * time.Second
	// before is how long the refaults and the pressure without a step are measured.
	before = 5 * time.Second
	// cold is the part of a step that may come back, beyond what came back after the step before, if it was
	// not needed.
	cold = 1.0 / 2
	// taken is the least part of what was asked for that a step must take: less means that the kernel
	// found nothing more.
	taken = 1.0 / 4
	// pressed is by how much the pressure may rise, thrashes how much may come back in a second, as a part
	// of the usage.
	pressed, thrashes = 0.05, 0.02
	// mostSteps ends a probe: 31/32 to this power is 0.2%.
	mostSteps = 200
)

// Reading is what one second shows of the instance. A value that is not known is NaN.
type Reading struct {
	// Usage is all of the group's memory, Anonymous the part without a file, in bytes.
	Usage, Anonymous float64
	// Refaults are bytes a second that came back after they were reclaimed: pages times their size.
	Refaults float64
	// Pressure is the share of time in which a task waited for memory; NaN: the kernel does not tell.
	Pressure float64
	// Performance is that of the last second in the terms of the SLO, of which Target is the bound; NaN
	// in Target: there is no SLO.
	Performance, Target float64
}

// Result is what a probe found.
type Result struct {
	// Low and High bound the working set, in bytes; Low is 0 if the kernel could take no more.
	Low, High float64
	// Found says that there is a result. Why says in any case why the probe ended.
	Found bool
	Why   string
	Steps int
}

// Probe is one probe of one instance. Budget is the part of the readings that may miss the SLO.
type Probe struct {
	Budget float64

	began, since time.Duration
	started      bool
	readings     int
	missed       int
	// The means without a step.
	refaults, pressure float64
	rested             int
	// The step that waits: the usage before it, what was asked for, what it took, and what came back.
	waiting           bool
	backBefore        float64 // what came back after the step before
	from, asked, took float64
	back              float64
	anonymous         float64
	steps             int
	last              time.Duration
	result            *Result
}

// Next takes a reading at a time of a clock that does not jump. It returns how many bytes to reclaim now,
// 0: none, and the result once the probe has ended.
func (p *Probe) Next(at time.Duration, r Reading) (reclaim float64, done *Result) {
	if p.result != nil {
		return 0, p.result
	}
	if !p.started {
		p.began, p.since, p.last, p.started, p.anonymous = at, at, at, true, r.Anonymous
	}
	elapsed := (at - p.last).Seconds()
	p.last = at
	p.readings++
	if why := p.ends(&r); why != "" {
		return 0, p.end(false, 0, 0, why)
	}
	if !p.waiting {
		return p.rest(at, &r), nil
	}
	if p.took == 0 && p.from > r.Usage { // the first reading after the step
		p.took = p.from - r.Usage
	}
	p.back += math.Max(0, r.Refaults-p.refaults) * elapsed
	switch {
	case p.hurts(&r):
		return 0, p.end(true, r.Usage-p.backAtMost(), p.from, "it needed what was taken: tasks waited, or it came back at once")
	case at-p.since < wait:
		return 0, nil
	case r.Usage > p.from+p.asked/2: // the kernel takes and gives back in larger parts than pages
		return 0, p.end(true, p.from-p.asked, r.Usage, "what was taken came back, and more")
	case p.took < taken*p.asked && !p.needed():
		return 0, p.end(true, 0, r.Usage, "the kernel can take no more: the rest has no file and there is no swap, or it is in use")
	case p.needed():
		return 0, p.end(true, p.from-p.asked, p.from, "what was taken came back")
	case p.steps >= mostSteps:
		return 0, p.end(true, 0, r.Usage, "nothing was needed in as many steps as are allowed")
	}
	return p.step(at, &r), nil
}

// needed reports whether what the step took was needed.
func (p *Probe) needed() bool { return p.back >= p.asked || p.back-p.backBefore >= cold*p.asked }

// backAtMost is what may have come back within the reading that hurt.
func (p *Probe) backAtMost() float64 { return math.Min(p.back, p.asked) }

// rest measures without a step, and begins the first one.
func (p *Probe) rest(at time.Duration, r *Reading) float64 {
	p.rested++
	p.refaults += (r.Refaults - p.refaults) / float64(p.rested)
	if known(r.Pressure) {
		p.pressure = math.Max(p.pressure, r.Pressure)
	}
	if at-p.since < before {
		return 0
	}
	p.anonymous = r.Anonymous
	return p.step(at, r)
}

// step begins a step.
func (p *Probe) step(at time.Duration, r *Reading) float64 {
	p.steps++
	p.backBefore = p.back
	p.waiting, p.since, p.from, p.took, p.back = true, at, r.Usage, 0, 0
	p.asked = part * r.Usage
	return p.asked
}

// ends returns why the probe must end without a result; "": it need not.
func (p *Probe) ends(r *Reading) string {
	switch {
	case !known(r.Usage) || r.Usage == 0 || !known(r.Refaults):
		return "its usage or its refaults are not known"
	case known(r.Anonymous) && known(p.anonymous) && r.Anonymous > p.anonymous*(1+part):
		return "its anonymous memory rose meanwhile: the load moves"
	case math.IsNaN(r.Target):
		return ""
	case !known(r.Performance):
		return "its performance is not known"
	}
	if r.Performance < r.Target {
		p.missed++
	}
	if float64(p.missed) > p.Budget*float64(p.readings)+1e-9 {
		if !p.waiting {
			return "it misses its SLO without a step"
		}
	}
	return ""
}

// hurts reports whether the step that waits does harm.
func (p *Probe) hurts(r *Reading) bool {
	return known(r.Pressure) && r.Pressure > p.pressure+pressed ||
		r.Refaults > p.refaults+thrashes*r.Usage ||
		!math.IsNaN(r.Target) && float64(p.missed) > p.Budget*float64(p.readings)+1e-9
}

// end ends the probe.
func (p *Probe) end(found bool, low, high float64, why string) *Result {
	p.result = &Result{Low: math.Max(0, math.Min(low, high)), High: high, Found: found, Why: why, Steps: p.steps}
	return p.result
}

// known reports whether v is a number that memory and time can have.
func known(v float64) bool { return v >= 0 && v <= 1<<60 }
