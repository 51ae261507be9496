package actuator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// This file has the way of a plan through the actuator, except for three steps: the fence decides
// whether the plan is accepted (fence.go), a plan that a person applies waits for the command
// (apply.go), and the host's own limits bound it (limits.go). testdata/way.txt lists the functions in
// order.
//
//	onPlan ─► Handle ─► execute ─► prepare ─► commit ─► carryOut ─► move ─► write
//
// The other parts of the actuator know nothing of plans: this file calls them with knobs, amounts and
// times.

// executor carries out plans: it checks each action, applies the limits of the host, writes the
// journal, and sets the knobs.
type executor struct {
	*base
	fence     *fence
	knobs     *knobs
	instances *instances
	lending   *lending
	host      *host
	above     *groupAbove
	approvals *approvals
	paced     paced
	// unfinished is the plan whose next step has not come yet.
	unfinished *unfinished
	// promised is by how many bytes memory limits rose lately, until a time of the boot clock.
	promised      float64
	promisedUntil time.Duration
}

// step is one step of a plan that is being carried out.
type step struct {
	*trimtab.Plan
	outcome *trimtab.Outcome
	// received is when it arrived, on the boot clock.
	received time.Duration
	// applies says that a person applies the plan to knobs in mode recommend of this host.
	applies bool
	// capacity returns the pool's capacity of a resource here, by the plan and by this host.
	capacity func(resource string) float64
	moves    []*move
}

// move is one action that is being carried out.
type move struct {
	action *trimtab.Action
	knob   *managed
	result *trimtab.Result
	goal   trimtab.Amount
	// had is the knob's value when the action was checked; envelope is the range in which the fast
	// loop may move it from now on; nil: it may not.
	had      trimtab.Amount
	envelope *trimtab.Envelope
	// version is the knob's version when the action was checked, if it has versions.
	version string
}

// onPlan carries out a plan and publishes its outcome. If that fails, the plan is delivered again
// and gets the same outcome.
func (a *Actuator) onPlan(ctx context.Context, b bus.Bus, d bus.Delivery) error {
	p, ok := d.Value.(*trimtab.Plan)
	if !ok {
		return nil
	}
	a.awaitApproval(ctx, p)
	return b.Publish(ctx, a.Handle(ctx, p))
}

// Handle carries out one step of a plan and returns its outcome. A repetition of the step gets the
// same outcome without a second effect. A plan that is refused as a whole changes nothing, not even
// the lease.
func (a *Actuator) Handle(ctx context.Context, p *trimtab.Plan) *trimtab.Outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	x, s := a.executor, &step{Plan: p, received: a.clock.boot()}
	s.capacity = func(resource string) float64 { return min(p.CapacityOf(resource), x.host.limit(resource)) }
	s.outcome = &trimtab.Outcome{
		Pool: p.Pool, Host: x.config.Host, Epoch: p.Epoch, Sequence: p.Sequence, Step: p.Step,
		Time: x.clock.wall(),
	}
	kind, why, again := x.fence.check(p)
	if why == "" && again == nil && x.knobs.applies(p) {
		s.applies = true
		kind, why = "refused", x.approvals.refusal(p.Applies, p.Epoch, p.Sequence)
	}
	switch {
	case again != nil:
		x.count(kind)
		return again
	case why != "":
		x.count(kind)
		s.outcome.Refused = why
		x.logger.Warn("plan refused", "plan", p.ID(), "step", p.Step, "reason", why)
		return s.outcome
	}
	if x.execute(ctx, s); s.outcome.Refused == "" {
		x.fence.outcomes[p.Step] = &answer{p, s.outcome}
	}
	s.outcome.Took = trimtab.SecondsOf(max(0, x.clock.boot()-s.received))
	return s.outcome
}

// execute carries out an accepted step: first the journal, then the reductions, then the raises.
func (x *executor) execute(ctx context.Context, s *step) {
	cpus, o := s.capacity(trimtab.CPU), s.outcome
	x.lending.whole = x.knobs.parent != nil && wholeCPUs(cpus)
	x.prepare(ctx, s)
	x.lending.lendable = 0 // the plan itself may use what was lendable; lend sets it again
	if err := x.commit(s); err != nil {
		x.count("refused")
		x.metrics.Counter("trimtab_actuator_journal_errors_total").Inc()
		o.Refused, o.Results = fmt.Sprintf("%v: nothing is written without the journal", err), nil
		x.logger.Error("plan refused", "plan", s.ID(), "step", s.Step, "err", err)
		return
	}
	if s.applies {
		x.approvals.grant(s.Applies, s.Epoch, s.Sequence)
	}
	x.count("accepted")
	had, _ := x.host.sums(nil)
	enveloped := slices.ContainsFunc(s.moves, func(m *move) bool { return m.envelope != nil })
	x.above.fit(ctx, cpus)
	x.above.bind(ctx, cpus, enveloped, true)
	x.above.lift(ctx)
	x.carryOut(ctx, s)
	x.host.lend(ctx, cpus, s.Lendable[x.config.Host])
	x.above.bind(ctx, cpus, enveloped, false)
	for i := range o.Results {
		x.metrics.Counter("trimtab_actuator_actions_total", string(o.Results[i].Status)).Inc()
	}
	x.await(s)
	x.host.settleStep(ctx, s.Last, had)
	x.notify()
}

