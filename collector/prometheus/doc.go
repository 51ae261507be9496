// Package prometheus asks a Prometheus server for each workload's load,
// performance and allocation, and publishes what it answers as samples.
//
// Every interval, each expression is an instant query. Its sample is true at
//
//	Time = start of the query − age,   age = max over targets T of min over series s of T of (time() − timestamp(s))
//
// where T runs over what is still scraped of the targets (job and instance) whose series
// the expression's selectors find now. The time of an instant vector is only when it was
// computed, and timestamp() of anything but a selector is too; so the age is asked with a
// second query made of the selectors, read from the expression by [promql.Selectors]. The server
// subtracts, so that two clocks are never compared. A scrape gives all series of its target
// at once: an older one has ended. A source that has no series up (pushed, federated) may
// be several processes, and is as old as its oldest series.
//
// A load, an allocation and a number of requests add up over targets: without one of them
// the rest reads as a fall. The package follows the targets behind each expression and
// tells those that went in good order from those that were cut off ([targets]); while one
// is in doubt, a value counts only if it is hardly less than the last one without a doubt.
//
// A server may answer in part, too: Thanos and clusters of VictoriaMetrics when a store is
// away, Prometheus when a remote read fails. They are asked not to, and what they mark as
// partial is missing. VictoriaMetrics takes now for 30 s ago unless it is told not to.
//
// An expression whose selectors find no series now has no value, even if a
// long range or "or vector(0)" still yields a number: the target is gone, and
// a gone target must not look like an idle one. So also: empty, NaN, Inf,
// negative, several series, text, any error. (Several that differ in the label host,
// or in host and instance, are one sample each, of one instance of the workload.)
// Each gives a sample that is
// Missing with the reason, never zero. An expression without a selector, such
// as vector(5), has age 0; one that it cannot read has its evaluation
// time, and its source says "age unknown". The age of a recording rule's
// result is that of the rule, not of its inputs.
//
// Answers are bounded in size and time; redirects are followed only on the
// same host. The package judges nothing: staleness is the analyzer's.
//
//	c, err := prometheus.Open(prometheus.Config{URL: "http://127.0.0.1:9090", …})
//	if err != nil { … }
//	defer c.Close()
//	err = c.Run(ctx)
package prometheus
