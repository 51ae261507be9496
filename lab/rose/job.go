package rose

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/planner/throttle"
)

// job is one job with its manager.
type job struct {
	JobSpec

	n     int
	name  string
	stage int
	// work of each task of the stage, in seconds at full speed.
	work []float64
	// todo are tasks that nothing was done for, left those that have not ended.
	todo []int32
	left int
	// queued are on their way or in queues; running are speculative and run.
	queued, running []*attempt
	cursor          int
	ended           float64
	rng             *rand.Rand
	// penalties by machine, for algorithm 3; changed since they were told.
	penalties map[int]int
	changed   bool
	// wanted is how many requests the resource manager knows of, granted where it gave
	// resources that the next heartbeat brings (World.Lag).
	wanted  int
	next    float64
	granted []*machine
	// answers of the resource manager, which the next heartbeat brings.
	answers []*attempt
}

func newJob(w *World, n int, seed uint64) *job {
	j := &job{JobSpec: w.Jobs[n], n: n, name: "job-" + strconv.Itoa(n), rng: rand.New(rand.NewPCG(lab.Seed(seed, 1, uint64(n)))), penalties: map[int]int{}}
	j.cursor = j.rng.IntN(1 << 20)
	j.begin(w, seed)
	return j
}

// begin starts a stage: its tasks ask for resources. Their lengths do not depend on the
// policy.
func (j *job) begin(w *World, seed uint64) {
	rng := rand.New(rand.NewPCG(lab.Seed(seed, 2, uint64(j.n), uint64(j.stage))))
	j.left = j.Stages[j.stage]
	j.work, j.todo = make([]float64, j.left), make([]int32, j.left)
	for i := range j.left {
		j.work[i] = w.Task * math.Exp(w.Spread*rng.NormFloat64()-w.Spread*w.Spread/2)
		j.todo[i] = int32(i)
	}
}

// pop takes the next task that nothing was done for.
func (j *job) pop() int32 {
	t := j.todo[0]
	j.todo = j.todo[1:]
	return t
}

func drop(list []*attempt, a *attempt) []*attempt {
	if i := slices.Index(list, a); i >= 0 {
		return slices.Delete(list, i, i+1)
	}
	return list
}

// requests that a regular slot would serve.
func (j *job) requests() (n int) {
	n = len(j.todo) + len(j.queued)
	for _, a := range j.running {
		if a.reserved == nil {
			n++
		}
	}
	return n
}

// grant gives a regular slot of m to a job: at once, or with its next heartbeat.
func (p *play) grant(j *job, m *machine) bool {
	if !p.Lag {
		return p.take(j, m)
	}
	if len(j.granted) >= j.wanted {
		return false
	}
	m.free--
	j.granted = append(j.granted, m)
	return true
}

// collect is a job manager's heartbeat with the resource manager: it starts tasks on
// what was granted since the last, gives back what it does not need, and asks.
func (p *play) collect(j *job) {
	for _, m := range j.granted {
		m.free++
		p.take(j, m)
	}
	j.granted = j.granted[:0]
	j.wanted = j.requests()
}

// take is algorithm 5 with a regular slot of m that was granted; false: the job has no
// request that waits. Tasks that nothing was done for come first, then those in queues.
func (p *play) take(j *job, m *machine) bool {
	switch {
	case len(j.todo) > 0:
		p.startRegular(j, j.pop(), m)
	case len(j.queued) > 0: // lines 7 to 9
		a := j.queued[0]
		p.cancel(a)
		p.out.Overtaken++
		p.settled++
		p.startRegular(j, a.task, m)
	default:
		return p.upgrade(j, m)
	}
	return true
}

// upgrade is the rest of it, for the task that runs on the same machine, or else that
// with the least progress.
func (p *play) upgrade(j *job, m *machine) bool {
	var best *attempt
	for _, a := range j.running {
		if a.reserved != nil {
			continue
		}
		if a.m.at < p.now { // its progress, as of now
			p.catchUp(a.m)
		}
	}
	for _, a := range j.running {
		if a.reserved != nil {
			continue
		}
		if a.m == m {
			best = a
			break
		}
		if best == nil || a.progress() < best.progress() {
			best = a
		}
	}
	switch {
	case best == nil:
		return false
	case best.m == m: // lines 10 and 11
		m.free--
		best.regular, best.share = true, 1
		j.running = drop(j.running, best)
		p.out.Upgraded++
		p.reschedule(m)
	case best.progress() > p.Tau: // lines 12 to 14
		m.free--
		best.reserved = m
		p.out.Kept++
	default: // lines 15 to 17
		p.evict(best)
		p.startRegular(j, best.task, m)
	}
	return true
}