// prepare reads the knob of each action for this host and checks the action. It collects the moves
// to write; the other actions have their results.
func (x *executor) prepare(ctx context.Context, s *step) {
	o := s.outcome
	o.Results = make([]trimtab.Result, 0, len(s.Actions)) // never reallocated: moves point into it
	for i := range s.Actions {
		action := &s.Actions[i]
		if action.Host != x.config.Host {
			continue
		}
		o.Results = append(o.Results, trimtab.Result{KnobID: action.KnobID, Asked: action.Set})
		m := &move{action: action, result: &o.Results[len(o.Results)-1]}
		if x.judge(ctx, s, m) {
			s.moves = append(s.moves, m)
		}
	}
	// A plan that a person applies is not carried out in part.
	if i := slices.IndexFunc(s.moves, func(m *move) bool { return m.knob.block.readOnly != "" }); i >= 0 {
		h := s.moves[i].knob
		for _, m := range s.moves {
			refuse(m.result, fmt.Sprintf("not applied, for %s: %s", h.Workload, h.block.readOnly))
		}
		s.moves = nil
	}
	x.limit(s)
	// The envelopes of knobs whose target the plan does not change. The outcome does not report
	// them; the holding does.
	for i := range s.Envelopes {
		e := &s.Envelopes[i]
		if !x.config.Fast || e.Host != x.config.Host {
			continue
		}
		h := x.knobs.find(e.KnobID)
		if h == nil || e.At.Unlimited || e.Envelope == nil && h.loan.envelope == nil {
			continue
		}
		m := &move{
			action: &trimtab.Action{KnobID: e.KnobID, Expect: e.At, Set: e.At, Envelope: e.Envelope, Mode: trimtab.Act},
			result: &trimtab.Result{KnobID: e.KnobID, Asked: e.At},
		}
		if x.judge(ctx, s, m) && h.block.readOnly == "" {
			s.moves = append(s.moves, m)
		}
	}
}

// judge sets the result of an action that needs no write, and reports whether it needs one.
func (x *executor) judge(ctx context.Context, s *step, m *move) bool {
	r, h := m.result, x.knobs.find(m.action.KnobID)
	if h == nil {
		return refuse(r, "unknown target: this host has no such knob")
	}
	m.knob = h
	if h.Mode != trimtab.Off {
		x.knobs.observe(ctx, h)
	}
	r.Before, r.Found, r.Effective, r.Known = h.resting(), h.resting(), h.effective, h.known
	m.had, m.version = h.now, h.version()
	switch {
	case h.Mode == trimtab.Off:
		return refuse(r, "mode off")
	case h.report() != "":
		return refuse(r, h.report())
	}
	clamped := clamp(m.action.Set, h.least(), h.highest())
	switch {
	case clamped == m.action.Set:
	case m.action.Set.Less(clamped) && h.least() > h.Min:
		r.Reason = fmt.Sprintf("clamped from %v to %v: so much is in use", m.action.Set, clamped)
	case h.highest() < h.Max && clamped.Less(m.action.Set):
		r.Reason = fmt.Sprintf("clamped from %v to %v: %s gives no more", m.action.Set, clamped, h.knobStatus.By)
	default:
		r.Reason = fmt.Sprintf("clamped from %v to the bounds %v to %v", m.action.Set, h.Min, h.Max)
	}
	m.goal = h.Knob.Nearest(clamped)
	if least := trimtab.Units(h.least()); h.floor > 0 && m.goal.Less(least) && m.goal.Less(h.now) {
		m.goal = h.now // rounding must not go below the amount in use
	}
	if s.Applies == "" {
		m.envelope = x.lending.enveloped(h, m.goal, m.action.Envelope)
	}
	switch {
	case same(r.Before, m.goal) && sameEnvelope(h.loan.envelope, m.envelope) && !h.recaps(m.action.Capped):
		r.Status = h.status(trimtab.Equal)
		return false
	case !same(r.Before, h.Knob.Nearest(m.action.Expect)) && !same(r.Before, m.action.Expect):
		return refuse(r, fmt.Sprintf("stale: found %v, the plan expects %v", r.Before, m.action.Expect))
	case !x.fence.paused.IsZero():
		return refuse(r, "paused")
	case m.action.Mode != trimtab.Act || h.Mode == trimtab.Recommend && s.Applies == "":
		r.Status = trimtab.Recommended
		return false
	}
	if why := x.knobs.claim(ctx, h); why != "" {
		if h.Mode == trimtab.Act {
			return refuse(r, why)
		}
		// This affects only the present plan: a knob in mode recommend does not stop other
		// processes.
		h.block.readOnly, h.block.contested = why, ""
	}
	return true
}

