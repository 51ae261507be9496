package admission

import (
	"math"
	"slices"
	"time"
)

// Verdict is what becomes of a request.
type Verdict int

// The verdicts.
const (
	Admitted Verdict = iota
	Waiting
	Refused
)

// Result says how an admitted request ended.
type Result int

// The results.
const (
	// Answered: the response is complete.
	Answered Result = iota
	// Failed: the service was absent, or answered with a server error. Its time teaches nothing.
	Failed
	// Abandoned: the client left.
	Abandoned
	// TimedOut: the gate gave up waiting for the service. It counts as answered too late.
	TimedOut
	// Streaming: the response has begun and goes on; it leaves the limit.
	Streaming
)

// Settings are those of one gate.
type Settings struct {
	// Within is the SLO: from arrival until the response is complete. Positive.
	Within time.Duration
	// Classes is the number of classes, at least 1.
	Classes int
	// newestFirst makes the queues last in, first out, to compare.
	newestFirst bool
}

// Envelope bounds the rule from outside; zero values bound nothing.
type Envelope struct {
	Min, Max int
	// Rate is the highest number of admissions per second.
	Rate float64
	// Until is when the envelope is gone.
	Until time.Duration
}

// Counts are totals since the start.
type Counts struct {
	Arrived, Admitted, Refused, Answered, InTime, Failed, Abandoned uint64
}

// most bounds the number of requests that wait, before anything is known of the service.
const most = 10000

// Controller is the state of one gate. It is not safe for concurrent use.
type Controller struct {
	settings  Settings
	rule      rule
	envelope  Envelope
	lines     []line
	queued    int
	inService int
	count     Counts

	// tokens are the admissions that the envelope's rate allows now.
	tokens   float64
	refilled time.Duration
	tick     interval
}

// interval is what was seen since the last tick.
type interval struct {
	began, at time.Duration
	// inService is the integral of the requests in service, in seconds.
	inService float64
	// completed counts requests that ended in the service; they teach its throughput.
	completed, failed int
	// full is for how long somebody waited.
	full time.Duration
}

// New returns a controller that starts at time 0.
func New(s Settings) *Controller {
	return &Controller{settings: s, rule: newRule(s.Within), lines: make([]line, 2*max(s.Classes, 1))}
}

// Arrive decides on a request that has just come. Admitted and Refused are final; for Waiting,
// t.Decide is called, perhaps before Arrive returns.
func (c *Controller) Arrive(now time.Duration, t *Ticket) Verdict {
	c.advance(now)
	rank := c.rank(t)
	c.count.Arrived++
	t.arrived = now
	if c.queued == 0 && c.inService < c.limit() && c.token(now) {
		c.start(now, t)
		return Admitted
	}
	l := &c.lines[rank]
	longest := c.rule.longest(l.overloaded())
	if c.queued >= most || l.overloaded() && c.expected(rank) > longest {
		c.refuse(l)
		return Refused
	}
	t.deadline = now + longest
	l.push(t)
	c.queued++
	c.admit(now) // others of lower rank may have waited for a token
	return Waiting
}

// Leave takes out a waiting request whose client has left, and reports whether it waited still.
func (c *Controller) Leave(now time.Duration, t *Ticket) bool {
	c.advance(now)
	if t.place == nil {
		return false
	}
	c.take(t)
	c.count.Abandoned++
	return true
}

// Expire refuses a waiting request whose deadline has passed, and reports whether it waited still.
func (c *Controller) Expire(now time.Duration, t *Ticket) bool {
	c.advance(now)
	l := t.place
	if l == nil {
		return false
	}
	c.take(t)
	c.refuse(l)
	return true
}

// refuse counts a request of this line as refused.
func (c *Controller) refuse(l *line) {
	l.refused++
	c.count.Refused++
}

