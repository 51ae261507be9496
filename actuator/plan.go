package actuator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// move is one action on its way.
type move struct {
	action *trimtab.Action
	held   *held
	result *trimtab.Result
	goal   trimtab.Amount
	// had is what the knob was set to when the action was judged, envelope what it may be
	// moved within from now on; nil: nothing.
	had      trimtab.Amount
	envelope *trimtab.Envelope
	// version is the knob's version at that time, if it is [Versioned].
	version string
}

// shrinks reports whether the write lowers what is set.
func (m *move) shrinks() bool { return m.goal.Less(m.had) }

// Handle carries out one step of a plan and returns what became of it. The
// same step again gets the same answer without a second effect. A plan that is
// refused as a whole changes nothing, the lease included.
func (a *Actuator) Handle(ctx context.Context, p *trimtab.Plan) *trimtab.Outcome {
	a.mu.Lock()
	defer a.mu.Unlock()
	received := a.clock.boot()
	o := &trimtab.Outcome{
		Pool: p.Pool, Host: a.config.Host, Epoch: p.Epoch, Sequence: p.Sequence, Step: p.Step,
		Time: a.clock.wall(),
	}
	at := position{p.Epoch, p.Sequence, p.Step}
	kind, why := a.refuse(p, at)
	if earlier := a.earlier(at); earlier != nil {
		if alike(earlier.plan, p) {
			a.count("repeated")
			return earlier.outcome
		}
		kind, why = "stale", fmt.Sprintf(trimtab.Overtaken+"another plan %s step %d was accepted: two planners lead in one epoch, or one of the plans was forged", p.ID(), p.Step)
	}
	if why != "" {
		a.count(kind)
		o.Refused = why
		a.logger.Warn("plan refused", "plan", p.ID(), "step", p.Step, "reason", why)
		return o
	}
	a.execute(ctx, p, o, received)
	if o.Refused == "" {
		a.outcomes[p.Step] = &answer{p, o}
	}
	o.Took = trimtab.SecondsOf(max(0, a.clock.boot()-received))
	return o
}

// answer is what a step was answered, with the step, so that another one of the
// same name is told from a repetition.
type answer struct {
	plan    *trimtab.Plan
	outcome *trimtab.Outcome
}

// alike reports whether two steps say the same.
func alike(p, q *trimtab.Plan) bool {
	a, err := json.Marshal(p)
	b, bad := json.Marshal(q)
	return err == nil && bad == nil && bytes.Equal(a, b) // one with no number in it is invalid
}

// earlier returns the answer that a step of this name got before.
func (a *Actuator) earlier(at position) *answer {
	if at.Epoch != a.position.Epoch || at.Sequence != a.position.Sequence {
		return nil
	}
	return a.outcomes[at.Step]
}

// refuse says why the plan as a whole must not be carried out, or "".
func (a *Actuator) refuse(p *trimtab.Plan, at position) (kind, why string) {
	if err := p.Validate(); err != nil {
		return "invalid", err.Error()
	}
	switch {
	case a.closed:
		return "refused", "the actuator is stopping"
	case p.Pool != a.config.Pool:
		return "refused", fmt.Sprintf("plan is for pool %s, this host serves %s", p.Pool, a.config.Pool)
	case !trimtab.PlausibleEpoch(at.Epoch, a.clock.wall()):
		return "refused", fmt.Sprintf("epoch %d: no pool can have had so many leaders: it was made up, or this host's clock is wrong", at.Epoch)
	case !trimtab.PlausibleEpoch(a.position.Epoch, a.clock.wall()):
		// What was accepted was made up, when this clock was ahead: it must not
		// lock out those who lead.
	case at.Epoch < a.position.Epoch:
		return "stale", fmt.Sprintf(trimtab.Overtaken+"epoch %d, a leader of epoch %d was accepted", at.Epoch, a.position.Epoch)
	case at.compare(a.position) < 0:
		return "stale", fmt.Sprintf(trimtab.Overtaken+"plan %s step %d, %s step %d was accepted",
			p.ID(), p.Step, trimtab.PlanID(a.position.Epoch, a.position.Sequence), a.position.Step)
	}
	lease, skew := a.config.Limits.lease(p).Duration(), a.config.Limits.Skew
	switch age := a.clock.wall().Sub(p.Time); {
	case age >= lease:
		return "expired", fmt.Sprintf("expired: made %v ago with a lease of %v", age.Round(time.Millisecond), lease)
	case age < -skew:
		return "refused", fmt.Sprintf("from the future: dated %v, this host's clock may be %v behind: check the clocks", p.Time.UTC().Format(time.RFC3339), skew)
	}
	return "refused", a.unwished(p)
}

