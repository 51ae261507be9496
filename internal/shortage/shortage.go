// Package shortage decides, from one reading a second, whether an instance is at the edge of its memory
// limit now, and to which limit it is then raised:
//
//	near     = use ≥ 0.9 limit
//	short    = near and (pressure ≥ 10%, or it met memory.high or its limit since the last reading)
//	         or use + rise ≥ limit                     rise: of the use in the last 5 s
//	raised   = max(1.2 limit, (use + 2 rise)(1 + margin))
//
// An instance whose use is mostly page cache that it does not read again (anonymous memory below half of
// the limit, no refaults) meets its limit without harm: the kernel reclaims. Only pressure counts then.
//
// After the kernel killed a process of a workload, the instances that come next begin with what it asked
// for, for a day:
//
//	asked    = limit + max(0.2 limit, rise, 256 KiB × charges refused), at most 2 limit
//
// 256 KiB is the batch in which Linux charges memory (MEMCG_CHARGE_BATCH, 64 pages), so each count of
// memory.failcnt, or of max in memory.events, is a demand of about that much beyond the limit.
//
// The rule only raises. What lowers a limit is a plan (planner/sizing). It knows no clock and no host:
// the actuator keeps a raise within the operator's bounds and within what the host has free. The agent
// applies it to all instances of a host ([Rule]); the analyzer, to which one sample after another is told,
// asks only whether an instance is short ([Of]).
//
// Source: Linux, cgroup-v2.rst, "Memory Interface Files", psi.rst; the threshold of pressure is far
// above what Senpai aims at (Weiner et al., TMO, ASPLOS'22), and far below that of a thrashing group.
package shortage

import (
	"math"
	"time"

	"github.com/trimtab/trimtab/quantity"
)

const (
	// nearLimit is the part of the limit from which the use is near it.
	nearLimit = 0.9
	// pressed is the share of time in which tasks wait for memory (PSI, some) from which that counts.
	pressed = 0.1
	// window is how far back a rise is measured, and how far ahead it is extrapolated; rare is the longest
	// time since the reading before, where readings come less often. leastRise is the least rise that
	// counts, as a part of the limit.
	window, rare, leastRise = 5 * time.Second, 15 * time.Second, 0.02
	// grow is the least factor of a raise, asked the least part by which the limit after a kill is above
	// the limit at the kill.
	grow, asked = 1.2, 0.2
	// charge is how many bytes one refused charge asked for.
	charge = 256 << 10
	// day is how long a kill counts.
	day = 24 * time.Hour
	// again is the least time between two raises of one instance: what is counted within it may have
	// happened under the old limit. A rise that reaches the new one is answered at once.
	again = time.Second
	// forgotten is how long an instance without readings is remembered.
	forgotten = 10 * time.Minute
	// mostReadings is how many readings of one instance are kept for the rise.
	mostReadings = 32
)

// Cause is what an instance ran short by.
type Cause string

// The causes, in the order in which they count.
const (
	Killed   Cause = "killed"
	Pressure Cause = "pressure"
	SoftEdge Cause = "memory.high"
	AtLimit  Cause = "limit"
	Forecast Cause = "forecast"
)

// Name names an instance of a workload.
type Name struct{ Workload, Instance string }

// Reading is what one second shows of an instance. A value that is not known is NaN.
type Reading struct {
	Name
	// Host is the one in its samples; "": they are of the whole workload.
	Host string
	// ID differs from that of an earlier instance of the same name; 0: it is not known.
	ID uint64
	// Use is the working set, Usage all of its memory, Anonymous the part that no file backs, Swap what is
	// swapped out, and Limit the limit in force, in bytes; Limit is +Inf if there is none.
	Use, Usage, Anonymous, Swap, Limit float64
	// Pressure is the share of time in which a task waited for memory. Refaults are pages a second.
	Pressure, Refaults float64
	// High, Max and Kills count since the previous reading how often the instance met memory.high, met
	// its limit, and lost a process to the OOM killer.
	High, Max, Kills float64
}

// Unknown returns a reading of which nothing is known.
func Unknown(n Name) Reading {
	nan := math.NaN()
	return Reading{Name: n, Use: nan, Usage: nan, Anonymous: nan, Swap: nan, Limit: nan, Pressure: nan, Refaults: nan, High: nan, Max: nan, Kills: nan}
}

// Field returns where a reading has a quantity; nil: nowhere.
func (s *Reading) Field(q quantity.Quantity) *float64 {
	switch q {
	case quantity.WorkingSet:
		return &s.Use
	case quantity.MemoryUsage:
		return &s.Usage
	case quantity.MemoryAnonymous:
		return &s.Anonymous
	case quantity.MemorySwap:
		return &s.Swap
	case quantity.MemoryLimit:
		return &s.Limit
	case quantity.PressureMemorySome:
		return &s.Pressure
	case quantity.Refaults:
		return &s.Refaults
	case quantity.MemoryHighEvents:
		return &s.High
	case quantity.MemoryMaxEvents:
		return &s.Max
	case quantity.OOMKills:
		return &s.Kills
	}
	return nil
}

// Raise is a limit to which an instance is to be raised, in bytes.
type Raise struct {
	Name
	To    float64
	Cause Cause
}

// Rule is the state of one host. The zero Rule has seen nothing. Margin returns how far a limit of a
// workload is above its need, as a part of the need; false: its limit is not raised.
type Rule struct {
	Margin func(workload string) (float64, bool)

	of map[Name]*instance
	// killed has what workloads asked for when a process of theirs was killed.
	killed map[string]demand
}

