// Package alertmanager receives the webhook of Prometheus's Alertmanager and
// turns alerts that concern a workload into values on the bus.
//
//	concerned(alert) = { w : match(w) ⊆ labels(alert) },  match(w) not empty
//
// An alert can only trigger a round: the package reads its labels, status, start and texts, and
// uses no number in it. Alertmanager repeats alerts, so one whose status did not change is
// published once per workload. Alerts that concern no workload are counted, and answered with 2xx
// like all valid ones.
//
// The status codes follow from Alertmanager's behavior: it retries only after 5xx, so 503 with
// Retry-After stands for "not now", also for a body that arrives too slowly, and 408 and 429 are
// never used; permanent errors are answered with 400, 401, 403, 405, 413 or 415. Once a body was
// read, the answer is sent within [Deadline]. A request without the token is answered before a byte
// of its body is read. Grafana sends the same form, by POST or PUT, once for each notification: it
// tries nothing again, whatever the answer, before the group's next notification.
//
// Source: the webhook's version "4", prometheus.io/docs/alerting/latest/
// configuration/#webhook_config. The format is read leniently: fields that are
// not known are ignored, and groupKey may be missing.
//
// The package listens nowhere and starts no goroutine that outlives a request.
//
//	r, err := alertmanager.Open(alertmanager.Config{Bus: b, Metrics: set,
//		TokenFile: "/etc/trimtab/alertmanager.token",
//		Workloads: []alertmanager.Workload{{Name: "checkout", Labels: map[string]string{"service": "checkout"}}}})
//	mux.Handle(alertmanager.Path, r)
package alertmanager
