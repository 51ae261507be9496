package rose

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/trimtab/trimtab/analyzer/fingerprint"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/planner/machines"
	"github.com/trimtab/trimtab/sim"
)

// play is one run.
type play struct {
	*World

	run        Run
	now        float64
	agenda     agenda
	machines   []*machine
	jobs       []*job
	left       int
	turn       int // of the resource manager
	serial     int
	rng        *rand.Rand
	index      *machines.Index[float32]
	candidates []uint32
	level      fingerprint.Approximation
	out        Figures
	course     *History
	sample     samples
	// submitted and settled count the attempts of table 1.
	submitted, settled int
}

// longest is when a run is given up, in seconds.
const longest = 100_000

// Play plays a world once.
func (w *World) Play(r Run) (*Figures, *History, error) {
	if err := w.Validate(); err != nil {
		return nil, nil, err
	}
	if r.Scheme == Distributed && r.Policy != machines.MMF && !r.Reschedule {
		c := *w
		c.Timeout = 0
		w = &c
	}
	p, err := w.begin(r)
	if err != nil {
		return nil, nil, err
	}
	for n := 0; p.left > 0 && len(p.agenda) > 0; n++ {
		e := p.agenda.pop()
		if n%65536 == 0 && r.Stop != nil && r.Stop() {
			return nil, nil, sim.ErrStopped
		}
		if e.at > longest {
			return nil, nil, fmt.Errorf("play %s: jobs did not end within %d s", w.Name, longest)
		}
		p.now = e.at
		if err := p.happen(&e); err != nil {
			return nil, nil, err
		}
		if r.Attempts > 0 && p.settled >= r.Attempts {
			break
		}
	}
	p.finish()
	return &p.out, p.course, nil
}

func (w *World) begin(r Run) (*play, error) {
	p := &play{World: w, run: r, left: len(w.Jobs), rng: rand.New(rand.NewPCG(lab.Seed(r.Seed, 3))), level: fingerprint.Default(), sample: samples{}, course: &History{}}
	meanC, meanD := w.Usage.mean()
	world := rand.New(rand.NewPCG(lab.Seed(r.Seed, 4))) // the same for all policies
	for i := range w.Machines {
		policy, err := w.agent()
		if err != nil {
			return nil, fmt.Errorf("make agent: %w", err)
		}
		c := &w.Usage.Courses[world.IntN(len(w.Usage.Courses))]
		m := &machine{n: i, name: "m" + strconv.Itoa(i), world: w, policy: policy, rest: background{course: c, offset: world.IntN(len(c.CPU)), meanC: meanC, meanD: meanD},
			waiting: map[string]*attempt{}, free: w.Slots, rp: r.RP && w.LRAs}
		m.tick = world.Float64() * w.Tick
		p.machines = append(p.machines, m)
		p.agenda.push(event{at: world.Float64() * w.Beat, what: beat, who: int32(i)})
	}
	if err := p.placeLRAs(world); err != nil {
		return nil, err
	}
	for i, m := range p.machines {
		m.measure(0)
		m.refresh()
		p.agenda.push(event{at: m.due, what: move, who: int32(i), turn: m.turn})
	}
	interval := w.Ask
	if r.Scheme == Centralised {
		interval = w.Beat
	}
	for i := range w.Jobs {
		p.jobs = append(p.jobs, newJob(w, i, r.Seed))
		p.agenda.push(event{at: world.Float64() * interval, what: ask, who: int32(i)})
	}
	p.agenda.push(event{what: round})
	return p, p.aggregate()
}

// happen plays one event.
func (p *play) happen(e *event) error {
	switch e.what {
	case round:
		p.agenda.push(event{at: p.now + p.Round, what: round})
		return p.filter()
	case beat:
		m := p.machines[e.who]
		p.agenda.push(event{at: p.now + p.Beat, what: beat, who: e.who})
		p.heartbeat(m)
	case ask:
		j := p.jobs[e.who]
		if j.ended > 0 {
			for _, m := range j.granted {
				m.free++
			}
			return nil
		}
		if p.Lag && p.now >= j.next {
			j.next = p.now + p.Beat - 1e-9
			p.collect(j)
		}
		switch p.run.Scheme {
		case Native:
			if p.Lag {
				p.agenda.push(event{at: p.now + p.Beat, what: ask, who: e.who})
			}
		case Distributed:
			p.agenda.push(event{at: p.now + p.Ask, what: ask, who: e.who})
			p.dispatch(j)
		case Centralised:
			p.agenda.push(event{at: p.now + p.Beat, what: ask, who: e.who})
			p.central(j)
		}
	case move:
		if m := p.machines[e.who]; e.turn == m.turn {
			p.move(m)
		}
	}
	return nil
}

// catchUp plays a machine until now; what ends just then is found at its own event.
func (p *play) catchUp(m *machine) { m.advance(p.now) }

// reschedule follows a change of what runs on a machine.
func (p *play) reschedule(m *machine) {
	m.refresh()
	p.agenda.push(event{at: max(m.due, p.now), what: move, who: int32(m.n), turn: m.turn})
}

