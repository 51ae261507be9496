// Package console shows people the state and the decisions of trimtab: it serves the read model of
// package view as JSON under /api/v1/ and as pages, reports changes by server-sent events, and
// takes a person's commands (pause, resume, apply, round, release) to the bus.
//
// It derives nothing itself. Only loopback names are accepted as Host unless
// configured, requests that change something must carry JSON, and nothing is
// loaded from elsewhere (content security policy "default-src 'none'"). Names and
// reasons are text everywhere.
//
//	http.Handle("/", console.Handler(v, console.Options{…}))
package console