func refuse(r *trimtab.Result, why string) bool {
	r.Status, r.Reason = trimtab.Refused, why
	return false
}

// clamp moves v into [lower, upper]; unlimited is above every upper.
func clamp(v trimtab.Amount, lower, upper float64) trimtab.Amount {
	if v.Unlimited {
		return trimtab.Units(upper)
	}
	return trimtab.Units(min(max(v.Value, lower), upper))
}

// commit stores in one durable write the plan's position, its lease, and for each move the baseline
// and the value that is about to be written.
func (x *executor) commit(s *step) error {
	at := position{s.Epoch, s.Sequence, s.Step}
	length := x.config.Limits.lease(s.Lease)
	if length < s.Lease {
		x.logger.Warn("lease cut to what this host allows", "plan", s.ID(), "asked", s.Lease, "allowed", length)
	}
	until := lease{Boot: x.clock.id, Until: saturate(s.received, length.Duration()), Length: length}
	if s.BorrowLease > 0 { // counted from when the plan was made: the lenders do not wait for a late one
		age := max(0, x.clock.wall().Sub(s.Time))
		until.BorrowUntil = max(1, saturate(x.clock.boot(), s.BorrowLease.Duration()-age))
	}
	batch := []hostfs.Entry{put(positionKey, at), put(leaseKey, until)}
	entries := make([]*entry, len(s.moves))
	for i, m := range s.moves {
		e := m.knob.nextEntry(m.goal, m.knob.span(m.envelope))
		entries[i] = e
		batch = append(batch, put(e.journalKey(), e))
	}
	if err := x.journal.Append(batch...); err != nil {
		return err
	}
	for i, m := range s.moves {
		m.knob.entry = entries[i]
	}
	x.fence.adopt(at, until)
	return nil
}

// nextEntry returns the journal entry of a knob that is about to be set to goal, and that the fast
// loop may move within free from then on.
func (h *managed) nextEntry(goal trimtab.Amount, free *[2]float64) *entry {
	e := &entry{KnobID: h.KnobID, ID: h.id, Undo: h.Knob.Undo(), Wrote: []trimtab.Amount{h.now, goal}, Free: free}
	e.Baseline, e.Rest = h.baseline()
	if old := h.entry; old != nil {
		e.Baseline, e.Rest = old.Baseline, old.Rest
		if h.can.Recall == nil {
			e.Undo = old.Undo
		}
	} else {
		e.Wrote = e.Wrote[1:]
	}
	return e
}

// carryOut makes the reductions, then the raises. Before the first raise it reads all knobs of that
// resource again: writing the journal took time, and another program may have raised one meanwhile.
func (x *executor) carryOut(ctx context.Context, s *step) {
	var falls, rises [][]*move // those of one instance that its kind can write in one operation are together
	grows, ahead := map[string]bool{}, map[*managed]float64{}
	for _, m := range s.moves {
		to := &falls
		if !m.goal.Less(m.had) {
			to, grows[m.knob.Resource] = &rises, true
		}
		if i := slices.IndexFunc(*to, func(of []*move) bool { return m.knob.writesWith(of[0].knob) }); i >= 0 {
			(*to)[i] = append((*to)[i], m)
		} else {
			*to = append(*to, []*move{m})
		}
	}
	for _, all := range falls {
		x.move(ctx, s, all)
	}
	if len(grows) == 0 {
		return
	}
	x.instances.seek(ctx, true)
	look := hostfs.Look(ctx)
	for _, h := range x.knobs.all {
		if h.counts() && grows[h.Resource] {
			x.knobs.observe(look, h)
		}
	}
	for _, m := range s.moves {
		if !m.goal.Less(m.result.Before) {
			ahead[m.knob] = m.knob.atMost(m.goal)
		}
	}
	x.host.askAll(ctx, ahead, s.capacity)
	for _, all := range rises {
		x.move(ctx, s, all)
	}
}

