// Package process sets the number of worker processes of a service on this
// host, without root:
//
//	workers running → the number in DIR/workers.max, within [Min, Max]
//
// [Supervise] starts and stops the workers of one command to match the file;
// `trimtab workers --dir DIR -- COMMAND…` runs it. [Workers] is the knob: it
// writes the file beneath a declared root and reads it back, so that journal,
// lease and restore are the same as for a control group.
//
// Each worker gets TRIMTAB_WORKER=INDEX, from 0, in its environment. Workers
// are stopped from the highest index down, by SIGTERM, then SIGKILL; they die
// with the supervisor. One that crashes is started again, after a pause that
// doubles. What runs is in DIR/workers.current, as JSON ([State]).
//
// [Kind] finds the directories that match a pattern and that a supervisor serves:
// the instances of a workload. Whether one does is what workers.current says of a
// process that lives. A directory is never left by a link.
//
// The package does not spread load: the workers share their socket or queue
// themselves.
//
//	knob, err := process.Open(process.Config{Root: "/run/trimtab", Dir: "shop"})
package process
