package admission

import (
	"math"
	"slices"
	"time"
)

// Verdict is the decision on a request.
type Verdict int

// The verdicts.
const (
	Admitted Verdict = iota
	Waiting
	Refused
)

// Result is how an admitted request ended.
type Result int

// The results.
const (
	// Answered: the response is complete.
	Answered Result = iota
	// Failed: the service was not reachable, or answered with a server error. Its duration is
	// ignored.
	Failed
	// Abandoned: the client left.
	Abandoned
	// TimedOut: the gate stopped waiting for the service. It counts as answered, but late.
	TimedOut
	// Streaming: the response has begun and continues; it no longer counts against the limit.
	Streaming
)

// Settings configures the controller of one gate.
type Settings struct {
	// Within is the latency limit of the SLO, from arrival until the response is complete.
	// Positive.
	Within time.Duration
	// Classes is the number of classes of requests, at least 1.
	Classes int
	// newestFirst makes the queues last in, first out, for comparison.
	newestFirst bool
}

// Envelope limits the rule from outside; zero values limit nothing.
type Envelope struct {
	Min, Max int
	// Rate is the highest number of admissions per second.
	Rate float64
	// Until is when the envelope ends.
	Until time.Duration
}

// Counts are totals since the start.
type Counts struct {
	Arrived, Admitted, Refused, Answered, InTime, Failed, Abandoned uint64
}

// most is the largest number of waiting requests. It matters only before anything is known of the
// service.
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
	// budgets bound the admissions per second: by the envelope, of all requests, and of each class.
	budgets []budget
	tick    interval
}

// interval has the measurements since the last tick.
type interval struct {
	began, at time.Duration
	// inService is the integral of the number of requests in service over time, in seconds.
	inService float64
	// completed counts requests that ended in the service, from which its throughput is learned.
	completed, failed int
	// full is for how long at least one request waited for the limit, and held for how long one waited
	// for a rate alone.
	full, held time.Duration
}

// New returns a controller whose clock starts at 0.
func New(s Settings) *Controller {
	n := max(s.Classes, 1)
	return &Controller{settings: s, rule: newRule(s.Within), lines: make([]line, 2*n), budgets: make([]budget, ofClasses+n)}
}

// Arrive decides on a request that has just arrived. Admitted and Refused are final. After Waiting,
// t.Decide is called later, perhaps even before Arrive returns.
func (c *Controller) Arrive(now time.Duration, t *Ticket) Verdict {
	c.advance(now)
	rank := c.rank(t)
	c.count.Arrived++
	t.arrived = now
	c.rule.clamp(c.tick, float64(c.inService))
	if c.queued == 0 && c.inService < c.limit() && c.spend(now, rank/2) {
		c.start(now, t)
		return Admitted
	}
	l := &c.lines[rank]
	longest := c.rule.longest(l.overloaded())
	if c.queued >= most || l.overloaded() && c.expected(rank) > longest {
		c.refuse(l, t)
		return Refused
	}
	t.deadline = now + longest
	l.push(t)
	c.queued++
	c.admit(now) // others of lower rank may have been waiting for a token
	return Waiting
}

// Leave removes a waiting request whose client has left. It reports false if the request was no
// longer waiting.
func (c *Controller) Leave(now time.Duration, t *Ticket) bool {
	c.advance(now)
	if t.place == nil {
		return false
	}
	c.take(t)
	c.count.Abandoned++
	return true
}

// Expire refuses a waiting request whose deadline has passed. It reports false if the request was
// no longer waiting.
func (c *Controller) Expire(now time.Duration, t *Ticket) bool {
	c.advance(now)
	l := t.place
	if l == nil {
		return false
	}
	c.take(t)
	c.refuse(l, t)
	return true
}

// refuse counts a request of this line as refused.
func (c *Controller) refuse(l *line, t *Ticket) {
	t.forRate = c.inService < c.limit()
	l.refused++
	c.count.Refused++
}

