package admission

import "time"

// Rate bounds the admissions per second from outside; the zero value bounds nothing.
type Rate struct {
	// PerSecond is the number of admissions per second, 0: no bound.
	PerSecond float64
	// Exact: the controller may not raise the rate by what it sees.
	Exact bool
	// Until is when the bound ends.
	Until time.Duration
}

// All stands for the requests of all classes in [Controller.SetRate].
const All = -1

// The budgets of a controller: two for all requests, then one for each class.
const ofEnvelope, ofAll, ofClasses = 0, 1, 2

// budget counts the admissions that a rate allows now.
type budget struct {
	Rate
	// tokens is the number of admissions allowed at the time refilled.
	tokens   float64
	refilled time.Duration
	// raised is the factor by which the controller has raised the rate, in [1, mostRaised]. lacked:
	// in this tick a request waited for a token.
	raised float64
	lacked bool
}

// A rate that is not exact is a forecast of what the service can answer. While requests wait for it
// alone, and those in service take no longer than they do at the limit, each tick raises it by the
// factor raise, in 0.7 s to mostRaised. While none waits, it falls back by the factor ease. A rate
// that is too high needs no correction: the limit then bounds the admissions.
const raise, ease, mostRaised = 1.06, 0.95, 1.5

// set replaces the rate. One that keeps a rate in force allows no more admissions than the one before
// it.
func (b *budget) set(now time.Duration, r Rate) {
	if b.end(now); b.PerSecond > 0 {
		b.refill(now)
	} else {
		b.tokens, b.refilled, b.raised = 1, now, 1
	}
	b.Rate = r
}

// end removes a rate whose time is over.
func (b *budget) end(now time.Duration) {
	if now >= b.Until {
		b.Rate = Rate{}
	}
}

// inForce returns the corrected rate; 0: no bound.
func (b *budget) inForce() float64 {
	if b.Exact {
		return b.PerSecond
	}
	return b.PerSecond * b.raised
}

// refill adds the tokens of the time since the last refill. A burst has at most the tokens of a
// tenth of a second.
func (b *budget) refill(now time.Duration) {
	rate := b.inForce()
	b.tokens = min(b.tokens+rate*(now-b.refilled).Seconds(), max(1, rate/10))
	b.refilled = now
}

// allows reports whether a request may be admitted now.
func (b *budget) allows(now time.Duration) bool {
	if b.PerSecond <= 0 {
		return true
	}
	b.refill(now)
	b.lacked = b.lacked || b.tokens < 1
	return b.tokens >= 1
}

// correct adapts the rate at the end of a tick. held: during most of it requests waited that the limit
// would have admitted. waited: some request waited. slow: requests in service take longer than they do
// at the limit.
func (b *budget) correct(held, waited, slow bool) {
	switch {
	case held && b.lacked && !slow:
		b.raised = min(b.raised*raise, mostRaised)
	case !waited:
		b.raised = max(b.raised*ease, 1)
	}
	b.lacked = false
}

// SetRate replaces the rate of a class, or of [All] requests.
func (c *Controller) SetRate(now time.Duration, class int, r Rate) {
	c.advance(now)
	c.budget(class).set(now, r)
	c.admit(now)
}

// Rate returns the rate of a class, or of [All] requests, as it was set, and as it is in force; false
// if there is none.
func (c *Controller) Rate(now time.Duration, class int) (set Rate, inForce float64, ok bool) {
	b := c.budget(class)
	b.end(now)
	return b.Rate, b.inForce(), b.PerSecond > 0
}

// budget returns the budget of a class; ofAll is the one before the first class.
func (c *Controller) budget(class int) *budget {
	return &c.budgets[ofClasses+min(max(class, All), c.classes()-1)]
}

func (c *Controller) classes() int { return len(c.lines) / 2 }

// spend takes the tokens of one admission if all rates for the class allow it.
func (c *Controller) spend(now time.Duration, class int) bool {
	of := [...]*budget{&c.budgets[ofEnvelope], &c.budgets[ofAll], &c.budgets[ofClasses+class]}
	for _, b := range of {
		if !b.allows(now) {
			return false
		}
	}
	for _, b := range of {
		b.tokens--
	}
	return true
}

// slowest returns the lowest rate in force for all requests; 0: there is none.
func (c *Controller) slowest() (rate float64) {
	for i := range ofClasses {
		if v := c.budgets[i].inForce(); v > 0 && (rate == 0 || v < rate) {
			rate = v
		}
	}
	return rate
}