// execute accepts the step: journal first, then shrinks, then grows.
func (a *Actuator) execute(ctx context.Context, p *trimtab.Plan, o *trimtab.Outcome, received time.Duration) {
	o.Results = make([]trimtab.Result, 0, len(p.Actions))
	a.fast.whole = a.whole(p)
	moves := append(a.prepare(ctx, p, o), a.prepareEnvelopes(ctx, p)...)
	a.fast.lendable = 0 // what was to be lent is room for this plan; see lend
	if err := a.commit(p, moves, received); err != nil {
		a.count("refused")
		a.metrics.Counter("trimtab_actuator_journal_errors_total").Inc()
		o.Refused, o.Results = fmt.Sprintf("%v: nothing is written without the journal", err), nil
		a.logger.Error("plan refused", "plan", p.ID(), "step", p.Step, "err", err)
		return
	}
	a.count("accepted")
	had, _ := a.sums(nil)
	a.fit(ctx, p)
	a.bind(ctx, p, moves, true)
	a.lift(ctx)
	a.carryOut(ctx, p, moves)
	a.lend(ctx, p)
	a.bind(ctx, p, moves, false)
	for i := range o.Results {
		a.metrics.Counter("trimtab_actuator_actions_total", string(o.Results[i].Status)).Inc()
	}
	a.await(p, moves)
	a.settleStep(ctx, p, had)
	a.notify()
}

// carryOut makes the shrinks, then the grows. Before the first grow all knobs that count
// for a resource that grows are read again: the journal took its time, and what somebody
// else raised meanwhile is no longer free.
func (a *Actuator) carryOut(ctx context.Context, p *trimtab.Plan, moves []*move) {
	grows := map[string]bool{}
	for _, m := range moves {
		if m.shrinks() {
			a.move(ctx, p, m)
		} else {
			grows[m.held.Resource] = true
		}
	}
	if len(grows) == 0 {
		return
	}
	a.seekLive(ctx)
	look := hostfs.Look(ctx)
	for _, h := range a.knobs {
		if h.counts() && grows[h.Resource] {
			a.observe(look, h)
		}
	}
	a.askAll(ctx, p, moves)
	for _, m := range moves {
		if !m.shrinks() {
			a.move(ctx, p, m)
		}
	}
}

// prepare judges each action of this host, on a knob that is read anew. What it
// returns is to be written; the other actions have their result already.
func (a *Actuator) prepare(ctx context.Context, p *trimtab.Plan, o *trimtab.Outcome) []*move {
	var moves []*move
	for i := range p.Actions {
		if p.Actions[i].Host == a.config.Host {
			o.Results = append(o.Results, trimtab.Result{
				KnobID: p.Actions[i].KnobID, Asked: p.Actions[i].Set,
			})
		}
	}
	next := 0
	for i := range p.Actions {
		if p.Actions[i].Host != a.config.Host {
			continue
		}
		m := &move{action: &p.Actions[i], result: &o.Results[next]}
		next++
		if a.judgeAction(ctx, p, m) {
			moves = append(moves, m)
		}
	}
	return a.limit(a.turns(p, whole(moves)))
}

// whole returns the moves, or none of them, each with the reason, when one is
// of a recommending knob that may not be written: what a person applies is not
// done by halves.
func whole(moves []*move) []*move {
	i := slices.IndexFunc(moves, func(m *move) bool { return m.held.barred != "" })
	if i < 0 {
		return moves
	}
	for _, m := range moves {
		refuse(m.result, fmt.Sprintf("not applied, for %s: %s", moves[i].held.Workload, moves[i].held.barred))
	}
	return nil
}

