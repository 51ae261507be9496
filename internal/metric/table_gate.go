package metric

// GateRows are the metrics of `trimtab gate`, a process of its own that exports no others.
func GateRows() []Row {
	times := []float64{1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10}
	return []Row{
		{Name: "trimtab_gate_requests_total", Type: Counter, Labels: []string{"workload", "class", "outcome"},
			Help: "Requests that ended at a gate, by what came of them: in_time, late, failed (a server error or no service), abandoned by the client, refused"},
		{Name: "trimtab_gate_refused_total", Type: Counter, Labels: []string{"workload", "class", "reason"},
			Help: "Refused requests by what they waited for: limit, for others in service to be answered; rate, for a rate that was set from outside"},
		{Name: "trimtab_gate_brownout_total", Type: Counter, Labels: []string{"workload", "class"},
			Help: "Requests that were passed on with the brownout header, which asks the service for a cheaper answer"},
		{Name: "trimtab_gate_rate", Type: Gauge, Labels: []string{"workload"},
			Help: "Requests that the gate admits per second at most, by the rates set for all classes; +Inf without one"},
		{Name: "trimtab_gate_limit", Type: Gauge, Labels: []string{"workload"},
			Help: "Requests that the gate lets be in service at one time"},
		{Name: "trimtab_gate_in_flight", Type: Gauge, Labels: []string{"workload"},
			Help: "Requests in service behind the gate"},
		{Name: "trimtab_gate_queued", Type: Gauge, Labels: []string{"workload"},
			Help: "Requests that wait in the gate"},
		{Name: "trimtab_gate_connections", Type: Gauge, Labels: []string{"workload"},
			Help: "Open connections of clients"},
		{Name: "trimtab_gate_wait_seconds", Type: Histogram, Labels: []string{"workload", "class"}, Buckets: times,
			Help: "Seconds that admitted requests waited in the gate"},
		{Name: "trimtab_gate_request_seconds", Type: Histogram, Labels: []string{"workload", "class"}, Buckets: times,
			Help: "Seconds from the arrival of an admitted request until its response was complete"},
	}
}
