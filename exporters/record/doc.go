// Package record records the inputs and outputs of the pure steps, so that a replay can run them
// again: the same inputs at the same times give the same bytes.
//
// A [Tap] stands around a step and hands every call on: the time it was told,
// the value or tick, and what it returned. Sketches, samples, holdings,
// alerts, commands, outcomes, estimates and plans all pass through the steps
// "learn" and "planner", so those two taps see everything but raw spans. The
// [Recorder] writes it as lines of JSON,
//
//	{"received": …, "stage": "learn", "role": "in", "kind": "sketch", "version": 1, "value": {…}}
//
// in segments that begin with a [Header] and are rotated by size and age,
// compressed with gzip when they are complete, and deleted, the oldest first,
// to stay within a size. [Open] reads them back in order of time; lines that
// are cut or damaged are counted and passed over.
//
// What a replay can rely on:
//
//   - From a line of role start with Fresh set, or a step restored by the
//     lines of role restore after it, every estimate and plan comes out byte
//     for byte, if the configuration is the one that the header's digest
//     names, no line says that others were lost before it, and the plan is
//     not marked as cut by its deadline.
//   - A recording that was switched on while the step ran begins with a start
//     that is not fresh and the step's snapshot. Snapshots leave out what is
//     learnt again in some rounds, so the first estimates and plans may differ.
//     The same holds when the oldest segments were deleted.
//   - received is the time that the step was told, which never runs back
//     within one stage. Lines of several stages are in order up to what waits
//     in a window of [Window] lines.
//
// Nothing here can slow or stop a step: what finds the queue full is dropped,
// counted, and said by the next line. One process writes to a directory.
//
//	r, err := record.Start(record.Config{Dir: "recordings", Metrics: set})
//	step := record.NewTap("learn", analyzer, func() *record.Recorder { return r })
//	…
//	in, err := record.Open("recordings")
//	for {
//		line, err := in.Next() // io.EOF at the end
//		out, err := line.Apply(fresh[line.Stage])
//	}
package record
