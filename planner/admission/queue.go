package admission

import "time"

// Ticket is one request at the gate. The caller sets the exported fields before Arrive and does not
// change them afterwards.
type Ticket struct {
	// Class is the class of the request, 0 for the most important.
	Class int
	// Retry: the client has tried this request before.
	Retry bool
	// Decide is called once if Arrive returned Waiting, with Admitted or Refused, unless the client
	// leaves first. It must not call the controller.
	Decide func(Verdict)

	arrived, deadline, started time.Duration
	forRate                    bool // it was refused, and had waited for a rate
	place                      *line
	before, after              *Ticket
}

// Wait returns how long the request waited in the gate before it was admitted.
func (t *Ticket) Wait() time.Duration { return t.started - t.arrived }

// ForRate reports whether a refused ticket had waited for a rate that was set from outside, while the
// limit would have admitted it.
func (t *Ticket) ForRate() bool { return t.forRate }

// Deadline returns the time at which a waiting request is refused.
func (t *Ticket) Deadline() time.Duration { return t.deadline }

// line is a queue from which any ticket can be removed in constant time.
type line struct {
	first, last *Ticket
	length      int

	// refused counts the refused requests of this tick. quiet is the time since the last tick with
	// one. emptied: the line was empty at some moment of this tick.
	refused int
	quiet   time.Duration
	emptied bool
	// stood counts ticks with refusals since the line was last empty.
	stood int
	// strained is how much longer the line counts as one whose requests are about to be refused.
	strained time.Duration
}

// strains is how long a line counts as strained after a request of it was refused, or had waited half as
// long as it may. Cheaper answers end a queue at once; without this time the next expensive answers
// would bring it back.
const strains = 5 * time.Second

// standing is the number of ticks with refusals, in a line that is never empty, that count as an
// overload. After a stall of the service a line is never empty either, but no request has to be
// refused.
const standing = 3

func (l *line) overloaded() bool { return l.stood >= standing }

// learn updates the line at the end of a tick.
func (l *line) learn(now, took, within time.Duration) {
	if l.quiet += took; l.refused > 0 {
		l.quiet = 0
	}
	if l.strained = max(0, l.strained-took); l.refused > 0 || l.first != nil && now > (l.first.arrived+l.first.deadline)/2 {
		l.strained = strains
	}
	switch {
	case l.emptied || l.quiet > within:
		l.stood = 0
	case l.refused > 0:
		l.stood++
	}
	l.refused, l.emptied = 0, l.length == 0
}

func (l *line) push(t *Ticket) {
	t.place, t.before, t.after = l, l.last, nil
	if l.last == nil {
		l.first = t
	} else {
		l.last.after = t
	}
	l.last = t
	l.length++
}

func (l *line) remove(t *Ticket) {
	if t.before == nil {
		l.first = t.after
	} else {
		t.before.after = t.after
	}
	if t.after == nil {
		l.last = t.before
	} else {
		t.after.before = t.before
	}
	t.place, t.before, t.after = nil, nil, nil
	l.length--
	l.emptied = l.emptied || l.length == 0
}

// rank returns the index of the line in which a ticket waits. Each class has two: first tries and
// retries.
func (c *Controller) rank(t *Ticket) int {
	class := min(max(t.Class, 0), len(c.lines)/2-1)
	if t.Retry {
		return 2*class + 1
	}
	return 2 * class
}

// next removes and returns the ticket that is to start next, or nil if the rates allow none. It refuses
// tickets whose deadline has passed.
func (c *Controller) next(now time.Duration) *Ticket {
	for i := range c.lines {
		l := &c.lines[i]
		for l.first != nil {
			t := l.first
			if c.settings.newestFirst {
				t = l.last
			}
			inTime := now <= t.deadline
			if inTime && !c.spend(now, i/2) {
				break
			}
			if c.take(t); inTime {
				return t
			}
			c.refuse(l, t)
			t.Decide(Refused)
		}
	}
	return nil
}

// take removes a waiting ticket from its line.
func (c *Controller) take(t *Ticket) {
	t.place.remove(t)
	c.queued--
}

// expected returns the least time for which a ticket of this rank has to wait: at the highest recent
// throughput, and if no more important request arrives later. 0: unknown.
func (c *Controller) expected(rank int) time.Duration {
	ahead := max(0, c.inService-c.limit()) + 1
	for i := range rank + 1 {
		ahead += c.lines[i].length
	}
	drain, rate := c.rule.capacity, c.slowest()
	if rate > 0 && (drain <= 0 || rate < drain) {
		drain = rate
	}
	longest := 0.0
	if drain > 0 {
		longest = float64(ahead) / drain
	}
	if rate := c.budgets[ofClasses+rank/2].inForce(); rate > 0 {
		before := 1
		for i := rank / 2 * 2; i <= rank; i++ {
			before += c.lines[i].length
		}
		longest = max(longest, float64(before)/rate)
	}
	return time.Duration(longest * float64(time.Second))
}
