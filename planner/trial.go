package planner

import (
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/probe"
)

// trials is what trying may cost.
func (p *Planner) trials() probe.Config { return probe.Config{Share: p.cfg.Exploration} }

// count counts one more round of a workload against its error budget, by the
// latest report.
func (r *decision) count(s *seat) {
	if p := s.estimate.Performance; s.resource == 0 && p != nil {
		s.account = r.planner.trials().After(s.account, *p < s.SLO)
	}
}

// try lowers one workload that is acted on below its aim, to learn what it
// needs: see package probe. What it frees stays free.
func (r *decision) try() {
	p := r.planner
	if p.cfg.Exploration == 0 {
		return
	}
	var seats []*seat
	var candidates []probe.Candidate
	idle := 0
	for _, s := range r.seats {
		if !s.free || !s.acts() || s.in == nil || s.resource != 0 || s.loan != nil {
			continue
		}
		if len(seats) == 0 {
			idle = s.in.problem.Units - sum(s.in.answer.Units)
		}
		now := upUnits(s.now, s.of.Unit)
		to := max(s.need.Explore, now-s.of.Step, s.lo)
		if s.aim != now {
			continue // the policy moves it
		}
		seats = append(seats, s)
		candidates = append(candidates, probe.Candidate{Aim: now, To: to, SLO: s.SLO,
			Band: s.curve.Eval(float64(to) * s.of.Unit), Account: s.account})
	}
	at, risk := p.trials().Choose(idle, candidates)
	if at < 0 {
		return
	}
	s, x := seats[at], &candidates[at]
	s.aim, s.risk = x.To, risk
	s.trial = fmt.Sprintf("on trial, to learn what it needs: performance %.3g to %.3g for an SLO of %.3g is a risk of %.0f%%, its error budget pays, %v are idle to give back",
		x.Band.Lower, x.Band.Upper, x.SLO, 100*risk, trimtab.Units(float64(idle)*s.of.Unit))
}

// tried charges a trial that goes out.
func (r *decision) tried(s *seat) {
	if s.trial != "" {
		s.account = s.account.Charge(s.risk)
		r.planner.counts.trials++
	}
}
