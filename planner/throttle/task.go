package throttle

import (
	"cmp"
	"math"
	"time"
)

// status is the throttling state of a task.
type status uint8

const (
	free status = iota
	accused
	convicted
)

// history is the number of ticks over which activity and signals are correlated.
const history = 16

// course has the measurements of the last ticks, indexed by tick modulo history; NaN: missing.
type course [history]float32

// unknown returns a course without measurements.
func unknown() (c course) {
	for i := range c {
		c[i] = float32(math.NaN())
	}
	return c
}

// task is the state of a speculative task.
type task struct {
	id, job string
	class   Class
	// holds are its resources as observed; wants are those of a task that was not observed yet.
	holds, wants []float64
	progress     float64
	// starting: it was started at since and was not observed yet. fresh: this policy started it, so
	// that it had no activity before.
	starting, fresh bool
	since           time.Duration
	// seen is the last tick in which it was observed.
	seen uint64
	// expires is the end of its lease as last reported, renewed when that value was first reported.
	expires time.Time
	renewed time.Duration
	// ending: it is to end, and nothing else is decided for it. preempted: regular tasks need its
	// resources. late: its lease has ended, and the event was reported.
	ending, preempted, late bool

	status status
	// pending: it is on trial, without a result so far.
	pending bool
	victim  victimID
	// throttled is when its throttling began, until when it ends.
	throttled, until time.Duration
	// cleared is the number of the trial that found it innocent.
	cleared uint64
	// parole is until when it is watched after it was guilty.
	parole   time.Duration
	activity course
}

// look reads the tasks of an observation, and forgets tasks that are gone.
func (p *Policy) look(o *Observation) {
	p.running = p.running[:0]
	for i := range o.Tasks {
		in := &o.Tasks[i]
		t := p.tasks[in.ID]
		if in.ID == "" || t != nil && t.seen == p.clock.ticks || len(p.running) >= MaxTasks {
			p.log.counts.Ignored++
			continue
		}
		if t == nil {
			t = &task{id: in.ID}
			p.tasks[in.ID] = t
		}
		if t.seen == 0 { // seen for the first time
			t.renewed = p.clock.now
			if t.activity = unknown(); t.fresh || p.clock.ticks > 1 {
				t.activity = course{}
			}
		}
		if !t.expires.Equal(in.Expires) {
			t.expires, t.renewed = in.Expires, p.clock.now
		}
		t.seen, t.starting, t.wants = p.clock.ticks, false, nil
		t.job, t.class, t.holds, t.progress = in.Job, in.Class, in.Holds, in.Progress
		t.activity[p.clock.ticks%history] = float32(in.Activity)
		p.running = append(p.running, t)
	}
	if len(p.tasks) == len(p.running) {
		return
	}
	for id, t := range p.tasks {
		if t.seen != p.clock.ticks && !(t.starting && p.clock.now-t.since < startsWithin) {
			delete(p.tasks, id)
		}
	}
}

// lease ends tasks whose lease was not renewed, whether queued or running.
func (p *Policy) lease(o *Observation, d *Decision) {
	for _, t := range p.running {
		t.ending = !o.Time.Before(t.expires) || p.clock.now-t.renewed >= p.MaxLease
		if !t.ending {
			t.late = false
			continue
		}
		d.End = append(d.End, End{t.id, Expired})
		if !t.late {
			t.late = true
			p.log.tell(LeaseEnded, t, nil, 0)
			p.log.counts.LeasesEnded++
		}
	}
	kept := p.queue[:0]
	for _, w := range p.queue {
		if !o.Time.Before(w.Expires) || p.clock.now-w.offered >= p.MaxLease {
			d.End = append(d.End, End{w.ID, Expired})
			p.log.counts.LeasesEnded++
			continue
		}
		kept = append(kept, w)
	}
	clear(p.queue[len(kept):])
	p.queue = kept
}

// throttle throttles a task to protect a victim.
func (p *Policy) throttle(t *task, s status, v victimID, until time.Duration) {
	if t.status == free {
		t.throttled = p.clock.now
	}
	t.status, t.victim = s, v
	t.until = min(until, t.throttled+p.Proof.MaxHold)
}

// key returns the name under which verdicts on the task are kept: its job, or else the task.
func (t *task) key() string { return cmp.Or(t.job, t.id) }

// release ends the throttling of a task.
func (t *task) release() { t.status, t.victim = free, victimID{} }

// releaseAll ends every throttling, and the trial.
func (p *Policy) releaseAll() {
	p.abandon()
	for _, t := range p.running {
		if t.status != free {
			p.log.tell(Released, t, nil, 0)
			t.release()
		}
	}
	for _, j := range p.jobs {
		j.until = 0
	}
}

// parole releases tasks whose throttling is over. A task that does no harm until the end of its
// parole adds an innocent verdict to its job.
func (p *Policy) parole() {
	for _, t := range p.running {
		switch {
		case t.status != free && p.clock.now >= t.until:
			kind := Released
			if t.status == accused || t.until-t.throttled >= p.Proof.MaxHold {
				kind = ThrottleCapped
			}
			if t.status == convicted {
				t.parole = p.clock.now + p.Proof.Hold
			}
			if t.pending {
				t.pending = false
				p.log.counts.Undecided++
			}
			p.log.tell(kind, t, nil, 0)
			t.release()
		case t.status != free:
		case t.parole > 0 && !p.calmNow():
			t.parole = 0 // the next trial decides
		case t.parole > 0 && p.clock.now >= t.parole:
			t.parole = 0
			p.jobs.of(t.key(), p.clock.ticks).innocent++
		}
	}
}

// record has the verdicts on the tasks of a job.
type record struct {
	// guilty and innocent count verdicts; both are halved when they reach mostVerdicts.
	guilty, innocent float64
	// until is when its throttling ends: no queued task of the job starts before.
	until time.Duration
	// used is the last tick in which it was requested for a change.
	used uint64
}

const mostVerdicts = 64

// records has the record of each job, by name.
type records map[string]*record

// of returns the record of a job. If it is new and there are too many, it replaces the least
// recently used one.
func (r records) of(job string, tick uint64) *record {
	j := r[job]
	if j == nil {
		if len(r) >= MaxJobs {
			r.forget()
		}
		j = &record{}
		r[job] = j
	}
	if j.used = tick; j.guilty+j.innocent >= mostVerdicts {
		j.guilty, j.innocent = j.guilty/2, j.innocent/2
	}
	return j
}

// forget drops the least recently used record; of equally old ones, the first by name.
func (r records) forget() {
	oldest, used := "", uint64(math.MaxUint64)
	for name, j := range r {
		if j.used < used || j.used == used && name < oldest {
			oldest, used = name, j.used
		}
	}
	delete(r, oldest)
}
