package dashboards

// workload is the dashboard of one workload: why it has its allocation.
func workload() *board {
	g := &grid{}
	const max1 = `max by (workload) (`
	g.row("$workload")
	g.stat(4, "Utility", "What the newest performance is worth, by the workload's own function.", "percentunit",
		query{max1 + `trimtab_workload_utility{@1})`, "utility"}, between0And1, colored("red", at(0.5, "yellow"), at(0.9, "green")))
	g.stat(4, "Performance", "Newest performance, in the unit of the SLO.", "short", query{max1 + `trimtab_workload_performance{@1})`, "performance"})
	g.stat(4, "SLO", "Performance that is asked for.", "short", query{max1 + `trimtab_workload_slo_performance{@1})`, "SLO"})
	g.stat(4, "Allocation", "What the knobs give, in cores or workers.", "short", query{inOne(allocation), "allocation"})
	g.stat(4, "Observations", "Reports that the model of this workload holds.", "none", query{max1 + `trimtab_workload_reports{@1})`, "reports"})
	g.stat(4, "Input", "Held: an input is missing or stale, so the workload is not lowered. trimtab explain says which.", "none",
		query{max1 + `trimtab_workload_held{@1})`, "input"}, words(map[string]string{"0": "good", "1": "held"}), colored("green", at(1, "yellow")))

	g.row("What was learnt")
	g.add(curveMap())
	g.graph(12, "Performance against what was expected", "The newest performance inside the band that the model gives for what the workload has. Outside it for long: something changed.", "short", []query{
		{max1 + `trimtab_workload_expected_performance{@1,at="allocation",bound="upper"})`, "upper"},
		{max1 + `trimtab_workload_expected_performance{@1,at="allocation",bound="lower"})`, "lower"},
		{max1 + `trimtab_workload_expected_performance{@1,at="allocation",bound="mean"})`, "expected"},
		{max1 + `trimtab_workload_expected_performance{@1,at="target",bound="mean"})`, "expected at the target"},
		{max1 + `trimtab_workload_performance{@1})`, "measured"},
		{max1 + `trimtab_workload_slo_performance{@1})`, "SLO"},
	}, from0, band("lower", "upper"), dashed("expected at the target"), dashed("SLO"),
		set("measured", property("custom.lineWidth", 2), property("color", fixed("orange"))))

	g.row("What it gets")
	g.graph(12, "Allocation, demand and target", "What the knobs give, the least that meets the SLO, and what the solver wants for everybody's sake.", "short", []query{
		{inOne(allocation), "allocation"},
		{max1 + `trimtab_workload_demand{@1})`, "demand"},
		{max1 + `trimtab_workload_target{@1})`, "target"},
	}, from0, stairs, dashed("demand"), dashed("target"), set("allocation", property("custom.lineWidth", 2)))
	g.graph(12, "Between rounds", "What the fast loop set inside what plans allow (section fast), where it rests, and the mean of what it granted.", "short", []query{
		{`sum by (workload) (trimtab_fast_set_cores{@1})`, "set"},
		{`sum by (workload) (trimtab_fast_target_cores{@1})`, "rests at"},
		{`sum by (workload) (rate(trimtab_fast_granted_core_seconds_total{@1}[$__rate_interval]))`, "granted, mean"},
	}, from0, stairs, dashed("rests at"))
	g.graph(12, "Borrowed and lent", "Cores above and below where it rests, and the share of the time that its quota stopped it.", "short", []query{
		{`sum by (workload) (rate(trimtab_fast_borrowed_core_seconds_total{@1}[$__rate_interval]))`, "borrowed"},
		{`sum by (workload) (rate(trimtab_fast_lent_core_seconds_total{@1}[$__rate_interval]))`, "lent"},
		{`sum by (workload) (rate(trimtab_fast_stalled_seconds_total{@1}[$__rate_interval]))`, "stalled"},
	}, from0)
	whatWaits(g)
	fastLoop(g)
	g.graph(12, "Allocation by host", "What its instances on each host have together; on more than 64 hosts, the sum over all.", "short",
		[]query{{`max by (host, resource) (trimtab_workload_allocation{@1})`, "{{host}} {{resource}}"}}, from0, stairs)
	g.graph(12, "Instances", "Running copies whose knobs were told of, over all hosts.", "none",
		[]query{{max1 + `trimtab_workload_instances{@1})`, "instances"}}, from0, stairs)
	g.graph(12, "Load and forecast", "Newest load, and the upper bound that is forecast for the whole coming round.", "reqps", []query{
		{max1 + `trimtab_workload_load{@1})`, "load"},
		{max1 + `trimtab_workload_load_upper{@1})`, "forecast, upper bound"},
	}, from0, dashed("forecast, upper bound"))
	g.graph(12, "Utility", "What the performance is worth, by the workload's own function.", "percentunit",
		[]query{{max1 + `trimtab_workload_utility{@1})`, "utility"}}, between0And1)
	g.graph(12, "Latency", "Latency of the newest interval by percentile.", "s",
		[]query{{`max by (percentile) (trimtab_workload_latency_seconds{@1})`, "p{{percentile}}"}}, from0)
	g.graph(12, "Decisions", "Actions on this workload in published plans, by mode and direction.", "ops",
		[]query{{`sum by (mode, direction) (max by (namespace, job, mode, direction) (rate(trimtab_workload_decisions_total{@1}[$__rate_interval])))`, "{{mode}} {{direction}}"}}, from0, bars)
	g.graph(12, "Age of the inputs", "Time since the newest estimate, and age of the samples that Prometheus gave. A rising line is an input that has stopped.", "s", []query{
		{`time() - max(trimtab_workload_estimate_timestamp_seconds{@1})`, "estimate"},
		{`max by (quantity) (trimtab_collector_prometheus_sample_age_seconds{@1})`, "{{quantity}} from Prometheus"},
	}, from0)
	workloadCounters(g)
	b := newBoard("workload", "Workload", "One workload: its learned curve, what it gets, what was forecast and decided.", g,
		labelValues("workload", "Workload", `label_values(trimtab_workload_held{`+siteLabels+`}, workload)`, false))
	b.Annotations.List = []annotation{
		decisions("Acts", "act", "orange", true),
		decisions("Recommendations", "recommend", "blue", false),
	}
	return b
}

