package planner

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/verdict"
)

// watch begins to judge the moves that were written, according to an outcome.
func (p *Planner) watch(now time.Time, o *trimtab.Outcome) {
	for i := range o.Results {
		r := &o.Results[i]
		w := p.byName[r.Workload]
		if w == nil || r.Status != trimtab.Written || r.Resource != p.cfg.Resource || !r.Known || r.Found.Unlimited {
			continue
		}
		p.judged(w, w.History.Judge.Written(now, trimtab.PlanID(o.Epoch, o.Sequence), r, p.cfg.Unit))
	}
}

// report passes a new estimate to the judgement of the workload's last move, and counts the move if
// it is to be undone.
func (p *Planner) report(w *allocation.Workload, e *trimtab.Estimate) {
	v, taken := w.History.Judge.Report(e, w.SLO, verdict.Rules{Unit: p.cfg.Unit, Round: p.cfg.Round, Urgent: p.cfg.Urgent, Reversals: p.cfg.Guard.Reversals()})
	if p.judged(w, v); taken {
		p.counts.takenBack++
	}
}

// judged adds a verdict, if not nil, to the next plan.
func (p *Planner) judged(w *allocation.Workload, v *trimtab.Verdict) {
	if v != nil {
		v.Workload = w.Name
		p.counts.verdicts[v.Verdict]++
		p.verdicts.Add(*v)
	}
}
