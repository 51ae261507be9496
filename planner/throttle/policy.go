package throttle

import (
	"cmp"
	"time"
)

// Policy decides for one host. It keeps state between ticks and is not safe for concurrent use. It
// is deterministic: the same requests and observations in the same order give the same decisions.
type Policy struct {
	Config
	clock    clock
	log      log
	queue    queue
	tasks    map[string]*task
	running  []*task // in the order of the observation
	lras     lras
	jobs     records
	trial    trial
	capacity []float64
	suspects []suspect
}

// clock measures time by the ticks of a policy.
type clock struct {
	// now is the time since the first tick, last the time of the last tick, and stuck the number of
	// ticks in a row with the same time.
	now   time.Duration
	last  time.Time
	stuck int
	// ticks counts observations.
	ticks uint64
}

// log collects the events of a tick and counts them.
type log struct {
	events []Event
	counts Counts
}

// New makes a policy. Its errors are [trimtab.ErrInvalid].
func New(c Config) (*Policy, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	c.Queue, c.Starts, c.Passes = cmp.Or(c.Queue, 100), cmp.Or(c.Starts, 4), cmp.Or(c.Passes, 16)
	c.MaxLease, c.MaxAge, c.Quiet = cmp.Or(c.MaxLease, 10*time.Minute), cmp.Or(c.MaxAge, 10*time.Second), cmp.Or(c.Quiet, 5*time.Second)
	f := &c.Proof
	f.Fraction, f.Calm, f.Watch, f.Confirm = cmp.Or(f.Fraction, 0.1), cmp.Or(f.Calm, 3), cmp.Or(f.Watch, 10), cmp.Or(f.Confirm, 2)
	f.Patience, f.Settle = cmp.Or(f.Patience, 20*time.Second), cmp.Or(f.Settle, 500*time.Millisecond)
	f.WrongConviction, f.MissedGuilt = cmp.Or(f.WrongConviction, 0.005), cmp.Or(f.MissedGuilt, 0.05)
	f.Hold, f.Backoff = cmp.Or(f.Hold, 30*time.Second), cmp.Or(f.Backoff, 30*time.Second)
	f.MaxHold = cmp.Or(f.MaxHold, max(10*time.Minute, f.Hold))
	p := &Policy{Config: c, tasks: map[string]*task{}, jobs: records{}}
	p.lras = lras{Config: &p.Config, clock: &p.clock, log: &p.log, apps: map[string]*app{}, calm: true}
	return p, nil
}

// mostStuck is the number of ticks with the same time that count as repeated deliveries. With more
// of them the clock counts as broken.
const mostStuck = 10

// Decide handles one tick: it updates the state from the observation and returns what to do until
// the next tick.
func (p *Policy) Decide(o *Observation) Decision {
	p.log.events = nil
	runs := p.advance(o.Time)
	p.look(o)
	d := Decision{Cores: classesOf(o, p.Slack)}
	p.lease(o, &d)
	p.preempt(o, &d)
	p.lras.listen(o, &p.trial)
	switch {
	case o.Mode == UP || !runs && p.clock.stuck == 0 || p.clock.stuck > mostStuck:
		p.releaseAll()
	case runs:
		p.lras.judge()
		p.prove(o)
		p.parole()
	}
	p.admit(o, runs, &d)
	p.list(o, &d)
	d.Events = p.log.events
	return d
}

// advance moves the clock to now, and reports whether time has passed. If now is before the last
// tick, it forgets the times of samples, since they would be in the future.
func (p *Policy) advance(now time.Time) bool {
	c := &p.clock
	c.ticks++
	step := now.Sub(c.last)
	switch {
	case c.ticks == 1:
		step = 1
	case step < 0:
		for _, a := range p.lras.apps {
			for _, v := range a.victims {
				v.last = time.Time{}
			}
		}
	case step == 0:
		c.stuck++
		return false
	}
	c.last, c.stuck = now, 0
	if step < 0 {
		return false
	}
	// Limit a step to a day: that ends all leases, and a clock that jumps by years does not
	// overflow now.
	c.now += min(step, 24*time.Hour)
	if c.now < 0 { // overflow after 292 years: start from scratch
		c.now, p.trial, p.lras.disturbed = 0, trial{}, 0
		p.tasks, p.lras.apps, p.jobs = map[string]*task{}, map[string]*app{}, records{}
	}
	return true
}

// tell adds an event that the next decision reports.
func (l *log) tell(kind EventKind, t *task, v *victim, samples int) {
	e := Event{Kind: kind, Samples: samples}
	if t != nil {
		e.Task, e.Job = t.id, t.job
	}
	if v != nil {
		e.Victim, e.Signal = v.Workload, v.Signal
	}
	l.events = append(l.events, e)
}

// list adds the throttled tasks to the decision.
func (p *Policy) list(o *Observation, d *Decision) {
	for _, t := range p.running {
		if t.status == free || t.ending {
			continue
		}
		left := t.until - p.clock.now
		d.Throttled = append(d.Throttled, Throttled{Task: t.id, Share: p.Proof.Cut, Until: o.Time.Add(left),
			Guilty: t.status == convicted, Victim: t.victim.Workload, Signal: t.victim.Signal})
	}
}

// Counts are totals since the start of the policy.
type Counts struct {
	// Anomalies counts anomalies of LRAs. Noise counts those that ended while nothing was
	// throttled, NotOurs those that went on with all tasks throttled.
	Anomalies, Noise, NotOurs uint64
	// Recoveries counts the other anomalies that ended; Recovering is the sum of their durations.
	Recoveries uint64
	Recovering time.Duration
	// Trials counts the trials, Samples the samples that were used in them.
	Trials, Samples uint64
	// Accusations are tasks that were throttled in a trial. Each ends as one of
	// Proofs (guilty), Joint (guilty with others that could not be told apart),
	// FalseAccusations (innocent) and Undecided (it ended, or nothing was measured).
	Accusations, Proofs, Joint, FalseAccusations, Undecided uint64
	// Accepted counts tasks that entered the queue, Started tasks that were started, LeasesEnded
	// tasks whose lease ended, Preempted tasks that were ended for regular ones, and Rejected
	// refused requests, by reason.
	Accepted, Started, LeasesEnded, Preempted uint64
	Rejected                                  map[Reason]uint64
	// Ignored counts samples and tasks that are invalid or too many.
	Ignored uint64
}

// Counts returns the totals.
func (p *Policy) Counts() Counts {
	c := p.log.counts
	c.Rejected = make(map[Reason]uint64, len(p.log.counts.Rejected))
	for k, v := range p.log.counts.Rejected {
		c.Rejected[k] = v
	}
	return c
}
