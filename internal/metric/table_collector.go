package metric

// collectorRows are the metrics of the collector.
func collectorRows() []Row {
	return []Row{
		{Name: "trimtab_collector_spans_received_total", Type: Counter, Labels: []string{"source"}, Help: "Spans that were read from requests, also those that were then rejected"},
		{Name: "trimtab_collector_spans_accepted_total", Type: Counter, Labels: []string{"source"}, Help: "Spans that an analyzer had handled when their sender was told OK"},
		{Name: "trimtab_collector_spans_rejected_total", Type: Counter, Labels: []string{"source", "reason"}, Help: "Spans that were not taken, by reason; the sender was told"},
		{Name: "trimtab_collector_requests_rejected_total", Type: Counter, Labels: []string{"source", "reason"}, Help: "Requests with spans that were refused whole before their spans could be counted, by reason"},
		{Name: "trimtab_collector_requests_without_spans_total", Type: Counter, Labels: []string{"source", "reason"}, Help: "Requests that were read and held no span: empty, or unknown_key where they held something under a key that their format does not have, which their sender was told"},
		{Name: "trimtab_collector_held_bytes", Type: Gauge, Labels: []string{"where"}, Help: "Bytes of packed spans that wait for the analyzer's answer (in_flight) or for room to be sent (waiting)"},
		{Name: "trimtab_collector_answer_seconds", Type: Histogram, Labels: []string{"source"}, Help: "Time from publishing the spans of a request to the analyzer's answer in seconds", Buckets: []float64{.0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10}},
		{Name: "trimtab_collector_prometheus_samples_total", Type: Counter, Labels: []string{"result"}, Start: each("ok"), Help: "Samples that were asked of Prometheus, by result: ok, or why the value is missing"},
		{Name: "trimtab_collector_prometheus_query_seconds", Type: Histogram, Help: "Time from asking Prometheus to its answer in seconds", Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10}},
		{Name: "trimtab_collector_prometheus_sample_age_seconds", Type: Gauge, Labels: []string{"workload", "quantity"}, Help: "Age in seconds of the oldest of what is still scraped behind the latest value; absent while the value is missing"},
		{Name: "trimtab_collector_webhook_requests_total", Type: Counter, Labels: []string{"result"}, Start: each("ok"), Help: "Webhooks of Alertmanager, by result: ok, or why they were refused"},
		{Name: "trimtab_collector_webhook_seconds", Type: Histogram, Help: "Time from the header of a webhook to its answer in seconds", Buckets: []float64{.001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5}},
		{Name: "trimtab_collector_alerts_total", Type: Counter, Labels: []string{"result"}, Start: each("published", "repeated", "unmatched", "malformed", "truncated"), Help: "Alerts in webhooks, by what became of them: published and repeated once per workload, unmatched, malformed, and truncated by the sender"},
		{Name: "trimtab_collector_cgroup_samples_total", Type: Counter, Labels: []string{"result"}, Start: each("ok"), Help: "Samples that were read from control groups, by result: ok, or why the value is missing"},
		{Name: "trimtab_collector_samples_total", Type: Counter, Labels: []string{"source", "result"}, Help: "Samples of the sources that are polled (docs/config.md, measure), of the host and of control groups, by source and result: ok, or why the value is missing"},
		{Name: "trimtab_memory_raises_total", Type: Counter, Labels: []string{"workload", "cause", "result"}, Help: "Memory limits that the agent raised between rounds, or could not raise: raised, refused. cause is what the instance ran short by: killed, pressure, memory.high, limit, forecast"},
		{Name: "trimtab_workload_oom_kills_total", Type: Counter, Labels: []string{"workload"}, Help: "Processes of the workload that the kernel killed for want of memory, in all its control groups on this host, since the agent began"},
		{Name: "trimtab_collector_perf_starts_total", Type: Counter, Help: "Starts of the process that counts performance events; more than one: it died"},
		{Name: "trimtab_collector_kernel_attached", Type: Gauge, Help: "1 while requests of components without spans are seen at their sockets, 0 where this host cannot"},
		{Name: "trimtab_collector_kernel_dropped_total", Type: Counter, Labels: []string{"what"}, Start: each("events", "spans"), Help: "What was seen of sockets and lost: events that found no room in the ring of the kernel, and spans while the analyzer did not answer"},
	}
}
