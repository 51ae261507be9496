package prometheus

// ReadAnswer lets the fuzz target in without a server.
func ReadAnswer(status int, contentType string, body []byte) (values []float64, err error) {
	all, _, err := readAnswer(status, contentType, body)
	for _, n := range all {
		if n.err == nil {
			values = append(values, n.value)
		}
	}
	return values, err
}

// AgeQuery lets a real server judge it.
func AgeQuery(selectors []string) string { return ageQuery(selectors) }
