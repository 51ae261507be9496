// Package usage keeps what a workload was seen to use of the CPU while it had work, over a day,
// and says which limit that advises:
//
//	limit = 1.5 · max(use) · max(1, load to come / max(load))
//
// It is advice, and only where the SLO was met, on average and in the last report: a workload
// that misses its SLO without a limit lacks something other than CPU, and may use little CPU
// for that very reason. The curve of one that has no limit cannot tell what would be enough: it
// was never seen with less.
package usage

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

const (
	// margin is the ratio of a limit to the highest use measured: use is a mean over seconds, and
	// a quota counts over a tenth of one.
	margin = 1.5
	// enough is the least number of reports of the use. maxSpells spells of spellTime each are
	// kept: a day.
	enough, maxSpells = 12, 24
	spellTime         = time.Hour
)

// Use is the use of a workload, by the hour. The zero Use has seen nothing.
type Use struct {
	spells []Spell // oldest first
}

// Spell summarises some time: the highest use in cores and load, and the performance.
type Spell struct {
	From, Last  time.Time
	Reports     int
	Cores, Load float64
	// Sum, Least and Best are of the performance of the reports.
	Sum, Least, Best float64
}

// add merges another spell.
func (s *Spell) add(o Spell) {
	if s.Reports == 0 {
		*s = o
		return
	}
	s.Last, s.Reports, s.Sum = o.Last, s.Reports+o.Reports, s.Sum+o.Sum
	s.Cores, s.Load = math.Max(s.Cores, o.Cores), math.Max(s.Load, o.Load)
	s.Least, s.Best = math.Min(s.Least, o.Least), math.Max(s.Best, o.Best)
}

// mean returns that of the performance.
func (s *Spell) mean() float64 { return s.Sum / float64(s.Reports) }

// Observe records the use in an estimate, once for each measurement.
func (u *Use) Observe(now time.Time, e *trimtab.Estimate) {
	if e.Hold != nil || e.Performance == nil || e.Load == nil || !positive(e.Load.Now) {
		return
	}
	for _, in := range e.Inputs {
		if in.Name != string(quantity.Usage) || in.Missing != "" || !positive(in.Value) {
			continue
		}
		at := e.Time.Add(-in.Age.Duration())
		if at.After(now) {
			at = now // a clock that was ahead must not keep the next one from being heard
		}
		p := *e.Performance
		u.enter(Spell{From: at, Last: at, Reports: 1, Cores: in.Value, Load: e.Load.Now, Sum: p, Least: p, Best: p})
	}
}

func (u *Use) enter(s Spell) {
	n := len(u.spells)
	switch {
	case n > 0 && !s.Last.After(u.spells[n-1].Last):
		return
	case n > 0 && s.Last.Sub(u.spells[n-1].From) < spellTime:
		u.spells[n-1].add(s)
		return
	case n == maxSpells:
		u.spells = u.spells[1:]
	}
	u.spells = append(u.spells, s)
}

// Day merges the spells of the last day.
func (u *Use) Day(now time.Time) (all Spell) {
	for _, s := range u.spells {
		if now.Sub(s.Last) <= maxSpells*spellTime {
			all.add(s)
		}
	}
	return all
}

// Advises reports whether enough was seen to advise a limit for an SLO, with the latest
// performance; nil: missing.
func (s *Spell) Advises(slo float64, latest *float64) bool {
	return s.Reports >= enough && s.mean() >= slo && latest != nil && *latest >= slo
}

// Limit returns the recommended limit for a coming load, in cores.
func (s *Spell) Limit(load float64) float64 {
	return margin * s.Cores * math.Max(load, s.Load) / s.Load
}

// Awaits says what a workload without a limit must show before one is recommended.
func (s *Spell) Awaits(slo float64) string {
	switch {
	case s.Reports < enough:
		return fmt.Sprintf("it has no limit: trimtab recommends one after %d reports of what it uses (%d so far), if it meets its SLO", enough, s.Reports)
	case s.mean() < slo:
		return fmt.Sprintf("it has no limit: trimtab recommends none, because its performance over the last day was %.3g on average for an SLO of %.3g", s.mean(), slo)
	}
	return "it has no limit: trimtab recommends none while it misses its SLO"
}

// Why says why a workload without a limit is recommended one, for a coming load.
func (s *Spell) Why(limit, load, slo float64) string {
	return fmt.Sprintf("it has no limit, and was seen to use at most %.3g at up to %.3g requests/s, in %d reports over %v, with a performance of %.3g (%.3g to %.3g) for an SLO of %.3g; a limit of %s would leave half as much again at the %.3g requests/s that are to be expected; how it does under a limit was not seen",
		s.Cores, s.Load, s.Reports, s.Last.Sub(s.From).Round(time.Second), s.mean(), s.Least, s.Best, slo, trimtab.Units(limit), math.Max(load, s.Load))
}

func positive(v float64) bool { return v > 0 && !math.IsInf(v, 0) }