// Done ends an admitted request and starts those that can start now. It reports whether the
// request was answered in time.
func (c *Controller) Done(now time.Duration, t *Ticket, r Result) (inTime bool) {
	c.advance(now)
	c.inService--
	inTime = now-t.arrived <= c.settings.Within
	switch r {
	case Answered:
		c.count.Answered++
		c.tick.completed++
		c.rule.served(now - t.started)
	case Streaming:
		c.count.Answered++
		c.tick.inService -= (now - max(t.started, c.tick.began)).Seconds() // it was no work of that length
	case TimedOut:
		c.count.Answered++
		inTime = false
	case Failed:
		c.count.Failed++
		c.tick.completed++
		c.tick.failed++
		inTime = false
	case Abandoned:
		c.count.Abandoned++
		inTime = false
	}
	if inTime {
		c.count.InTime++
	}
	c.admit(now)
	return inTime
}

// Tick learns from what was seen since the last tick, and starts those that can start now.
func (c *Controller) Tick(now time.Duration) {
	c.advance(now)
	took := now - c.tick.began
	if took <= 0 {
		return
	}
	c.endLease(now)
	for i := range c.lines {
		c.lines[i].learn(took, c.settings.Within)
	}
	c.rule.learn(c.tick, took)
	c.tick = interval{began: now, at: now}
	c.admit(now)
}

func (c *Controller) endLease(now time.Duration) {
	if now >= c.envelope.Until {
		c.envelope = Envelope{}
	}
}

// SetEnvelope replaces the envelope.
func (c *Controller) SetEnvelope(now time.Duration, e Envelope) {
	c.advance(now)
	c.envelope = e
	c.tokens, c.refilled = 1, now
	c.admit(now)
}

// Envelope returns the envelope that holds now, and false if there is none.
func (c *Controller) Envelope(now time.Duration) (Envelope, bool) {
	return c.envelope, c.envelope.Until > now
}

// State is what a gate tells of itself.
type State struct {
	Counts
	// Limit is the number of requests that may be in service.
	Limit, InService, Queued int
	// LongestWait bounds the time in the queue of the least important request that comes now.
	LongestWait time.Duration
	// Service is the mean service time of late, Unloaded that without load; 0 while unknown.
	Service, Unloaded time.Duration
	// Overloaded: of some class more comes than can be answered.
	Overloaded bool
}

// State returns the state.
func (c *Controller) State(now time.Duration) State {
	c.endLease(now)
	over := slices.ContainsFunc(c.lines, func(l line) bool { return l.overloaded() })
	return State{Counts: c.count, Limit: c.limit(), InService: c.inService, Queued: c.queued, LongestWait: c.rule.longest(over),
		Service: seconds(c.rule.service()), Unloaded: seconds(c.rule.unloaded), Overloaded: over}
}

// advance accounts for the time since the last event.
func (c *Controller) advance(now time.Duration) {
	d := now - c.tick.at
	if d <= 0 {
		return
	}
	c.tick.at = now
	c.tick.inService += float64(c.inService) * d.Seconds()
	if c.queued > 0 {
		c.tick.full += d
	}
}

// admit starts waiting requests while there is room.
func (c *Controller) admit(now time.Duration) {
	for c.queued > 0 && c.inService < c.limit() && c.token(now) {
		t := c.next(now)
		if t == nil {
			c.tokens++ // nobody used it
			return
		}
		c.start(now, t)
		t.Decide(Admitted)
	}
}

func (c *Controller) start(now time.Duration, t *Ticket) {
	t.started = now
	c.inService++
	c.count.Admitted++
}

// token takes one admission from what the envelope's rate allows. A burst is a tenth of a second.
func (c *Controller) token(now time.Duration) bool {
	rate := c.envelope.Rate
	if rate <= 0 {
		return true
	}
	c.tokens = min(c.tokens+rate*(now-c.refilled).Seconds(), max(1, rate/10))
	c.refilled = now
	if c.tokens < 1 {
		return false
	}
	c.tokens--
	return true
}

// limit is the rule's within the envelope.
func (c *Controller) limit() int {
	n := int(math.Ceil(c.rule.limit - 0.25))
	if c.envelope.Max > 0 {
		n = min(n, c.envelope.Max)
	}
	return max(n, c.envelope.Min, 1)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
