package throttle

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Request is a speculative task that asks to be started.
type Request struct {
	ID, Job string
	// Wants are the resources that it asks for, in the order of [Config.Resources].
	Wants []float64
	// Priority is its priority: higher ones start first.
	Priority int
	// Expires is when its lease ends unless it is renewed, whether it is queued or runs.
	Expires time.Time
}

// waiting is a request in the queue.
type waiting struct {
	Request
	// passed is the number of later requests that started before it.
	passed int
	// offered is when it was offered or renewed last, by the policy's clock.
	offered time.Duration
}

// queue has the requests in the order in which they start: by priority, then by arrival.
type queue []waiting

// Offer adds a task to the queue. It returns "", or the reason why the task was refused.
func (p *Policy) Offer(now time.Time, r Request) Reason {
	why := p.refuse(now, &r)
	if why != "" {
		if p.log.counts.Rejected == nil {
			p.log.counts.Rejected = map[Reason]uint64{}
		}
		p.log.counts.Rejected[why]++
		return why
	}
	r.Wants = slices.Clone(r.Wants)
	at, _ := slices.BinarySearchFunc(p.queue, r.Priority, func(w waiting, priority int) int {
		if w.Priority >= priority {
			return -1
		}
		return 1
	})
	p.queue = slices.Insert(p.queue, at, waiting{Request: r, offered: p.clock.now})
	p.log.counts.Accepted++
	return ""
}

func (p *Policy) refuse(now time.Time, r *Request) Reason {
	switch {
	case r.ID == "" || len(r.Wants) != len(p.Resources) || slices.ContainsFunc(r.Wants, func(v float64) bool { return !amount(v) }):
		return Invalid
	case p.tasks[r.ID] != nil || p.queue.find(r.ID) >= 0:
		return Duplicate
	case !now.Before(r.Expires):
		return Expired
	case p.tooLarge(r.Wants, p.capacity):
		return TooLarge
	case len(p.queue) >= p.Queue:
		return Full
	}
	return ""
}

// amount reports whether v is a valid amount of a resource.
func amount(v float64) bool { return v >= 0 && v <= greatestAmount }

// tooLarge reports whether the wanted resources can never fit the host, by its last known capacity.
func (c *Config) tooLarge(wants, capacity []float64) bool {
	for k, v := range wants {
		if k < len(capacity) && amount(capacity[k]) && v > c.Resources[k].Ratio*capacity[k] {
			return true
		}
	}
	return false
}

// find returns the index of a task in the queue, or −1.
func (q queue) find(id string) int {
	return slices.IndexFunc(q, func(w waiting) bool { return w.ID == id })
}

// Cancel removes a task from the queue, and reports whether it was queued.
func (p *Policy) Cancel(id string) bool {
	at := p.queue.find(id)
	if at >= 0 {
		p.queue = slices.Delete(p.queue, at, at+1)
	}
	return at >= 0
}

// Renew sets when the lease of a queued task ends, and reports whether the task is queued. For
// running tasks the observation has the end of the lease.
func (p *Policy) Renew(id string, expires time.Time) bool {
	at := p.queue.find(id)
	if at >= 0 {
		p.queue[at].Expires, p.queue[at].offered = expires, p.clock.now
	}
	return at >= 0
}

// Queued returns the tasks in the queue, the next to start first.
func (p *Policy) Queued() []Request {
	out := make([]Request, len(p.queue))
	for i := range p.queue {
		out[i] = p.queue[i].Request
		out[i].Wants = slices.Clone(out[i].Wants)
	}
	return out
}

// rooms is the free capacity for speculative tasks.
type rooms struct {
	left   [MaxDimensions]float64
	second float64 // free cores of the second class
	known  bool
}

