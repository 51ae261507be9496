package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
)

// This file prints -o wide: every column that there is.

func wideStatus(w io.Writer, s *view.Status) {
	rows := [][]string{{"WORKLOAD", "MODE", "CLASS", "LOAD/S", "UP TO", "P50", "P99", "SLO", "WITHIN", "BUDGET LEFT", "BURN RATE", "UTILITY",
		strings.ToUpper(view.Unit(s.Resource)), "TARGET", "DEMAND", "REPORTS", "AGE", "PLAN", "HOST", "KNOB", "STATE"}}
	for i := range s.Workloads {
		r := &s.Workloads[i]
		age, plan := view.Missing, view.Missing
		if r.Age != nil {
			age = view.Age(*r.Age)
		}
		if r.Decision != nil {
			plan = r.Decision.Plan
		}
		rows = append(rows, []string{r.Name, string(r.Mode), orDash(string(r.Class)), view.Load(r), view.Optional(r.LoadUpper),
			view.Latency(r.Latency, "p50"), view.Latency(r.Latency, "p99"), orDash(r.SLO), view.Performance(r.Performance, r.Share),
			r.Budget.LeftText(), r.Budget.BurnText(), view.Optional(r.Utility), view.Has(r), view.Optional(r.Target), view.Optional(r.Demand), fmt.Sprint(r.Reports), age, plan,
			orDash(r.Host), orDash(r.Knob), stateSince(r)})
		if r.Instances > 1 {
			last := rows[len(rows)-1]
			last[len(last)-2] = view.Spread(r.Instances, r.Hosts)
		}
	}
	cli.Table(w, rows)
	printHosts(w, s.Tightest, len(s.Tightest))
}

func widePlan(w io.Writer, p *trimtab.Plan) {
	fmt.Fprintf(w, "plan %s step %d of %s (%s) for pool %s: objective %s, lease %s\n", p.ID(), p.Step, view.Clock(p.Time), p.Cause, p.Pool, p.Objective, view.Age(p.Lease))
	rows := [][]string{{"WORKLOAD", "RESOURCE", "HOST", "INSTANCE", "MODE", "NOW", "NEXT", "TARGET", "DEMAND", "LIMITED BY", "WHY"}}
	for i := range p.Actions {
		a := &p.Actions[i]
		rows = append(rows, []string{a.Workload, a.Resource, orDash(a.Host), orDash(a.Instance), string(a.Mode), view.AmountIn(a.Expect, a.Resource), view.AmountIn(a.Set, a.Resource),
			view.Optional(a.Why.Target), view.Optional(a.Why.Demand), a.Why.Binding.String(), a.Why.Summary})
	}
	cli.Table(w, rows)
}

func wideDiff(w io.Writer, all []view.Difference) {
	rows := [][]string{{"WORKLOAD", "RESOURCE", "MODE", "NOW", "NEXT", "TARGET", "AWAY", "LIMITED BY"}}
	for i := range all {
		d := &all[i]
		away := view.Missing
		if d.Target != nil && !d.Now.Unlimited {
			away = fmt.Sprintf("%+.3g", *d.Target-d.Now.Value)
		}
		rows = append(rows, withEach([]string{d.Workload, d.Resource, string(d.Mode), view.AmountIn(d.Now, d.Resource), view.AmountIn(d.Next, d.Resource), view.Optional(d.Target), away, orDash(d.Binding.String())}, view.Each(d.Moves, d.Resource)))
	}
	cli.Table(w, rows)
}
