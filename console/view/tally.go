package view

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// tally counts the results of each hour's decisions, so that a report need not read all decisions
// again. It keeps as many hours as decisions are kept.
type tally struct {
	hours map[int64]*tallyHour
}

// tallyHour counts the moves of one hour by status, and the verdicts on them by judgement.
type tallyHour struct {
	moves    map[trimtab.Status]int
	verdicts map[codes.Judgement]int
}

const tallied = int64(maxAge/time.Hour) + 1

func (t *tally) at(when time.Time) *tallyHour {
	h := sooner(when, time.Now()).Unix() / 3600
	if t.hours == nil {
		t.hours = map[int64]*tallyHour{}
	}
	out := t.hours[h]
	if out == nil {
		out = &tallyHour{map[trimtab.Status]int{}, map[codes.Judgement]int{}}
		t.hours[h] = out
		newest := slices.Max(slices.Collect(maps.Keys(t.hours)))
		maps.DeleteFunc(t.hours, func(old int64, _ *tallyHour) bool { return old < newest-tallied })
	}
	return out
}

// statusOf returns the result of a decision; "": it was not answered.
func statusOf(d *Decision) trimtab.Status {
	if d.Result == nil {
		return ""
	}
	return d.Result.Status
}

func (t *tally) decided(d *Decision) { t.at(d.Time).moves[statusOf(d)]++ }

func (t *tally) dropped(d *Decision) { t.at(d.Time).moves[statusOf(d)]-- }

func (t *tally) answered(before, after *Decision) {
	t.at(before.Time).moves[statusOf(before)]--
	t.at(after.Time).moves[statusOf(after)]++
}

// judged counts the verdicts of a plan, which all of its steps carry.
func (t *tally) judged(p *trimtab.Plan) {
	if p.Step != 1 {
		return
	}
	for i := range p.Verdicts {
		t.at(p.Time).verdicts[p.Verdicts[i].Verdict]++
	}
}

// since adds up the hours from a time on, the one that it is in among them.
func (t *tally) since(from time.Time) (moves, verdicts []Counted) {
	m, v := map[string]int{}, map[string]int{}
	for h, hour := range t.hours {
		if h < from.Unix()/3600 {
			continue
		}
		for status, n := range hour.moves {
			m[cmp.Or(string(status), "not answered")] += n
		}
		for judgement, n := range hour.verdicts {
			v[string(judgement)] += n
		}
	}
	return mostFirst(m), mostFirst(v)
}

// mostFirst returns the counts above 0, the largest first.
func mostFirst(of map[string]int) []Counted {
	out := []Counted{}
	for name, n := range of {
		if n > 0 {
			out = append(out, Counted{name, n})
		}
	}
	slices.SortFunc(out, func(a, b Counted) int { return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.What, b.What)) })
	return out
}

// maxAlarms bounds the rounds by alerts that are kept of one workload.
const maxAlarms = 100

// alarm records a round that an alert on a workload started.
func (s *state) alarm(p *trimtab.Plan) {
	if p.Cause.Kind != codes.CauseAlert || p.Step != 1 {
		return
	}
	all := s.alarms
	if n := len(all); n > 0 && !p.Time.After(all[n-1].Time) {
		return
	}
	all = append(all, Mark{p.Time, brief(p.Cause.String())})
	s.alarms = all[max(0, len(all)-maxAlarms):]
}
