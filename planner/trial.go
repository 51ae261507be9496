package planner

import (
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
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

// try raises or lowers one workload that is acted on, from its aim, to learn
// what it needs: see package probe. What it frees stays free.
func (r *decision) try() {
	p := r.planner
	if p.cfg.Exploration == 0 {
		return
	}
	var seats []*seat
	idle := 0
	for _, s := range r.seats {
		if !s.free || !s.acts() || s.in == nil || s.resource != 0 || s.loan != nil || s.shared() {
			continue
		}
		if len(seats) == 0 {
			idle = s.in.problem.Units - sum(s.in.answer.Units)
		}
		seats = append(seats, s)
	}
	if !r.giveBack(seats) && !r.raise(seats, idle) {
		r.lower(seats, idle)
	}
}

// settled reports whether the policy leaves s where it is.
func (s *seat) settled() bool { return s.aim == policy.UpUnits(s.now, s.of.Unit) }

// lower puts one of the seats on a trial downwards.
func (r *decision) lower(seats []*seat, idle int) {
	var at []*seat
	var candidates []probe.Candidate
	for _, s := range seats {
		if !s.settled() || s.account.From > 0 {
			continue // the policy moves it, or it is on trial
		}
		to := max(s.need.Explore, s.aim-s.of.Step, s.lo)
		at = append(at, s)
		candidates = append(candidates, probe.Candidate{Aim: s.aim, To: to, SLO: s.SLO,
			Band: s.curve.Eval(float64(to) * s.of.Unit), Account: s.account})
	}
	i, risk := r.planner.trials().Choose(idle, candidates)
	if i < 0 {
		return
	}
	s, x := at[i], &candidates[i]
	s.aim, s.risk = x.To, risk
	s.trial = fmt.Sprintf("on trial, to learn what it needs: performance %.3g to %.3g for an SLO of %.3g is a risk of %.0f%%, its error budget pays, %v are idle to give back",
		x.Band.Lower, x.Band.Upper, x.SLO, 100*risk, trimtab.Units(float64(idle)*s.of.Unit))
}

// raise puts one of the seats on a trial upwards and reports whether it did.
func (r *decision) raise(seats []*seat, idle int) bool {
	var at []*seat
	var candidates []probe.Short
	burning := false
	for _, s := range seats {
		here := s.curve.Eval(float64(s.aim) * s.of.Unit)
		if s.settled() && here.Mean < s.SLO && idle > 0 {
			to := min(max(s.need.Explore, s.aim+1), s.aim+s.of.Step, s.aim+idle, s.hi)
			at = append(at, s)
			candidates = append(candidates, probe.Short{Aim: s.aim, To: to, SLO: s.SLO, Account: s.account,
				Here: here, There: s.curve.Eval(float64(to) * s.of.Unit)})
		} else {
			burning = burning || r.planner.trials().Burns(s.account)
		}
	}
	i, risk := r.planner.trials().Raise(idle, burning, candidates)
	if i < 0 {
		return false
	}
	s, x := at[i], &candidates[i]
	s.aim, s.risk, s.kind = x.To, risk, raised
	s.trial = fmt.Sprintf("on trial, to learn whether more helps: performance %.3g to %.3g, where %.3g is expected now for an SLO of %.3g, is a risk of %.0f%% to be in vain; %v are idle, nobody is lowered for it",
		x.There.Lower, x.There.Upper, x.Here.Mean, x.SLO, 100*risk, trimtab.Units(float64(idle)*s.of.Unit))
	return true
}

const (
	// vain is the part of its SLO that a trial upwards must have gained to be kept.
	vain = 0.02
	// enoughRounds is after how many a trial upwards is over in any case.
	enoughRounds = 20
)

// giveBack ends the trials upwards that had their rounds, and takes back what
// one of them did not need; it reports whether it did.
func (r *decision) giveBack(seats []*seat) bool {
	for _, s := range seats {
		if !r.planner.trials().Over(s.account) {
			continue
		}
		from := s.account.From
		to := max(policy.UpUnits(from, s.of.Unit), s.lo)
		here, before := s.curve.Eval(s.now).Mean, s.curve.Eval(from).Mean
		if !s.settled() || to >= s.aim || here-before > vain*s.SLO || s.account.Rounds > enoughRounds {
			s.account = s.account.Ended() // the policy has taken over, it helped, or the guard keeps it
			continue
		}
		s.aim, s.kind = to, givenBack
		s.trial = fmt.Sprintf("more was tried and did not help: performance %.3g, and %.3g before", here, before)
		return true
	}
	return false
}

// trialKind is what a trial does.
type trialKind int

const (
	lowered trialKind = iota
	raised
	givenBack
)

// binding says what pays for it.
func (k trialKind) binding() trimtab.Binding {
	pays := "what the error budget pays"
	switch k {
	case raised:
		pays = "what is idle, and the share of the error budget"
	case givenBack:
		pays = "over"
	}
	return trimtab.Binding{Kind: trimtab.BindingTrial, Detail: pays}
}

// tried charges a trial that goes out.
func (r *decision) tried(s *seat) {
	if s.trial == "" {
		return
	}
	switch s.kind {
	case givenBack:
		s.account = s.account.Ended()
		return
	case raised:
		s.account = s.account.Raised(s.now)
	}
	s.account = s.account.Charge(s.risk)
	r.planner.counts.trials++
}
