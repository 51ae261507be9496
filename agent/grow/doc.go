// Package grow raises memory limits of this host between rounds, once a second: the memory source reads
// every group (collector/memory), internal/shortage decides, the actuator writes ([actuator.Actuator].Raise)
// within the operator's bounds, while a plan is in force, and within what the host has free. The planner
// hears of it from the holding.
//
//	feed := grow.NewFeed() // its Take is poll.Config.Seen
//	err := grow.Run(ctx, grow.Config{Knobs: actuator, Feed: feed, Margins: margins, Metrics: metrics, Logger: logger})
//
// With Probes it also finds what instances need (planner/probe): it has the kernel reclaim memory step by
// step, sets no limit, and tells the analyzer by the bus, which it needs for nothing else but the performance
// of the probed. It lowers no limit.
package grow
