// Package placed keeps, on one host, which attempts at speculative tasks it was told to
// have, and says what is to be done for that: the host's half of a protocol in which
// messages are lost, repeated and late, and both sides restart.
//
// A host tells its attempts in numbered reports, and gets whole lists of those that it is
// to have. A list counts if it is for this life of the host, newer than the last by
// (epoch, sequence), and its lease still runs:
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
// So an attempt is started at most once, and two of one task never run at once here. That
// it is so in the whole cluster is the planner's half (planner/jobs).
//
// A [Ledger] is pure: times are arguments, and who starts and kills is its caller.
//
//	l, err := placed.New(placed.Config{Pool: "default", Host: "h1", Life: life})
//	n := l.Report(now)                // a report with this number is about to be sent
//	orders, err := l.Take(now, list)  // carry them out, and tell the ledger: Start, Refuse, End
//	orders = l.Expire(now)            // every second or so
package placed
