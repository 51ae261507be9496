package main

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/codec"
)

// tally notes when plans were made and when hosts had answered them. It belongs
// to the process of the agents: it puts no message on the bus.
type tally struct {
	within time.Duration
	hosts  int

	mu     sync.Mutex
	plans  map[planID]*told
	counts map[string]int
	since  time.Time
}

// planID names a plan; its steps are together.
type planID struct{ epoch, sequence uint64 }

// told is one plan as the agents saw it.
type told struct {
	made time.Time
	// steps has, by step, the hosts whose part came; "": the whole came to all.
	steps   map[int]map[string]bool
	last    int // the step after which none follows; 0: not seen
	awaited map[stepOf]bool
	// answered is when the last of those that have something to do had answered,
	// heard when the last of all had.
	answered, heard time.Time
	bytes, largest  int // of all messages, of the largest
}

// stepOf is what one host has to do in one step.
type stepOf struct {
	step int
	host string
}

func newTally(hosts int, within time.Duration) *tally {
	return &tally{hosts: hosts, within: within, plans: map[planID]*told{}, counts: map[string]int{}}
}

// begin forgets all plans that were made before.
func (t *tally) begin(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since = now
	clear(t.plans)
	clear(t.counts)
}

// plan notes a step, or a part of it, when the first host gets it.
func (t *tally) plan(p *trimtab.Plan) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.Time.Before(t.since) {
		return
	}
	id := planID{p.Epoch, p.Sequence}
	of := t.plans[id]
	if of == nil {
		of = &told{made: p.Time, steps: map[int]map[string]bool{}, awaited: map[stepOf]bool{}}
		t.plans[id] = of
	}
	if p.Time.Before(of.made) {
		of.made = p.Time
	}
	if of.steps[p.Step] == nil {
		of.steps[p.Step] = map[string]bool{}
	}
	if of.steps[p.Step][p.Host] {
		return
	}
	of.steps[p.Step][p.Host] = true
	if p.Last {
		of.last = p.Step
	}
	for i := range p.Actions {
		of.awaited[stepOf{p.Step, p.Actions[i].Host}] = true
	}
	t.counts["actions"] += len(p.Actions)
	if b, err := codec.Encode(p, trimtab.Origin{}); err == nil {
		of.bytes += len(b)
		of.largest = max(of.largest, len(b))
	}
}

// outcome notes an answer that is stored.
func (t *tally) outcome(o *trimtab.Outcome, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.plans[planID{o.Epoch, o.Sequence}]
	if of == nil {
		return
	}
	of.heard = now
	if key := (stepOf{o.Step, o.Host}); of.awaited[key] {
		delete(of.awaited, key)
		of.answered = now
	}
	if o.Refused != "" {
		t.counts["plan refused"]++
	}
	for i := range o.Results {
		t.counts[string(o.Results[i].Status)]++
	}
}

// report is what came of the plans of the measured time.
type report struct {
	// Plans were made and had their whole round; Done of them were executed and
	// answered in it by all hosts that had something to do.
	Plans, Done int
	// P50 and P99 are the times from plan to last answer, Heard the longest until
	// all hosts had answered, whether they had something to do or not.
	P50, P99, Heard time.Duration
	// Bytes is the size of the largest plan, all steps and parts together, Largest
	// that of the largest message.
	Bytes, Largest int
	// Counts are results by status, and actions.
	Counts map[string]int
}

func (t *tally) report(now time.Time) report {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := report{Counts: t.counts}
	var took []time.Duration
	for _, of := range t.plans {
		if now.Sub(of.made) < t.within {
			continue
		}
		r.Plans++
		r.Bytes, r.Largest = max(r.Bytes, of.bytes), max(r.Largest, of.largest)
		whole := t.whole(of)
		d := of.answered.Sub(of.made)
		if of.answered.IsZero() { // there was nothing to do
			d = of.heard.Sub(of.made)
		}
		if whole {
			took = append(took, d)
			r.Heard = max(r.Heard, of.heard.Sub(of.made))
		}
		if whole && d <= t.within {
			r.Done++
		}
	}
	slices.Sort(took)
	if n := len(took); n > 0 {
		r.P50, r.P99 = took[n/2], took[n*99/100]
	}
	return r
}

// whole tells whether every step of a plan came to all, and was answered by all
// that had something to do.
func (t *tally) whole(of *told) bool {
	if of.last == 0 || len(of.steps) != of.last || len(of.awaited) > 0 {
		return false
	}
	for _, parts := range of.steps {
		if !parts[""] && len(parts) < t.hosts {
			return false
		}
	}
	return true
}

// watched is the bus of one agent under the eyes of the tally.
type watched struct {
	bus.Bus
	tally *tally
}

// Subscribe notes the plans that arrive.
func (w *watched) Subscribe(ctx context.Context, s bus.Subscription) (func(), error) {
	if handle := s.Handle; s.Kind == trimtab.KindPlan || s.Kind == trimtab.KindPart {
		s.Handle = func(ctx context.Context, d bus.Delivery) error {
			if p, ok := d.Value.(*trimtab.Plan); ok {
				w.tally.plan(p)
			}
			return handle(ctx, d)
		}
	}
	return w.Bus.Subscribe(ctx, s)
}

// Publish notes the answers that are stored.
func (w *watched) Publish(ctx context.Context, v trimtab.Value) error {
	err := w.Bus.Publish(ctx, v)
	if o, ok := v.(*trimtab.Outcome); ok && err == nil {
		w.tally.outcome(o, time.Now())
	}
	return err
}
