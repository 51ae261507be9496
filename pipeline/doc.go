// Package pipeline runs a step as a stage: it subscribes, calls the step,
// publishes what it returns, acknowledges, counts, keeps its snapshots and,
// for a planner, its leader's lock.
//
// One goroutine at a time owns a step. Deliveries, ticks and news of the lock reach it
// one after the other, each delivery on the goroutine that brings it, and
//
//	outputs published → input acknowledged
//
// so that each value is handled at least once, however a process ends; steps are
// idempotent. A value on which a step panics becomes a dead letter; nothing else
// is lost.
//
// The leader of a pool is the process that last wrote the pool's key in the bucket
// "leaders". A candidate may write it only after it saw the key unchanged for a whole
// term by its own monotonic clock. The leader gives up 3/4 of a term after the start
// of its last renewal, so the speeds of two clocks may differ by a quarter. A process
// that gets its CPU late, or hears from the bus late, writes a longer term into the key:
//
//	term = min(max(Term, 4 · the worst delay of the last minutes), 30 s)
//
// After a renewal that came late, or whose answer was lost, the leader goes on in the
// same epoch if no other process wrote the key in between. Each new leader has
//
//	epoch = max(epoch in the bucket, epochs seen in holdings, outcomes and plans) + 1
//
// and actuators refuse plans of older epochs: the lock makes two leaders at once rare,
// the epoch makes them harmless.
//
// Ready means working: [Health] records what a part does on the bus and when its
// step returned. A part that has not done its [Work] for three rounds is not
// ready, and [Health.Reason] says what is not done, since when, and how to mend it.
//
// The package knows no stage and decides nothing.
//
//	err := pipeline.Run(ctx, pipeline.Stage{
//		Name: "planner", Bus: b, Step: planner, Tick: time.Second,
//		Consumes: []bus.Subscription{{Kind: trimtab.KindEstimate}, {Kind: trimtab.KindHolding}},
//		Leader:   &pipeline.Leader{Pool: "default"},
//		Metrics:  set, Logger: log,
//	})
package pipeline
