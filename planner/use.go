package planner

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
)

// A workload in mode recommend that has no limit cannot be told by its curve what
// would be enough: it was never seen with less. What it was seen to use says more:
//
//	limit = margin · max(use) · max(1, load to come / max(load))
//
// It is advice, and only where the SLO was met, on average and in the last report:
// a workload that misses its SLO without a limit lacks something other than CPU,
// and may use little CPU for that very reason.

const (
	// margin is what a limit leaves above the most that was used: use is a mean
	// over seconds, and a quota counts over a tenth of one.
	margin = 1.5
	// enoughUses is the least number of reports of the use. maxSpells spells of
	// spellTime each are remembered: a day.
	enoughUses, maxSpells = 12, 24
	spellTime             = time.Hour
)

// use is what a workload used of the cpu while it had work, over a day.
type use struct {
	spells []spell // oldest first
}

// spell is an hour: the most cores and load, and the performance.
type spell struct {
	from, last  time.Time
	reports     int
	cores, load float64
	// sum, least and best are of the performance of the reports.
	sum, least, best float64
}

// add joins two spells.
func (s *spell) add(o spell) {
	if s.reports == 0 {
		*s = o
		return
	}
	s.last, s.reports, s.sum = o.last, s.reports+o.reports, s.sum+o.sum
	s.cores, s.load = math.Max(s.cores, o.cores), math.Max(s.load, o.load)
	s.least, s.best = math.Min(s.least, o.least), math.Max(s.best, o.best)
}

func (s *spell) mean() float64 { return s.sum / float64(s.reports) }

// take enters what an estimate says of the use, once for each measurement.
func (u *use) take(now time.Time, e *trimtab.Estimate) {
	if e.Hold != nil || e.Performance == nil || e.Load == nil || !positive(e.Load.Now) {
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
		p := *e.Performance
		u.enter(spell{from: at, last: at, reports: 1, cores: in.Value, load: e.Load.Now, sum: p, least: p, best: p})
	}
}

func (u *use) enter(s spell) {
	n := len(u.spells)
	switch {
	case n > 0 && !s.last.After(u.spells[n-1].last):
		return
	case n > 0 && s.last.Sub(u.spells[n-1].from) < spellTime:
		u.spells[n-1].add(s)
		return
	case n == maxSpells:
		u.spells = u.spells[1:]
	}
	u.spells = append(u.spells, s)
}

// day sums up the spells of the last day.
func (u *use) day(now time.Time) (all spell) {
	for _, s := range u.spells {
		if now.Sub(s.last) <= maxSpells*spellTime {
			all.add(s)
		}
	}
	return all
}

// advise changes two recommendations of the policy by what workloads were seen to
// use: a workload without a limit is recommended one, and a workload that uses
// little of its limit is not recommended a higher one.
func (r *decision) advise() {
	for _, s := range r.seats {
		if s.resource != 0 || s.of.Name != trimtab.CPU || s.Mode != trimtab.Recommend || !s.free {
			continue
		}
		none := s.unlimited()
		if none {
			s.grant.Set = s.now // how it does with less was never seen
		}
		seen, last := s.use.day(r.now), s.estimate.Performance
		if seen.reports < enoughUses || seen.mean() < s.SLO || last == nil || *last < s.SLO {
			if none {
				s.without = s.awaits(&seen)
			}
			continue
		}
		load := seen.load
		if l := s.estimate.Load; l != nil {
			load = math.Max(load, l.Upper)
		}
		units := max(policy.UpUnits(margin*seen.cores*load/seen.load, s.of.Unit), s.lo)
		limit, stays := float64(units)*s.of.Unit, math.Abs(s.grant.Set-s.now) < s.of.Unit/2
		switch {
		case none && stays && units < s.hi:
			s.grant.Set, s.limit, s.seen = limit, limit, seen
		case !none && s.grant.Set > s.now && limit <= s.now:
			s.grant.Set = s.now
		}
	}
}

// awaits says what a workload without a limit must show before one is recommended.
func (s *seat) awaits(seen *spell) string {
	switch {
	case seen.reports < enoughUses:
		return fmt.Sprintf("it has no limit: trimtab recommends one after %d reports of what it uses (%d so far), if it meets its SLO", enoughUses, seen.reports)
	case seen.mean() < s.SLO:
		return fmt.Sprintf("it has no limit: trimtab recommends none, because its performance over the last day was %.3g on average for an SLO of %.3g", seen.mean(), s.SLO)
	}
	return "it has no limit: trimtab recommends none while it misses its SLO"
}

// limitReason says why a workload without a limit is recommended one.
func (r *decision) limitReason(s *seat, why trimtab.Reason) trimtab.Reason {
	seen, load := &s.seen, s.seen.load
	if l := s.estimate.Load; l != nil {
		load = math.Max(load, l.Upper)
	}
	why.Target, why.Binding.Kind = &s.limit, trimtab.BindingUse
	why.Summary = fmt.Sprintf("it has no limit, and was seen to use at most %.3g at up to %.3g requests/s, in %d reports over %v, with a performance of %.3g (%.3g to %.3g) for an SLO of %.3g; a limit of %s would leave half as much again at the %.3g requests/s that are to be expected; how it does under a limit was not seen",
		seen.cores, seen.load, seen.reports, seen.last.Sub(seen.from).Round(time.Second),
		seen.mean(), seen.least, seen.best, s.SLO, trimtab.Units(s.limit), load)
	return why
}
