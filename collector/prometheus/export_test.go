package prometheus

// ReadAnswer lets the fuzz target in without a server.
func ReadAnswer(status int, contentType string, body []byte) (float64, error) {
	v, _, err := readAnswer(status, contentType, body)
	return v, err
}

// AgeQuery lets a real server judge it.
func AgeQuery(selectors []string) string { return ageQuery(selectors) }
