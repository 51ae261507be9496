package planner

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
)

// A workload in mode recommend that has no limit, while the pool has room for
// its maximum, cannot be told by its curve what would be enough: it was never
// seen with less. What it was seen to use says more:
//
//	limit = margin · max(use) · max(1, load to come / max(load))
//
// It is advice, and only where the SLO is met: who misses it without a limit
// lacks something else, and may use little just because of that.

const (
	// margin is what a limit leaves above the most that was used: use is a mean
	// over seconds, and a quota counts over a tenth of one.
	margin = 1.5
	// enoughUses is how many reports must have told the use, and spells of
	// spellTime are remembered for a day.
	enoughUses, maxSpells = 12, 24
	spellTime             = time.Hour
)

// use is what a workload used of the cpu while it had work, over a day.
type use struct {
	spells []spell // oldest first
}

// spell is the most of an hour.
type spell struct {
	from, last  time.Time
	reports     int
	cores, load float64
}

// take enters what an estimate says of the use, once for each measurement.
func (u *use) take(now time.Time, e *trimtab.Estimate) {
	if e.Hold != "" || e.Performance == nil || e.Load == nil || !positive(e.Load.Now) {
		return
	}
	for _, in := range e.Inputs {
		if in.Name != string(trimtab.Usage) || in.Missing != "" || !positive(in.Value) {
			continue
		}
		at := e.Time.Add(-in.Age.Duration())
		if at.After(now) {
			at = now // a clock that was ahead must not keep the next one from being heard
		}
		u.enter(at, in.Value, e.Load.Now)
	}
}

func (u *use) enter(at time.Time, cores, load float64) {
	n := len(u.spells)
	if n > 0 && !at.After(u.spells[n-1].last) {
		return
	}
	if n == 0 || at.Sub(u.spells[n-1].from) >= spellTime {
		if n == maxSpells {
			u.spells = u.spells[1:]
		}
		u.spells = append(u.spells, spell{from: at})
		n = len(u.spells)
	}
	s := &u.spells[n-1]
	s.last, s.reports = at, s.reports+1
	s.cores, s.load = math.Max(s.cores, cores), math.Max(s.load, load)
}

// most sums up the spells of the last day.
func (u *use) most(now time.Time) (all spell) {
	for _, s := range u.spells {
		if now.Sub(s.last) > maxSpells*spellTime {
			continue
		}
		if all.reports == 0 {
			all.from = s.from
		}
		all.last, all.reports = s.last, all.reports+s.reports
		all.cores, all.load = math.Max(all.cores, s.cores), math.Max(all.load, s.load)
	}
	return all
}

// advise adds to what the policy recommends what use alone can tell: a limit
// for who has none; and who uses so little of its limit is not advised to
// raise it.
func (r *decision) advise() {
	for _, s := range r.seats {
		if s.resource != 0 || s.of.Name != "cpu" || s.Mode != trimtab.Recommend || !s.free || s.curve.Eval(s.now).Mean < s.SLO {
			continue
		}
		seen := s.use.most(r.now)
		if seen.reports < enoughUses {
			continue
		}
		load := seen.load
		if l := s.estimate.Load; l != nil {
			load = math.Max(load, l.Upper)
		}
		units := max(upUnits(margin*seen.cores*load/seen.load, s.of.Unit), s.lo)
		limit, stays := float64(units)*s.of.Unit, math.Abs(s.grant.Set-s.now) < s.of.Unit/2
		switch none := s.entry.held.Now.Unlimited; {
		case none && stays && units < s.hi:
			s.grant.Set, s.limit, s.seen = limit, limit, seen
		case !none && s.grant.Set > s.now && limit <= s.now:
			s.grant.Set = s.now
		}
	}
}

// limitReason says why a limit is advised to who has none.
func (r *decision) limitReason(s *seat, why trimtab.Reason) trimtab.Reason {
	at := s.curve.Eval(s.now)
	why.Target, why.Binding = &s.limit, "use"
	why.Summary = fmt.Sprintf("%s: it has no limit, and one of %s would leave half as much again as it was seen to use: at most %.3g at up to %.3g requests/s, in %d reports over %v, with a performance of %.3g (%.3g to %.3g) for an SLO of %.3g; how it does under a limit was not seen",
		s.Name, trimtab.Units(s.limit), s.seen.cores, s.seen.load, s.seen.reports, s.seen.last.Sub(s.seen.from).Round(time.Second),
		at.Mean, at.Lower, at.Upper, s.SLO)
	return why
}