// judgeAction fills the result of an action that needs no write, and reports
// whether it needs one.
func (a *Actuator) judgeAction(ctx context.Context, p *trimtab.Plan, m *move) bool {
	r, h := m.result, a.find(m.action.KnobID)
	if h == nil {
		return refuse(r, "unknown target: this host has no such knob")
	}
	m.held = h
	if h.Mode != trimtab.Off {
		a.observe(ctx, h)
	}
	r.Before, r.Found, r.Effective, r.Known = h.resting(), h.resting(), h.effective, h.known
	m.had, m.version = h.now, versionOf(h.Knob)
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
		m.goal = h.now // rounding would go below what is in use
	}
	m.envelope = a.enveloped(p, m)
	switch {
	case same(r.Before, m.goal) && m.alike() && !m.recaps():
		r.Status = h.status(trimtab.Equal)
		return false
	case !same(r.Before, h.Knob.Nearest(m.action.Expect)) && !same(r.Before, m.action.Expect):
		return refuse(r, fmt.Sprintf("stale: found %v, the plan expects %v", r.Before, m.action.Expect))
	case !a.paused.IsZero():
		return refuse(r, "paused")
	case m.action.Mode != trimtab.Act || h.Mode == trimtab.Recommend && p.Applies == "":
		r.Status = trimtab.Recommended
		return false
	}
	if why := a.claim(ctx, h); why != "" {
		if h.Mode == trimtab.Act {
			return refuse(r, why)
		}
		// Of this plan alone: who only recommends is in nobody's way.
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

// commit makes durable, in one go: the plan's position, its lease, and for
// each move the baseline and what is about to be written.
func (a *Actuator) commit(p *trimtab.Plan, moves []*move, received time.Duration) error {
	at := position{p.Epoch, p.Sequence, p.Step}
	length := a.config.Limits.lease(p)
	if length < p.Lease {
		a.logger.Warn("lease cut to what this host allows", "plan", p.ID(), "asked", p.Lease, "allowed", length)
	}
	until := lease{Boot: a.clock.id, Until: saturate(received, length.Duration()), Length: length}
	if p.BorrowLease > 0 { // from when the plan was made: those who lend do not wait for one that came late
		age := max(0, a.clock.wall().Sub(p.Time))
		until.BorrowUntil = max(1, saturate(a.clock.boot(), p.BorrowLease.Duration()-age))
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
			if _, ok := m.held.Knob.(Recaller); !ok {
				e.Undo = old.Undo
			}
		} else {
			e.Wrote = e.Wrote[1:]
		}
		entries[i] = e
		batch = append(batch, put(e.journalKey(), e))
	}
	if err := a.journal.Append(batch...); err != nil {
		return err
	}
	for i, m := range moves {
		m.held.entry = entries[i]
	}
	if at.Epoch != a.position.Epoch || at.Sequence != a.position.Sequence {
		clear(a.outcomes)
	}
	a.position, a.lease, a.expired, a.returned = at, until, false, false
	a.grant(p)
	return nil
}

// baseline is what a restore is to set of a knob that was not written before, and
// whether that is less than what was found.
func (h *held) baseline() (v trimtab.Amount, rest bool) {
	if h.Rest != nil && h.Rest.Less(h.now) {
		return h.Knob.Nearest(*h.Rest), true
	}
	return h.now, false
}

// saturate adds without overflow.
func saturate(a, b time.Duration) time.Duration {
	if s := a + b; s >= a {
		return s
	}
	return 1<<63 - 1
}

