package metric

// pipelineRows are the metrics of the pipeline and of the bus beneath it.
func pipelineRows() []Row {
	return []Row{
		{Name: "trimtab_stage_inputs_total", Type: Counter, Labels: []string{"stage", "kind"},
			Help: "Values that were handed to the step of a stage"},
		{Name: "trimtab_stage_outputs_total", Type: Counter, Labels: []string{"stage", "kind"},
			Help: "Values that a stage published"},
		{Name: "trimtab_stage_unpublished_total", Type: Counter, Labels: []string{"stage", "kind", "reason"},
			Help: "Attempts to publish that came to nothing: fenced (not the leader), refused (not valid, or shed), retried (tried again)"},
		{Name: "trimtab_stage_redeliveries_total", Type: Counter, Labels: []string{"stage"},
			Help: "Values that reached a stage more than once"},
		{Name: "trimtab_stage_panics_total", Type: Counter, Labels: []string{"stage"},
			Help: "Panics of a step; the message that caused one is kept as a dead letter"},
		{Name: "trimtab_stage_step_seconds", Type: Histogram, Labels: []string{"stage"},
			Buckets: []float64{1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10},
			Help:    "Duration of one call of a step in seconds"},
		{Name: "trimtab_stage_lag_seconds", Type: Histogram, Labels: []string{"stage"},
			Buckets: []float64{1e-3, 1e-2, 0.1, 1, 10, 60, 600},
			Help:    "Time from storing a value on the bus to handing it to the step, in seconds"},
		{Name: "trimtab_stage_snapshots_total", Type: Counter, Labels: []string{"stage", "result"},
			Help: "Snapshots of a step's state by result: saved, restored, broken (read and ignored), failed (not saved), unread (bus not reached)"},
		{Name: "trimtab_stage_ready", Type: Gauge, Labels: []string{"stage"},
			Help: "1 when a stage or service is ready, 0 when it is not"},
		{Name: "trimtab_leader_epoch", Type: Gauge, Labels: []string{"pool"},
			Help: "Epoch under which this process leads the pool, 0 when it does not lead"},
		{Name: "trimtab_bus_published_total", Type: Counter, Labels: []string{"kind"}, Start: kinds(),
			Help: "Values that this process handed to the bus"},
		{Name: "trimtab_bus_delivered_total", Type: Counter, Labels: []string{"kind"}, Start: kinds(),
			Help: "Values from the bus that this process handled"},
		{Name: "trimtab_bus_lost_total", Type: Counter, Labels: []string{"kind"}, Start: kinds(),
			Help: "Values that are missing from the sequences of their publishers"},
		{Name: "trimtab_bus_unreadable_total", Type: Counter, Labels: []string{"kind"}, Start: kinds(),
			Help: "Values that could not be decoded or did not validate"},
		{Name: "trimtab_bus_redelivered_total", Type: Counter, Labels: []string{"kind"}, Start: kinds(),
			Help: "Deliveries by the bus of a value that was delivered before"},
		{Name: "trimtab_bus_older_version_total", Type: Counter, Labels: []string{"kind"}, Start: kinds(),
			Help: "Values in the form of an older version, read as they were meant: a process of an earlier release publishes them, or they were stored before an update"},
		{Name: "trimtab_bus_server_untested", Type: Gauge,
			Help: "1 while the NATS server is of another release than trimtab is tested with, else 0; of an agent that is a leaf node, the central server when it started"},
		{Name: "trimtab_bus_damaged_total", Type: Counter, Labels: []string{"what"}, Start: [][]string{{"store"}, {"consumer"}},
			Help: "What of the bus's store was damaged and made anew: the whole store (moved aside) or one consumer (it starts over)"},
	}
}

// kinds are the values that travel on the bus.
func kinds() [][]string {
	return each("alert", "command", "estimate", "holding", "outcome", "plan", "sample", "sketch", "spans")
}
