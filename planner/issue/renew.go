package issue

import (
	"maps"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/ledger"
)

// renewal is a plan that limits for how long knobs may have more than their baselines. The plan is
// published again when the lending hosts have accepted it, since their leases then end later.
type renewal struct {
	plan  trimtab.Plan
	waits map[string]bool
	until time.Time
}

// borrowLease returns for how long knobs may have more than their baselines, and which hosts lend
// them capacity; 0: as long as the lease.
//
//	Σ max(reserve, baseline) <= R, or  t + borrow <= least end of the leases of those that lend
//
// If the lease of a lending host ends, it restores its baselines and uses its capacity again. Its
// lease may end before that of others (a plan was lost), with no planner left to tell them. What it
// lent must therefore be returned by then.
func (i *Issuer) borrowLease(now time.Time) (left time.Duration, lenders map[string]bool) {
	if !i.Ledger.Many() {
		return 0, nil
	}
	for r := range i.Resources {
		of := &i.Resources[r]
		ended := i.Ledger.Count(of.Name, func(k *ledger.Knob) float64 { return i.Ledger.Ended(k, now) })
		if i.spare(now, of, ended) >= -sums*of.Unit {
			continue
		}
		names, until := i.Ledger.Lenders(of.Name, now)
		if len(names) == 0 {
			continue
		}
		if d := min(until.Sub(now), i.Lease); left == 0 || d < left {
			left = d
		}
		if lenders == nil {
			lenders = map[string]bool{}
		}
		for _, name := range names {
			lenders[name] = true
		}
	}
	return left, lenders
}

// lend sets the plan's borrow lease, and remembers the plan for a renewal.
func (i *Issuer) lend(plan *trimtab.Plan) {
	left, lenders := i.borrowLease(plan.Time)
	plan.BorrowLease = trimtab.SecondsOf(left)
	if i.renewal = nil; plan.Last && left > 0 {
		i.renewal = &renewal{plan: *plan, waits: lenders, until: plan.Time.Add(i.Confirm)}
	}
}

// renew returns the last plan again, without actions, once all lenders have accepted it or the time
// for answers is over. nil: not now, or it would not extend the borrow lease.
func (i *Issuer) renew(now time.Time) *trimtab.Plan {
	r := i.renewal
	if r == nil || len(r.waits) > 0 && now.Before(r.until) {
		return nil
	}
	i.renewal = nil
	left, _ := i.borrowLease(now)
	if had := r.plan.BorrowLease.Duration() - now.Sub(r.plan.Time); left > 0 && left <= had+time.Millisecond {
		return nil
	}
	plan := i.next(&r.plan, now)
	plan.BorrowLease = trimtab.SecondsOf(left)
	return &plan
}

// next returns the next step of the same plan, without actions.
func (i *Issuer) next(before *trimtab.Plan, now time.Time) trimtab.Plan {
	plan := *before
	plan.Step, plan.Last, plan.Time = before.Step+1, true, now
	// These parts are sent only once. The maps are cloned, since two steps must not share one.
	plan.Verdicts, plan.Envelopes, plan.Audit, plan.Actions = nil, nil, nil, nil
	plan.Held, plan.Unmoved = maps.Clone(before.Held), maps.Clone(before.Unmoved)
	plan.Hosts = i.Ledger.Hosts()
	return plan
}
