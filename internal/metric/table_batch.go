package metric

// batchRows are the metrics of the job manager.
func batchRows() []Row {
	return []Row{
		{Name: "trimtab_batch_events_total", Type: Counter, Labels: []string{"event"},
			Start: each("placed", "refused", "lost", "failed", "succeeded", "withdrawn", "preempted", "upgraded", "reserved", "job submitted", "job ended", "job forgotten"),
			Help:  "What happened to speculative tasks and their jobs, as the job manager knows it: placed, refused by a host, lost with one, failed, succeeded, withdrawn by the manager, preempted by a host, upgraded to regular resources, reserved for a grant"},
		{Name: "trimtab_batch_requests_total", Type: Counter, Labels: []string{"result"}, Start: each("taken", "refused"),
			Help: "Requests of people and of the cluster's resource manager on jobs, by result: taken, refused"},
		{Name: "trimtab_batch_machines", Type: Gauge,
			Help: "Machines that told the job manager of themselves within the last hour"},
		{Name: "trimtab_batch_candidates", Type: Gauge,
			Help: "Machines on which speculative tasks may start"},
		{Name: "trimtab_batch_store_seconds", Type: Histogram,
			Help:    "Seconds until what was decided on speculative tasks is stored, before any of it is told",
			Buckets: []float64{1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1, 3}},
	}
}
