package dashboards

// gate is the dashboard of `trimtab gate`, by workload: what came of requests, and what bounds them.
func gate() *board {
	g := &grid{}
	g.row("Requests")
	g.graph(12, "Requests by outcome", "Per second: in time, late, failed, abandoned by the client, refused.", "reqps",
		[]query{{rate("trimtab_gate_requests_total", "workload, outcome"), "{{workload}} {{outcome}}"}}, from0)
	g.graph(12, "Refused by class", "Per second: the least important class goes first.", "reqps",
		[]query{{`sum by (workload, class) (rate(trimtab_gate_requests_total{outcome="refused",@}[$__rate_interval]))`, "{{class}} of {{workload}}"}}, from0)
	g.graph(12, "Time of admitted requests", "From arrival until the response was complete.", "s", spread("trimtab_gate_request_seconds", "workload"), from0)
	g.graph(12, "Time in the queue", "How long admitted requests waited in the gate.", "s", spread("trimtab_gate_wait_seconds", "workload"), from0)
	g.graph(12, "Answered cheaply by class", "Requests per second that were passed on with the brownout header, which asks the service for a cheaper answer.", "reqps",
		[]query{{rate("trimtab_gate_brownout_total", "workload, class"), "{{class}} of {{workload}}"}}, from0)
	g.graph(12, "Refused by reason", "Per second: limit, they waited for others in service; rate, for a rate set from outside.", "reqps",
		[]query{{rate("trimtab_gate_refused_total", "workload, reason"), "{{workload}} {{reason}}"}}, from0)
	g.row("Bounds")
	g.graph(12, "Limit", "Requests that may be in service, those that are, and those that wait.", "none", []query{
		{`max by (workload) (trimtab_gate_limit{@})`, "limit of {{workload}}"},
		{`max by (workload) (trimtab_gate_in_flight{@})`, "in service of {{workload}}"},
		{`max by (workload) (trimtab_gate_queued{@})`, "waiting for {{workload}}"},
	}, from0)
	g.graph(12, "Rate", "Requests admitted per second at most, by the rates set from outside; nothing without one.", "reqps",
		[]query{{`min by (workload) (trimtab_gate_rate{@}) < +Inf`, "{{workload}}"}}, from0)
	g.graph(12, "Connections", "Open connections of clients.", "none", []query{{`max by (workload) (trimtab_gate_connections{@})`, "{{workload}}"}}, from0)
	return newBoard("gate", "Gate", "What gates admit and refuse, and how long it takes.", g)
}
