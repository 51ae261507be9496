package dashboards

// rate sums the events per second of a counter, by labels, over instances.
func rate(metric, by string) string {
	return `sum by (` + by + `) (rate(` + metric + `{@}[$__rate_interval]))`
}

// quantile is the expression for a quantile of a histogram over the last minutes, by labels.
func quantile(q, metric, by string) string {
	if by != "" {
		by += ", "
	}
	return `histogram_quantile(` + q + `, sum by (` + by + `le) (rate(` + metric + `_bucket{@}[$__rate_interval])))`
}

// spread is the middle and the tail of a histogram, by one label or none.
func spread(metric, by string) []query {
	legend := ""
	if by != "" {
		legend = " {{" + by + "}}"
	}
	return []query{{quantile("0.5", metric, by), "p50" + legend}, {quantile("0.99", metric, by), "p99" + legend}}
}

// pipeline is the dashboard of trimtab's own health: values flow, nothing is lost, the stages
// keep up, the actuator can write.
func pipeline() *board {
	g := &grid{}
	pipelineHealth(g)
	pipelineStages(g)
	pipelineIntake(g)
	pipelineLearning(g)
	pipelinePlanning(g)
	pipelineActing(g)
	pipelineOut(g)
	pipelineProcess(g)
	return newBoard("pipeline", "Pipeline health", "Whether values flow from spans to limits, how late, and what is lost on the way.", g)
}

func pipelineHealth(g *grid) {
	g.row("At a glance")
	g.stat(6, "Not ready", "Parts that say that they are not ready.", "none",
		query{`count(min by (job, instance, stage) (trimtab_stage_ready{@}) == 0) or vector(0)`, "parts"}, colored("green", at(1, "red")))
	g.stat(6, "Input lost", "Share of the spans that were refused or dropped.", "percentunit",
		query{lost, "{{job}}"}, colored("green", at(0.001, "yellow"), at(0.01, "red")))
	g.stat(6, "Lease", "Seconds until the baselines come back if no plan arrives; 0 while nothing was ever planned.", "s",
		query{`max by (instance) (trimtab_actuator_lease_seconds{@})`, "{{instance}}"})
	g.stat(6, "Dead letters", "Values in the last hour that could not be read, or whose step panicked.", "none",
		query{`sum(increase(trimtab_stage_panics_total{@}[1h])) + sum(increase(trimtab_bus_unreadable_total{@}[1h]))`, "values"}, colored("green", at(1, "red")))
	g.graph(12, "Ready", "1 while a part is ready. What a part waits for is at /-/ready.", "none",
		[]query{{`min by (instance, stage) (trimtab_stage_ready{@})`, "{{stage}} {{instance}}"}}, between0And1, stairs)
	g.graph(12, "Leader", "Epoch of each planner that leads: one process a pool stands above 0. A step up is a new leader.", "none", []query{
		{`max by (pool, instance) (trimtab_leader_epoch{@})`, "lock of {{pool}} {{instance}}"},
		{`max by (pool, instance) (trimtab_planner_epoch{@})`, "planner of {{pool}} {{instance}}"},
	}, from0, stairs)
}

