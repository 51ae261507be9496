// Package jobs stores the best-effort jobs of one host that registered themselves, and the progress
// that each one reports.
//
// A job is a control group. What it reports, over HTTP or in a file, is one JSON
// object:
//
//	{"done": 0.4}                               the part that is done, of data-parallel jobs
//	{"step": 123, "steps": 1000}                of training jobs
//	{"step": 123, "saved": 120}                 the last checkpoint was at step 120
//	{"step": 123, "checkpoint": true}           what was done so far cannot be lost
//	{"finished": true}                          it ends
//
// Reports are a stranger's word. One that cannot be read changes nothing. A job
// that goes backwards began again: all that was known of it is dropped. One that
// falls silent cannot be predicted any more. Neither gives a job anything: a report
// only orders who is reclaimed first.
//
// The package turns no knob and decides nothing.
//
//	r, err := jobs.Open(dir, jobs.Config{Root: "/sys/fs/cgroup", Reserved: patterns})
//	err = r.Report("batch/1", []byte(`{"done": 0.5}`))
//	p := r.Progress("batch/1")
package jobs
