package metric

// actuatorRows are the metrics of the actuator.
func actuatorRows() []Row {
	return []Row{
		{Name: "trimtab_actuator_plans_total", Type: Counter, Labels: []string{"result"},
			Start: each("accepted", "repeated", "stale", "expired", "invalid", "refused"),
			Help:  "Steps of plans received, by what became of them: accepted, repeated, stale, expired, invalid, refused"},
		{Name: "trimtab_actuator_actions_total", Type: Counter, Labels: []string{"status"},
			Start: each("written", "pending", "equal", "recommended", "refused", "failed"),
			Help:  "Actions of accepted plans, by status: written, pending (not in force yet), equal, recommended, refused, failed"},
		{Name: "trimtab_actuator_restores_total", Type: Counter, Labels: []string{"status"},
			Start: each("written", "equal", "refused", "failed"),
			Help:  "Baselines put back, by status: written, equal, refused (changed by others or gone), failed"},
		{Name: "trimtab_actuator_compensations_total", Type: Counter,
			Help: "Reductions given back because the plan that made them never went on"},
		{Name: "trimtab_actuator_leases_expired_total", Type: Counter,
			Help: "Leases that ran out while something was held"},
		{Name: "trimtab_actuator_held_knobs", Type: Gauge,
			Help: "Knobs that hold what trimtab wrote and have a baseline to go back to"},
		{Name: "trimtab_actuator_instances", Type: Gauge,
			Help: "Instances that were found on this host and whose knobs are turned"},
		{Name: "trimtab_actuator_find_errors_total", Type: Counter,
			Help: "Looks for the instances of a workload that failed, or found some that are not taken up: too many, or unreadable"},
		{Name: "trimtab_actuator_lease_seconds", Type: Gauge,
			Help: "Seconds until the lease of the allocation runs out"},
		{Name: "trimtab_actuator_paused", Type: Gauge,
			Help: "1 while paused, else 0"},
		{Name: "trimtab_actuator_write_seconds", Type: Histogram,
			Help:    "Seconds from the write of a knob to its read back",
			Buckets: []float64{1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1}},
		{Name: "trimtab_actuator_journal_errors_total", Type: Counter,
			Help: "Journal writes that failed, so that nothing was done"},
		{Name: "trimtab_actuator_journal_damaged_total", Type: Counter,
			Help: "Damaged places found in the journal at start"},
		{Name: "trimtab_actuator_watchdog_starts_total", Type: Counter,
			Help: "Starts of the watchdog child process"},
	}
}