func pipelineStages(g *grid) {
	g.row("Stages and bus")
	g.graph(12, "Lag", "Time from storing a value on the bus to handing it to the step.", "s", spread("trimtab_stage_lag_seconds", "stage"), from0)
	g.graph(12, "Duration of a step", "Time that one call of a step takes.", "s", spread("trimtab_stage_step_seconds", "stage"), from0)
	g.graph(12, "Values in", "Values that were handed to the steps.", "ops",
		[]query{{rate("trimtab_stage_inputs_total", "stage, kind") + ` > 0`, "{{stage}} {{kind}}"}}, from0)
	g.graph(12, "Values out", "Values that the stages published.", "ops",
		[]query{{rate("trimtab_stage_outputs_total", "stage, kind") + ` > 0`, "{{stage}} {{kind}}"}}, from0)
	g.graph(12, "Trouble in stages", "Panics, values that came again, and attempts to publish that came to nothing (fenced: not the leader; refused; retried).", "ops", []query{
		{rate("trimtab_stage_panics_total", "stage"), "panic in {{stage}}"},
		{rate("trimtab_stage_redeliveries_total", "stage"), "again to {{stage}}"},
		{rate("trimtab_stage_unpublished_total", "stage, reason"), "{{reason}} by {{stage}}"},
	}, from0, bars)
	g.graph(12, "Bus", "Values published and delivered, by kind.", "ops", []query{
		{rate("trimtab_bus_published_total", "kind") + ` > 0`, "published {{kind}}"},
		{rate("trimtab_bus_delivered_total", "kind") + ` > 0`, "delivered {{kind}}"},
	}, from0)
	g.graph(12, "Trouble on the bus", "Values that are missing from sequences, came again, could not be read, or are in the form of an older version; stores and consumers that were damaged and made anew; NATS servers of a release that trimtab is not tested with. Sketches and samples may be shed under overload.", "ops", []query{
		{rate("trimtab_bus_lost_total", "kind"), "lost {{kind}}"},
		{rate("trimtab_bus_redelivered_total", "kind"), "again {{kind}}"},
		{rate("trimtab_bus_unreadable_total", "kind"), "unreadable {{kind}}"},
		{rate("trimtab_bus_older_version_total", "kind"), "older version {{kind}}"},
		{rate("trimtab_bus_damaged_total", "what"), "damaged {{what}}"},
		{`sum(trimtab_bus_server_untested{@}) > 0`, "processes on an untested NATS server"},
	}, from0, bars)
	g.graph(12, "Snapshots", "Snapshots of the stages' states, by result.", "ops",
		[]query{{rate("trimtab_stage_snapshots_total", "stage, result"), "{{result}} {{stage}}"}}, from0, bars)
}

// lost is the share of spans that never reached an analysis; what the receivers
// refused and what a limit of the analyzer dropped.
const lost = `(sum by (namespace, job) (rate(trimtab_collector_spans_rejected_total{@}[5m])) + sum by (namespace, job) (rate(trimtab_path_dropped_spans_total{@}[5m]))) / (sum by (namespace, job) (rate(trimtab_collector_spans_received_total{@}[5m])) > 0)`

