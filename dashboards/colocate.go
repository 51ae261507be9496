package dashboards

// colocate is best-effort jobs beside services, by host: what was decided and why,
// what they got, and what was taken back from them.
func colocate() *board {
	g := &grid{}
	g.row("Decisions")
	g.graph(12, "Decisions", "What each host decided, per second: StopBE kills, SuspendBE freezes, CutBE takes a step, DisallowBEGrowth lets nothing grow.", "ops",
		[]query{{rate("trimtab_colocate_decisions_total", "host, verb"), "{{verb}} {{host}}"}}, from0)
	g.graph(12, "Changes to jobs", "What was decided for single jobs, per second; in mode recommend nothing of it was done.", "ops",
		[]query{{rate("trimtab_colocate_changes_total", "host, act"), "{{act}} {{host}}"}}, from0, bars)
	g.graph(12, "Slack of services", "(SLO - tail latency) / SLO, as the hosts decide by it. Below 0 the SLO is missed.", "percentunit",
		[]query{{`min by (host, workload) (trimtab_colocate_slack_ratio{@})`, "{{workload}} on {{host}}"}})
	g.graph(12, "Load of services", "As a share of the most that each carries.", "percentunit",
		[]query{{`max by (host, workload) (trimtab_colocate_load_ratio{@})`, "{{workload}} on {{host}}"}}, from0)
	g.row("Jobs")
	g.graph(12, "Jobs", "Best-effort jobs by state.", "none",
		[]query{{`sum by (host, state) (trimtab_colocate_jobs{@})`, "{{state}} on {{host}}"}}, from0, stairs)
	g.graph(12, "Cores of jobs", "What running jobs have together, and what they may have.", "none", []query{
		{`sum by (host) (trimtab_colocate_used{@,resource="cpu"})`, "given on {{host}}"},
		{`sum by (host) (trimtab_colocate_capacity{@,resource="cpu"})`, "capacity of {{host}}"},
	}, from0)
	g.graph(12, "Work given and lost", "Cores that jobs were given, and core-seconds per second that kills destroyed.", "none", []query{
		{rate("trimtab_colocate_given_core_seconds_total", "instance"), "given {{instance}}"},
		{rate("trimtab_colocate_lost_core_seconds_total", "instance"), "lost {{instance}}"},
	}, from0)
	g.graph(12, "Reclaimed", "Cores taken back from jobs, per second.", "none",
		[]query{{rate("trimtab_colocate_reclaimed_cores_total", "host"), "{{host}}"}}, from0, bars)
	g.row("How it works")
	g.graph(12, "Time of a decision", "From a look at the jobs of a host to the last write.", "s", spread("trimtab_colocate_step_seconds", ""), from0)
	g.graph(12, "Reports of progress", "By what became of them, per second.", "ops",
		[]query{{rate("trimtab_colocate_reports_total", "result"), "{{result}}"}}, from0)
	return newBoard("colocate", "Best-effort jobs", "What best-effort jobs get beside latency-critical services, and what is taken back from them.", g)
}
