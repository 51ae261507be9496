// Package demo plays trimtab's demonstration: three real services of its own
// under real load on this machine, one day compressed into minutes, again and again:
// where there are cgroups first by the kernel alone, with one quota for all services and
// equal weights; then under equal shares; then with trimtab in charge of the shares.
//
// The pool holds less than equal shares would need to serve every service at
// its peak; the peaks come at different times of the day, so that shares which
// follow the load can serve them all:
//
//	max_t need_i(t) > C/3 for some i,   and   sum_i need_i(t) < C for all t
//
// Reported per service and phase: the share of requests that were answered
// within the SLO's latency, counted by the client from the intended start;
// the utility, which is the mean over windows of 10 s of min(1, attained /
// SLO); latencies, and the mean allocation; per phase the least utility and
// the mean of the utilities ("social").
//
// Source: Cilantro (OSDI'23), sections 4.1 and 6, for the utilities, the
// welfare measures, and the comparison with equal shares.
//
// The package starts the services, turns the knob while trimtab does not,
// plays the load and draws the table. It does not start the pipeline: the
// caller hands in how ([Config.Start]). It decides nothing about shares.
//
//	err := demo.Run(ctx, demo.Config{For: 6 * time.Minute, Knob: "auto", Out: os.Stdout,
//		Self: []string{os.Args[0], "demo-service"}, Start: startPipeline})
package demo