func pipelineIntake(g *grid) {
	g.row("Intake")
	g.graph(12, "Spans", "Spans that were read, accepted and refused, by source.", "ops", []query{
		{rate("trimtab_collector_spans_received_total", "source"), "received {{source}}"},
		{rate("trimtab_collector_spans_accepted_total", "source"), "accepted {{source}}"},
		{rate("trimtab_collector_spans_rejected_total", "source, reason") + ` > 0`, "refused {{source}}: {{reason}}"},
		{rate("trimtab_collector_requests_rejected_total", "source, reason"), "request refused {{source}}: {{reason}}"},
		{rate("trimtab_collector_requests_without_spans_total", "source, reason"), "request without spans {{source}}: {{reason}}"},
	}, from0)
	g.graph(12, "Answers", "99th percentile of the time until a sender of spans is answered, until Alertmanager is, and until Prometheus answers; the latter two only where they are in use.", "s", []query{
		{quantile("0.99", "trimtab_collector_answer_seconds", "source"), "spans {{source}}"},
		{quantile("0.99", "trimtab_collector_webhook_seconds", ""), "Alertmanager"},
		{quantile("0.99", "trimtab_collector_prometheus_query_seconds", ""), "from Prometheus"},
	}, from0)
	g.graph(12, "Spans in the collector", "Packed spans that wait for the answer, or for room to be sent.", "bytes",
		[]query{{`sum by (where) (trimtab_collector_held_bytes{@})`, "{{where}}"}}, from0, stacked())
	g.graph(12, "Spans in the analyzer", "Received = analysed + duplicate + dropped + held.", "ops", []query{
		{`sum(rate(trimtab_path_received_spans_total{@}[$__rate_interval]))`, "received"},
		{`sum(rate(trimtab_path_analysed_spans_total{@}[$__rate_interval]))`, "analysed"},
		{`sum(rate(trimtab_path_duplicate_spans_total{@}[$__rate_interval]))`, "duplicate"},
		{rate("trimtab_path_dropped_spans_total", "reason"), "dropped: {{reason}}"},
		{`sum(rate(trimtab_path_unmatched_spans_total{@}[$__rate_interval]))`, "of no workload"},
	}, from0)
	g.graph(12, "Traces in the analyzer", "Spans and traces that are not finished, workloads that spans are told apart by, and collectors that see requests at sockets.", "short", []query{
		{`sum(trimtab_path_held_spans{@})`, "spans held"},
		{`sum(trimtab_path_held_traces{@})`, "traces held"},
		{`sum(trimtab_path_workloads{@})`, "workloads"},
		{`sum(trimtab_collector_kernel_attached{@})`, "collectors that see sockets"},
	}, from0)
	g.graph(12, "Traces and sketches out", "Finished traces by what ended the wait for further spans, and sketches given out.", "ops", []query{
		{rate("trimtab_path_finished_traces_total", "cause"), "traces {{cause}}"},
		{`sum(rate(trimtab_path_sketches_total{@}[$__rate_interval]))`, "sketches"},
	}, from0)
	g.graph(12, "Faulty spans", "Spans that were mended or set aside, frames that could not be read, and names beyond the limit.", "ops", []query{
		{rate("trimtab_path_flagged_spans_total", "fault"), "{{fault}}"},
		{`sum(rate(trimtab_path_unreadable_frames_total{@}[$__rate_interval]))`, "frames unreadable"},
		{rate("trimtab_path_refused_names_total", "what"), "{{what}} refused"},
		{rate("trimtab_collector_kernel_dropped_total", "what"), "of sockets: {{what}} lost"},
	}, from0, bars)
	g.graph(12, "Samples", "Samples from Prometheus, from control groups and from monitors of the host (pressure, resctrl, performance counters), by result: ok, or why the value is missing.", "ops", []query{
		{rate("trimtab_collector_prometheus_samples_total", "result"), "Prometheus: {{result}}"},
		{rate("trimtab_collector_cgroup_samples_total", "result"), "cgroup: {{result}}"},
		{rate("trimtab_collector_samples_total", "source, result"), "{{source}}: {{result}}"},
		{`sum(rate(trimtab_collector_perf_starts_total{@}[$__rate_interval]))`, "starts of the process that counts"},
	}, from0)
	g.graph(12, "Alerts", "Webhooks of Alertmanager by result, and what became of the alerts in them.", "ops", []query{
		{rate("trimtab_collector_webhook_requests_total", "result"), "webhook: {{result}}"},
		{rate("trimtab_collector_alerts_total", "result"), "alert: {{result}}"},
	}, from0, bars)
}

func pipelineLearning(g *grid) {
	g.row("Learning")
	g.graph(12, "Inputs of the learner", "Sketches, samples and holdings received, and those that were not used.", "ops", []query{
		{rate("trimtab_learn_inputs_total", "kind"), "{{kind}}"},
		{rate("trimtab_learn_inputs_set_aside_total", "reason") + ` > 0`, "set aside: {{reason}}"},
		{`sum(rate(trimtab_learn_incomplete_intervals_total{@}[$__rate_interval]))`, "intervals scaled up"},
	}, from0)
	g.graph(12, "Reports and estimates", "Reports by whether they were learnt, estimates given out, and curves that were found changed and forgotten.", "ops", []query{
		{rate("trimtab_learn_reports_total", "result"), "reports: {{result}}"},
		{`sum(rate(trimtab_learn_estimates_total{@}[$__rate_interval]))`, "estimates"},
		{`sum(rate(trimtab_learn_changes_total{@}[$__rate_interval]))`, "curves forgotten"},
		{`sum(rate(trimtab_learn_versions_total{@}[$__rate_interval]))`, "new versions"},
	}, from0)
	g.graph(12, "Workloads of the learner", "Workloads that are estimated, discovered ones included, and those of them that must not be lowered.", "short", []query{
		{`sum(trimtab_learn_workloads{@})`, "estimated"},
		{`sum(trimtab_learn_held_workloads{@})`, "held"},
	}, from0, stairs)
}

