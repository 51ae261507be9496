// Package fast moves the CPU quotas of a host between rounds, ten times a second: the
// actuator looks (FastLook), planner/local decides, the actuator writes (FastMove), within
// the envelopes that plans gave it.
//
//	err := fast.Run(ctx, actuator, host, metrics, logger)
//
// What moves is the quota of a group, in cores. No bus is between the three, and the loop
// has no rule of its own.
package fast
