// Package natsbus is the bus on NATS: an embedded nats-server with JetStream,
// or one that runs elsewhere.
//
// Telemetry travels over core NATS. Every Shed value carries the place it
// has in the sequence of its publisher and subject, so that a subscriber
// counts exactly what did not arrive:
//
//	lost(publisher, subject) = |{n : first ≤ n ≤ last} \ {n that arrived}|
//
// where first is the first that arrived; a late one is taken off again for a
// second, a repeated one changes nothing. Those that wait to be sent at one time
// travel as one message, which is not counted as one (batch.go). Spans travel as requests, so that a
// slow analyzer slows the sender down. Whatever decides or acts is in
// JetStream: one stream per kind, consumers that have one message out at a
// time and thus keep the order, dead letters in the stream UNREADABLE. [Table] has all of it, [Markdown] prints it.
//
// An embedded server that does not listen has one client, this process. Then
// Shed and Latest values, which are nearly all that travels, go from publisher
// to subscriber as they are: no message, no encoding. The newest Latest value of
// each key is stored every 30 s and at Close, so that the next process begins
// with it. What decides or acts is stored before Publish returns, always.
//
// A server that was restarted, wiped or rolled back costs time and repeats
// messages; streams, consumers and buckets are made anew when they are missed.
// JetStream acknowledges before it writes to the disk: what a power cut takes
// away is what a rollback takes away.
//
// The package does not authenticate the clients of an embedded server, which
// therefore listens on loopback only, and only when it is told to.
//
//	b, err := natsbus.Open(ctx, natsbus.Config{Dir: "/var/lib/trimtab/nats", Source: "planner"})
//	if err != nil { … }
//	defer b.Close()
//	err = b.Publish(ctx, &trimtab.Alert{…})
package natsbus
