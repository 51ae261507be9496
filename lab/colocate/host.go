package colocate

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/trimtab/trimtab/lab"
	control "github.com/trimtab/trimtab/planner/colocate"
	"github.com/trimtab/trimtab/planner/reclaim"
)

// pressure on each resource of a host, in [0, 1].
type pressure struct{ cpu, llc, membw, network float64 }

// job is one best-effort job.
type job struct {
	id    string
	kind  *JobType
	state control.State
	has   control.Amounts
	// What it has, as numbers.
	cores, ways, membw, network float64
	// length, done and saved are in seconds alone on the machine: all of its
	// work, what is behind it, and what was at its last checkpoint.
	length, done, saved float64
	// elapsed, since (the last checkpoint) and attained are seconds of running,
	// the last times cores.
	elapsed, since, attained float64
	// rate is its progress per second.
	rate float64
}

// waitingJobs is how many jobs wait at each host.
const waitingJobs = 2

// host is a machine of a run.
type host struct {
	*Host
	// components by service and number.
	components [][2]int
	ownCores   float64
	jobs       []*job
	born       int
	capacity   control.Amounts
	press      pressure
	// busy and moved are what jobs use: cores, and a share of the bandwidth.
	busy, moved float64
	// speed is the progress of all jobs per second, alone on the machine = 1.
	speed  float64
	policy control.Policy
	types  []JobType
	rand   *rand.Rand
	tally  tally
	seen   control.Observation
}

// tally is what happened on a host.
type tally struct {
	work, lost     float64
	kills, refused int
	verbs          map[control.Verb]int
	cpu, membw     float64
}

func newHost(e *Environment, k int, seed uint64) *host {
	a, b := lab.Seed(seed, 0x686f7374, uint64(k))
	h := &host{Host: &e.Hosts[k], types: e.Jobs, rand: rand.New(rand.NewPCG(a, b)), tally: tally{verbs: map[control.Verb]int{}}}
	bandwidth, memory := 0.0, 0.0
	for i := range e.Services {
		for j := range e.Services[i].Components {
			if c := &e.Services[i].Components[j]; c.Host == h.Name {
				h.components = append(h.components, [2]int{i, j})
				h.ownCores += c.Cores
				bandwidth, memory = bandwidth+c.Bandwidth, memory+c.Memory
			}
		}
	}
	h.capacity = control.Amounts{"cores": math.Floor(h.Cores - h.ownCores), "llc": h.Ways - h.KeptWays,
		"membw": math.Floor(100 * math.Max(0, 1-bandwidth)), "memory": math.Max(0, h.Memory-memory), "network": h.Network}
	h.fill()
	return h
}

// fill adds jobs until enough of them wait.
func (h *host) fill() {
	waiting := 0
	for _, j := range h.jobs {
		if j.state == control.Waiting {
			waiting++
		}
	}
	for ; waiting < waitingJobs; waiting++ {
		h.jobs = append(h.jobs, h.newJob())
	}
}

func (h *host) newJob() *job {
	sum := 0.0
	for i := range h.types {
		sum += h.types[i].weight()
	}
	x, kind := h.rand.Float64()*sum, &h.types[len(h.types)-1]
	for i := range h.types {
		if x -= h.types[i].weight(); x < 0 {
			kind = &h.types[i]
			break
		}
	}
	h.born++
	return &job{id: fmt.Sprintf("%s-%06d-%s", h.Name, h.born, kind.Name), kind: kind, state: control.Waiting, length: kind.Length * (0.5 + h.rand.Float64())}
}

func (t *JobType) weight() float64 {
	if t.Weight == 0 {
		return 1
	}
	return t.Weight
}

// alone is how many cores a job of this type keeps busy alone on a machine: all,
// or what the memory bandwidth is enough for.
func (h *host) alone(t *JobType) float64 {
	if t.Bandwidth > 1 {
		return h.Cores / t.Bandwidth
	}
	return h.Cores
}