func pipelinePlanning(g *grid) {
	g.row("Planning")
	g.graph(12, "Rounds and plans", "Rounds of planning and plan steps published.", "ops", []query{
		{rate("trimtab_planner_rounds_total", "pool"), "rounds {{pool}}"},
		{rate("trimtab_planner_plans_total", "pool"), "plans {{pool}}"},
	}, from0)
	g.graph(12, "Trouble in planning", "Rounds without a solution, grows that found too little free, plans that were not answered, applies that were refused, inputs that came too late or are not believed.", "ops", []query{
		{rate("trimtab_planner_unsolved_total", "pool"), "no solution {{pool}}"},
		{rate("trimtab_planner_grows_dropped_total", "pool"), "grows dropped {{pool}}"},
		{rate("trimtab_planner_grows_scaled_total", "pool"), "grows made smaller {{pool}}"},
		{rate("trimtab_planner_unanswered_total", "pool"), "not answered {{pool}}"},
		{rate("trimtab_planner_actions_later_total", "pool"), "left to a later plan {{pool}}"},
		{rate("trimtab_planner_applies_refused_total", "pool"), "apply refused {{pool}}"},
		{rate("trimtab_planner_ignored_total", "pool, kind"), "{{kind}} ignored {{pool}}"},
		{rate("trimtab_planner_twin_holdings_total", "pool"), "two agents are one host {{pool}}"},
	}, from0, bars)
	g.graph(12, "Objective", "What the last target is expected to reach, and the most that it may miss of the optimum.", "percentunit",
		[]query{
			{`max by (pool) (trimtab_planner_objective_ratio{@})`, "{{pool}}"},
			{`max by (pool) (trimtab_planner_gap_ratio{@})`, "gap {{pool}}"},
		}, between0And1)
	g.graph(12, "Verdicts on moves", "Executed moves by what came of them, and falls that were taken back because they broke an SLO.", "short",
		[]query{
			{rate("trimtab_planner_verdicts_total", "verdict"), "{{verdict}} a second"},
			{rate("trimtab_planner_taken_back_total", "pool"), "taken back a second {{pool}}"},
		}, from0, bars)
	g.graph(12, "Held by the planner", "Workloads that the last plan held, for a reason that it names.", "short",
		[]query{{`max by (pool) (trimtab_planner_held_workloads{@})`, "{{pool}}"}}, from0, stairs)
}