// Done ends an admitted request, and starts waiting ones that can start now. It reports whether the
// request was answered within the SLO.
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
		c.tick.inService -= (now - max(t.started, c.tick.began)).Seconds() // a long response is not a long service time
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
	c.rule.clamp(c.tick, float64(c.inService))
	c.admit(now)
	return inTime
}

// Tick learns from the measurements since the last tick, and starts requests that can start now.
func (c *Controller) Tick(now time.Duration) {
	c.advance(now)
	took := now - c.tick.began
	if took <= 0 {
		return
	}
	c.endLease(now)
	for i := range c.lines {
		c.lines[i].learn(now, took, c.settings.Within)
	}
	c.rule.learn(c.tick, took)
	slow := c.rule.service() > c.rule.target()
	for i := range c.budgets {
		c.budgets[i].correct(c.tick.held > took/2, c.tick.held+c.tick.full > 0, slow)
	}
	c.tick = interval{began: now, at: now}
	c.admit(now)
}

func (c *Controller) endLease(now time.Duration) {
	if now >= c.envelope.Until {
		c.envelope = Envelope{}
	}
	for i := range c.budgets {
		c.budgets[i].end(now)
	}
}

// SetEnvelope replaces the envelope, with its rate, but not the rates that SetRate set.
func (c *Controller) SetEnvelope(now time.Duration, e Envelope) {
	c.advance(now)
	c.budgets[ofEnvelope].set(now, Rate{PerSecond: e.Rate, Exact: true, Until: e.Until})
	c.envelope = e
	c.admit(now)
}

// Envelope returns the current envelope, and false if there is none.
func (c *Controller) Envelope(now time.Duration) (Envelope, bool) {
	return c.envelope, c.envelope.Until > now
}

// State is the state that a gate reports.
type State struct {
	Counts
	// Limit is the largest number of requests in service.
	Limit, InService, Queued int
	// Rate is the largest number of admissions per second; 0: no bound.
	Rate float64
	// LongestWait is the longest time that a request which arrives now may wait.
	LongestWait time.Duration
	// Service is the recent mean service time, Unloaded the one without load; 0: unknown.
	Service, Unloaded time.Duration
	// Overloaded: more requests of some class arrive than can be answered.
	Overloaded bool
}

// State returns the state of the gate.
func (c *Controller) State(now time.Duration) State {
	c.endLease(now)
	over := slices.ContainsFunc(c.lines, func(l line) bool { return l.overloaded() })
	return State{Counts: c.count, Limit: c.limit(), InService: c.inService, Queued: c.queued, Rate: c.slowest(), LongestWait: c.rule.longest(over),
		Service: seconds(c.rule.service()), Unloaded: seconds(c.rule.unloaded), Overloaded: over}
}

// Strained reports whether requests of a class are about to be refused, or have been a short time
// ago. Those of less important classes wait behind them.
func (c *Controller) Strained(class int) bool {
	last := min(max(class, 0), len(c.lines)/2-1)
	return slices.ContainsFunc(c.lines[:2*last+2], func(l line) bool { return l.strained > 0 })
}

// advance accounts for the time since the last event.
func (c *Controller) advance(now time.Duration) {
	d := now - c.tick.at
	if d <= 0 {
		return
	}
	c.tick.at = now
	c.tick.inService += float64(c.inService) * d.Seconds()
	switch {
	case c.queued == 0:
	case c.inService < c.limit():
		c.tick.held += d
	default:
		c.tick.full += d
	}
}

// admit starts waiting requests while the limit allows it.
func (c *Controller) admit(now time.Duration) {
	for c.queued > 0 && c.inService < c.limit() {
		t := c.next(now)
		if t == nil {
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

// limit returns the rule's limit, within the envelope.
func (c *Controller) limit() int {
	n := int(math.Ceil(c.rule.limit - 0.25))
	if c.envelope.Max > 0 {
		n = min(n, c.envelope.Max)
	}
	return max(n, c.envelope.Min, 1)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
