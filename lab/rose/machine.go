package rose

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab/planner/throttle"
)

// attempt is a task on its way: asked for, in a queue, or running.
type attempt struct {
	id   string
	job  *job
	task int32
	// work is what it needs in seconds at full speed, left what of it is left.
	work, left, speed float64
	// m is where it is; nil: nowhere yet. to is where it is on its way to.
	m, to   *machine
	regular bool
	class   throttle.Class
	// share of its cores that the throttle leaves it.
	share float64
	// offered is when it was asked for.
	offered float64
	// reserved is where a regular slot is kept for it (algorithm 5, line 14).
	reserved *machine
	// void: it was cancelled while it was on its way.
	void bool
}

func (a *attempt) progress() float64 { return 1 - a.left/a.work }

// The dimensions of what a machine reports.
const (
	cpuDim = iota
	memoryDim
	loadDim
	diskDim
	regularDim
	waitingDim
	speculativeDim
	dims
)

// lookBack is of how many seconds the load level is.
const lookBack = 10

// machine is one machine with its agent.
type machine struct {
	n      int
	name   string
	world  *World
	policy *throttle.Policy

	rest background

	tasks   []*attempt
	waiting map[string]*attempt
	// inbox is what the resource manager's answers brought since the last heartbeat.
	inbox []*attempt
	free  int
	lras  []lra
	rp    bool
	cores throttle.Classes

	// at is until when it was played, tick when the agent decides next.
	at, tick, due float64
	// heard is when its LRAs were last sampled.
	heard  float64
	turn   uint32
	now    use
	load1  float64
	sum    use // seconds, since the last tick
	window [loadDim + 2][]float64
	// told is what the last heartbeat said.
	told struct {
		cpu, disk float64
		queued    int
	}
	total tally
	obs   throttle.Observation
}

// background is what everything else on a machine uses: a course from offset on, now idleCPU cores
// and idleDisk as a share. heat is what the course has now over its mean.
type background struct {
	course            *Course
	offset            int
	idleCPU, idleDisk float64
	heat, heatDisk    float64
	meanC, meanD      float64
}

// use is what is used, or used times seconds.
type use struct {
	cpu, shared, disk, load, memory, bandwidth, misses, batch float64
	speculative                                               float64
}

func (u *use) add(o *use, dt float64) {
	u.cpu, u.shared, u.disk, u.load = u.cpu+o.cpu*dt, u.shared+o.shared*dt, u.disk+o.disk*dt, u.load+o.load*dt
	u.memory, u.bandwidth, u.misses = u.memory+o.memory*dt, u.bandwidth+o.bandwidth*dt, u.misses+o.misses*dt
	u.batch, u.speculative = u.batch+o.batch*dt, u.speculative+o.speculative*dt
}

// tally is what a machine adds to the figures of a run.
type tally struct{ cpu, disk, speculative float64 }

// advance plays until t.
func (m *machine) advance(t float64) {
	dt := t - m.at
	if dt <= 0 {
		return
	}
	for _, a := range m.tasks {
		a.left -= a.speed * dt
	}
	m.sum.add(&m.now, dt)
	m.total.cpu += m.now.cpu * dt
	m.total.disk += m.now.disk * dt
	m.total.speculative += m.now.speculative * dt
	m.at = t
}

// The memory of a machine that runs nothing, and what a task adds, in GB: the medians
// of table 4 rise by 0.42 GB with 1.77 tasks more.
const idleMemory, taskMemory = 9, 0.25

// groups of tasks that share cores.
type groups struct{ regular, second, first float64 }

// others is what everything but batch tasks uses, in cores.
func (m *machine) others() float64 { return m.rest.idleCPU + m.lraCores() }

// demands adds up what tasks would use at full speed, and what LRAs use.
func (m *machine) demands() (want groups) {
	for _, a := range m.tasks {
		k := &m.world.Kinds[a.job.Kind]
		switch {
		case a.regular:
			want.regular += k.CPU * m.rest.heat
		case a.class == throttle.First && m.rp:
			want.first += k.CPU * a.share
		default:
			want.second += k.CPU * a.share
		}
	}
	return want
}

// speeds says how fast each group runs: regular tasks first, speculative ones have what
// is left. In mode RP batch work is on cores of the second class, but for speculative
// tasks that were started on the first.
func (m *machine) speeds() groups {
	want, lras := m.demands(), m.lraCores()
	room := m.world.Cores - m.others()
	if m.rp {
		room = float64(m.cores.Second) * (1 - m.rest.idleCPU/m.world.Cores) // everything else runs anywhere
	}
	speed := groups{regular: portion(want.regular, room)}
	speed.second = portion(want.second, room-want.regular*speed.regular)
	speed.first = portion(want.first, float64(m.cores.First)-lras)
	return speed
}

// slowest is what a task of the lowest weight has at least.
const slowest = 0.01

func portion(want, room float64) float64 {
	if want <= room {
		return 1
	}
	return max(room/want, slowest)
}

