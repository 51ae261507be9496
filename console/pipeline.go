package console

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

const (
	// askEvery is how old an answer of the bus may be: however many look on,
	// it is asked once a second.
	askEvery = time.Second
	// askPatience bounds the wait for the bus.
	askPatience = 2 * time.Second
	// maxMissing bounds the inputs that one answer names.
	maxMissing = 1000
)

// asked is what the bus answered last.
type asked struct {
	mu      sync.Mutex
	at      time.Time
	queues  bus.Queues
	holder  string
	epoch   uint64
	problem string
}

// busNow returns what the bus knows, at most askEvery old.
func (h *handler) busNow(ctx context.Context) *asked {
	a := &h.asked
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); now.Sub(a.at) >= askEvery || a.at.IsZero() {
		// Who asked may go away; the others still want the answer.
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

// led adds to a status who leads and what is not ready.
func (h *handler) led(ctx context.Context, s *Status) {
	a := h.busNow(ctx)
	s.Leader, s.Epoch = a.holder, a.epoch
	if h.options.Ready != nil {
		s.NotReady = h.options.Ready()
	}
}

// pipelineState returns how the stages are.
func (h *handler) pipelineState(ctx context.Context) Pipeline {
	now, a := time.Now(), h.busNow(ctx)
	p := Pipeline{Time: now, Leader: a.holder, Epoch: a.epoch, Problem: a.problem, Stages: []StageState{},
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
	h.view.lacking(&p)
	return p
}

// counts are those that are not zero.
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
func waits(stages []StageState, q bus.Queue, now time.Time) {
	for i := range stages {
		s := &stages[i]
		if s.Name != q.For {
			continue
		}
		shown := Queue{Kind: q.Kind, Waiting: q.Waiting, Redelivered: q.Again}
		if !q.Oldest.IsZero() {
			lag := trimtab.SecondsOf(max(0, now.Sub(q.Oldest)))
			shown.Lag = &lag
		}
		s.Waiting += q.Waiting
		s.Redelivered += q.Again
		s.Queues = append(s.Queues, shown)
	}
}

// lacking adds what the view knows: the newest plan, and which inputs are
// missing, longest first.
func (v *View) lacking(p *Pipeline) {
	v.mu.Lock()
	defer v.mu.Unlock()
	p.Inputs = []MissingInput{}
	if v.plan != nil {
		age := trimtab.SecondsOf(max(0, p.Time.Sub(v.plan.Time)))
		p.Plan, p.PlanAge = v.plan.ID(), &age
	}
	for name, s := range v.workloads {
		for _, m := range s.lacks {
			p.Inputs = append(p.Inputs, m)
		}
		if m := v.silent(s, p.Time); m != nil {
			m.Workload = name
			p.Inputs = append(p.Inputs, *m)
		}
	}
	slices.SortFunc(p.Inputs, func(a, b MissingInput) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Workload, b.Workload), strings.Compare(a.Input, b.Input))
	})
	p.Inputs = p.Inputs[:min(len(p.Inputs), maxMissing)]
}

// silent tells of a workload that the analyzer says nothing of, or whose
// estimate holds it for a reason that no single input shows; nil: neither.
func (v *View) silent(s *state, now time.Time) *MissingInput {
	if !s.declared {
		return nil
	}
	e, round := s.estimate, v.config.Round
	switch {
	case e == nil:
		return &MissingInput{Input: "estimate", Reason: "none yet", Since: v.began}
	case round > 0 && now.Sub(e.Time) > 3*round+5*time.Second:
		return &MissingInput{Input: "estimate", Reason: "nothing from the analyzer", Since: e.Time}
	case e.Hold != "" && len(s.lacks) == 0:
		m := &MissingInput{Input: "estimate", Reason: e.Hold, Since: s.holdSince}
		if w := strings.Fields(e.Hold); len(w) > 3 && w[0] == "no" && w[2] == "from" {
			m.Input, m.Source = w[1], w[3]
		}
		return m
	}
	if k := s.knob(v.config.Resource); k != nil && k.Problem != "" && s.lacks["allocation"].Reason == "" {
		return &MissingInput{Input: "allocation", Source: k.Knob, Reason: k.Problem, Since: s.knobSince}
	}
	return nil
}

func (h *handler) pipeline(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, h.pipelineState(r.Context()))
}
