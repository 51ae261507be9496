// Package kernel observes the requests of components without instrumentation: it builds spans from
// kernel events of their TCP sockets.
//
// Two tracepoints report every message that a watched process sends or receives:
//
//	SEND, RECV: time, context ⟨process, thread⟩, socket ⟨local, remote address and port⟩, bytes
//
// What a process receives on a port that it listens on is a request (a server
// span, until the last SEND of the answer); what it sends on another socket is a
// call (a client span, until the last RECV). They belong together as in the paper:
//
//	intra-Servpod  a call belongs to the request that its thread received last and has
//	               not answered; else to the one that its process did
//	inter-Servpod  a request on a socket is that of the call on the socket's other end
//
// With non-blocking threads or shared connections single pairs can be wrong; the
// mean sojourn time over all requests still is right. A request that comes from
// another host, or from a process that is not watched, begins a trace of its own.
// Who listens tells the roles, so that connections that are older than the tracer
// are seen too: the paper's ACCEPT and CLOSE are not needed. An answer has ended when
// the next request comes, or nothing more was sent for [Config].Settle. The kernel tells of a
// message once it is sent, when the other end may have read it: on a busy host a call can end
// some milliseconds before the request that it made.
//
// Needs Linux 6.3, BTF and CAP_BPF with CAP_PERFMON; [Open] says what is missing. Not
// seen: what is no TCP, several requests at a time on one connection (HTTP/2 and
// pipelining count as one), a handing over between threads while a process serves
// several requests. It has run on Linux 6.18 and no other kernel.
//
// Source: Zhao et al., Rhythm, ACM TOCS 2023, section 3.3 (request tracer).
package kernel