// refresh says how fast everything runs from now on, and when the machine is next due.
func (m *machine) refresh() {
	speed, others := m.speeds(), m.others()
	u := use{cpu: min(others, m.world.Cores), load: others, memory: idleMemory}
	disk := m.rest.idleDisk
	for _, a := range m.tasks {
		k := &m.world.Kinds[a.job.Kind]
		switch {
		case a.regular:
			a.speed = speed.regular
			disk += k.Disk * m.rest.heatDisk * a.speed
		case a.class == throttle.First && m.rp:
			a.speed = speed.first * a.share
			disk += k.Disk * a.speed
		default:
			a.speed = speed.second * a.share
			disk += k.Disk * a.speed
		}
	}
	m.due = m.tick
	waits := min(1, 1/max(disk, 1e-9)) // disks that are full slow all
	for _, a := range m.tasks {
		k, heat := &m.world.Kinds[a.job.Kind], m.rest.heat
		a.speed *= waits
		if !a.regular {
			heat = 1
			u.speculative++
		}
		cores := k.CPU * heat * a.speed
		u.cpu += cores
		u.batch += cores
		u.load += k.CPU * heat
		u.bandwidth += cores * k.Bandwidth
		u.misses += cores * k.MPKI
		u.memory += taskMemory
		if a.class != throttle.Second || !m.rp {
			u.shared += cores
		}
		if a.speed > 0 {
			m.due = min(m.due, m.at+max(a.left/a.speed, 1e-6))
		}
	}
	if m.rp { // regular tasks keep off the LRAs' cores, too
		u.shared = 0
		for _, a := range m.tasks {
			if !a.regular && a.class == throttle.First {
				u.shared += m.world.Kinds[a.job.Kind].CPU * a.speed
			}
		}
	}
	u.disk = min(disk, 1)
	u.load += disk * disks
	m.now = u
	m.turn++
}

// disks of a machine: so many processes wait when all are busy.
const disks = 12

// remove takes an attempt off the list of what runs.
func (m *machine) remove(a *attempt) {
	if i := slices.Index(m.tasks, a); i >= 0 {
		m.tasks = slices.Delete(m.tasks, i, i+1)
	}
}

// measure ends a tick of a second: what was used in it is what the agent sees.
func (m *machine) measure(since float64) {
	k := (m.rest.offset + int(m.at)/step) % len(m.rest.course.CPU)
	m.rest.heat, m.rest.heatDisk = m.rest.course.CPU[k]/m.rest.meanC, m.rest.course.Disk[k]/m.rest.meanD
	m.rest.idleCPU, m.rest.idleDisk = m.rest.course.CPU[k]/100*m.world.Background*m.world.Cores, m.rest.course.Disk[k]/100
	if since <= 0 {
		since = 1
	}
	keep := int(lookBack / m.world.Tick)
	m.load1 += (m.sum.load/since - m.load1) * (1 - math.Exp(-since/60))
	for d, v := range []float64{m.sum.cpu / since, m.sum.memory / since, m.load1, m.sum.disk / since} {
		if m.window[d] = append(m.window[d], v); len(m.window[d]) > keep {
			m.window[d] = m.window[d][1:]
		}
	}
}

// last is what the last tick measured.
func (m *machine) last(dim int) float64 {
	if len(m.window[dim]) == 0 {
		return 0
	}
	return m.window[dim][len(m.window[dim])-1]
}

// epoch is when a run begins, for steps that want a time.
func epoch() time.Time { return time.Unix(1_600_000_000, 0).UTC() }

func clock(t float64) time.Time { return epoch().Add(time.Duration(t * float64(time.Second))) }

// far is a lease that no run outlives: whether leases are renewed is not played.
const far = 365 * 24 * time.Hour

// observe is what the agent sees at a tick.
func (m *machine) observe() *throttle.Observation {
	w, o := m.world, &m.obs
	o.Time, o.Mode, o.Cores = clock(m.at), throttle.UP, int(w.Cores)
	if m.rp {
		o.Mode = throttle.RP
	}
	o.Metrics = append(o.Metrics[:0], m.last(cpuDim)/w.Cores, m.last(loadDim)/w.Cores, m.last(diskDim))
	o.Capacity = append(o.Capacity[:0], w.Cores, w.Memory)
	o.Tasks = o.Tasks[:0]
	want := m.others()
	for _, a := range m.tasks {
		k := &w.Kinds[a.job.Kind]
		if a.regular {
			want += k.CPU * m.rest.heat
			continue
		}
		o.Tasks = append(o.Tasks, throttle.Task{ID: a.id, Job: a.job.name, Class: a.class, Holds: m.holds(), Progress: a.progress(),
			Activity: k.CPU * a.speed * k.Bandwidth, Expires: epoch().Add(far)})
	}
	o.Revoke = append(o.Revoke[:0], max(0, want-w.Cores), 0)
	m.hear(o)
	return o
}

// holds is what a speculative task asks for: a core, and a container's memory.
func (m *machine) holds() []float64 { return []float64{1, m.world.Container} }

// agent is the policy of a host, as production would make it.
func (w *World) agent() (*throttle.Policy, error) {
	return throttle.New(throttle.Config{
		Metrics:   []throttle.Metric{{Name: "cpu", Upper: w.UpperCPU}, {Name: "load", Upper: w.UpperLoad}, {Name: "disk", Upper: w.UpperDisk}},
		Resources: []throttle.Resource{{Name: "cpu", Ratio: w.RatioCPU}, {Name: "memory", Ratio: w.RatioMemory, Stock: true}},
		CPU:       0, Slack: slackCores, KeepFirst: true, Queue: w.Queue, MaxLease: far,
	})
}

// slackCores beyond what LRAs requested are theirs, too.
const slackCores = 1
