package throttle

import (
	"cmp"
	"math"
	"time"
)

// status is how a task stands with the throttle.
type status uint8

const (
	free status = iota
	accused
	convicted
)

// history is how many ticks of activity and of signals are compared.
const history = 16

// course is what was measured at the last ticks, by tick modulo history; NaN:
// missing.
type course [history]float32

// unknown is a course of which nothing is known.
func unknown() (c course) {
	for i := range c {
		c[i] = float32(math.NaN())
	}
	return c
}

// task is what is kept of a speculative task.
type task struct {
	id, job string
	class   Class
	// holds is that of the observation, wants of a task that was not seen yet.
	holds, wants []float64
	progress     float64
	// starting: it was started at since and not seen yet; fresh: it was started here,
	// so that before that it did nothing.
	starting, fresh bool
	since           time.Duration
	// seen is the tick of the last observation with it.
	seen uint64
	// expires is what was last said of its lease, renewed when that was.
	expires time.Time
	renewed time.Duration
	// ending: it is to end, and decided nothing on; preempted: for regular tasks; late:
	// since its lease ended, which was told.
	ending, preempted, late bool

	status status
	// pending: it is on trial, and no word was said.
	pending bool
	victim  victimID
	// throttled is since when it is, until to when it will be.
	throttled, until time.Duration
	// cleared is the trial that found it innocent.
	cleared uint64
	// parole is until when it is watched after it was guilty.
	parole   time.Duration
	activity course
}

// look takes in the tasks. What is not there any more is forgotten.
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

// lease ends tasks whose lease was not renewed, queued or running.
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

// throttle restrains a task for a victim.
func (p *Policy) throttle(t *task, s status, v victimID, until time.Duration) {
	if t.status == free {
		t.throttled = p.clock.now
	}
	t.status, t.victim = s, v
	t.until = min(until, t.throttled+p.Proof.MaxHold)
}

// key is under what name its guilt is remembered: that of its job, if it has one.
func (t *task) key() string { return cmp.Or(t.job, t.id) }

// release lets a task run.
func (t *task) release() { t.status, t.victim = free, victimID{} }

// releaseAll ends all that is throttled, and the trial.
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

// parole releases guilty tasks whose time is over. One that does no harm until its
// parole ends counts for its job as innocent.
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
			t.parole = 0 // the next trial tells
		case t.parole > 0 && p.clock.now >= t.parole:
			t.parole = 0
			p.jobs.of(t.key(), p.clock.ticks).innocent++
		}
	}
}

// record is what is known of the tasks of a job.
type record struct {
	// guilty and innocent count verdicts; both are halved when they reach mostVerdicts.
	guilty, innocent float64
	// until is how long its tasks are held.
	until time.Duration
	// used is the tick at which it was last looked up to be changed.
	used uint64
}

const mostVerdicts = 64

// records are those of jobs, by name.
type records map[string]*record

// of returns that of a job, a new one in the place of that which was not used
// for longest.
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

// forget drops the record that was not used for longest, of equals the first name.
func (r records) forget() {
	oldest, used := "", uint64(math.MaxUint64)
	for name, j := range r {
		if j.used < used || j.used == used && name < oldest {
			oldest, used = name, j.used
		}
	}
	delete(r, oldest)
}