// rooms returns the free capacity: what speculative tasks may have in total, less what they have.
// Tasks that were started but not yet observed count as well.
func (p *Policy) rooms(o *Observation, cores Classes) rooms {
	r := rooms{second: float64(cores.Second), known: true}
	for k := range p.Resources {
		capacity := math.NaN()
		if k < len(o.Capacity) {
			capacity = o.Capacity[k]
		}
		if !amount(capacity) {
			r.known = false
			return r
		}
		r.left[k] = p.Resources[k].Ratio * capacity
	}
	if len(o.Tasks) > MaxTasks {
		r.known = false
	}
	for _, t := range p.running {
		r.take(t.holds, t.class, p.CPU)
		r.known = r.known && len(t.holds) == len(p.Resources)
	}
	if len(p.tasks) > len(p.running) {
		for _, t := range p.tasks {
			if t.starting {
				r.take(t.wants, t.class, p.CPU)
			}
		}
	}
	return r
}

// take subtracts the resources of a task. An invalid amount makes the free capacity unknown.
func (r *rooms) take(holds []float64, class Class, cpu int) {
	for k := range holds {
		if !amount(holds[k]) {
			r.known = false
			continue
		}
		r.left[k] -= holds[k]
	}
	if class == Second && cpu >= 0 && cpu < len(holds) {
		r.second -= holds[cpu]
	}
}

// admit starts tasks from the queue (6.1) while every metric is below its threshold and, for each
// resource, the tasks including the new one have at most ratio · capacity.
func (p *Policy) admit(o *Observation, runs bool, d *Decision) {
	p.capacity = append(p.capacity[:0], o.Capacity[:min(len(o.Capacity), len(p.Resources))]...)
	if len(p.queue) == 0 {
		return
	}
	if d.Blocked = p.blocked(o, runs); d.Blocked != "" {
		return
	}
	r := p.rooms(o, d.Cores)
	if !r.known {
		d.Blocked = Missing
		return
	}
	for i := 0; i < len(p.queue) && len(d.Start) < p.Starts; {
		w := &p.queue[i]
		class, why := p.fits(w, &r, d.Cores)
		if why == "" {
			p.start(w, class, d)
			r.take(w.Wants, class, p.CPU)
			for j := range i {
				p.queue[j].passed++
			}
			p.queue = slices.Delete(p.queue, i, i+1)
			continue
		}
		d.Blocked = cmp.Or(d.Blocked, why)
		if w.passed >= p.Passes && why != OnHold {
			break
		}
		i++
	}
	if len(d.Start) > 0 {
		d.Blocked = ""
	}
}

// blocked returns why no task may start at all; "": tasks may start.
func (p *Policy) blocked(o *Observation, runs bool) Reason {
	if !runs {
		return Clock
	}
	for k := range p.Metrics {
		switch {
		case k >= len(o.Metrics) || math.IsNaN(o.Metrics[k]):
			return Missing
		case !(o.Metrics[k] < p.Metrics[k].Upper):
			return Loaded
		}
	}
	if o.Mode == UP {
		return ""
	}
	if !p.calmNow() {
		return Anomalous
	}
	return p.lras.unsafe(o)
}

// fits returns the class of cores on which a task may start, or why it may not.
func (p *Policy) fits(w *waiting, r *rooms, cores Classes) (Class, Reason) {
	for k, v := range w.Wants {
		if v > r.left[k] {
			return "", NoRoom
		}
	}
	if j := p.jobs[cmp.Or(w.Job, w.ID)]; j != nil && j.until > p.clock.now {
		return "", OnHold
	}
	switch {
	case p.CPU < 0 || w.Wants[p.CPU] <= r.second && cores.Second > 0:
		return Second, ""
	case p.KeepFirst:
		return "", NoCores
	}
	return First, ""
}

// start starts a task. Its resources count as taken until it is observed, for at most startsWithin.
func (p *Policy) start(w *waiting, class Class, d *Decision) {
	d.Start = append(d.Start, Start{w.Request, class})
	p.tasks[w.ID] = &task{id: w.ID, job: w.Job, wants: w.Wants, class: class, starting: true, since: p.clock.now, fresh: true}
	p.log.counts.Started++
}

// startsWithin is how long a started task that was not observed counts as taking its resources.
const startsWithin = 10 * time.Second
