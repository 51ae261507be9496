// Package console shows people what trimtab sees and does: it follows the
// values on the bus into a read model, serves it as JSON under /api/v1/ (api.go
// has the types) and as pages, tells by server-sent events what changed, and
// takes a person's commands (pause, resume, apply, round, release) to the bus.
//
// The read model keeps the newest of everything and a bounded past: the last
// 10^5 decisions of 7 days, over all workloads, each with its result and its
// effect,
//
//	effect(d) = (performance of the last report before d,
//	             performance of the first report at least one round after d),
//
// and per workload its reports at a resolution that falls with their age: four
// points that leave one level become one, their mean, of the next. What it
// forgets at a restart it reads again from the bus, as far as plans and
// outcomes tell.
//
// Workloads stand worst first: those that miss their SLO, the least utility on
// top. The package computes no allocation and decides nothing. Only loopback
// names are accepted as Host unless configured, requests that change something
// must carry JSON, and nothing is loaded from elsewhere (content security
// policy "default-src 'none'"). Names and reasons are text everywhere.
//
//	v := console.NewView(console.Config{Pool: "cpu", …})
//	stop, err := v.Follow(ctx, bus)
//	http.Handle("/", console.Handler(v, …))
package console
