// Package machines chooses the machines on which speculative tasks may start,
// and sends the choice to every job manager.
//
// Rating: each job manager counts, for each machine, those of its tasks that
// failed, crashed, straggled (tailed) or were killed, and reports its K highest
// counts; their sum, negated, is the machine's score ([Scores], [Index.Rate]).
//
// Filtering: with y_j = load_j / (largest capacity of dimension j), or load_j
// itself where no machine states a capacity,
//
//	B0 = K highest CPI or K highest MPKI (mode RP only)
//	B1 = K lowest scores, of machines with a penalty
//	B2 = disconnected
//	B3 = y_j > threshold_j for any j
//
//	lIndex = sum_j loadFilter_j  y_j
//	qIndex = sum_j queueFilter_j y_j
//
// The machines in none of B0 to B3 are left; of these the ceil(d L_max) with
// the lowest lIndex, and of those the L_max with the lowest qIndex are the
// candidates ([Index.Filter]). Ties go to the machine that comes first in the
// list. Left open by the paper, chosen here: all four lists are removed
// (the paper's line 14 can be read otherwise); thresholds are strict and hold
// for normalised values; Rule.WorstRated is the K of B1, and the K of each job
// manager is its own; sums run over the dimensions in their order.
//
// The baselines RB, SLB and QLB answer through the same call ([Policy]).
//
// Synchronisation: a [Publisher] gives the list of all machines a version
// (ver_m) and the candidates another (ver_c), and sends the candidates as a
// compressed bit vector over the list. A [View], in the job manager, asks for
// the list when its own is not the one that the bits are over.
//
// Source: "ROSE" (IEEE TPDS 2020), Algorithm 3 (TBAMR), Algorithm 4 (MMF), 5.1,
// 5.2. Load level approximation (Algorithms 1 and 2) runs on the machine
// itself; what arrives here is its result.
//
// # What bad input gets
//
//   - A value that is NaN, infinite, negative or over the declared maximum is
//     missing, and so is one of a bounded dimension that is more than 1% over
//     its own capacity. Missing is never 0: a machine with a missing value in a
//     dimension that the policy uses is no candidate.
//   - A report whose time is not after the last one's is refused; it does not
//     count as a sign of life. When the machine has been silent for the
//     time-out, its next report is taken whatever its time: its clock was set.
//   - A machine whose clock is ahead is treated like the others: age is counted
//     from the arrival.
//   - A machine that was lost after it had been there for less than
//     [Config.SettleAfter] is no candidate until it has been there for so long.
//   - A machine in the list that never reported is disconnected. A report from
//     one that is not in the list is refused, and takes no memory.
//   - A missing CPI or MPKI is not ranked for B0; [Rule.NeedCounters] makes
//     such machines no candidates in mode RP.
//
// The package does not place tasks and knows no bus: messages are bytes.
//
//	x, err := machines.New[float32](machines.Config{Dimensions: dims, Timeout: 30 * time.Second})
//	changed, err := x.SetMachines(ids)
//	bad, err := x.Update(now, &report) // for each report
//	result, err := x.Filter(now, machines.Rule{Policy: machines.MMF, Limit: 100, Widen: 2}, nil)
//	message, err := publisher.Update(x.IDs(), result.Candidates)
package machines
