package dashboards

// contributions is the dashboard of what adds to the tail latency of one latency-critical
// workload, and what best-effort jobs beside it may use.
func contributions() *board {
	g := &grid{}
	const max1, pod = `max by (workload) (`, `max by (component, host) (`
	const legend = "{{component}} {{host}}"
	g.row("$workload")
	g.stat(6, "Slack", "(SLO - tail) / SLO. Below 0 the tail is over the SLO.", "percentunit",
		query{max1 + `trimtab_tail_slack_ratio{@1})`, "slack"}, colored("red", at(0, "yellow"), at(0.1, "green")))
	g.stat(6, "Tail", "Latency at the quantile of the SLO, over the last seconds.", "s", query{max1 + `trimtab_tail_seconds{@1})`, "tail"})
	g.stat(6, "Load", "Load as a share of the largest load seen.", "percentunit", query{max1 + `trimtab_tail_load_ratio{@1})`, "load"})
	g.stat(6, "Tail grew", "Whether the tail is longer than before by more than chance explains. trimtab explain names the component.", "none",
		query{max1 + `trimtab_tail_grew{@1})`, "tail"}, words(map[string]string{"0": "no change", "1": "grew"}), colored("green", at(1, "red")))

	g.row("What adds to the tail")
	g.graph(12, "Contributions", "What each component on each host adds to the tail: equation (6) of Rhythm, over all levels of load.", "short",
		[]query{{pod + `trimtab_servpod_contribution{@1})`, legend}})
	g.graph(12, "Part in the growth of the tail", "In which components the tail grew, while it is longer than before.", "percentunit",
		[]query{{pod + `trimtab_servpod_growth_ratio{@1}) > 0`, legend}}, between0And1)
	g.graph(12, "Sojourn time", "Mean time of a request in each component on each host, with the waiting of its callers for it.", "s",
		[]query{{pod + `trimtab_servpod_sojourn_seconds{@1})`, legend}}, from0)
	g.graph(12, "Tail", "Latency at the quantile of the SLO.", "s", []query{{max1 + `trimtab_tail_seconds{@1})`, "tail"}}, from0)

	g.row("Slack and thresholds")
	g.graph(12, "Slack and slacklimits", "Below the slacklimit of a component, best-effort jobs beside it do not grow; below 0 they stop.", "percentunit", []query{
		{max1 + `trimtab_tail_slack_ratio{@1})`, "slack"},
		{pod + `trimtab_servpod_slacklimit_ratio{@1})`, "slacklimit of " + legend},
	}, set("slack", property("custom.lineWidth", 2)))
	g.graph(12, "Load and loadlimits", "Above the loadlimit of a component no best-effort job runs beside it. Both as a share of the largest load seen.", "percentunit", []query{
		{max1 + `trimtab_tail_load_ratio{@1})`, "load"},
		{pod + `trimtab_servpod_loadlimit_ratio{@1})`, "loadlimit of " + legend},
	}, from0, set("load", property("custom.lineWidth", 2)))
	return newBoard("contributions", "Contributions", "What adds to the tail of a latency-critical workload, its slack, and the thresholds for best-effort jobs beside it.", g,
		labelValues("workload", "Workload", `label_values(trimtab_tail_seconds{`+siteLabels+`}, workload)`, false))
}