// whatWaits has what the kernel counts as waiting, what gates refuse so that it does not wait, and what
// the kernel kills.
func whatWaits(g *grid) {
	g.graph(12, "What waits", "Connections that wait to be accepted, and for how many seconds of each second its threads waited for a CPU, all together. Read while the workload is near its limit, stopped by it, or the host is full.", "short", []query{
		{`max by (workload) (trimtab_workload_accept_queue{@1})`, "connections to be accepted"},
		{`max by (workload) (trimtab_workload_cpu_wait_ratio{@1})`, "threads waiting for a CPU"},
	}, from0)
	g.graph(12, "Killed for want of memory", "Processes of the workload that the kernel killed because its control group was at the limit, by the agents that saw it, and limits that agents raised before a round did.", "short", []query{
		{`sum by (workload) (increase(trimtab_workload_oom_kills_total{@1}[$__rate_interval]))`, "kills"},
		{`sum by (cause, result) (increase(trimtab_memory_raises_total{@1}[$__rate_interval]))`, "limit {{result}} at {{cause}}"},
	}, from0, bars)
	g.graph(12, "Refused requests", "Requests per second that gates refused, by class. They are part of the load, and not within the SLO.", "reqps",
		[]query{{`max by (class) (trimtab_workload_refused_per_second{@1})`, "{{class}}"}}, from0)
}

// fastLoop has what the fast loops of hosts do, over all workloads.
func fastLoop(g *grid) {
	g.graph(12, "Fast loop", "Quotas that hosts moved between rounds, ticks that came late, and rounds that were asked for since a loan lasts or a host has no room.", "ops", []query{
		{rate("trimtab_fast_writes_total", "job"), "writes of {{job}}"},
		{rate("trimtab_fast_failed_total", "job"), "failed writes of {{job}}"},
		{rate("trimtab_fast_late_total", "host"), "late ticks on {{host}}"},
		{rate("trimtab_fast_asks_total", "host, cause"), "{{cause}} on {{host}}"},
	}, from0)
	g.graph(12, "Groups of the fast loop, and its ticks", "Control groups that hosts may move, and the time that a tick takes: with 100 groups it is about 1 ms.", "short", []query{
		{`sum by (host) (trimtab_fast_groups{@})`, "groups on {{host}}"},
		{`1000 * sum(rate(trimtab_fast_tick_seconds_sum{@}[$__rate_interval])) / sum(rate(trimtab_fast_tick_seconds_count{@}[$__rate_interval]))`, "ms a tick"},
	}, from0)
}

