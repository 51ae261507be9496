package metric

// plannerRows are the metrics of the planner.
func plannerRows() []Row {
	return []Row{}
}