// move carries out the actions of one instance that may be written in one operation, mostly one. A
// knob that the fast loop has set inside its envelope keeps its value.
func (x *executor) move(ctx context.Context, s *step, all []*move) {
	var kept, writes []*move
	for _, m := range all {
		h := m.knob
		why, stays := x.overtaken(m), x.lending.stays(h, m.envelope)
		if why == "" && !stays && h.now.Less(m.goal) {
			why = x.lacksHeadroom(ctx, h, m.goal, s.capacity(h.Resource))
		}
		switch {
		case why != "":
			refuse(m.result, why)
		case stays:
			kept = append(kept, m)
		default:
			writes = append(writes, m)
		}
	}
	x.write(ctx, s, writes)
	for _, m := range kept {
		x.lending.enter(m)
		m.result.Found, m.result.Known, m.result.Status = m.goal, true, m.knob.status(trimtab.Written)
		if same(m.result.Before, m.goal) {
			m.result.Status = trimtab.Equal
		}
	}
}

// overtaken returns what happened to the lease or the knob since the action was checked that
// forbids the write; "": nothing.
func (x *executor) overtaken(m *move) string {
	h := m.knob
	switch {
	case x.fence.left() == 0: // the lease expired while this process was stopped
		return "stale: the lease ran out before the write"
	case h.entry != nil && !m.goal.Less(m.had) && h.entry.borrows(m.goal) && x.fence.leftBorrowed() == 0:
		return "stale: what was to be borrowed for this is to be given back by now"
	case h.finder != nil && x.knobs.find(h.KnobID) != h:
		return "gone: the instance ended while the plan was carried out"
	case !same(h.now, m.had) && !(h.moves() && h.entry.free(h.now)):
		return fmt.Sprintf("stale: somebody else set %v while the plan was carried out", h.now)
	case h.version() != m.version:
		return "stale: somebody else changed it while the plan was carried out, and set the same again"
	}
	return ""
}

// write sets each knob once and reads it back. Two are set in one operation; if that is refused, each
// by itself.
func (x *executor) write(ctx context.Context, s *step, all []*move) {
	var err error
	together := len(all) == 2
	if together {
		err = all[0].knob.can.WriteWith(ctx, all[0].goal, all[1].knob.Knob, all[1].goal)
		together = !errors.Is(err, trimtab.ErrRefused)
	}
	for _, m := range all {
		r, h := m.result, m.knob
		started := x.clock.boot()
		recaps := h.recaps(m.action.Capped)
		if h.can.Leave != nil {
			h.can.Leave(m.action.Leave)
		}
		if !together {
			err = x.above.write(ctx, h, m.goal, m.action.Capped)
		}
		h.written = whereIs(&h.can)
		read := x.knobs.observe(ctx, h)
		x.metrics.Histogram("trimtab_actuator_write_seconds").Observe((x.clock.boot() - started).Seconds())
		r.Found, r.Effective, r.Known = h.now, h.effective, read
		switch {
		case h.lostRace(err):
			r.Status, r.Reason = trimtab.Refused, "stale: "+err.Error()
		case err != nil:
			r.Status, r.Reason = trimtab.Failed, err.Error()
		case !read:
			r.Status, r.Reason = trimtab.Failed, "not read back: "+h.block.problem
		case !same(h.now, m.goal):
			r.Status, r.Reason = trimtab.Failed, fmt.Sprintf("wrote %v, read back %v", m.goal, h.now)
		case same(r.Before, m.goal) && !recaps:
			x.lending.enter(m)
			r.Status = h.status(trimtab.Equal)
		default:
			x.lending.enter(m)
			r.Status = h.status(trimtab.Written)
		}
		x.logger.Info("action", "plan", s.ID(), "step", s.Step, "workload", h.Workload, "resource", h.Resource,
			"before", r.Before.String(), "set", m.goal.String(), "status", string(r.Status), "reason", r.Reason)
	}
}

// lacksHeadroom returns why a capacity of the pool on this host does not suffice to raise a knob to
// goal; "": it does.
func (x *executor) lacksHeadroom(ctx context.Context, h *managed, goal trimtab.Amount, capacity float64) string {
	if trimtab.ResourceOf(h.Resource).Apart {
		return ""
	}
	if x.byFreeMemory(h) {
		return x.lacksMemory(h, goal)
	}
	sum := x.knobs.sumWith(h, goal)
	if sum > capacity+slack && x.lending.callIn(h) {
		sum = x.knobs.sumWith(h, goal)
	}
	if sum > capacity+slack {
		return fmt.Sprintf("the sum would be %.4g over a capacity of %.4g of %s: what was to be freed is not", sum, capacity, h.Resource)
	}
	why := x.host.ask(ctx, h, goal)
	if why != "" {
		x.metrics.Counter("trimtab_actuator_host_refusals_total").Inc()
	}
	return why
}

// slack is the largest error of a sum from rounding to the knobs' units.
const slack = 1e-3

// saturate adds two durations without overflow.
func saturate(a, b time.Duration) time.Duration {
	if s := a + b; s >= a {
		return s
	}
	return 1<<63 - 1
}

func (x *executor) count(result string) {
	x.metrics.Counter("trimtab_actuator_plans_total", result).Inc()
}