// move ends tasks, and lets the agent decide once a second.
func (p *play) move(m *machine) {
	p.catchUp(m)
	for i := 0; i < len(m.tasks); {
		a := m.tasks[i]
		if a.left > 1e-5 {
			i++
			continue
		}
		m.tasks = slices.Delete(m.tasks, i, i+1)
		p.finished(a)
	}
	if p.now >= m.tick-1e-9 {
		m.measure(min(p.Tick, p.now))
		m.tick = p.now + p.Tick
		m.suffer(&p.sample)
		if p.run.Scheme == Distributed || p.run.Scheme == Centralised {
			d := m.policy.Decide(m.observe())
			p.enact(m, &d)
		}
		m.sum = use{}
	}
	p.reschedule(m)
}

// heartbeat gives the free slots of a machine to jobs in turn, and takes in what the
// resource manager's answers brought.
func (p *play) heartbeat(m *machine) {
	m.told.cpu, m.told.disk, m.told.queued = m.last(cpuDim)/p.Cores, m.last(diskDim), len(m.waiting)
	p.deliver(m)
	for m.free > 0 {
		given := false
		for range p.jobs {
			j := p.jobs[p.turn%len(p.jobs)]
			p.turn++
			if j.ended == 0 && p.grant(j, m) {
				given = true
				break
			}
		}
		if !given {
			return
		}
	}
}

// aggregate makes the index of the cluster's aggregator.
func (p *play) aggregate() error {
	one := 1.0
	threshold := func(v float64) *float64 { return &v }
	all := make([]machines.Dimension, dims)
	all[cpuDim] = machines.Dimension{Name: "cpu", Threshold: threshold(p.UpperCPU), Load: &one}
	all[memoryDim] = machines.Dimension{Name: "memory", Load: &one}
	all[loadDim] = machines.Dimension{Name: "load1", Threshold: threshold(p.UpperLoad), Load: &one}
	all[diskDim] = machines.Dimension{Name: "disk", Threshold: threshold(p.UpperDisk), Load: &one}
	for d, name := range map[int]string{regularDim: "regular", waitingDim: "waiting", speculativeDim: "speculative"} {
		all[d] = machines.Dimension{Name: name, Queue: &one}
	}
	x, err := machines.New[float32](machines.Config{Dimensions: all, Timeout: 30 * time.Second})
	if err != nil {
		return fmt.Errorf("make index: %w", err)
	}
	ids := make([]string, len(p.machines))
	for i, m := range p.machines {
		ids[i] = m.name
	}
	p.index = x
	if _, err = x.SetMachines(ids); err != nil {
		return fmt.Errorf("make index: %w", err)
	}
	return nil
}

// filter is what the aggregator does each round.
func (p *play) filter() error {
	if err := p.report(); err != nil {
		return err
	}
	p.note()
	if p.run.Scheme != Distributed {
		return nil
	}
	for _, j := range p.jobs {
		if err := p.rate(j); err != nil {
			return err
		}
	}
	rule := machines.Rule{Policy: p.run.Policy, Limit: max(1, int(p.Limit*float64(p.Machines))), Widen: p.Widen, WorstRated: p.Worst}
	if p.run.RP && p.LRAs {
		rule.Mode, rule.WorstCPI, rule.WorstMPKI = machines.RP, p.Worst, p.Worst
	}
	r, err := p.index.Filter(clock(p.now), rule, p.rng)
	if err != nil {
		return fmt.Errorf("filter machines: %w", err)
	}
	p.candidates = append(p.candidates[:0], r.Candidates...)
	return nil
}

// report tells the aggregator the load levels of all machines, as their agents do.
func (p *play) report() error {
	load, capacity := make([]float64, dims), make([]float64, dims)
	for d := range capacity {
		capacity[d] = math.NaN()
	}
	capacity[cpuDim], capacity[memoryDim], capacity[loadDim], capacity[diskDim] = p.Cores, p.Memory, p.Cores, 1
	for _, m := range p.machines {
		for d := cpuDim; d <= diskDim; d++ {
			load[d] = 0
			if len(m.window[d]) > 0 {
				level, err := p.level.Of(m.window[d])
				if err != nil {
					return fmt.Errorf("approximate load: %w", err)
				}
				load[d] = level.Value
			}
		}
		load[waitingDim] = float64(len(m.waiting))
		load[speculativeDim] = m.now.speculative
		load[regularDim] = float64(len(m.tasks)) - m.now.speculative
		cpi, mpki := m.counters()
		r := machines.Report{Machine: m.name, Time: clock(p.now), Load: load, Capacity: capacity, CPI: cpi, MPKI: mpki}
		if _, err := p.index.Update(clock(p.now), &r); err != nil {
			return fmt.Errorf("report: %w", err)
		}
	}
	return nil
}

// rate is algorithm 3, for a job whose counts changed.
func (p *play) rate(j *job) error {
	if !j.changed {
		return nil
	}
	j.changed = false
	var counts []machines.Count
	for n, k := range j.penalties {
		counts = append(counts, machines.Count{Machine: uint32(n), Tasks: k})
	}
	slices.SortFunc(counts, func(a, b machines.Count) int { return int(a.Machine) - int(b.Machine) })
	if err := p.index.Rate(clock(p.now), j.name, counts, machines.MostPenalised); err != nil {
		return fmt.Errorf("rate machines: %w", err)
	}
	return nil
}
