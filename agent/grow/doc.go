// Package grow raises memory limits of this host between rounds, once a second: the memory source reads
// every group (collector/memory), internal/shortage decides, the actuator writes ([actuator.Actuator].Raise)
// within the operator's bounds, while a plan is in force, and within what the host has free. The planner
// hears of it from the holding.
//
//	feed := grow.NewFeed()                                  // its Take is poll.Config.Seen
//	err := grow.Run(ctx, actuator, feed, margins, metrics, logger)
//
// The loop reads no file and uses no bus. It lowers nothing.
package grow
