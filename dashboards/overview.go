package dashboards

// Expressions that boards and rules share; the labels by which a site is told
// apart are kept.
const (
	attainment = `clamp_max(max by (namespace, job, workload) (trimtab_workload_performance{@w}) / (max by (namespace, job, workload) (trimtab_workload_slo_performance{@w}) > 0), 1)`
	// What is given of the first resource; others have other units. A workload on many hosts, or
	// in brief, has one series with an empty host.
	allocation = `sum by (namespace, job, workload) (max by (namespace, job, workload, host, resource) (trimtab_workload_allocation{@w}) unless on (namespace, job, resource) trimtab_pool_further_capacity{@})`
	refused    = `sum by (namespace, job, workload) (max by (namespace, job, workload, class) (trimtab_workload_refused_per_second{@w})) / (max by (namespace, job, workload) (trimtab_workload_load{@w}) > 0)`
	hostFree   = `1 - max by (namespace, job, pool, host, resource) (trimtab_host_given{@}) / (max by (namespace, job, pool, host, resource) (trimtab_host_capacity{@}) > 0)`
	givenOut   = `sum by (namespace, job) (max by (namespace, job, workload, host, resource) (trimtab_workload_allocation{@}) unless on (namespace, job, resource) trimtab_pool_further_capacity{@}) / sum by (namespace, job) (max by (namespace, job, pool) (trimtab_pool_capacity{@}))`
)

