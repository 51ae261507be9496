// Package supervise starts, replaces and stops the parts of one process: what a
// reload left alone goes on, what it changed is stopped in the reverse order of
// the flow and started anew, and the end of the process is bounded whatever hangs.
//
//	err := parts.Apply(ctx, next) // only what changed is restarted
//
// A part is a name, the key of what it is built from, and a function that starts
// it. [Process] has what all parts share, and runs each in the background, under a
// lock where one process at a time may (pipeline.Alone), and with its readiness.
// It knows no stage and no configuration file: package site names the parts.
package supervise
