package actuator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

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
	wishes    *wishes
	paced     paced
	// unfinished is the plan whose next step has not come yet.
	unfinished *unfinished
}

// move is one action that is being carried out.
type move struct {
	action *trimtab.Action
	held   *held
	result *trimtab.Result
	goal   trimtab.Amount
	// had is the knob's value when the action was checked; envelope is the range in which the fast
	// loop may move it from now on; nil: it may not.
	had      trimtab.Amount
	envelope *trimtab.Envelope
	// version is the knob's version when the action was checked, if it has versions.
	version string
}

// shrinks reports whether the write lowers the value.
func (m *move) shrinks() bool { return m.goal.Less(m.had) }

// Handle carries out one step of a plan and returns its outcome. A repetition of the step gets the
// same outcome without a second effect. A plan that is refused as a whole changes nothing, not even
// the lease.
func (a *Actuator) Handle(ctx context.Context, p *trimtab.Plan) *trimtab.Outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.executor.handle(ctx, p)
}

// handle does the work of Handle.
func (x *executor) handle(ctx context.Context, p *trimtab.Plan) *trimtab.Outcome {
	received := x.clock.boot()
	o := &trimtab.Outcome{
		Pool: p.Pool, Host: x.config.Host, Epoch: p.Epoch, Sequence: p.Sequence, Step: p.Step,
		Time: x.clock.wall(),
	}
	kind, why, again := x.fence.check(p, position{p.Epoch, p.Sequence, p.Step})
	if why == "" && again == nil {
		kind, why = "refused", x.wishes.unwished(p)
	}
	switch {
	case again != nil:
		x.count(kind)
		return again
	case why != "":
		x.count(kind)
		o.Refused = why
		x.logger.Warn("plan refused", "plan", p.ID(), "step", p.Step, "reason", why)
		return o
	}
	x.execute(ctx, p, o, received)
	if o.Refused == "" {
		x.fence.outcomes[p.Step] = &answer{p, o}
	}
	o.Took = trimtab.SecondsOf(max(0, x.clock.boot()-received))
	return o
}

// execute carries out an accepted step: first the journal, then the reductions, then the raises.
func (x *executor) execute(ctx context.Context, p *trimtab.Plan, o *trimtab.Outcome, received time.Duration) {
	x.lending.whole = x.whole(p)
	moves := append(x.prepare(ctx, p, o), x.prepareEnvelopes(ctx, p)...)
	x.lending.lendable = 0 // the plan itself may use what was lendable; lend sets it again
	if err := x.commit(p, moves, received); err != nil {
		x.count("refused")
		x.metrics.Counter("trimtab_actuator_journal_errors_total").Inc()
		o.Refused, o.Results = fmt.Sprintf("%v: nothing is written without the journal", err), nil
		x.logger.Error("plan refused", "plan", p.ID(), "step", p.Step, "err", err)
		return
	}
	x.wishes.grant(p)
	x.count("accepted")
	had, _ := x.host.sums(nil)
	x.above.fit(ctx, p)
	x.above.bind(ctx, p, moves, true)
	x.above.lift(ctx)
	x.carryOut(ctx, p, moves)
	x.host.lend(ctx, p)
	x.above.bind(ctx, p, moves, false)
	for i := range o.Results {
		x.metrics.Counter("trimtab_actuator_actions_total", string(o.Results[i].Status)).Inc()
	}
	x.await(p, moves)
	x.host.settleStep(ctx, p, had)
	x.notify()
}

