// Package loadgen plays one day of requests, compressed, against several
// services at once. It is an open loop: requests start when the day says so,
// whether or not earlier ones were answered, and a latency is
//
//	end of the answer − intended start
//
// so that a service that stands still for a second shows that second in the
// latencies of all who came meanwhile (no coordinated omission). The intended
// starts are a Poisson process with rate(t), drawn by thinning from a seed:
// the same seed plays the same day again.
//
// Source: G. Tene, "How NOT to Measure Latency", 2013, for the intended
// start; P. Lewis, G. Shedler, Naval Research Logistics Quarterly 26(3), 1979,
// for the thinning.
//
// It sends plain GET requests, stamps each with its intended start as a router
// does, follows no redirects and reads no bodies beyond their end.
//
//	g := loadgen.Generator{For: 2 * time.Minute, Seed: 1, Targets: []loadgen.Target{{Name: "search",
//		URL: "http://127.0.0.1:8081/", Day: loadgen.Day{Base: 30, Peak: 100, At: 0.5, Width: 0.3},
//		Latency: 200 * time.Millisecond}}}
//	totals, err := g.Run(ctx)
package loadgen