// weigh sets the rates of the jobs and the pressure of all.
func (h *host) weigh() {
	h.press, h.busy, h.moved, h.speed = pressure{}, 0, 0, 0
	for _, j := range h.jobs {
		j.rate = 0
		if j.state != control.Running {
			continue
		}
		useful := j.cores
		if t := j.kind; t.Bandwidth > 0 {
			useful = math.Min(useful, j.membw/100*h.Cores/t.Bandwidth)
		}
		moved := useful * j.kind.Bandwidth / h.Cores
		j.rate = useful / h.alone(j.kind) * (1 - j.kind.Gain*(1-j.ways/h.Ways))
		h.speed += j.rate
		h.busy += j.cores * j.kind.Busy
		h.moved += moved
		h.press.llc += j.ways / h.Ways * j.kind.Cache
		h.press.network += math.Min(j.network, j.cores*j.kind.Network) / h.Network
	}
	h.press.cpu = math.Min(1, h.busy/(h.Cores-h.ownCores))
	h.press.llc = math.Min(1, h.press.llc)
	h.press.membw = math.Min(1, h.moved)
	h.press.network = math.Min(1, h.press.network)
}

// run lets a period pass for the jobs.
func (h *host) run(seconds float64) {
	over := false
	for _, j := range h.jobs {
		if j.state != control.Running {
			continue
		}
		j.done += j.rate * seconds
		h.tally.work += j.rate * seconds
		j.elapsed += seconds
		j.since += seconds
		j.attained += j.cores * seconds
		if c := j.kind.Checkpoint; c > 0 && j.since >= c {
			j.saved, j.since = j.done, 0
		}
		over = over || j.done >= j.length
	}
	if !over {
		return
	}
	kept := h.jobs[:0]
	for _, j := range h.jobs {
		if j.done < j.length {
			kept = append(kept, j)
		} else {
			h.tally.work -= j.done - j.length
		}
	}
	h.jobs = kept
	h.fill()
	h.weigh()
}

// observe is what the policy of the host is told.
func (h *host) observe(at time.Time, services []control.Service, used float64) *control.Observation {
	o := &h.seen
	o.Time, o.Services, o.Capacity = at, services, h.capacity
	o.Link = &control.Link{Bandwidth: h.Network, Used: used}
	o.Jobs = o.Jobs[:0]
	for _, j := range h.jobs {
		o.Jobs = append(o.Jobs, j.shown())
	}
	return o
}

// shown is a job as it reports itself. What a predictable one would lose by being
// stopped is the work since its checkpoint again, at the rate that it had.
func (j *job) shown() control.Job {
	out := control.Job{Job: reclaim.Job{ID: j.id, Attained: j.attained}, State: j.state, Has: j.has}
	if j.state == control.Waiting {
		return out
	}
	out.Least = control.Amounts{"memory": math.Min(j.kind.Memory, j.has["memory"])}
	out.Useless = j.since * j.cores
	out.Predictable = j.kind.Progress != Unpredictable
	if out.Predictable {
		out.Loss = out.Useless
	}
	return out
}

// apply carries a decision out; what would exceed the capacity is refused.
func (h *host) apply(d *control.Decision) {
	h.tally.verbs[d.Verb]++
	if len(d.Changes) == 0 {
		return
	}
	for i := range d.Changes {
		c := &d.Changes[i]
		for _, j := range h.jobs {
			if j.id == c.Job {
				h.change(j, c)
				break
			}
		}
	}
	h.fill()
	h.weigh()
}

func (h *host) change(j *job, c *control.Change) {
	switch c.Act {
	case control.Kill:
		if j.state == control.Waiting {
			return
		}
		h.tally.kills++
		h.tally.lost += j.done - j.saved
		j.done, j.since, j.state = j.saved, 0, control.Waiting
		if j.saved == 0 {
			j.elapsed, j.attained = 0, 0
		}
		j.give(nil)
	case control.Suspend:
		j.state = control.Suspended
	default:
		if !h.room(j, c.To) {
			h.tally.refused++
			return
		}
		j.give(c.To)
		j.state = control.Running
	}
}

// room reports whether a job may have so much beside the others.
func (h *host) room(j *job, to control.Amounts) bool {
	for name, most := range h.capacity {
		sum := to[name]
		for _, other := range h.jobs {
			// A suspended job has its memory only.
			if other != j && (other.state == control.Running || other.state == control.Suspended && name == "memory") {
				sum += other.has[name]
			}
		}
		if sum > most*(1+1e-9) {
			return false
		}
	}
	return true
}

func (j *job) give(to control.Amounts) {
	j.has = to
	j.cores, j.ways, j.membw, j.network = to["cores"], to["llc"], to["membw"], math.Inf(1)
	if v, ok := to["network"]; ok {
		j.network = v
	}
}
