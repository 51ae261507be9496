package metric

// fastRows are the metrics of the fast loop.
func fastRows() []Row {
	return []Row{
		{Name: "trimtab_fast_groups", Type: Gauge, Labels: []string{"host"},
			Help: "Control groups that the fast loop may move between rounds"},
		{Name: "trimtab_fast_writes_total", Type: Counter,
			Help: "Quotas that the fast loop wrote"},
		{Name: "trimtab_fast_failed_total", Type: Counter,
			Help: "Writes of the fast loop that failed"},
		{Name: "trimtab_fast_late_total", Type: Counter, Labels: []string{"host"},
			Help: "Ticks that came more than three periods late, or in which time went back: all groups returned to their targets"},
		{Name: "trimtab_fast_asks_total", Type: Counter, Labels: []string{"host", "cause"},
			Help: "Rounds that the fast loop asked for, by cause: a loan lasts, the host has no room, the host is full"},
		{Name: "trimtab_fast_borrowed_core_seconds_total", Type: Counter, Labels: []string{"host", "workload"},
			Help: "Core-seconds above the target of a workload"},
		{Name: "trimtab_fast_lent_core_seconds_total", Type: Counter, Labels: []string{"host", "workload"},
			Help: "Core-seconds below the target of a workload"},
		{Name: "trimtab_fast_granted_core_seconds_total", Type: Counter, Labels: []string{"host", "workload"},
			Help: "Core-seconds that the quota of a workload allowed"},
		{Name: "trimtab_fast_stalled_seconds_total", Type: Counter, Labels: []string{"host", "workload"},
			Help: "Seconds in which the quota of a workload stopped it"},
		{Name: "trimtab_fast_set_cores", Type: Gauge, Labels: []string{"host", "workload"},
			Help: "CPU quota that is set now, over all instances of a workload on the host"},
		{Name: "trimtab_fast_target_cores", Type: Gauge, Labels: []string{"host", "workload"},
			Help: "CPU quota at which the workload rests, over all its instances on the host"},
		{Name: "trimtab_fast_tick_seconds", Type: Histogram,
			Help:    "Seconds that a tick of the fast loop took",
			Buckets: []float64{1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1}},
	}
}
