// Package view derives what people see from the values on the bus: it has a
// read model and the types of /api/v1 (api.go). It puts numbers, states and
// reasons into words, so that the pages, the command line and other programs
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
// points that leave one level become one, their mean, of the next. After a
// restart it reads plans and outcomes from the bus again; what they do not
// contain is lost.
//
// The worst workload comes first: those that miss their SLO, by ascending
// utility. The package serves nothing (package console does), computes no
// allocation and decides nothing. It reads the clock for the ages of values, and
// keeps old decisions in a file without a name.
//
//	v := view.New(view.Config{Pool: "cpu", …})
//	stop, err := v.Follow(ctx, bus)
//	status := v.Status(time.Now())
package view