// overview is the first dashboard to open: how well the pool serves its workloads.
func overview() *board {
	g := &grid{}
	g.row("At a glance")
	g.stat(4, "Objective", "Value of the objective that the newest plan expects; 1 is the best there is.", "percentunit",
		query{`max by (pool, objective) (trimtab_pool_objective{@})`, "{{pool}} {{objective}}"}, between0And1, colored("red", at(0.5, "yellow"), at(0.9, "green")))
	g.stat(4, "Below their SLO", "Workloads whose newest performance is less than their SLO asks for.", "none",
		query{`count(` + attainment + ` < 1) or vector(0)`, "workloads"}, colored("green", at(1, "yellow")))
	g.stat(4, "Held", "Workloads that are not lowered, since an input is missing or stale.", "none",
		query{`sum(max by (workload) (trimtab_workload_held{@w}))`, "workloads"}, colored("green", at(1, "yellow")))
	g.stat(4, "Given out", "Share of the capacity that is allocated. More than 100% must not happen.", "percentunit",
		query{givenOut, "{{job}}"}, colored("green", at(1.001, "red")))
	g.stat(4, "Newest plan", "Time since the newest plan. Plans come once a round, also when nothing moves.", "s",
		query{`time() - max by (pool) (trimtab_pool_plan_timestamp_seconds{@})`, "{{pool}}"}, colored("green", at(120, "yellow"), at(300, "red")))
	g.stat(4, "Knobs", "Whether a person froze the knobs (trimtab pause).", "none",
		query{`max(trimtab_actuator_paused{@})`, "knobs"}, words(map[string]string{"0": "free", "1": "paused"}), colored("green", at(1, "yellow")))

	g.row("Workloads")
	g.add(worstFirst())
	g.graph(12, "Utility", "What the newest performance of each workload is worth, by its own utility function.", "percentunit",
		[]query{{`max by (workload) (trimtab_workload_utility{@w})`, "{{workload}}"}}, between0And1)
	g.graph(12, "Performance against the SLO", "Newest performance as a share of what the SLO asks for, cut at 100%.", "percentunit",
		[]query{{attainment, "{{workload}}"}}, between0And1)
	g.graph(12, "Allocation", "What the knobs give, by workload, and the capacity of the pool, in cores or workers.", "short",
		[]query{{allocation, "{{workload}}"}, {`sum(max by (pool) (trimtab_pool_capacity{@}))`, "capacity"}}, from0, stairs, stacked("capacity"))
	g.graph(12, "Demand", "Least allocation that meets each SLO in the coming round. A sum over the capacity means that somebody must miss out.", "short",
		[]query{{`max by (workload) (trimtab_workload_demand{@w})`, "{{workload}}"}, {`sum(max by (pool) (trimtab_pool_capacity{@}))`, "capacity"}}, from0, stairs, stacked("capacity"))
	g.graph(12, "Load", "Requests per second, newest report.", "reqps",
		[]query{{`max by (workload) (trimtab_workload_load{@w})`, "{{workload}}"}}, from0)
	g.graph(12, "Latency at the 95th percentile", "Latency of the newest interval.", "s",
		[]query{{`max by (workload) (trimtab_workload_latency_seconds{@w,percentile="95"})`, "{{workload}}"}}, from0)
	g.graph(12, "Refused requests", "Requests that gates refused, as a share of the load. They are part of the load, and not within the SLO.", "percentunit",
		[]query{{refused, "{{workload}}"}}, between0And1)

	g.row("Hosts")
	g.graph(12, "Least free", "Part of its capacity that each host has free, of the resource of which that is least: the 20 hosts with the least. 0 binds whoever runs there.", "percentunit",
		[]query{{`bottomk(20, min by (host) (` + hostFree + `))`, "{{host}}"}}, between0And1)
	g.graph(12, "Given out by host", "What the knobs on each host hold or may yet hold, as a part of its capacity: the 20 with the most. More than 100% must not happen.", "percentunit",
		[]query{{`topk(20, max by (host, resource) (1 - (` + hostFree + `)))`, "{{host}} {{resource}}"}}, from0)
	g.graph(12, "Hosts and knobs", "Hosts that told of their knobs in the last minute, their knobs, and those of them that cannot be used.", "none", []query{
		{`count(time() - max by (pool, host) (trimtab_host_timestamp_seconds{@}) < 60)`, "hosts"},
		{`sum(max by (pool, host) (trimtab_host_knobs{@}))`, "knobs"},
		{`sum(max by (pool, host) (trimtab_host_unusable_knobs{@}))`, "cannot be used"},
	}, from0, stairs)
	g.graph(12, "Instances", "Instances of each workload that has more than one.", "none",
		[]query{{`max by (workload) (trimtab_workload_instances{@w}) > 1`, "{{workload}}"}}, from0, stairs)

	g.row("Fairness")
	g.graph(12, "Is this fair?", "By the newest audit, in parts of the demand: how much somebody would rather have another's allocation, how far somebody is behind its entitlement, and what nobody has and somebody could use. All 0 is fair; of=target is what the solver wants, of=now what there is.", "percentunit",
		[]query{{`max by (pool, of) (trimtab_pool_envy_ratio{@})`, "{{pool}} envy {{of}}"}, {`max by (pool, of) (trimtab_pool_shortfall_ratio{@})`, "{{pool}} shortfall {{of}}"},
			{`max by (pool, of) (trimtab_pool_slack_ratio{@})`, "{{pool}} slack {{of}}"}}, between0And1)
	g.graph(12, "Resources", "What the workloads have and what they demand of each resource, as a part of its capacity.", "percentunit",
		[]query{{`max by (pool, resource) (trimtab_pool_used_ratio{@})`, "{{pool}} {{resource}} used"}, {`max by (pool, resource) (trimtab_pool_demanded_ratio{@})`, "{{pool}} {{resource}} demanded"}}, from0)
	g.graph(12, "Dominant share and entitlement", "Greatest part of any resource that each workload has, and the part of the pool that it is entitled to.", "percentunit",
		[]query{{`max by (workload) (trimtab_workload_dominant_share_ratio{@w})`, "{{workload}}"}, {`max by (workload) (trimtab_workload_entitlement_ratio{@w})`, "{{workload}} entitled"}}, between0And1)
	g.graph(12, "Envy and shortfall", "What each workload would gain with another's allocation scaled to its own entitlement, or with its entitlement of every resource, as a part of its demand.", "percentunit",
		[]query{{`max by (workload) (trimtab_workload_envy_ratio{@w})`, "{{workload}} envy"}, {`max by (workload) (trimtab_workload_shortfall_ratio{@w})`, "{{workload}} shortfall"}}, between0And1)
	g.graph(12, "Satisfaction", "Part of its demand of all resources that each workload can use.", "percentunit",
		[]query{{`max by (workload) (trimtab_workload_satisfaction_ratio{@w})`, "{{workload}}"}}, between0And1)
	g.graph(12, "Bound by", "Workloads that each resource keeps from more of their demand.", "none",
		[]query{{`max by (pool, resource) (trimtab_pool_bound_workloads{@})`, "{{pool}} {{resource}}"}}, from0)

	g.row("Decisions")
	g.graph(12, "Planned", "Actions in published plans, by mode and direction.", "ops",
		[]query{{`sum by (mode, direction) (rate(trimtab_planner_actions_total{@}[$__rate_interval]))`, "{{mode}} {{direction}}"}}, from0, bars)
	g.graph(12, "What came of them", "Results of actions, by resource and status. Refused means that a promise forbade it; failed means that the kernel did.", "ops",
		[]query{{`sum by (resource, status) (max by (namespace, job, resource, status) (rate(trimtab_actions_total{@}[$__rate_interval])))`, "{{resource}} {{status}}"}}, from0, bars)
	return newBoard("overview", "Overview", "How well the pool serves its workloads, worst first, and what trimtab does about it.", g,
		labelValues("workload", "Workload", `label_values(trimtab_workload_held{`+siteLabels+`}, workload)`, true))
}

