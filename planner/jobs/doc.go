// Package jobs manages the batch jobs of a pool: it places their tasks on hosts, speculatively or
// with a regular grant, and ensures that a task runs at most once at a time and that no task is
// lost, whichever process dies.
//
// Scheduling is ROSE's algorithm 5. A task without a grant is dispatched to a candidate, at
// random or in turn, and again to the latest candidates when it waited too long in a queue.
// When its regular resources are granted on a host, it
//
//	starts there       if it has no host; if it is queued, once that is cancelled
//	is relabelled      if it runs there
//	stays where it is  if its progress > tau; the grant is in reserve for its failure
//	starts there       otherwise, once it is killed
//
// The paper leaves open, and this package chooses: jobs of higher priority go first, then those
// submitted first. A progress that is not known is not above tau. A grant ends with its task; when
// its host refuses, loses or kills the task; and after the queue's time-out when the host does not
// take the task.
//
// Attempts. Attempt k+1 is placed only after one of these: the host reported attempt k as ended or
// refused; the host has restarted; the host has carried out a list by which the attempt must end,
// and no longer reports it; or its lease has certainly expired:
//
//	now >= received(newest report that was answered with it) + 1.1 · lease + 5 s
//
// A manager that takes over counts from its own start, with the longest lease that any former
// manager may have given. The cost of a failed attempt depends on its end:
//
//	failed: exit code, signal, memory, time   a retry; wait 1 s · 2^n, at most 5 min
//	refused                                   one of RefusedLimit; elsewhere at once, three times
//	lost with its host, killed by it          one of LostLimit; wait as above
//	withdrawn: the manager wanted it          nothing
//
// Straggler: an attempt that runs for longer than 1.5 medians of its job's last 101
// durations. It counts against its machine (algorithm 3), as failures, losses and kills by
// the host do. These counts begin anew with each manager.
//
// Write-ahead: what a tick publishes depends on what it stores, so it is published only after that.
// A job is stored in parts (record.go): the submitted tasks once, and the states of 32 tasks each
// whenever one of them changes. The fence record in each store prevents a manager that was replaced
// from completing one.
//
// Hosts must follow two rules, in addition to those in [speculation.Placements]. A report that
// acknowledges a list includes all attempts of it that the host knows. A host never starts an
// attempt that it does not know and that must end. A host that breaks these rules can only make its
// own tasks run twice or fail.
//
// # What bad input gets
//
//   - A report of a former life, or not newer than the last, is refused; of a host that was
//     silent until nothing ran on it an earlier life is believed.
//   - A progress that is NaN or outside [0, 1] is missing; texts are cut and cleaned; an
//     unknown state says nothing; a running attempt is not queued again.
//   - An attempt that is not placed there is not listed, so that it is killed and forgotten;
//     its number is not given again there.
//   - A sequence that was never sent acknowledges nothing. A host that follows a later epoch
//     gets no attempts.
//   - A host that loses attempts again and again gets the next later and later; one that
//     does not end an attempt in KillTimeout is not renewed for it any more.
//   - Records that cannot be read stay, and their jobs do not run.
//
// The package knows no clock, no bus and no store.
//
//	m, err := jobs.New(time.Now(), c, records) // under the pool's lock
//	err = m.Request(time.Now(), request)
//	err = m.Machine(time.Now(), report)
//	m.Candidates(names)
//	out := m.Tick(time.Now())
//	// store out.Store, then publish the rest
//
// Source: "ROSE" (IEEE TPDS 2020), 3.2 (JobMaster), 4.1 (algorithm 3), 6.3 (algorithm 5).
package jobs
