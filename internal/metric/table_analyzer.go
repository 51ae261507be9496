package metric

// analyzerRows are the metrics of the analyzer.
func analyzerRows() []Row {
	return []Row{}
}