// workloadCounters has counters of CPUs and kernel, where measure.perf is on.
func workloadCounters(g *grid) {
	const max1 = `max by (workload) (`
	g.row("Performance counters (measure.perf)")
	g.graph(12, "Cycles per instruction, cache misses", "A workload whose CPI rises at the same load runs slower on its CPUs: a neighbour takes cache or memory bandwidth. Absent where the hardware does not count, as in most virtual machines.", "short", []query{
		{max1 + `trimtab_perf_cycles_per_instruction{@1})`, "cycles per instruction"},
		{max1 + `trimtab_perf_misses_per_kiloinstruction{@1})`, "misses per 1,000 instructions"},
		{max1 + `trimtab_perf_references_per_kiloinstruction{@1})`, "references per 1,000 instructions"},
	}, from0)
	g.graph(12, "Waiting for a CPU", "Share of the time that its threads could run in which they waited. It tells of waiting, where cycles are not counted.", "percentunit",
		[]query{{max1 + `trimtab_perf_run_delay_ratio{@1})`, "run delay"}}, between0And1)
	g.graph(12, "Switches, faults, migrations", "What the kernel counted for the workload, by second.", "ops", []query{
		{max1 + `trimtab_perf_context_switches_per_second{@1})`, "context switches"},
		{max1 + `trimtab_perf_page_faults_per_second{@1})`, "page faults"},
		{max1 + `trimtab_perf_cpu_migrations_per_second{@1})`, "migrations"},
	}, from0)
	g.graph(12, "Task clock", "CPU time that the kernel counted for the workload, in cores.", "short",
		[]query{{max1 + `trimtab_perf_task_clock_cores{@1})`, "cores"}}, from0)
}

// decisions marks when actions of a mode were published.
func decisions(name, mode, color string, on bool) annotation {
	return annotation{
		Name: name, Datasource: chosen(), Enable: on, IconColor: color, TitleFormat: "{{mode}}: {{direction}}", TextFormat: "$workload",
		Expr: onBoard(`sum by (mode, direction) (max by (namespace, job, mode, direction) (increase(trimtab_workload_decisions_total{@1,mode="` + mode + `"}[$__rate_interval]))) > 0`),
	}
}

// curveMap shows the learned curve over time: a row per allocation, coloured
// by the performance that is expected there.
func curveMap() picture {
	return picture{kind: "heatmap", title: "Learned curve", unit: "short", w: 12, h: 8,
		about:   "Performance that the model expects in the coming round (colour) at each allocation (height), over time.",
		queries: []query{{`max by (allocation) (trimtab_workload_curve_performance{@1})`, "{{allocation}}"}},
		change: []func(*panel){func(p *panel) {
			p.FieldConfig.Defaults.Custom = object{"hideFrom": object{"legend": false, "tooltip": false, "viz": false}, "scaleDistribution": object{"type": "linear"}}
			p.Options = object{
				"calculate": false, "cellGap": 1, "cellValues": object{"unit": "short"}, "rowsFrame": object{"layout": "auto", "value": "performance"},
				"color":     object{"mode": "scheme", "scheme": "RdYlGn", "steps": 64, "exponent": 0.5, "fill": "dark-green", "reverse": false, "min": 0},
				"exemplars": object{"color": "rgba(255,0,255,0.7)"}, "filterValues": object{"le": 1e-9},
				"legend": object{"show": true}, "showValue": "never", "tooltip": object{"mode": "single", "showColorScale": true, "yHistogram": false},
				"yAxis": object{"axisPlacement": "left", "reverse": false, "unit": "short"},
			}
		}}}
}

// band fills between two curves and hides their lines.
func band(lower, upper string) func(*panel) {
	return func(p *panel) {
		set(upper, property("custom.fillBelowTo", lower), property("custom.lineWidth", 0), property("custom.fillOpacity", 20), property("color", fixed("blue")))(p)
		set(lower, property("custom.lineWidth", 0), property("color", fixed("blue")))(p)
	}
}

// dashed draws a curve of targets, not measurements, dashed.
func dashed(name string) func(*panel) {
	return set(name, property("custom.lineStyle", object{"fill": "dash", "dash": []int{6, 4}}))
}

func fixed(color string) object { return object{"mode": "fixed", "fixedColor": color} }
