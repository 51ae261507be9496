package console

import (
	"cmp"
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/console/view"
)

const (
	// askEvery is the largest age of an answer of the bus: it is asked at most once a second, for
	// all clients.
	askEvery = time.Second
	// askPatience bounds the wait for the bus.
	askPatience = 2 * time.Second
)

// asked is the last answer of the bus.
type asked struct {
	mu      sync.Mutex
	at      time.Time
	queues  bus.Queues
	holder  string
	epoch   uint64
	problem string
}

// busNow returns the bus's answer, at most askEvery old.
func (h *handler) busNow(ctx context.Context) *asked {
	a := &h.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); now.Sub(a.at) >= askEvery || a.at.IsZero() {
		// The request goes on if its client goes away, since other clients wait for the answer.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askPatience)
		defer cancel()
		a.problem = ""
		a.ask(ctx, &h.options, h.view.Pool())
		a.at = time.Now()
	}
	return &asked{queues: a.queues, holder: a.holder, epoch: a.epoch, problem: a.problem}
}

func (a *asked) ask(ctx context.Context, o *Options, pool string) {
	var leader, queues error
	var asking sync.WaitGroup
	if o.Leader != nil {
		asking.Go(func() { a.holder, a.epoch, leader = o.Leader(ctx, pool) })
	}
	if o.Bus != nil {
		asking.Go(func() { a.queues, queues = o.Bus.Queues(ctx) })
	}
	asking.Wait()
	if err := cmp.Or(queues, leader); err != nil {
		a.problem = err.Error()
	}
}

// led adds the leader, and the parts that are not ready, to a status.
func (h *handler) led(ctx context.Context, s *view.Status) {
	a := h.busNow(ctx)
	s.Leader, s.Epoch = a.holder, a.epoch
	if h.options.Ready != nil {
		s.NotReady = h.options.Ready()
	}
}

// pipelineState returns how the stages are.
func (h *handler) pipelineState(ctx context.Context) view.Pipeline {
	now, a := time.Now(), h.busNow(ctx)
	p := view.Pipeline{Time: now, Leader: a.holder, Epoch: a.epoch, Problem: a.problem, Stages: []view.StageState{},
		Shed: map[string]uint64{}, Unreadable: map[string]uint64{}, Aside: counts(a.queues.Aside)}
	if h.options.Bus != nil {
		stats := h.options.Bus.Stats()
		p.Shed, p.Unreadable = counts(stats.Lost), counts(stats.Unreadable)
	}
	if h.options.Stages != nil {
		p.Stages = h.options.Stages()
	}
	for _, q := range a.queues.Waiting {
		waits(p.Stages, q, now)
	}
	h.view.AddMissing(&p)
	return p
}

// counts returns the counts that are not zero.
func counts(of map[trimtab.Kind]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for k, n := range of {
		if n > 0 {
			out[string(k)] = n
		}
	}
	return out
}

// waits adds a queue to the stage that it is for.
func waits(stages []view.StageState, q bus.Queue, now time.Time) {
	for i := range stages {
		s := &stages[i]
		if s.Name != q.For {
			continue
		}
		shown := view.Queue{Kind: q.Kind, Waiting: q.Waiting, Redelivered: q.Again}
		if !q.Oldest.IsZero() {
			lag := trimtab.SecondsOf(max(0, now.Sub(q.Oldest)))
			shown.Lag = &lag
		}
		s.Waiting += q.Waiting
		s.Redelivered += q.Again
		s.Queues = append(s.Queues, shown)
	}
}

func (h *handler) pipeline(r *http.Request) (any, error) { return h.pipelineState(r.Context()), nil }
