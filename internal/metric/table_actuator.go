package metric

// actuatorRows are the metrics of the actuator.
func actuatorRows() []Row {
	return []Row{}
}
