// Package haproxy limits how many requests a server of HAProxy serves at once, through the
// runtime API (the stats socket):
//
//	requests in service ≤ maxconn of the server; the others wait in the queue of the backend
//
// How long they wait, and which answer they get after that, the operator configures in HAProxy
// (timeout queue, retries). A maxconn of 0 means no limit.
//
// What HAProxy 2.6 does that a reader would not expect:
//
//   - A server with minconn has a limit between minconn and maxconn that follows the load of the
//     backend (fullconn). Nothing in the runtime API shows minconn. A maxconn below it limits
//     nothing beyond minconn, and one that equals it makes the limit static for good: maxconn can
//     be put back, minconn cannot. Leave minconn out for servers that trimtab limits.
//   - Limits count modulo 2³², and negative ones are taken: this package writes 0 to 2³²−1 only.
//   - Success is an empty line, and an error is a sentence: every other answer is an error here.
//   - A frontend and a backend may have one name, by which show stat finds the frontend.
//   - A reload keeps the socket's file and forgets what was set: the new process begins with its
//     configuration. A knob is that of one process, by its number and start; in the next one the
//     server is another instance, with a baseline of its own.
//
// trimtab does not set the maxconn of a frontend: beyond it HAProxy accepts no connections, so
// clients wait in the kernel, where nothing counts them.
//
// Source: HAProxy 2.6, doc/management.txt, section 9.3, and doc/configuration.txt, section 5.2
// (maxconn, minconn). Tried with Debian's 2.6.12.
//
//	knob, err := haproxy.Open(haproxy.Config{Socket: "/run/haproxy/admin.sock", Backend: "shop", Server: "web1"})
//	…
//	err = knob.Write(ctx, trimtab.Units(40))
package haproxy
