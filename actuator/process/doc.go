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
// Each worker gets TRIMTAB_WORKER=INDEX, from 0, in its environment. Workers are stopped from the
// highest index down, by SIGTERM, then SIGKILL; they die with the supervisor. One that crashes is
// started again, after a pause that doubles. The supervisor reports the running workers in
// DIR/workers.current, as JSON ([State]).
//
// [Kind] finds the instances of a workload: directories that match a pattern and have a live
// supervisor, by workers.current. It never follows a link out of a directory.
//
// The package does not distribute load: the workers must share their socket or queue.
//
//	knob, err := process.Open(process.Config{Root: "/run/trimtab", Dir: "shop"})
package process
