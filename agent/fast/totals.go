package fast

import (
	"errors"
	"math"
	"os"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/planner/local"
)

// totals accumulates what the actuator's holding and the metrics report of the loop.
type totals struct {
	groups map[trimtab.KnobID]*group
	order  []*group
	at     time.Duration
	told   []actuator.FastAccount
}

// group is the accumulated state of one group.
type group struct {
	id trimtab.KnobID
	// low and high are the least and greatest quota in this window and in the one before.
	low, high [2]float64
	since     time.Duration
	// last has the rule's totals at the last report.
	last local.Status
	from map[string]float64
	ask  *trimtab.FastAsk
	asks int
}

const (
	// tellFast is the time between two reports; lowHigh is the length of a window.
	tellFast = time.Second
	lowHigh  = 10 * time.Second
	// mostLenders bounds the workloads that are reported as the lenders of a loan.
	mostLenders = 20
)

// gone reports whether a look failed because the group does not exist any more.
func gone(err error) bool { return errors.Is(err, os.ErrNotExist) }

// take records the state of all groups, and reports it once a second, or when a round is
// requested.
func (s *totals) take(l *loop, asks []local.Ask) {
	l.status = l.rule.Status(l.status[:0])
	if len(s.order) != len(l.status) || len(s.order) > 0 && !s.same(l) {
		s.arrange(l)
	}
	now := l.look.At
	for i, g := range s.order {
		set := l.status[i].Set
		if i < len(l.found) && l.found[i] >= 0 {
			set = l.found[i]
		}
		g.note(set, now)
	}
	for _, a := range asks {
		g := s.order[a.Group]
		g.asks++
		g.ask = &trimtab.FastAsk{Number: g.asks, Cause: string(a.Cause), Lasts: trimtab.SecondsOf(max(0, now-a.Since)), Want: a.Want}
		l.metrics.Counter("trimtab_fast_asks_total", l.host, string(a.Cause)).Inc()
		l.logger.Info("fast loop asks for a round", "workload", g.id.Workload, "instance", g.id.Instance, "cause", string(a.Cause), "wants", a.Want)
	}
	if len(asks) > 0 || now-s.at >= tellFast || now < s.at {
		s.at = now
		s.tell(l)
	}
}

// idle reports once that the loop controls no group.
func (s *totals) idle(l *loop) {
	if len(s.order) > 0 {
		s.order = nil
		l.metrics.Gauge("trimtab_fast_groups", l.host).Set(0)
	}
}

// same reports whether the groups are the known ones, in the same order.
func (s *totals) same(l *loop) bool {
	for i := range l.look.Groups {
		if s.order[i].id != l.look.Groups[i].KnobID {
			return false
		}
	}
	return true
}

// arrange sorts the groups in the order of the look, and drops those that are gone.
func (s *totals) arrange(l *loop) {
	old := s.groups
	s.groups, s.order = make(map[trimtab.KnobID]*group, len(l.look.Groups)), s.order[:0]
	for i := range l.look.Groups {
		id := l.look.Groups[i].KnobID
		g := old[id]
		if g == nil {
			g = &group{id: id, from: map[string]float64{}, last: l.status[i]}
			g.low[1], g.high[1] = math.Inf(1), 0
			g.begin(l.status[i].Set, l.look.At)
		}
		s.groups[id], s.order = g, append(s.order, g)
	}
	l.metrics.Gauge("trimtab_fast_groups", l.host).Set(float64(len(s.order)))
}

// begin begins a window.
func (g *group) begin(set float64, now time.Duration) {
	g.low[1], g.high[1] = g.low[0], g.high[0]
	if g.since == 0 {
		g.low[1], g.high[1] = set, set
	}
	g.low[0], g.high[0], g.since = set, set, now
}

// note records a quota in the window.
func (g *group) note(set float64, now time.Duration) {
	if now-g.since >= lowHigh || now < g.since {
		g.begin(set, now)
	}
	g.low[0], g.high[0] = min(g.low[0], set), max(g.high[0], set)
}

// tell updates the holding and the metrics. It attributes the borrowed CPU time to the lenders in
// proportion to what each lent; if more was borrowed than lent, the rest came from unallocated
// capacity.
func (s *totals) tell(l *loop) {
	lent, borrowed := map[string]float64{}, 0.0
	all := 0.0
	for i, g := range s.order {
		d := max(0, l.status[i].Lent-g.last.Lent)
		lent[g.id.Workload] += d
		all += d
		borrowed += max(0, l.status[i].Borrowed-g.last.Borrowed)
	}
	s.told = s.told[:0]
	sets, targets := map[string]float64{}, map[string]float64{}
	for i, g := range s.order {
		now := &l.status[i]
		g.credit(max(0, now.Borrowed-g.last.Borrowed), lent, all, borrowed)
		s.told = append(s.told, actuator.FastAccount{KnobID: g.id, Fast: trimtab.Fast{
			Low: min(g.low[0], g.low[1]), High: max(g.high[0], g.high[1]), Demand: now.Demand,
			Granted: now.Granted, Lent: now.Lent, Borrowed: now.Borrowed, Stalled: now.Stalled, Writes: now.Writes, From: g.from, Ask: g.ask,
		}})
		sets[g.id.Workload] += now.Set
		targets[g.id.Workload] += now.Target
		g.count(l, now)
		g.last = *now
	}
	for w := range sets {
		l.metrics.Gauge("trimtab_fast_set_cores", l.host, w).Set(sets[w])
		l.metrics.Gauge("trimtab_fast_target_cores", l.host, w).Set(targets[w])
	}
	l.fastActuator.FastRecord(s.told)
}

// credit records from which workloads a group borrowed.
func (g *group) credit(mine float64, lent map[string]float64, all, borrowed float64) {
	if mine <= 0 || all <= 0 {
		return
	}
	part := mine * min(1, all/borrowed) / all
	for w, v := range lent {
		if _, known := g.from[w]; v > 0 && (known || len(g.from) < mostLenders) {
			g.from[w] += part * v
		}
	}
}

// count adds the events since the last report to the metrics.
func (g *group) count(l *loop, now *local.Status) {
	for _, m := range []struct {
		name    string
		was, is float64
	}{
		{"trimtab_fast_borrowed_core_seconds_total", g.last.Borrowed, now.Borrowed},
		{"trimtab_fast_lent_core_seconds_total", g.last.Lent, now.Lent},
		{"trimtab_fast_granted_core_seconds_total", g.last.Granted, now.Granted},
		{"trimtab_fast_stalled_seconds_total", g.last.Stalled, now.Stalled},
	} {
		l.metrics.Counter(m.name, l.host, g.id.Workload).Add(max(0, m.is-m.was))
	}
}