type demand struct {
	bytes float64
	until time.Duration
}

// instance is the state of one instance.
type instance struct {
	id   uint64
	seen time.Duration
	// raised is when its limit was raised last, from which one, in bytes.
	raised time.Duration
	from   float64
	// limit is the last limit that was known, in bytes; 0: none was.
	limit float64
	uses  Uses
	// refused counts the charges that were refused within the window before a reading.
	refused Uses
	// began says that it had the chance to begin with what its workload asked for when it was killed.
	began bool
}

// Uses has the last readings of what an instance uses, the oldest first.
type Uses []use

type use struct {
	at    time.Duration
	bytes float64
}

// Take adds a reading. It drops what is too old to tell a rise, and ignores a value that is no amount.
func (u *Uses) Take(at time.Duration, v float64) {
	all := *u
	if n := len(all); n > 0 && (at-all[n-1].at > rare || at < all[n-1].at) {
		all = all[:0] // a rise over a gap says nothing of now
	}
	for len(all) > 1 && at-all[0].at > window || len(all) >= mostReadings {
		all = append(all[:0], all[1:]...)
	}
	if known(v) {
		all = append(all, use{at, v})
	}
	*u = all
}

// Rise returns by how much the newest use is above the lowest, in bytes.
func (u Uses) Rise() float64 {
	if len(u) == 0 {
		return 0
	}
	least, last := math.Inf(1), u[len(u)-1].bytes
	for _, x := range u {
		least = math.Min(least, x.bytes)
	}
	return last - least
}

// Look returns the instances to raise at a time of a clock that does not jump, given the readings of all
// instances of the host.
func (r *Rule) Look(at time.Duration, all []Reading) (raises []Raise) {
	if r.of == nil {
		r.of, r.killed = map[Name]*instance{}, map[string]demand{}
	}
	for i := range all {
		s := &all[i]
		margin, ok := r.Margin(s.Workload)
		if !ok {
			continue
		}
		x := r.of[s.Name]
		if x == nil {
			x = &instance{raised: -again}
			r.of[s.Name] = x
		}
		x.take(at, s)
		if s.Kills > 0 {
			r.kill(at, s, x)
		}
		if to, cause := r.decide(at, s, x, margin); cause != "" {
			x.raised, x.from = at, s.Limit
			raises = append(raises, Raise{s.Name, to, cause})
		}
	}
	for n, x := range r.of {
		if at-x.seen > forgotten {
			delete(r.of, n)
		}
	}
	return raises
}

// take records a reading.
func (x *instance) take(at time.Duration, s *Reading) {
	if s.ID != 0 && x.id != 0 && s.ID != x.id {
		x.uses, x.refused, x.began = x.uses[:0], x.refused[:0], false
	}
	if s.ID != 0 {
		x.id = s.ID
	}
	if known(s.Limit) {
		x.limit = s.Limit
	}
	x.seen = at
	x.uses.Take(at, s.Use)
	x.refused.Take(at, s.Max)
}

// known reports whether v is a number that memory can have.
func known(v float64) bool { return v >= 0 && v <= 1<<60 }

// kill records what a workload asked for when the kernel killed a process of it.
func (r *Rule) kill(at time.Duration, s *Reading, x *instance) {
	limit, n := x.limit, 0.0
	if limit == 0 {
		return
	}
	for _, u := range x.refused {
		n += u.bytes
	}
	more := math.Max(asked*limit, math.Max(x.uses.Rise(), n*charge))
	if known(s.Swap) {
		more += s.Swap
	}
	d := demand{limit + math.Min(more, limit), at + day}
	if old := r.killed[s.Workload]; at < old.until {
		d.bytes = math.Max(d.bytes, old.bytes)
	}
	r.killed[s.Workload] = d
	x.began = false
}

// decide returns the limit of an instance that is short, and why; "": it is not.
func (r *Rule) decide(at time.Duration, s *Reading, x *instance, margin float64) (to float64, cause Cause) {
	if !known(s.Limit) || s.Limit == 0 {
		return 0, ""
	}
	if !x.began {
		x.began = true
		if d := r.killed[s.Workload]; at < d.until && d.bytes > s.Limit {
			return d.bytes, Killed
		}
	}
	if cause = Of(s, x.uses.Rise()); cause == "" {
		return 0, ""
	}
	if at-x.raised < again && (cause != Forecast || s.Limit <= x.from) {
		return 0, ""
	}
	return math.Max(grow*s.Limit, (s.Use+2*x.uses.Rise())*(1+margin)), cause
}

// Of returns what an instance is short by, given how far its use rose in the last 5 s; "": it is not short.
func Of(s *Reading, rise float64) Cause {
	if !known(s.Use) || !known(s.Limit) || s.Limit == 0 {
		return ""
	}
	near := s.Use >= nearLimit*s.Limit
	cache := known(s.Anonymous) && s.Anonymous < s.Limit/2 && s.Refaults == 0
	switch {
	case near && s.Pressure >= pressed && s.Pressure <= 1:
		return Pressure
	case near && s.High > 0 && !cache:
		return SoftEdge
	case near && s.Max > 0 && !cache:
		return AtLimit
	case rise > leastRise*s.Limit && s.Use+rise >= s.Limit && !cache:
		return Forecast
	}
	return ""
}
