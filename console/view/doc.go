// Package view is what people are shown, derived from the values on the bus: a
// read model, and the types of /api/v1 (api.go). It says numbers, states and
// reasons in words, so that the page, the command line and programs of others
// say the same.
//
// A [Model] keeps the newest of everything and a bounded past: the last
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
// top. The package serves nothing (package console does), computes no allocation
// and decides nothing. It asks the clock how old things are, and puts old
// decisions in a file without a name.
//
//	v := view.New(view.Config{Pool: "cpu", …})
//	stop, err := v.Follow(ctx, bus)
//	status := v.Status(time.Now())
package view
