// Package fast moves the CPU quotas of a host between rounds, ten times a second: the
// actuator looks (FastLook), planner/local decides, the actuator writes (FastMove), within
// the envelopes that plans gave it.
//
//	err := fast.Run(ctx, actuator, host, metrics, logger)
//
// It moves the quota of a control group, in cores. The loop does not use the bus, and has no rule
// of its own.
package fast
