package services

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab/limiter"
	"github.com/trimtab/trimtab/planner/admission"
)

// ClassCount is the number of classes of requests.
const ClassCount = 3

// Classes are the classes of requests, the most important first.
func Classes() [ClassCount]string { return [3]string{"critical", "normal", "low"} }

// classes draws the classes of requests: a tenth is critical, three tenths are low.
type classes struct{ *rand.Rand }

func (c classes) draw() int {
	switch v := c.Float64(); {
	case v < 0.1:
		return 0
	case v < 0.4:
		return 2
	}
	return 1
}

// front is what stands before a service, and lets in, keeps waiting or refuses its requests.
type front interface {
	// arrive takes a request. It lets it in or refuses it, now or later.
	arrive(r request)
	// left is told that the service has answered a request, or that its client gave up.
	left(r *request, end float64)
	// step ends a step of the simulation.
	step(end float64)
	// bound sets the most requests that may be in service; 0: no bound.
	bound(now float64, most int)
	// waits is how many requests wait before the service.
	waits() int
}

// Fronts are the names that a front has: limiters as published, and the gate.
func Fronts() []string { return []string{limiter.Gradient2, limiter.Envoy, Gate} }

// Gate is the name of the gate as a front.
const Gate = "gate"

// stand puts a front before every service; "" puts none.
func (s *state) stand(name string) error {
	for _, q := range s.queues {
		switch by, ok := limiter.New(name); {
		case name == "":
		case ok:
			q.front = &blind{queue: q, by: by}
		case name == Gate:
			within := time.Duration(q.Latency * float64(time.Second))
			q.front = &gate{queue: q, by: admission.New(admission.Settings{Within: within, Classes: ClassCount})}
		default:
			return trimtab.Invalidf("front %.40q: no such one", name)
		}
	}
	return nil
}

// refuse ends a request without an answer.
func (q *queue) refuse(r request, at float64) {
	q.done = append(q.done, answer{at: r.at, end: at, class: r.class, refused: true})
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// blind is a limiter as published: what is over its limit is refused at once.
type blind struct {
	*queue
	by    limiter.Limiter
	under int
}

func (b *blind) arrive(r request) {
	if b.under >= b.by.Limit() {
		b.refuse(r, r.at)
		return
	}
	b.under++
	r.under = b.under
	b.waiting = append(b.waiting, r)
}

func (b *blind) left(r *request, end float64) {
	if b.under--; !r.dead {
		b.by.Learn(limiter.Sample{From: duration(r.at), To: duration(end), Under: r.under})
	}
}

func (*blind) step(float64)       {}
func (*blind) bound(float64, int) {}
func (*blind) waits() int         { return 0 }

// gate is the rule of trimtab's gate.
type gate struct {
	*queue
	by *admission.Controller
	// held are the requests that wait, by when they came.
	held []*visit
	now  float64
}

// visit is a request at a gate. Gone: it waits no longer.
type visit struct {
	admission.Ticket
	request
	gone bool
}

func (g *gate) arrive(r request) {
	g.now = r.at
	v := &visit{Ticket: admission.Ticket{Class: r.class}, request: r}
	v.ticket = &v.Ticket
	v.Decide = func(how admission.Verdict) {
		if v.gone = true; how == admission.Admitted {
			g.waiting = append(g.waiting, v.request)
		} else {
			g.refuse(v.request, g.now)
		}
	}
	switch how := g.by.Arrive(duration(r.at), &v.Ticket); {
	case how != admission.Waiting:
		v.Decide(how)
	case !v.gone:
		g.held = append(g.held, v)
	}
}

func (g *gate) left(r *request, end float64) {
	result := admission.Answered
	if r.dead {
		result = admission.Abandoned
	}
	g.now = end
	g.by.Done(duration(end), r.ticket, result)
}

// ticks is how often a gate learns, in seconds.
const ticks = 0.1

func (g *gate) step(end float64) {
	g.now = end
	now := duration(end)
	for _, v := range g.held {
		if !v.gone && now > v.Deadline() && g.by.Expire(now, &v.Ticket) {
			v.Decide(admission.Refused)
		}
	}
	g.held = slices.DeleteFunc(g.held, func(v *visit) bool { return v.gone })
	if k := math.Round(end / step); math.Mod(k, math.Round(ticks/step)) == 0 {
		g.by.Tick(now)
	}
}

func (g *gate) bound(now float64, most int) {
	const always = math.MaxInt64
	if most == 0 {
		g.by.SetEnvelope(duration(now), admission.Envelope{})
		return
	}
	g.by.SetEnvelope(duration(now), admission.Envelope{Max: most, Until: always})
}

func (g *gate) waits() int { return len(g.held) }
