package gate

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/trimtab/trimtab/planner/admission"
)

// visit is the state of one request in the gate.
type visit struct {
	admission.Ticket
	grpc    bool
	arrived time.Time
	verdict chan admission.Verdict
	span    *span
	// response is the service's response, nil until it comes; err says why none came.
	response *http.Response
	err      error
	upload   *upload // nil: the request has no body
	passed   bool    // the response was passed on completely
	brown    bool    // the service is asked for a cheaper answer

	// Guarded by the gate's lock:
	holds         bool // the request counts against the limit
	began         bool // the response has begun
	before, after *visit
	outcome       outcome
}

// outcome says how a request ended.
type outcome int

const (
	inTime outcome = iota
	late
	failed
	abandoned
	refused
	outcomes
)

func (o outcome) String() string {
	return [outcomes]string{"in_time", "late", "failed", "abandoned", "refused"}[o]
}

type visitKey struct{}

func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}

// ServeHTTP passes one request to the service, or refuses it.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.visits.Add(1)
	defer g.visits.Add(-1)
	v := &visit{arrived: time.Now(), grpc: r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")}
	v.Class, v.Retry = g.config.classes.of(r), isRetry(r.Header)
	v.upload = uploadOf(w, r, g.config.patience)
	if g.draining.Load() && r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
	switch g.enter(r.Context(), v) {
	case admission.Refused:
		g.refuse(w, v)
		g.finish(r, v, refused)
		return
	case admission.Waiting: // the client left while it waited
		g.finish(r, v, abandoned)
		return
	}
	g.brown(v)
	// The proxy panics if a response breaks off, so that the client does not take it for complete.
	defer func() { g.finish(r, v, g.leave(r.Context(), v)) }()
	if g.tracer != nil {
		v.span = g.tracer.start(r, v, g.config.classes.names[v.Class])
	}
	if r.ProtoMajor == 2 && !v.grpc {
		w = &download{w, http.NewResponseController(w), g.config.patience}
	}
	if d := g.transport.direct; d != nil && !v.grpc && d.carries(r) {
		g.pass(w, r, v)
		return
	}
	in := r.WithContext(context.WithValue(r.Context(), visitKey{}, v)) // the server keeps its own r
	if v.upload != nil {
		in.Body = v.upload
	}
	g.proxy.ServeHTTP(w, in)
	v.passed = true
}

// enter waits until the request is admitted or refused. It returns Waiting if the client left
// before that.
func (g *Gate) enter(ctx context.Context, v *visit) admission.Verdict {
	g.mu.Lock()
	v.Decide = func(d admission.Verdict) {
		if d == admission.Admitted {
			g.hold(v)
		}
		v.verdict <- d
	}
	v.verdict = make(chan admission.Verdict, 1)
	verdict := g.controller.Arrive(g.now(), &v.Ticket)
	if verdict == admission.Admitted {
		g.hold(v)
	}
	g.mu.Unlock()
	if verdict != admission.Waiting {
		return verdict
	}
	timer := time.NewTimer(v.Deadline() - g.now())
	defer timer.Stop()
	select {
	case verdict = <-v.verdict:
		return verdict
	case <-timer.C:
		if g.withdraw(v, g.controller.Expire) {
			return admission.Refused
		}
	case <-ctx.Done():
		if g.withdraw(v, g.controller.Leave) {
			return admission.Waiting
		}
	}
	return <-v.verdict // the rule decided at the same instant
}

// withdraw removes a waiting request from the queue.
func (g *Gate) withdraw(v *visit, how func(time.Duration, *admission.Ticket) bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return how(g.now(), &v.Ticket)
}

// hold counts a request against the limit.
func (g *Gate) hold(v *visit) {
	v.holds = true
	g.running.push(v)
}

// release stops counting a request against the limit and reports its result to the rule.
func (g *Gate) release(now time.Duration, v *visit, r admission.Result) {
	v.holds = false
	g.running.remove(v)
	intime := g.controller.Done(now, &v.Ticket, r)
	switch {
	case r == admission.Failed:
		v.outcome = failed
	case r == admission.Abandoned:
		v.outcome = abandoned
	case intime:
		v.outcome = inTime
	default:
		v.outcome = late
	}
}

// leave ends an admitted request and returns its outcome.
func (g *Gate) leave(ctx context.Context, v *visit) outcome {
	result := v.result(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	if v.holds {
		g.release(g.now(), v, result)
	}
	return v.outcome
}

// responding records that the response begins. A stream stops counting against the limit here.
func (g *Gate) responding(v *visit, r *http.Response) {
	stream := r.StatusCode == http.StatusSwitchingProtocols || strings.HasPrefix(r.Header.Get("Content-Type"), "text/event-stream")
	g.mu.Lock()
	defer g.mu.Unlock()
	v.began = true
	if stream && v.holds {
		g.release(g.now(), v, admission.Streaming)
	}
}

// long is the multiple of the SLO after which a request or response whose body still comes counts
// as a stream.
const long = 10

// releaseStreams stops counting long streams against the limit: responses that have begun and do
// not end, and requests whose clients do not send the rest of the body.
func (g *Gate) releaseStreams(now time.Duration) {
	for v := g.running.first; v != nil && g.opened.Add(now).Sub(v.arrived) > long*g.config.Within; {
		next := v.after
		if v.began || v.upload.waits() {
			g.release(now, v, admission.Streaming)
		}
		v = next
	}
}

// visitList is a linked list from which any visit can be removed in constant time.
type visitList struct{ first, last *visit }

func (l *visitList) push(v *visit) {
	v.before, v.after = l.last, nil
	if l.last == nil {
		l.first = v
	} else {
		l.last.after = v
	}
	l.last = v
}

func (l *visitList) remove(v *visit) {
	if v.before == nil {
		l.first = v.after
	} else {
		v.before.after = v.after
	}
	if v.after == nil {
		l.last = v.before
	} else {
		v.after.before = v.before
	}
	v.before, v.after = nil, nil
}
