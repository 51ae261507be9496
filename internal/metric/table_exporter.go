package metric

// exporterRows are the metrics of exporters/prometheus: what the stages told
// each other about every workload and pool; and of the process itself.
func exporterRows() []Row {
	w := []string{"workload"}
	return []Row{
		{Name: "trimtab_config_reloads_total", Type: Counter, Labels: []string{"result"}, Start: each("applied", "refused"), Help: "Reloads of the configuration by result, applied or refused"},
		{Name: "trimtab_workload_load", Type: Gauge, Labels: w, Help: "Load in requests per second, newest report"},
		{Name: "trimtab_workload_load_upper", Type: Gauge, Labels: w, Help: "Upper bound of the load in requests per second, for the whole coming round"},
		{Name: "trimtab_workload_performance", Type: Gauge, Labels: w, Help: "Performance in the unit of its SLO, newest report"},
		{Name: "trimtab_workload_slo_performance", Type: Gauge, Labels: w, Help: "Performance that its SLO asks for; absent without an SLO"},
		{Name: "trimtab_workload_utility", Type: Gauge, Labels: w, Help: "Utility of the newest performance by the workload's own function, in [0, 1]"},
		{Name: "trimtab_workload_expected_performance", Type: Gauge, Labels: []string{"workload", "at", "bound"},
			Help: "Lower, mean and upper performance that the model expects in the coming round at what the workload has (at=allocation) and at what the solver wants (at=target)"},
		{Name: "trimtab_workload_curve_performance", Type: Gauge, Labels: []string{"workload", "allocation"},
			Help: "Mean performance that the model expects in the coming round at each of 9 allocations; of the first 500 workloads with a curve"},
		{Name: "trimtab_workload_decisions_total", Type: Counter, Labels: []string{"workload", "mode", "direction"},
			Help: "Actions on the workload in published plans, by mode and by whether they raise or lower"},
		{Name: "trimtab_workload_latency_seconds", Type: Gauge, Labels: []string{"workload", "percentile"}, Help: "Latency in seconds at a percentile, newest interval"},
		{Name: "trimtab_workload_allocation", Type: Gauge, Labels: []string{"workload", "host", "resource"}, Help: "What the knob gives, in the unit of the resource; absent while unlimited"},
		{Name: "trimtab_workload_target", Type: Gauge, Labels: w, Help: "Allocation that the solver wants, in the unit of the resource"},
		{Name: "trimtab_workload_demand", Type: Gauge, Labels: w, Help: "Least allocation that meets the SLO, in the unit of the resource"},
		{Name: "trimtab_workload_reports", Type: Gauge, Labels: w, Help: "Observations that its model holds"},
		{Name: "trimtab_workload_held", Type: Gauge, Labels: w, Help: "1 while its input is missing or stale, so that it is not lowered"},
		{Name: "trimtab_workload_estimate_timestamp_seconds", Type: Gauge, Labels: w, Help: "Unix time in seconds of its newest estimate"},
		{Name: "trimtab_pool_capacity", Type: Gauge, Labels: []string{"pool"}, Help: "What the pool shares, in the unit of its resource"},
		{Name: "trimtab_pool_objective", Type: Gauge, Labels: []string{"pool", "objective"}, Help: "Value of the objective that the newest plan expects, 0 to 1"},
		{Name: "trimtab_pool_plan_timestamp_seconds", Type: Gauge, Labels: []string{"pool"}, Help: "Unix time in seconds of the newest plan"},
		{Name: "trimtab_actions_total", Type: Counter, Labels: []string{"resource", "status"}, Help: "Actions by what became of them"},
		{Name: "trimtab_action_duration_seconds", Type: Histogram, Help: "Time in seconds from the receipt of a plan to its last read back",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5}},
		{Name: "trimtab_otlp_spans_total", Type: Counter, Labels: []string{"result"}, Start: each("sent", "failed", "dropped"), Help: "Spans of decisions by result: sent to the OTLP endpoint, failed, or dropped because too many waited"},
		{Name: "trimtab_otlp_pushes_total", Type: Counter, Labels: []string{"result"}, Start: each("sent", "failed"), Help: "Pushes of metrics to the OTLP endpoint by result, sent or failed"},
		{Name: "trimtab_exporter_dropped_total", Type: Counter, Labels: []string{"exporter"}, Start: each("otlp", "record"), Help: "Values that an exporter, otlp or record, did not take because too many waited or its disk failed"},
		{Name: "trimtab_record_lines_total", Type: Counter, Help: "Lines written to the recording"},
		{Name: "trimtab_record_bytes", Type: Gauge, Help: "Size in bytes of all segments of the recording"},
	}
}
