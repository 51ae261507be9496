// Package placed records, on one host, which attempts at speculative tasks the planner placed
// there, and decides what to do for them. It is the host's half of a protocol in which messages may
// be lost, repeated or late, and both sides may restart.
//
// A host reports its attempts in numbered reports, and receives complete lists of those that it
// must have. A list counts if it is for this run of the host's agent, newer than the last by
// (epoch, sequence), and its lease has not expired:
//
//	until = when the host sent the report that the list answers + lease
//
// by the host's boot clock. Without a common clock both sides then know when an attempt
// on a silent host has ended. Of a list that counts
//
//   - an attempt that the host never knew is queued, unless another of the same task is
//     here and has not ended, or one with the same or a higher number ever was: then it is
//     refused, which means that it was never started and never will be;
//   - one that runs or waits is renewed, and relabelled where its class is another;
//   - one that is to end is killed; while it waits it is refused instead;
//   - one that is not in it is killed when it runs, and forgotten when it does not.
//
// So an attempt is started at most once, and two of one task never run at once here. The planner's
// half (planner/jobs) ensures the same for the whole cluster.
//
// A [Ledger] is pure: times are arguments, and its caller starts and kills tasks.
//
//	l, err := placed.New(placed.Config{Pool: "default", Host: "h1", Life: life})
//	n := l.Report(now)                // a report with this number is about to be sent
//	orders, err := l.Take(now, list)  // carry them out, and tell the ledger: Start, Refuse, End
//	orders = l.Expire(now)            // every second or so
package placed
