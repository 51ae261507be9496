package prometheus

// ReadAnswer lets the fuzz target in without a server.
func ReadAnswer(status int, contentType string, body []byte) (float64, error) {
	v, _, err := readAnswer(status, contentType, body)
	return v, err
}
