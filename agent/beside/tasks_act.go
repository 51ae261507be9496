package beside

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab/actuator/placed"
	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/agent/signals"
	"github.com/trimtab/trimtab/planner/throttle"
	"github.com/trimtab/trimtab/speculation"
)

// carryOut carries out one of the planner's lists.
func (h *taskHost) carryOut(ctx context.Context, now time.Duration, p *speculation.Placements) {
	orders, err := h.ledger.Take(now, p)
	if err != nil {
		h.metrics.Counter("trimtab_speculate_lists_total", h.host, "refused").Inc()
		h.logger.Debug("placements are not carried out", "err", err)
		return
	}
	h.metrics.Counter("trimtab_speculate_lists_total", h.host, "taken").Inc()
	for _, id := range orders.Forget {
		if h.known.infos[id].State == task.Ended {
			_ = h.runner.Forget(id) // the runner may have forgotten it already
		}
		h.known.forget(id)
		if h.pins != nil {
			delete(h.pins.last, id)
		}
	}
	h.cancel(orders.Cancel)
	h.kill(ctx, orders.Kill)
	for _, r := range orders.Relabel {
		h.relabel(ctx, r)
	}
	h.renew(ctx, now, orders.Renew)
	for i := range orders.Queue {
		h.queue(ctx, now, &orders.Queue[i])
	}
}

// expire ends the tasks whose leases were not renewed.
func (h *taskHost) expire(ctx context.Context, now time.Duration) {
	o := h.ledger.Expire(now)
	h.cancel(o.Cancel)
	for _, a := range h.ledger.Attempts() {
		if a.State == placed.Running && a.Why != "" { // not before it has ended
			h.kill(ctx, []placed.Kill{{ID: a.AttemptID, Why: a.Why}})
		}
	}
}

// cancel removes attempts from the queue.
func (h *taskHost) cancel(ids []task.ID) {
	for _, id := range ids {
		h.policy.Cancel(id.String())
		h.granted = slices.DeleteFunc(h.granted, func(g task.ID) bool { return g == id })
	}
}

// kill kills tasks. A task on which another operation runs is killed when that has ended.
func (h *taskHost) kill(ctx context.Context, all []placed.Kill) {
	for _, k := range all {
		if i := h.known.infos[k.ID]; i.State == task.Killing || i.State == task.Ended {
			continue
		}
		h.turns.begin(ctx, k.ID, turnKill, func(ctx context.Context) error {
			_, err := h.runner.Kill(ctx, k.ID, k.Why)
			return err
		})
	}
}

// renew copies the lease times of the ledger to the runner and the queue.
func (h *taskHost) renew(ctx context.Context, now time.Duration, ids []task.ID) {
	for _, id := range ids {
		a, _ := h.ledger.Find(id)
		if a.State == placed.Queued {
			h.policy.Renew(id.String(), signals.Time(a.Until))
			continue
		}
		if err := h.runner.Renew(ctx, a.Until-now, id); err != nil {
			h.logger.Debug("renew speculative task", "err", err)
		}
	}
}

// queue queues a new attempt. One with a grant waits only for memory; the others wait for the
// policy.
func (h *taskHost) queue(ctx context.Context, now time.Duration, p *speculation.Placement) {
	if p.Class == speculation.RegularTask && !h.mayBeRegular(ctx, p) {
		p.Class = speculation.OversubscribedTask
		h.ledger.Relabelled(p.AttemptID, p.Class) // reported, so that the planner knows
	}
	if _, err := h.specOf(p, p.Class); err != nil {
		h.refuse(p.AttemptID, err.Error())
		return
	}
	if p.Class == speculation.RegularTask {
		h.granted = append(h.granted, p.AttemptID)
		return
	}
	h.offer(now, p)
}

func (h *taskHost) offer(now time.Duration, p *speculation.Placement) {
	a, _ := h.ledger.Find(p.AttemptID)
	why := h.policy.Offer(signals.Time(now), throttle.Request{ID: p.AttemptID.String(), Job: p.Job, Wants: wantsOf(&p.Spec), Priority: p.Priority, Expires: signals.Time(a.Until)})
	if why != "" {
		h.refuse(p.AttemptID, string(why))
	}
}

// wantsOf returns the resources that a task will occupy, in the order of throttleConfig.
func wantsOf(s *speculation.TaskSpec) []float64 { return []float64{s.Cores, s.Memory, 1} }

// mayBeRegular reports whether the file's limits allow one more regular task, and claims its cores
// and memory.
func (h *taskHost) mayBeRegular(ctx context.Context, p *speculation.Placement) bool {
	cores, memory := p.Spec.Cores, p.Spec.Memory
	for _, a := range h.ledger.Attempts() {
		counts := a.State == placed.Running && a.Class == speculation.RegularTask || slices.Contains(h.granted, a.AttemptID)
		if counts && a.AttemptID != p.AttemptID {
			cores, memory = cores+a.Spec.Cores, memory+a.Spec.Memory
		}
	}
	if !(cores <= h.config.Regular.CPU && memory <= float64(h.config.Regular.Memory)) {
		return false
	}
	why := h.claim(ctx, *p, speculation.RegularTask)
	if why != "" {
		h.logger.Info("a grant does not count here: the task stays speculative", "task", p.AttemptID.String(), "why", why)
	}
	return why == ""
}