// carryOut makes the reductions, then the raises. Before the first raise it reads all knobs of that
// resource again: writing the journal took time, and another program may have raised one meanwhile.
func (x *executor) carryOut(ctx context.Context, p *trimtab.Plan, moves []*move) {
	grows := map[string]bool{}
	for _, m := range moves {
		if m.shrinks() {
			x.move(ctx, p, m)
		} else {
			grows[m.held.Resource] = true
		}
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
	x.host.askAll(ctx, p, moves)
	for _, m := range moves {
		if !m.shrinks() {
			x.move(ctx, p, m)
		}
	}
}

// prepare reads the knob of each action for this host and checks the action. It returns the moves
// to write; the other actions have their results.
func (x *executor) prepare(ctx context.Context, p *trimtab.Plan, o *trimtab.Outcome) []*move {
	var moves []*move
	o.Results = make([]trimtab.Result, 0, len(p.Actions)) // never reallocated: moves point into it
	for i := range p.Actions {
		action := &p.Actions[i]
		if action.Host != x.config.Host {
			continue
		}
		o.Results = append(o.Results, trimtab.Result{KnobID: action.KnobID, Asked: action.Set})
		m := &move{action: action, result: &o.Results[len(o.Results)-1]}
		if x.judgeAction(ctx, p, m) {
			moves = append(moves, m)
		}
	}
	return x.limit(x.turns(p, allOrNone(moves)))
}

// allOrNone returns all moves, or none if one of them is for a knob in mode recommend that may not
// be written: a plan that a person applies is not carried out in part. Each refused move gets the
// reason.
func allOrNone(moves []*move) []*move {
	i := slices.IndexFunc(moves, func(m *move) bool { return m.held.barred != "" })
	if i < 0 {
		return moves
	}
	for _, m := range moves {
		refuse(m.result, fmt.Sprintf("not applied, for %s: %s", moves[i].held.Workload, moves[i].held.barred))
	}
	return nil
}

// judgeAction sets the result of an action that needs no write, and reports whether it needs one.
func (x *executor) judgeAction(ctx context.Context, p *trimtab.Plan, m *move) bool {
	r, h := m.result, x.knobs.find(m.action.KnobID)
	if h == nil {
		return refuse(r, "unknown target: this host has no such knob")
	}
	m.held = h
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
		r.Reason = fmt.Sprintf("clamped from %v to %v: %s gives no more", m.action.Set, clamped, h.standing.By)
	default:
		r.Reason = fmt.Sprintf("clamped from %v to the bounds %v to %v", m.action.Set, h.Min, h.Max)
	}
	m.goal = h.Knob.Nearest(clamped)
	if least := trimtab.Units(h.least()); h.floor > 0 && m.goal.Less(least) && m.goal.Less(h.now) {
		m.goal = h.now // rounding must not go below the amount in use
	}
	m.envelope = x.lending.enveloped(p, m)
	switch {
	case same(r.Before, m.goal) && m.alike() && !m.recaps():
		r.Status = h.status(trimtab.Equal)
		return false
	case !same(r.Before, h.Knob.Nearest(m.action.Expect)) && !same(r.Before, m.action.Expect):
		return refuse(r, fmt.Sprintf("stale: found %v, the plan expects %v", r.Before, m.action.Expect))
	case !x.fence.paused.IsZero():
		return refuse(r, "paused")
	case m.action.Mode != trimtab.Act || h.Mode == trimtab.Recommend && p.Applies == "":
		r.Status = trimtab.Recommended
		return false
	}
	if why := x.knobs.claim(ctx, h); why != "" {
		if h.Mode == trimtab.Act {
			return refuse(r, why)
		}
		// This affects only the present plan: a knob in mode recommend does not stop other
		// processes.
		h.barred, h.contested = why, ""
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
func (x *executor) commit(p *trimtab.Plan, moves []*move, received time.Duration) error {
	at := position{p.Epoch, p.Sequence, p.Step}
	length := x.config.Limits.lease(p)
	if length < p.Lease {
		x.logger.Warn("lease cut to what this host allows", "plan", p.ID(), "asked", p.Lease, "allowed", length)
	}
	until := lease{Boot: x.clock.id, Until: saturate(received, length.Duration()), Length: length}
	if p.BorrowLease > 0 { // counted from when the plan was made: the lenders do not wait for a late one
		age := max(0, x.clock.wall().Sub(p.Time))
		until.BorrowUntil = max(1, saturate(x.clock.boot(), p.BorrowLease.Duration()-age))
	}
	batch := []hostfs.Entry{put(positionKey, at), put(leaseKey, until)}
	entries := make([]*entry, len(moves))
	for i, m := range moves {
		e := &entry{
			KnobID: m.held.KnobID, ID: m.held.id, Undo: m.held.Knob.Undo(),
			Wrote: []trimtab.Amount{m.held.now, m.goal}, Free: m.span(),
		}
		e.Baseline, e.Rest = m.held.baseline()
		if old := m.held.entry; old != nil {
			e.Baseline, e.Rest = old.Baseline, old.Rest
			if m.held.can.Recall == nil {
				e.Undo = old.Undo
			}
		} else {
			e.Wrote = e.Wrote[1:]
		}
		entries[i] = e
		batch = append(batch, put(e.journalKey(), e))
	}
	if err := x.journal.Append(batch...); err != nil {
		return err
	}
	for i, m := range moves {
		m.held.entry = entries[i]
	}
	x.fence.take(at, until)
	return nil
}

// baseline returns the value that a restore will set for a knob that was not written before, and
// whether that is less than the value found.
func (h *held) baseline() (v trimtab.Amount, rest bool) {
	if h.Rest != nil && h.Rest.Less(h.now) {
		return h.Knob.Nearest(*h.Rest), true
	}
	return h.now, false
}

// saturate adds two durations without overflow.
func saturate(a, b time.Duration) time.Duration {
	if s := a + b; s >= a {
		return s
	}
	return 1<<63 - 1
}

// move carries out one action. A knob that the fast loop has set inside its envelope keeps its
// value.
func (x *executor) move(ctx context.Context, p *trimtab.Plan, m *move) {
	r, h := m.result, m.held
	why, stays := x.overtaken(m), x.lending.stays(m)
	if why == "" && !stays && h.now.Less(m.goal) {
		why = x.lacksRoom(ctx, p, m)
	}
	switch {
	case why != "":
		refuse(r, why)
	case !stays:
		x.write(ctx, p, m)
	default:
		x.lending.enter(m)
		r.Found, r.Known, r.Status = m.goal, true, h.status(trimtab.Written)
		if same(r.Before, m.goal) {
			r.Status = trimtab.Equal
		}
	}
}

// lacksRoom returns why the pool's capacity on this host does not suffice for a raise; "": it does.
func (x *executor) lacksRoom(ctx context.Context, p *trimtab.Plan, m *move) string {
	h := m.held
	if trimtab.ResourceOf(h.Resource).Apart {
		return ""
	}
	capacity := min(p.CapacityOf(h.Resource), x.host.room(h.Resource))
	sum := x.knobs.sumWith(h, m.goal)
	if sum > capacity+slack && x.lending.callIn(h) {
		sum = x.knobs.sumWith(h, m.goal)
	}
	if sum > capacity+slack {
		return fmt.Sprintf("the sum would be %.4g over a capacity of %.4g of %s: what was to be freed is not", sum, capacity, h.Resource)
	}
	why := x.host.ask(ctx, h, m.goal)
	if why != "" {
		x.metrics.Counter("trimtab_actuator_host_refusals_total").Inc()
	}
	return why
}

// write sets the knob once and reads it back.
func (x *executor) write(ctx context.Context, p *trimtab.Plan, m *move) {
	r, h := m.result, m.held
	started := x.clock.boot()
	recaps := m.recaps()
	err := x.above.write(ctx, m)
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
		r.Status, r.Reason = trimtab.Failed, "not read back: "+h.problem
	case !same(h.now, m.goal):
		r.Status, r.Reason = trimtab.Failed, fmt.Sprintf("wrote %v, read back %v", m.goal, h.now)
	case same(r.Before, m.goal) && !recaps:
		x.lending.enter(m)
		r.Status = h.status(trimtab.Equal)
	default:
		x.lending.enter(m)
		r.Status = h.status(trimtab.Written)
	}
	x.logger.Info("action", "plan", p.ID(), "step", p.Step, "workload", h.Workload, "resource", h.Resource,
		"before", r.Before.String(), "set", m.goal.String(), "status", string(r.Status), "reason", r.Reason)
}

// overtaken returns what happened to the lease or the knob since the action was checked that
// forbids the write; "": nothing.
func (x *executor) overtaken(m *move) string {
	h := m.held
	switch {
	case x.fence.left() == 0: // the lease expired while this process was stopped
		return "stale: the lease ran out before the write"
	case h.entry != nil && !m.shrinks() && h.entry.borrows(m.goal) && x.fence.leftBorrowed() == 0:
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

// version returns the version of the value read last; "": the knob has none.
func (h *held) version() string {
	if h.can.Version == nil {
		return ""
	}
	return h.can.Version()
}

// lostRace reports whether a server refused a write because another client wrote first.
func (h *held) lostRace(err error) bool {
	return h.can.remote() && (errors.Is(err, trimtab.ErrStale) || errors.Is(err, os.ErrNotExist))
}

// status returns done, or Pending while the value set is not in force.
func (h *held) status(done trimtab.Status) trimtab.Status {
	if h.effective != nil {
		return trimtab.Pending
	}
	return done
}

// slack is the largest error of a sum from rounding to the knobs' units.
const slack = 1e-3

// counts reports whether the knob shares the capacity: it is in mode act, or trimtab has written
// it.
func (h *held) counts() bool { return h.Mode == trimtab.Act || h.entry != nil }

// takesLeft reports whether the knob has no limit and takes part in sharing by weight: it may use
// what others leave idle. In sums it counts with its least amount.
func (h *held) takesLeft() bool {
	return h.Resource == trimtab.CPU && h.known && h.now.Unlimited && h.effective == nil
}

func (x *executor) count(result string) {
	x.metrics.Counter("trimtab_actuator_plans_total", result).Inc()
}
