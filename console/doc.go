// Package console shows people what trimtab sees and does: it follows the
// values on the bus, keeps the newest of each and the last decisions per
// workload, and serves them as JSON under /api/v1/, as one plain page at /,
// and takes a person's commands (pause, resume, apply, round, release) to the
// bus.
//
// The page worst-first: the workload with the least utility stands on top.
// It computes no allocation and decides nothing; what it forgets at a restart
// it reads again from the bus. Only loopback names are accepted as Host unless
// configured, requests that change something must carry JSON, and nothing is
// loaded from elsewhere (content security policy "default-src 'none'").
//
//	v := console.NewView(console.Config{Pool: "cpu", …})
//	stop, err := v.Follow(ctx, bus)
//	http.Handle("/", console.Handler(v, …))
package console
