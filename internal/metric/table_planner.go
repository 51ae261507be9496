package metric

// plannerRows are the metrics of the planner.
func plannerRows() []Row {
	pool := []string{"pool"}
	return []Row{
		{Name: "trimtab_planner_rounds_total", Type: Counter, Labels: pool, Help: "Rounds of planning"},
		{Name: "trimtab_planner_plans_total", Type: Counter, Labels: pool, Help: "Plan steps published"},
		{Name: "trimtab_planner_actions_total", Type: Counter, Labels: []string{"pool", "mode", "direction"}, Help: "Actions published, by mode and by whether they raise or lower"},
		{Name: "trimtab_planner_unsolved_total", Type: Counter, Labels: pool, Help: "Rounds whose problem had no solution, so that everybody held"},
		{Name: "trimtab_planner_grows_dropped_total", Type: Counter, Labels: pool, Help: "Grows that were not published because nothing was free for them"},
		{Name: "trimtab_planner_grows_scaled_total", Type: Counter, Labels: pool, Help: "Grows that were made smaller because less was free than planned"},
		{Name: "trimtab_planner_actions_later_total", Type: Counter, Labels: pool, Help: "Changes that were left to a later plan, since their host makes only so many a second"},
		{Name: "trimtab_planner_unanswered_total", Type: Counter, Labels: pool, Help: "Plans whose shrinks were not all answered in time"},
		{Name: "trimtab_planner_applies_refused_total", Type: Counter, Labels: pool, Help: "Applies of recommended plans that were refused"},
		{Name: "trimtab_planner_ignored_total", Type: Counter, Labels: []string{"pool", "kind"}, Help: "Inputs that were late, repeated or not for this planner, by kind; foreign_knob: knobs of workloads that the configuration gives to another host, excess_knob: more knobs than are known of a host, each time they were told of"},
		{Name: "trimtab_planner_twin_holdings_total", Type: Counter, Labels: pool, Help: "Holdings by which two agents say that they are one host: its workloads are held"},
		{Name: "trimtab_planner_held_workloads", Type: Gauge, Labels: pool, Help: "Workloads that the last plan held, for a reason that it names"},
		{Name: "trimtab_planner_epoch", Type: Gauge, Labels: pool, Help: "Term of the planner as a leader; 0 before its first"},
		{Name: "trimtab_planner_objective_ratio", Type: Gauge, Labels: pool, Help: "Objective that the last target is expected to reach, in [0, 1] but for one of your own"},
		{Name: "trimtab_planner_verdicts_total", Type: Counter, Labels: []string{"pool", "verdict"}, Help: "Executed moves by what came of them: as expected, better, worse, or unknown because the load left its forecast"},
		{Name: "trimtab_planner_taken_back_total", Type: Counter, Labels: pool, Help: "Falls that broke an SLO and were taken back"},
		{Name: "trimtab_planner_gap_ratio", Type: Gauge, Labels: pool, Help: "Most that the last target may miss of the objective's optimum, as a share of a proven bound on it; 0: it is the optimum"},
	}
}