// evict kills a speculative task that runs.
func (p *play) evict(a *attempt) {
	p.catchUp(a.m)
	a.m.remove(a)
	a.job.running = drop(a.job.running, a)
	if a.reserved != nil {
		a.reserved.free++
	}
	a.job.penalties[a.m.n]++
	a.job.changed = true
	p.out.Evicted++
	p.reschedule(a.m)
}

// cancel takes back what was asked for and has not started.
func (p *play) cancel(a *attempt) {
	a.job.queued = drop(a.job.queued, a)
	a.void = true
	if a.m != nil {
		a.m.policy.Cancel(a.id)
		delete(a.m.waiting, a.id)
	}
}

func (p *play) startRegular(j *job, task int32, m *machine) {
	p.catchUp(m)
	m.free--
	m.tasks = append(m.tasks, &attempt{job: j, task: task, work: j.work[task], left: j.work[task], m: m, regular: true, class: throttle.Second, share: 1})
	p.out.Regular++
	p.reschedule(m)
}

// finished is told of a task that has ended.
func (p *play) finished(a *attempt) {
	j := a.job
	if a.regular {
		a.m.free++
	} else {
		j.running = drop(j.running, a)
		p.out.Succeeded++
	}
	if a.reserved != nil {
		a.reserved.free++
	}
	if j.left--; j.left > 0 {
		return
	}
	if j.stage++; j.stage < len(j.Stages) {
		j.begin(p.World, p.run.Seed)
		return
	}
	j.ended = p.now
	p.left--
}

// dispatch is lines 1 to 3 of algorithm 5, and the time-out of queues.
func (p *play) dispatch(j *job) {
	p.expire(j)
	for tries := 0; tries < p.Window && len(p.candidates) > 0 && len(j.todo) > 0 && len(j.queued) < p.Window; tries++ {
		m := p.machines[p.candidates[j.cursor%len(p.candidates)]]
		j.cursor++
		a := p.attempt(j)
		if !p.offer(a, m) {
			j.todo = append(j.todo, a.task)
			continue
		}
		j.queued = append(j.queued, a)
	}
}

// attempt makes the next task of a job one that is asked for.
func (p *play) attempt(j *job) *attempt {
	p.serial++
	task := j.pop()
	return &attempt{id: strconv.Itoa(p.serial), job: j, task: task, work: j.work[task], left: j.work[task], class: throttle.Second, share: 1, offered: p.now}
}

// offer puts a task into the queue of a machine, if it has room.
func (p *play) offer(a *attempt, m *machine) bool {
	p.out.Offered++
	if why := m.policy.Offer(clock(p.now), throttle.Request{ID: a.id, Job: a.job.name, Wants: m.holds(), Expires: epoch().Add(far)}); why != "" {
		p.out.Rejected++
		return false
	}
	a.m, m.waiting[a.id] = m, a
	return true
}

// expire takes tasks back that waited in a queue for too long.
func (p *play) expire(j *job) {
	if p.Timeout <= 0 {
		return
	}
	for i := 0; i < len(j.queued); {
		a := j.queued[i]
		if a.m == nil || p.now-a.offered < p.Timeout {
			i++
			continue
		}
		p.cancel(a)
		p.out.Rescheduled++
		p.settled++
		j.todo = append(j.todo, a.task)
	}
}

// enact carries out what a machine's agent decided.
func (p *play) enact(m *machine, d *throttle.Decision) {
	m.cores = d.Cores
	for _, s := range d.Start {
		a := m.waiting[s.ID]
		delete(m.waiting, s.ID)
		a.class = s.Class
		a.job.queued = drop(a.job.queued, a)
		a.job.running = append(a.job.running, a)
		m.tasks = append(m.tasks, a)
		p.out.Started++
		p.settled++
		p.out.Waited += p.now - a.offered
	}
	for _, e := range d.End {
		if i := slices.IndexFunc(m.tasks, func(a *attempt) bool { return a.id == e.Task && !a.regular }); i >= 0 {
			a := m.tasks[i]
			p.evict(a)
			a.job.todo = append(a.job.todo, a.task)
		}
	}
	for _, a := range m.tasks {
		a.share = 1
	}
	for _, t := range d.Throttled {
		for _, a := range m.tasks {
			if a.id == t.Task && !a.regular {
				a.share = t.Share
				p.out.Frozen++
			}
		}
	}
}