func pipelineActing(g *grid) {
	g.row("Acting")
	g.graph(12, "Plans received", "Steps of plans by what became of them.", "ops",
		[]query{{rate("trimtab_actuator_plans_total", "result"), "{{result}}"}}, from0, bars)
	g.graph(12, "Actions", "Actions of accepted plans by status.", "ops",
		[]query{{rate("trimtab_actuator_actions_total", "status"), "{{status}}"}}, from0, bars)
	g.graph(12, "From plan to read back", "Time from the receipt of a plan to its last read back, and of one write alone.", "s", []query{
		{quantile("0.5", "trimtab_action_duration_seconds", ""), "plan p50"},
		{quantile("0.99", "trimtab_action_duration_seconds", ""), "plan p99"},
		{quantile("0.99", "trimtab_actuator_write_seconds", ""), "write p99"},
	}, from0)
	g.graph(12, "Given back", "Baselines that were put back, reductions that were undone, leases that ran out, starts of the watchdog.", "ops", []query{
		{rate("trimtab_actuator_restores_total", "status"), "baselines: {{status}}"},
		{`sum(rate(trimtab_actuator_compensations_total{@}[$__rate_interval]))`, "reductions undone"},
		{`sum(rate(trimtab_actuator_abandoned_total{@}[$__rate_interval]))`, "never came into force"},
		{`sum(rate(trimtab_actuator_leases_expired_total{@}[$__rate_interval]))`, "leases run out"},
		{`sum(rate(trimtab_actuator_watchdog_starts_total{@}[$__rate_interval]))`, "watchdogs started"},
	}, from0, bars)
	g.graph(12, "Knobs held", "Knobs that hold what trimtab wrote, and have a baseline to go back to; instances that were found, and looks for them that failed.", "short", []query{
		{`sum by (instance) (trimtab_actuator_held_knobs{@})`, "{{instance}}"},
		{`sum by (instance) (trimtab_actuator_instances{@})`, "instances on {{instance}}"},
		{`sum by (instance) (increase(trimtab_actuator_find_errors_total{@}[$__rate_interval]))`, "failed looks on {{instance}}"},
	}, from0, stairs)
	g.graph(12, "Pools of one host", "What a pool claims of its host, and what the other pools of the host do; rises that were refused for these; and what of the configuration is not in force there.", "short", []query{
		{`max by (instance, resource, by) (trimtab_actuator_host_claimed{@})`, "{{resource}} {{by}} {{instance}}"},
		{`sum by (instance) (increase(trimtab_actuator_host_refusals_total{@}[$__rate_interval]))`, "refused {{instance}}"},
		{`max by (host, what) (trimtab_host_unmet{@})`, "{{what}} not in force on {{host}}"},
	}, from0, stairs)
	g.graph(12, "Journal", "Writes of the journal that failed, so that nothing was done, and damage found at a start.", "short", []query{
		{`sum by (instance) (increase(trimtab_actuator_journal_errors_total{@}[$__rate_interval]))`, "errors {{instance}}"},
		{`sum by (instance) (increase(trimtab_actuator_journal_damaged_total{@}[$__rate_interval]))`, "damage {{instance}}"},
	}, from0, bars)
}

func pipelineOut(g *grid) {
	g.row("Out")
	g.graph(12, "OTLP and recording", "Spans of decisions and pushes of metrics to the site's own endpoint, lines recorded, and values that were not taken.", "ops", []query{
		{rate("trimtab_otlp_spans_total", "result"), "spans {{result}}"},
		{rate("trimtab_otlp_pushes_total", "result"), "pushes {{result}}"},
		{`sum(rate(trimtab_record_lines_total{@}[$__rate_interval]))`, "lines recorded"},
		{rate("trimtab_exporter_dropped_total", "exporter"), "dropped by {{exporter}}"},
	}, from0)
	g.graph(12, "Answers to KEDA", "How many pods KEDA was told, by gRPC code: Unavailable is an answer without fresh advice.", "ops",
		[]query{{rate("trimtab_keda_answers_total", "code"), "{{code}}"}}, from0)
	g.graph(12, "Told to the cluster", "Events, start values and recommendations written to Kubernetes; dropped are events of a workload that has too many.", "ops",
		[]query{{`sum by (what, result) (rate(trimtab_kubernetes_written_total{@}[$__rate_interval]))`, "{{what}} {{result}}"}}, from0)
	g.graph(12, "Workloads in brief", "Workloads that have only a few series, so that /metrics stays under 5 MB.", "none",
		[]query{{`max by (instance) (trimtab_exporter_brief_workloads{@})`, "{{instance}}"}}, from0, stairs)
}

func pipelineProcess(g *grid) {
	const mine = ` and on (job, instance) trimtab_build_info{@}`
	g.row("Processes")
	g.graph(8, "CPU", "What trimtab itself uses, in cores.", "short",
		[]query{{`rate(process_cpu_seconds_total{@}[$__rate_interval])` + mine, "{{instance}}"}}, from0)
	g.graph(8, "Memory and recording", "Resident memory of trimtab itself, and all segments of the recording on its disk.", "bytes", []query{
		{`process_resident_memory_bytes{@}` + mine, "memory {{instance}}"},
		{`sum by (instance) (trimtab_record_bytes{@})`, "recording {{instance}}"},
	}, from0)
	g.graph(8, "Reloads", "Reloads of the configuration by result.", "short",
		[]query{{`sum by (instance, result) (increase(trimtab_config_reloads_total{@}[$__rate_interval]))`, "{{result}} {{instance}}"}}, from0, bars)
}
