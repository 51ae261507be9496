package throttle

import (
	"math"
	"slices"
	"testing"
	"time"
)

// host is one where it is known who hurts whom, without noise.
type host struct {
	testing.TB
	*Policy
	now     time.Time
	mode    Mode
	metrics []float64
	tasks   []Task
	lras    []string
	// hurt is by how much a task raises the signal of an LRA, by task and LRA; base is
	// the signal of an LRA without any, 0: 1.
	hurt map[string]map[string]float64
	base map[string]float64
	// throttled are the tasks of the last decision, by ID.
	throttled map[string]Throttled
	events    []Event
}

func newHost(t testing.TB, c Config) *host {
	p, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &host{TB: t, Policy: p, now: time.Unix(5000, 0), mode: RP, metrics: []float64{0.5}, lras: []string{"shop"},
		hurt: map[string]map[string]float64{}, base: map[string]float64{}, throttled: map[string]Throttled{}}
}

// one makes a configuration that accuses one at a time, at once, without a control.
func one() Config {
	c := config()
	c.Proof.Fraction, c.Proof.Confirm, c.Proof.NoControl = 1e-9, -1, true
	return c
}

func (h *host) add(id string, class Class, progress float64) {
	h.tasks = append(h.tasks, Task{ID: id, Job: "job of " + id, Class: class, Holds: []float64{1, 4}, Progress: progress, Activity: math.NaN()})
}

func (h *host) hurts(task, lra string, by float64) {
	if h.hurt[task] == nil {
		h.hurt[task] = map[string]float64{}
	}
	h.hurt[task][lra] = by
}

func (h *host) observe() *Observation {
	h.now = h.now.Add(time.Second)
	o := &Observation{Time: h.now, Mode: h.mode, Metrics: h.metrics, Capacity: []float64{64, 256}, Cores: 16}
	o.Tasks = slices.Clone(h.tasks)
	for i := range o.Tasks {
		if o.Tasks[i].Expires.IsZero() { // somebody renews it
			o.Tasks[i].Expires = h.now.Add(time.Minute)
		}
	}
	for _, name := range h.lras {
		value := 1.0
		if h.base[name] != 0 {
			value = h.base[name]
		}
		for _, t := range h.tasks {
			if _, is := h.throttled[t.ID]; !is {
				value += h.hurt[t.ID][name]
			}
		}
		l := LRA{Workload: name, Cores: 4}
		for k := range 2 {
			l.Samples = append(l.Samples, Sample{Signal: "cpi", Time: h.now.Add(time.Duration(k-1) * 500 * time.Millisecond),
				Length: 500 * time.Millisecond, Value: value, Boundary: 1.15, Anomaly: value > 1.15})
		}
		o.LRAs = append(o.LRAs, l)
	}
	return o
}

func (h *host) tick() Decision {
	d := h.Decide(h.observe())
	h.throttled = map[string]Throttled{}
	for _, t := range d.Throttled {
		h.throttled[t.Task] = t
	}
	h.events = append(h.events, d.Events...)
	return d
}

func (h *host) ticks(n int) (d Decision) {
	for range n {
		d = h.tick()
	}
	return d
}

// tasksOf are the tasks of the events of a kind, in their order.
func (h *host) tasksOf(kind EventKind) (ids []string) {
	for _, e := range h.events {
		if e.Kind == kind {
			ids = append(ids, e.Task)
		}
	}
	return ids
}

func (h *host) offer(id string, cpu float64) Reason {
	return h.Offer(h.now, Request{ID: id, Job: "job of " + id, Wants: []float64{cpu, 4}, Expires: h.now.Add(time.Minute)})
}

func started(d Decision) (ids []string) {
	for _, s := range d.Start {
		ids = append(ids, s.ID)
	}
	return ids
}
