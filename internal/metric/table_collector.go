package metric

// collectorRows are the metrics of the collector.
func collectorRows() []Row {
	return []Row{}
}