// relabel changes the class of an attempt if the configuration allows it.
func (h *taskHost) relabel(ctx context.Context, r placed.Relabel) {
	a, known := h.ledger.Find(r.ID)
	if !known || r.Class == speculation.RegularTask && !h.mayBeRegular(ctx, &a.Placement) {
		return
	}
	if a.State == placed.Queued {
		h.cancel([]task.ID{r.ID})
		h.ledger.Relabelled(r.ID, r.Class)
		if a.Class = r.Class; r.Class == speculation.RegularTask {
			h.granted = append(h.granted, r.ID)
			return
		}
		h.offer(h.clock(), &a.Placement)
		return
	}
	frozen := h.known.infos[r.ID].State == task.Frozen
	if h.turns.begin(ctx, r.ID, turnRelabel, func(ctx context.Context) error {
		if frozen {
			if err := h.runner.Thaw(ctx, r.ID); err != nil {
				return err
			}
		}
		return h.runner.Relabel(ctx, r.ID, task.Class(r.Class))
	}) {
		if h.pins != nil { // a regular task may run on all cores
			delete(h.pins.last, r.ID)
		}
		// Recorded now, so that no other task is promised the same memory.
		h.ledger.Relabelled(r.ID, r.Class)
	}
}

// act carries out the policy's decision.
func (h *taskHost) act(ctx context.Context, _ time.Time, d throttle.Decision) {
	now := h.now
	h.classify(d.Cores)
	for _, e := range d.End {
		id, ok := parseAttempt(e.Task)
		a, known := h.ledger.Find(id)
		switch {
		case !ok || !known:
		case a.State == placed.Queued:
			h.refuse(id, string(e.Why))
		case a.State == placed.Running:
			h.kill(ctx, []placed.Kill{{ID: id, Why: string(e.Why)}})
		}
	}
	for _, s := range d.Start {
		if id, ok := parseAttempt(s.ID); ok {
			h.known.classes[id] = s.Class
			h.start(ctx, now, id)
		}
	}
	h.startGranted(ctx, now)
	h.freeze(ctx, now, d.Throttled)
	h.bind(ctx)
}

// start starts a queued attempt.
func (h *taskHost) start(ctx context.Context, now time.Duration, id task.ID) {
	a, known := h.ledger.Find(id)
	if !known {
		return
	}
	spec, err := h.specOf(&a.Placement, a.Class)
	if err != nil {
		h.refuse(id, err.Error())
		return
	}
	if a.State == placed.Queued && a.Class != speculation.RegularTask { // a grant was claimed before
		if why := h.claim(ctx, a.Placement, a.Class); why != "" {
			h.refuse(id, why)
			return
		}
	}
	if !h.ledger.Start(now, id) {
		return
	}
	if spec.CPUs = h.cpusOf(&a); h.pins != nil {
		h.pins.last[id] = spec.CPUs
	}
	h.metrics.Counter("trimtab_speculate_started_total", h.host, string(a.Class)).Inc()
	if !h.turns.begin(ctx, id, turnStart, func(ctx context.Context) error {
		_, err := h.runner.Start(ctx, spec, a.Until-h.clock())
		return err
	}) {
		h.known.failed[id] = "something else is being done to it"
	}
}

// startGranted starts granted tasks if their memory is free, or if no speculative task is left that
// could give it up.
func (h *taskHost) startGranted(ctx context.Context, now time.Duration) {
	free, known := h.free()
	for len(h.granted) > 0 {
		id := h.granted[0]
		a, here := h.ledger.Find(id)
		if here && a.State == placed.Queued && known && a.Spec.Memory > free && h.speculative() > 0 {
			return
		}
		if h.granted = h.granted[1:]; here {
			free -= a.Spec.Memory
			h.start(ctx, now, id)
		}
	}
}

// free returns the unused memory of the host, in bytes.
func (h *taskHost) free() (bytes float64, known bool) {
	l, known := h.loads.newest["memory"]
	return l.Capacity - l.Used, known
}

// regular returns the number of running tasks with a grant.
func (h *taskHost) regular() (n int) {
	for _, a := range h.ledger.Attempts() {
		if a.State == placed.Running && a.Class == speculation.RegularTask {
			n++
		}
	}
	return n
}

// speculative returns the number of running tasks without a grant.
func (h *taskHost) speculative() (n int) {
	for _, a := range h.ledger.Attempts() {
		if a.State == placed.Running && a.Class != speculation.RegularTask {
			n++
		}
	}
	return n
}

// revoke returns the resources that speculative tasks must give up for granted ones: memory that is
// not free. Granted tasks get CPU time by their weight.
func (h *taskHost) revoke() []float64 {
	free, known := h.free()
	if !known || len(h.granted) == 0 {
		return nil
	}
	need := -free
	for _, id := range h.granted {
		a, _ := h.ledger.Find(id)
		need += a.Spec.Memory
	}
	return []float64{0, math.Max(0, need)}
}

// freeze freezes the tasks that the policy throttles, and thaws all others.
func (h *taskHost) freeze(ctx context.Context, now time.Duration, throttled []throttle.Throttled) {
	still := map[string]bool{}
	for _, t := range throttled {
		if signals.Time(now).Before(t.Until) {
			still[t.Task] = true
		}
	}
	for id, i := range h.known.infos {
		switch stop := still[id.String()]; {
		case stop && i.State == task.Running:
			h.turns.begin(ctx, id, turnFreeze, func(ctx context.Context) error { return h.runner.Freeze(ctx, id) })
		case !stop && i.State == task.Frozen:
			h.turns.begin(ctx, id, turnThaw, func(ctx context.Context) error { return h.runner.Thaw(ctx, id) })
		}
	}
}

// parseAttempt parses the output of [speculation.AttemptID.String].
func parseAttempt(text string) (id task.ID, ok bool) {
	for i := range text {
		if text[i] == '/' {
			id.Job, text = text[:i], text[i+1:]
			break
		}
	}
	for i := range text {
		if text[i] == '#' {
			n, err := fmt.Sscanf(text[i+1:], "%d", &id.Attempt)
			id.Task = text[:i]
			return id, n == 1 && err == nil && id.Validate() == nil
		}
	}
	return id, false
}
