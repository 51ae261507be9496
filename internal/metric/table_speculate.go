package metric

// speculateRows are the metrics of speculative tasks on a host.
func speculateRows() []Row {
	return []Row{
		{Name: "trimtab_speculate_tasks", Type: Gauge, Labels: []string{"host", "state"},
			Help: "Speculative tasks on a host, by state: waiting, running, frozen, and regular, of those to which the cluster granted resources"},
		{Name: "trimtab_speculate_started_total", Type: Counter, Labels: []string{"host", "class"},
			Help: "Tasks that were started on a host, by class: oversubscribed, or regular, of those with a grant"},
		{Name: "trimtab_speculate_ended_total", Type: Counter, Labels: []string{"host", "outcome"},
			Help: "Tasks that ended on a host, by outcome: exited, signaled, out of memory, timed out, killed, lost"},
		{Name: "trimtab_speculate_refused_total", Type: Counter, Labels: []string{"host"},
			Help: "Attempts that a host refused: its queue is full, the program is not allowed, or it never fits; they are dispatched elsewhere"},
		{Name: "trimtab_speculate_turns_total", Type: Counter, Labels: []string{"host", "turn", "result"},
			Help: "What was done to tasks: start, kill, freeze, thaw, relabel, bind to cores, by whether it could be: ok, failed"},
		{Name: "trimtab_speculate_verdicts_total", Type: Counter, Labels: []string{"host", "verdict"},
			Help: "What came of anomalies of services beside tasks: anomaly, noise, not ours; accused tasks, of which each ends as guilty, innocent or undecided"},
		{Name: "trimtab_speculate_lists_total", Type: Counter, Labels: []string{"host", "result"},
			Help: "Lists of tasks that a host got, by what became of them: taken, or refused: for another life of the host, older than the last, or too late"},
		{Name: "trimtab_speculate_blocked", Type: Gauge, Labels: []string{"host"},
			Help: "1 where tasks wait and none may start, for a reason that the host tells the planner"},
		{Name: "trimtab_speculate_signal_ratio", Type: Gauge, Labels: []string{"host", "workload", "signal"},
			Help: "A signal of a service beside tasks (cpi, or the waiting that takes its place where cycles are not counted) over the boundary above which it is disturbed, of its worst instance"},
		{Name: "trimtab_speculate_false_alarms_ratio", Type: Gauge, Labels: []string{"host", "workload", "signal"},
			Help: "Share of the windows without speculative tasks in which a signal was called anomalous, as measured, of the worst instance"},
		{Name: "trimtab_speculate_fit_distance", Type: Gauge, Labels: []string{"host", "workload", "signal"},
			Help: "Distance (Kolmogorov-Smirnov) of the distribution that is fitted to a signal from what was measured; where it is too far, the signal is judged phase by phase"},
		{Name: "trimtab_speculate_second_class_cpus", Type: Gauge, Labels: []string{"host"},
			Help: "CPUs to which speculative tasks are bound beside services; 0: they run on all"},
		{Name: "trimtab_speculate_load_ratio", Type: Gauge, Labels: []string{"host", "load"},
			Help: "Load level of a host as a share of what it has, over the last 30 seconds and without outliers; what beside.tasks.thresholds are compared with"},
		{Name: "trimtab_speculate_tick_seconds", Type: Histogram,
			Help:    "Seconds from a look at the tasks of a host until what was decided is told; starting and killing go on beside it",
			Buckets: []float64{1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1}},
	}
}
