// Package rose plays a cluster with batch jobs that use what is reserved and idle, by
// speculative tasks, and compares how machines are selected for them.
//
// Events are discrete: heartbeats, ends of tasks, rounds of the filtering, decisions of
// agents. Candidates are those of planner/machines, with levels by
// analyzer/fingerprint; each machine's agent is planner/throttle, the same steps as in
// production; job managers do algorithm 5 (job.go).
//
// A machine runs regular tasks in slots, speculative ones in what is left, and
// everything else. With h the recorded use over its mean,
//
//	cores of regular tasks and of everything else   Σ c h(t) + b h(t)
//	cores of speculative tasks                      Σ c, at most what is left
//	disk                                            likewise, with the recorded disk
//	load                                            cores wanted + 12 · disk
//
// so that what is not speculative is as uneven over machines and time as recorded.
// Levels are the paper's: the 668 speculative tasks at once of table 4 and the 117,676
// started ones of table 5 in 517.4 s are 2.94 s each; the 97,204 other tasks then hold
// 2.6 regular slots per machine, of 3; with 36.37% of the CPUs without speculation and
// 65.10% with it, a task has c = 1.03 cores and everything else b = 15%; 1.72 more
// tasks at once (RB to ROSE) raise the load by 4.16 and with it the disk.
//
// The paper does not state how many tasks of a job wait in queues at once (here 20),
// the threshold of the load (1.15 per core: the median load is 13.9 on 12 cores), the
// other thresholds but the example of 60% of the disk, and how many candidates there
// are (80%). The baselines do not reschedule, since that is ROSE's.
//
// LRAs share memory bandwidth with all tasks, and in mode UP the cores, too (lra.go).
// What bandwidth costs them is recorded: programs beside SP. CPI alone is sampled; its
// boundary is learned by analyzer/fingerprint.
//
// The YARN runs are of another cluster: stages so small that they wait for heartbeats
// as long as they run, which is what 21.3% of the CPUs in 609 s come to.
//
// Left out: data locality, network, memory pressure, machines that fail, and leases.
//
// Source: Yang et al., ROSE, IEEE TPDS 2020, section 7. docs/papers.md has its tables
// beside ours, and where they disagree.
//
//	x := rose.Experiment{Usage: rose.BuiltInUsage(), Machines: 210, Parts: rose.Parts(), Policies: rose.PolicyNames(),
//		Modes: rose.Modes(), Seeds: 5, First: 1, Runner: sim.InOrder}
//	rows, err := x.Play()
package rose
