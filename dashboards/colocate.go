package dashboards

// colocate is the dashboard of best-effort jobs beside services, by host: decisions and reasons,
// what jobs got, and what was taken back.
func colocate() *board {
	g := &grid{}
	g.row("Decisions")
	g.graph(12, "Decisions", "What each host decided, per second: StopBE frees what the jobs have that lose least, SuspendBE freezes all, CutBE takes a step, DisallowBEGrowth lets nothing grow.", "ops",
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
	g.row("All hosts, as a console heard")
	g.graph(12, "Jobs by host", "Best-effort jobs by state, as each agent tells: one look at the console's metrics for the whole fleet.", "none",
		[]query{{`max by (host, state) (trimtab_host_jobs{@})`, "{{state}} on {{host}}"}}, from0, stairs)
	g.graph(12, "Decision in force", "1 for the decision of each host.", "none",
		[]query{{`max by (host, verb) (trimtab_host_jobs_decision{@})`, "{{verb}} {{host}}"}}, from0, stairs)
	g.graph(12, "Cores of jobs by host", "What running jobs have together, and what they may have.", "none", []query{
		{`max by (host) (trimtab_host_jobs_used{@,resource="cpu"})`, "given on {{host}}"},
		{`max by (host) (trimtab_host_jobs_capacity{@,resource="cpu"})`, "capacity of {{host}}"},
	}, from0)
	g.graph(12, "Least slack by host", "Of the services on each host: (SLO - tail latency) / SLO.", "percentunit",
		[]query{{`min by (host) (trimtab_host_jobs_slack_ratio{@})`, "{{host}}"}})
	g.graph(12, "Work given and lost by host", "Core-seconds since the agent of the host began.", "s", []query{
		{`max by (host) (trimtab_host_jobs_given_core_seconds{@})`, "given on {{host}}"},
		{`max by (host) (trimtab_host_jobs_lost_core_seconds{@})`, "lost on {{host}}"},
	}, from0)
	g.graph(12, "Kills, and silence of hosts", "Jobs killed since the agent of the host began; seconds since it last told of its jobs.", "none", []query{
		{`max by (host) (trimtab_host_jobs_killed{@})`, "killed on {{host}}"},
		{`time() - max by (host) (trimtab_host_jobs_timestamp_seconds{@})`, "silence of {{host}}"},
	}, from0)
	g.row("How it works")
	g.graph(12, "Time of a decision", "From a look at the jobs of a host to the last write.", "s", spread("trimtab_colocate_step_seconds", ""), from0)
	g.graph(12, "Reports of progress", "By what became of them, per second.", "ops",
		[]query{{rate("trimtab_colocate_reports_total", "result"), "{{result}}"}}, from0)
	return newBoard("colocate", "Best-effort jobs", "What best-effort jobs get beside latency-critical services, and what is taken back from them.", g)
}
