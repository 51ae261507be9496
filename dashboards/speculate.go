package dashboards

// speculate is the dashboard of speculative tasks, by host: what ran, what was refused, and which
// task was shown to disturb a service.
func speculate() *board {
	g := &grid{}
	g.row("Tasks")
	g.graph(12, "Tasks", "Speculative tasks by state; regular ones have resources that the cluster granted.", "none",
		[]query{{`sum by (host, state) (trimtab_speculate_tasks{@})`, "{{state}} on {{host}}"}}, from0, stairs)
	g.graph(12, "Started", "Tasks that were started, per second, by class.", "ops",
		[]query{{rate("trimtab_speculate_started_total", "host, class"), "{{class}} on {{host}}"}}, from0)
	g.graph(12, "Ended", "By outcome, per second: what did not exit by itself is worth a look.", "ops",
		[]query{{rate("trimtab_speculate_ended_total", "host, outcome"), "{{outcome}} on {{host}}"}}, from0, bars)
	g.graph(12, "Refused and blocked", "Attempts that hosts refused, per second; 1 where tasks wait and none may start.", "none", []query{
		{rate("trimtab_speculate_refused_total", "host"), "refused by {{host}}"},
		{`max by (host) (trimtab_speculate_blocked{@})`, "{{host}} is blocked"},
	}, from0)
	g.row("Services beside them")
	g.graph(12, "Verdicts", "What came of anomalies of services, per second: innocent are false accusations.", "ops",
		[]query{{rate("trimtab_speculate_verdicts_total", "host, verdict"), "{{verdict}} on {{host}}"}}, from0, bars)
	g.graph(12, "Load of hosts", "Load levels, which tasks need below beside.tasks.thresholds to start.", "percentunit",
		[]query{{`max by (host, load) (trimtab_speculate_load_ratio{@})`, "{{load}} of {{host}}"}}, from0)
	g.graph(12, "Signals of services", "Over the boundary of what each is like without tasks: above 1 it is disturbed.", "none",
		[]query{{`max by (host, workload, signal) (trimtab_speculate_signal_ratio{@})`, "{{signal}} of {{workload}} on {{host}}"}}, from0)
	g.graph(12, "False alarms", "Share of the windows without tasks in which a signal was called anomalous.", "percentunit",
		[]query{{`max by (host, workload, signal) (trimtab_speculate_false_alarms_ratio{@})`, "{{signal}} of {{workload}} on {{host}}"}}, from0)
	g.graph(12, "Distance of the fits", "Of the fitted distribution from what was measured: where it is far, phases judge.", "none",
		[]query{{`max by (host, workload, signal) (trimtab_speculate_fit_distance{@})`, "{{signal}} of {{workload}} on {{host}}"}}, from0)
	g.graph(12, "CPUs for tasks", "CPUs to which tasks are bound beside services; 0: they run on all.", "none",
		[]query{{`max by (host) (trimtab_speculate_second_class_cpus{@})`, "{{host}}"}}, from0, stairs)
	g.row("How it works")
	g.graph(12, "What was done to tasks", "Per second; failed is worth a look.", "ops",
		[]query{{rate("trimtab_speculate_turns_total", "turn, result"), "{{turn}} {{result}}"}}, from0)
	g.graph(12, "Lists of the planner", "By what became of them, per second: taken, or refused as too old.", "ops",
		[]query{{rate("trimtab_speculate_lists_total", "host, result"), "{{result}} by {{host}}"}}, from0)
	g.graph(12, "Time of a decision", "From a look at the tasks of a host until what was decided is told.", "s", spread("trimtab_speculate_tick_seconds", ""), from0)
	g.row("Job manager")
	g.graph(12, "What happened to tasks", "Per second, as the job manager knows it: refused, lost and failed are worth a look.", "ops",
		[]query{{rate("trimtab_batch_events_total", "event"), "{{event}}"}}, from0, bars)
	g.graph(12, "Machines and candidates", "Machines that told of themselves, and those on which tasks may start.", "none", []query{
		{`max(trimtab_batch_machines{@})`, "machines"}, {`max(trimtab_batch_candidates{@})`, "candidates"},
	}, from0, stairs)
	g.graph(12, "Requests on jobs", "By what became of them, per second.", "ops", []query{{rate("trimtab_batch_requests_total", "result"), "{{result}}"}}, from0)
	g.graph(12, "Time to store", "Until what was decided is stored, before it is told.", "s", spread("trimtab_batch_store_seconds", ""), from0)
	return newBoard("speculate", "Speculative tasks", "What runs in reserved and idle resources, and what it does to the services beside it.", g)
}
