package prometheus

import "github.com/trimtab/trimtab"

// audit exports the fairness audit of p, the newest plan with one, and removes the series of
// workloads that it leaves out.
func (e *Exporter) audit(p *trimtab.Plan) {
	a := p.Audit
	e.fairness(p.Pool, "now", &a.Now)
	e.fairness(p.Pool, "target", a.Target)
	for _, r := range a.Resources {
		if e.names.resource(r.Resource) != r.Resource {
			continue
		}
		var used, demanded *float64
		if r.Capacity > 0 {
			u, d := r.Used/r.Capacity, r.Demanded/r.Capacity
			used, demanded = &u, &d
		}
		binds := float64(r.Binds)
		e.set("trimtab_pool_used_ratio", used, p.Pool, r.Resource)
		e.set("trimtab_pool_demanded_ratio", demanded, p.Pool, r.Resource)
		e.set("trimtab_pool_bound_workloads", &binds, p.Pool, r.Resource)
	}
	listed := make(map[string]bool, len(a.Workloads))
	for i := range a.Workloads {
		w := &a.Workloads[i]
		if e.known(w.Workload) == nil {
			continue
		}
		listed[w.Workload] = true
		e.judged(w.Workload, w)
	}
	for name, w := range e.workloads {
		switch {
		case listed[name]:
			w.audited = p.Pool
		case w.audited != "" && w.audited == p.Pool:
			w.audited = ""
			e.judged(name, nil)
		}
	}
}

func (e *Exporter) fairness(pool, of string, f *trimtab.Fairness) {
	var envy, shortfall, slack *float64
	if f != nil {
		envy, shortfall, slack = &f.Envy, &f.Shortfall, &f.Slack
	}
	e.set("trimtab_pool_envy_ratio", envy, pool, of)
	e.set("trimtab_pool_shortfall_ratio", shortfall, pool, of)
	e.set("trimtab_pool_slack_ratio", slack, pool, of)
}

// judged exports one row of an audit; nil removes it.
func (e *Exporter) judged(name string, w *trimtab.AuditedWorkload) {
	var entitlement, share, satisfaction, envy, shortfall *float64
	if w != nil {
		entitlement, share = &w.Entitlement, &w.Share
		if w.Satisfaction != nil {
			satisfaction, envy, shortfall = w.Satisfaction, &w.Envy, &w.Shortfall
		}
	}
	e.set("trimtab_workload_entitlement_ratio", entitlement, name)
	e.set("trimtab_workload_dominant_share_ratio", share, name)
	e.set("trimtab_workload_satisfaction_ratio", satisfaction, name)
	e.set("trimtab_workload_envy_ratio", envy, name)
	e.set("trimtab_workload_shortfall_ratio", shortfall, name)
}
