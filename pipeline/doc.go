// Package pipeline runs a step as a stage: it subscribes, calls the step,
// publishes what it returns, acknowledges, counts, keeps its snapshots and,
// for a planner, its leader's lock.
//
// One goroutine owns a step. Deliveries, ticks and news of the lock reach it
// one after the other, and
//
//	outputs published → input acknowledged
//
// so that a value is handled at least once however a process ends; steps are
// idempotent. A step that panics loses that value, which is put aside, and
// nothing else.
//
// The leader of a pool is who could last write the pool's key in the bucket
// "leaders". Who wants it must see the key unchanged for the whole term on its
// own monotonic clock; who has it gives up at 3/4 of a term after the start of
// its last renewal, so clocks may differ by a quarter. A process that is run
// late, or a bus that answers late, takes a longer term, which the key tells:
//
//	term = min(max(Term, 4 · the worst delay of the last minutes), 30 s)
//
// A renewal that came late, or whose answer was lost, goes on in the same epoch
// when nobody else wrote the key in between. Each new leader has
//
//	epoch = max(epoch in the bucket, epochs seen in holdings, outcomes and plans) + 1
//
// and the actuators refuse older ones: the lock makes double leaders rare, the
// epoch makes them harmless.
//
// Ready means working: [Health] notes what a part does on the bus and when its
// step returned. A part that has not done its [Work] for three rounds is not
// ready, and [Health.Reason] says what it does not do, since when, and what to do.
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
