package planner

import (
	"cmp"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/verdict"
)

// watch begins to judge the moves that an outcome says were written.
func (p *Planner) watch(now time.Time, o *trimtab.Outcome) {
	for i := range o.Results {
		r := &o.Results[i]
		w := p.byName[r.Workload]
		if w == nil || r.Status != trimtab.Written || r.Resource != p.cfg.Resource || !r.Known || r.Found.Unlimited {
			continue
		}
		p.judged(w, w.judge.Written(now, trimtab.PlanID(o.Epoch, o.Sequence), r, p.cfg.Unit))
	}
}

// report counts a report after a move and gives the verdict when it is in.
func (p *Planner) report(w *workload, e *trimtab.Estimate) {
	v, taken := w.judge.Report(e, w.SLO, verdict.Rules{Unit: p.cfg.Unit, Round: p.cfg.Round, Urgent: p.cfg.Urgent, Reversals: p.cfg.Guard.Reversals()})
	if p.judged(w, v); taken {
		p.counts.TakenBack++
	}
}

// judged notes a verdict for the next plan; nil: there is none.
func (p *Planner) judged(w *workload, v *trimtab.Verdict) {
	if v != nil {
		v.Workload = w.Name
		p.counts.Verdict(v.Verdict)
		p.verdicts = append(p.verdicts, *v)
	}
}

// maxVerdicts bounds the verdicts that a plan tells.
const maxVerdicts = 256

// takeVerdicts returns the verdicts since the last plan, of which there is at most one
// for each move of it: those that were not as expected first, then by name, in
// whatever order the reports came.
func (p *Planner) takeVerdicts() []trimtab.Verdict {
	v := p.verdicts
	p.verdicts = nil
	rank := func(v *trimtab.Verdict) int {
		if v.Verdict == trimtab.AsExpected {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(v, func(a, b trimtab.Verdict) int {
		return cmp.Or(cmp.Compare(rank(&a), rank(&b)), cmp.Compare(a.Workload, b.Workload))
	})
	return v[:min(len(v), maxVerdicts)]
}
