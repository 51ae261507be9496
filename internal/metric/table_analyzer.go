package metric

// analyzerRows are the metrics of the analyzer.
func analyzerRows() []Row {
	return []Row{
		{Name: "trimtab_path_received_spans_total", Type: Counter, Help: "Spans read; always analysed + duplicate + dropped + held"},
		{Name: "trimtab_path_analysed_spans_total", Type: Counter, Help: "Spans of finished traces, without duplicates"},
		{Name: "trimtab_path_duplicate_spans_total", Type: Counter, Help: "Spans that a held trace already had"},
		{Name: "trimtab_path_dropped_spans_total", Type: Counter, Labels: []string{"reason"}, Help: "Spans not analysed because a declared limit was hit"},
		{Name: "trimtab_path_held_spans", Type: Gauge, Help: "Spans of traces that are not finished"},
		{Name: "trimtab_path_held_traces", Type: Gauge, Help: "Traces that are not finished"},
		{Name: "trimtab_path_unmatched_spans_total", Type: Counter, Help: "Analysed spans that belong to no workload"},
		{Name: "trimtab_path_finished_traces_total", Type: Counter, Labels: []string{"cause"}, Help: "Traces analysed, by what ended the wait for further spans: settled, timeout, evicted"},
		{Name: "trimtab_path_flagged_spans_total", Type: Counter, Labels: []string{"fault"}, Help: "Analysed spans that were mended or set aside, by kind of fault"},
		{Name: "trimtab_path_unreadable_frames_total", Type: Counter, Help: "Span frames that do not follow their layout"},
		{Name: "trimtab_path_sketches_total", Type: Counter, Help: "Sketches given out, one per workload and interval with requests"},
		{Name: "trimtab_path_workloads", Type: Gauge, Help: "Workloads that spans are told apart by"},
		{Name: "trimtab_path_refused_names_total", Type: Counter, Labels: []string{"what"}, Help: "Resources that would have made a workload, component, instance, host or peer beyond the limit"},
		{Name: "trimtab_learn_inputs_total", Type: Counter, Labels: []string{"kind"}, Help: "Sketches, samples and holdings that the learn step received"},
		{Name: "trimtab_learn_inputs_set_aside_total", Type: Counter, Labels: []string{"reason"}, Help: "Inputs that were not used: unknown workload, no requests, a time in our future, a partition or host that is not theirs, late, duplicate, too many open intervals or instances, or of no known kind"},
		{Name: "trimtab_learn_incomplete_intervals_total", Type: Counter, Help: "Intervals whose load was scaled up because partial sketches seem lost"},
		{Name: "trimtab_learn_reports_total", Type: Counter, Labels: []string{"result"}, Help: "Reports of workloads with a curve, by whether they were learnt or why they were set aside"},
		{Name: "trimtab_learn_changes_total", Type: Counter, Help: "Times that a learner found its curve changed and forgot it"},
		{Name: "trimtab_learn_versions_total", Type: Counter, Help: "Times that a workload came with another service.version, and its curve was kept as a guess only"},
		{Name: "trimtab_learn_estimates_total", Type: Counter, Help: "Estimates given out"},
		{Name: "trimtab_learn_workloads", Type: Gauge, Help: "Workloads that are estimated, discovered ones included"},
		{Name: "trimtab_learn_held_workloads", Type: Gauge, Help: "Workloads whose latest estimate says that they must not be lowered"},
	}
}