// column is one column of the table of workloads.
type column struct {
	name, unit, expr string
}

// worstFirst is the table of workloads, the least utility on top.
func worstFirst() picture {
	columns := []column{
		{"Utility", "percentunit", `max by (workload) (trimtab_workload_utility{@w})`},
		{"Performance", "short", `max by (workload) (trimtab_workload_performance{@w})`},
		{"SLO", "short", `max by (workload) (trimtab_workload_slo_performance{@w})`},
		{"Load", "reqps", `max by (workload) (trimtab_workload_load{@w})`},
		{"Allocation", "short", `sum by (workload) (` + allocation + `)`},
		{"Demand", "short", `max by (workload) (trimtab_workload_demand{@w})`},
		{"Target", "short", `max by (workload) (trimtab_workload_target{@w})`},
		{"Held", "none", `max by (workload) (trimtab_workload_held{@w})`},
	}
	p := picture{kind: "table", title: "Worst first", unit: "short", w: 24, h: 8,
		about: "Newest values of every workload, the least utility on top. Follow a name to its board."}
	rename, order := object{"workload": "Workload"}, object{"workload": 0}
	var units []func(*panel)
	for i, c := range columns {
		p.queries = append(p.queries, query{c.expr, c.name})
		field := "Value #" + string(rune('A'+i))
		rename[field], order[field] = c.name, i+1
		units = append(units, set(c.name, property("unit", c.unit)))
	}
	p.change = append(p.change, units...)
	p.change = append(p.change, set("Workload", property("links", []object{{
		"title": "Show ${__value.text}", "url": "/d/trimtab-workload?var-workload=${__value.text}&${datasource:queryparam}&${namespace:queryparam}&${__url_time_range}"}})),
		set("Held", property("mappings", []object{{"type": "value", "options": object{"0": object{"text": "no"}, "1": object{"text": "yes"}}}})),
		func(p *panel) {
			for i := range p.Targets {
				p.Targets[i].Format, p.Targets[i].Instant, p.Targets[i].Range = "table", true, false
			}
			p.FieldConfig.Defaults.NoValue = "–"
			p.Options = object{"showHeader": true, "cellHeight": "sm", "sortBy": []object{{"displayName": "Utility", "desc": false}}}
			p.Transformations = []object{
				{"id": "joinByField", "options": object{"byField": "workload", "mode": "outer"}},
				{"id": "organize", "options": object{"excludeByName": hidden(len(columns)), "indexByName": order, "renameByName": rename}},
			}
		})
	return p
}

// hidden are the columns of time that a join leaves.
func hidden(n int) object {
	out := object{"Time": true}
	for i := 1; i <= n; i++ {
		out["Time "+string(rune('0'+i))] = true
	}
	return out
}
