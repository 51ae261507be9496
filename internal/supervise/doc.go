// Package supervise starts, replaces and stops the parts of one process: parts that a reload did
// not change continue, changed ones are stopped in the reverse order of the flow and started again,
// and the end of the process has a time limit whatever hangs.
//
//	err := parts.Apply(ctx, next) // only what changed is restarted
//
// A part is a name, the key of what it is built from, and a function that starts
// it. [Process] has what all parts share, and runs each in the background, under a
// lock where one process at a time may (pipeline.Alone), and with its readiness.
// It knows no stage and no configuration file: package site names the parts.
package supervise
