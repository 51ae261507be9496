package planner

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// alert records which alerts fire. It starts a round when an alert begins, or when the last alert
// on a workload ends: at most one round per gap and group of alerts; later requests wait for the
// end of the gap. It ignores repeated deliveries, which could otherwise begin a loan after the
// alert has ended.
func (p *Planner) alert(now time.Time, a *trimtab.Alert) []trimtab.Value {
	w := p.byName[a.Workload]
	news := false
	if w != nil && !p.seen.Again(a) {
		w.Loan, news = w.Loan.Note(now, a, p.cfg.AlertHold)
	}
	if !news || !p.leading || lateFor(p, now, a.Time) {
		p.counts.ignored["alert"]++
		return nil
	}
	cause := trimtab.Cause{Kind: codes.CauseAlert, Ref: a.Name, Workload: a.Workload, Text: fmt.Sprintf("group %s, fingerprint %s", a.Group, a.Fingerprint)}
	if !a.Firing {
		cause.Kind = codes.CauseAlertOver
	}
	return p.ask(now, a.Group, cause)
}

// lapses ends alerts that were not renewed within AlertHold, and asks for a round for each workload
// on which no alert is left.
func (p *Planner) lapses(now time.Time) (out []trimtab.Value) {
	for _, w := range p.workloads {
		if w.Loan.Lapse(now, p.cfg.AlertHold) && p.leading {
			cause := trimtab.Cause{Kind: codes.CauseAlertOver, Ref: w.Loan.Name, Workload: w.Name, Text: "it was not heard of in time"}
			out = append(out, p.ask(now, "alerts that were not heard of", cause)...)
		}
	}
	return out
}

// alarmsOf returns the firing alert of each workload by name, or nil if none fires.
func alarmsOf(p *Planner) map[string]trimtab.Alarm {
	var all map[string]trimtab.Alarm
	for _, w := range p.workloads {
		a, fires := w.Loan.Alarm()
		if !fires {
			continue
		}
		if all == nil {
			all = map[string]trimtab.Alarm{}
		}
		all[w.Name] = a
	}
	return all
}

// ask starts a round for a group of alerts now, or once the group's gap since its last round has
// passed.
func (p *Planner) ask(now time.Time, group string, cause trimtab.Cause) []trimtab.Value {
	if p.gaps.Ask(now, group, cause) {
		return p.start(now, cause)
	}
	p.counts.ignored["alert"]++
	return nil
}
