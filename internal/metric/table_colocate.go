package metric

// colocateRows are the metrics of best-effort jobs beside services.
func colocateRows() []Row {
	return []Row{
		{Name: "trimtab_colocate_decisions_total", Type: Counter, Labels: []string{"host", "verb"},
			Help: "Decisions of a host on its best-effort jobs, by verb: StopBE, SuspendBE, CutBE, DisallowBEGrowth, AllowBEGrowth"},
		{Name: "trimtab_colocate_changes_total", Type: Counter, Labels: []string{"host", "act"},
			Help: "Changes to best-effort jobs, by what was decided: kill, suspend, cut, resume, grow, start; in mode recommend none was made"},
		{Name: "trimtab_colocate_jobs", Type: Gauge, Labels: []string{"host", "state"},
			Help: "Best-effort jobs on a host, by state: running, suspended, which those are too that wait for their turn, or \"does not end\", of those that were killed and are still there"},
		{Name: "trimtab_colocate_given_core_seconds_total", Type: Counter,
			Help: "Core-seconds that best-effort jobs were given beside services"},
		{Name: "trimtab_colocate_reclaimed_cores_total", Type: Counter, Labels: []string{"host"},
			Help: "Cores taken back from best-effort jobs: a job that has two cores and is suspended counts as two"},
		{Name: "trimtab_colocate_lost_core_seconds_total", Type: Counter,
			Help: "Core-seconds of work that kills destroyed: what a job was given since its last checkpoint"},
		{Name: "trimtab_colocate_slack_ratio", Type: Gauge, Labels: []string{"host", "workload"},
			Help: "Slack of a service as a host decides by it: (SLO - tail latency) / SLO; missing while it is not known"},
		{Name: "trimtab_colocate_load_ratio", Type: Gauge, Labels: []string{"host", "workload"},
			Help: "Load of a service as a share of the most that it carries, as a host decides by it"},
		{Name: "trimtab_colocate_used", Type: Gauge, Labels: []string{"host", "resource"},
			Help: "What running best-effort jobs have together, in the unit of the resource"},
		{Name: "trimtab_colocate_capacity", Type: Gauge, Labels: []string{"host", "resource"},
			Help: "What best-effort jobs of a host may have together, in the unit of the resource"},
		{Name: "trimtab_colocate_reports_total", Type: Counter, Labels: []string{"result"},
			Start: each("taken", "backwards", "invalid", "unknown"),
			Help:  "Reports of progress by jobs, by what became of them: taken, backwards (taken for one that began again), invalid, unknown (no such job)"},
		{Name: "trimtab_colocate_step_seconds", Type: Histogram,
			Help:    "Seconds from a look at the jobs of a host to the last write",
			Buckets: []float64{1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1}},
	}
}
