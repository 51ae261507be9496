package prometheus

// ReadAnswer lets the fuzz target in without a server.
func ReadAnswer(status int, contentType string, body []byte) (values []float64, err error) {
	r, err := readReply(status, contentType, body)
	if err != nil {
		return nil, err
	}
	_, _, _ = r.ages()
	_, _ = r.health()
	all, err := r.numbers()
	for _, n := range all {
		if n.err == nil {
			values = append(values, n.value)
		}
	}
	return values, err
}

// AgeQuery and UpQuery let a real server judge them.
func AgeQuery(selectors []string) string { return ageQuery(selectors, byTarget) }

func UpQuery(selectors []string) string {
	return upQuery(selectors, []target{{job: "a\"b", instance: "c"}})
}