// move makes the one write and reads back.
func (a *Actuator) move(ctx context.Context, p *trimtab.Plan, m *move) {
	r, h := m.result, m.held
	if a.lease.left(a.clock.id, a.clock.boot()) == 0 {
		// This process was stopped in between, and the plan is history.
		refuse(r, "stale: the lease ran out before the write")
		return
	}
	if e := h.entry; e != nil && !m.shrinks() && e.borrows(m.goal) && a.lease.borrowed().left(a.clock.id, a.clock.boot()) == 0 {
		refuse(r, "stale: what was to be borrowed for this is to be given back by now")
		return
	}
	if why := a.overtaken(m); why != "" {
		refuse(r, why)
		return
	}
	if a.stays(m) {
		a.enter(m)
		r.Found, r.Known, r.Status = m.goal, true, h.status(trimtab.Written)
		if same(r.Before, m.goal) {
			r.Status = trimtab.Equal
		}
		return
	}
	if h.now.Less(m.goal) {
		capacity := min(p.CapacityOf(h.Resource), a.room(h.Resource))
		sum := a.sumWith(h, m.goal)
		if sum > capacity+slack && a.callIn(h) {
			sum = a.sumWith(h, m.goal)
		}
		if sum > capacity+slack {
			refuse(r, fmt.Sprintf("the sum would be %.4g over a capacity of %.4g of %s: what was to be freed is not", sum, capacity, h.Resource))
			return
		}
		if why := a.ask(ctx, h, m.goal); why != "" {
			a.metrics.Counter("trimtab_actuator_host_refusals_total").Inc()
			refuse(r, why)
			return
		}
	}
	started := a.clock.boot()
	recaps := m.recaps()
	err := a.set(ctx, m)
	h.written = whereIs(h.Knob)
	read := a.observe(ctx, h)
	a.metrics.Histogram("trimtab_actuator_write_seconds").Observe((a.clock.boot() - started).Seconds())
	r.Found, r.Effective, r.Known = h.now, h.effective, read
	switch {
	case lostRace(h.Knob, err):
		r.Status, r.Reason = trimtab.Refused, "stale: "+err.Error()
	case err != nil:
		r.Status, r.Reason = trimtab.Failed, err.Error()
	case !read:
		r.Status, r.Reason = trimtab.Failed, "not read back: "+h.problem
	case !same(h.now, m.goal):
		r.Status, r.Reason = trimtab.Failed, fmt.Sprintf("wrote %v, read back %v", m.goal, h.now)
	case same(r.Before, m.goal) && !recaps:
		a.enter(m)
		r.Status = h.status(trimtab.Equal)
	default:
		a.enter(m)
		r.Status = h.status(trimtab.Written)
	}
	a.logger.Info("action", "plan", p.ID(), "step", p.Step, "workload", h.Workload, "resource", h.Resource,
		"before", r.Before.String(), "set", m.goal.String(), "status", string(r.Status), "reason", r.Reason)
}

// overtaken says what happened to the knob since the action was judged, or "".
func (a *Actuator) overtaken(m *move) string {
	h := m.held
	switch {
	case h.finder != nil && a.find(h.KnobID) != h:
		return "gone: the instance ended while the plan was carried out"
	case !same(h.now, m.had) && !(h.moves() && h.entry.free(h.now)):
		return fmt.Sprintf("stale: somebody else set %v while the plan was carried out", h.now)
	case versionOf(h.Knob) != m.version:
		return "stale: somebody else changed it while the plan was carried out, and set the same again"
	}
	return ""
}

// versionOf is the version of what was read of a knob; "" where it has none.
func versionOf(k Knob) string {
	if v, ok := k.(Versioned); ok {
		return v.Version()
	}
	return ""
}

// lostRace reports whether a server refused a write because of another one before it.
func lostRace(k Knob, err error) bool {
	_, remote := k.(Remote)
	return remote && (errors.Is(err, trimtab.ErrStale) || errors.Is(err, os.ErrNotExist))
}

// status is the one given, or Pending while what the knob is set to is not in
// force.
func (h *held) status(done trimtab.Status) trimtab.Status {
	if h.effective != nil {
		return trimtab.Pending
	}
	return done
}

// slack is what rounding to the knobs' quanta may add to a sum.
const slack = 1e-3

// counts reports whether the knob is one of those that share the capacity: it
// may act, or trimtab has written it.
func (h *held) counts() bool { return h.Mode == trimtab.Act || h.entry != nil }

// takesLeft reports whether nothing limits the CPU time of a knob: it may use what others leave
// idle, and the kernel gives each its part by weight. It counts as its least.
func (h *held) takesLeft() bool {
	return h.Resource == trimtab.CPU && h.known && h.now.Unlimited && h.effective == nil
}

// sumWith returns the sum over the targets that count, with h at v.
func (a *Actuator) sumWith(h *held, v trimtab.Amount) float64 {
	sum := 0.0
	for _, k := range a.knobs {
		switch {
		case k == h:
			sum += k.atMost(v)
		case !k.counts() || k.Resource != h.Resource:
		case !k.known:
			sum += k.Max
		case k.takesLeft():
			sum += k.Min
		default:
			sum += k.atMost(k.now)
		}
	}
	return sum
}

func (a *Actuator) count(result string) {
	a.metrics.Counter("trimtab_actuator_plans_total", result).Inc()
}
