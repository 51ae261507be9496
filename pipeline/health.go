package pipeline

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/pause"
	"github.com/trimtab/trimtab/topic"
)

// Work says what a part of the program must do regularly; [Health] checks that it does. The zero
// Work expects nothing regular: the part handles values when they arrive and publishes the results.
type Work struct {
	// Round is the interval in which the part must do its work. A part that has not done it for
	// three rounds, and at least 3 s, is not ready.
	Round time.Duration
	// Every is a kind that the part must publish at least once a round (with a leader's
	// lock: only while it leads). Empty: it may be silent.
	Every trimtab.Kind
	// Answered is true if outcomes must answer the plans of the part. If all of them are
	// refusals, the part is not ready.
	Answered bool
	// Follows is a pool. While a planner leads it, the part must receive its plans and must
	// not refuse all of them. Empty: none.
	Follows string
}

const (
	// leastPatience is the least time a part may fail before it is not ready: with short rounds
	// or on a busy machine three rounds pass quickly.
	leastPatience = 3 * time.Second
	// roundsToFail is the number of rounds that a part may miss before it is not ready.
	roundsToFail = 3
)

// Health records what one part does on the bus and reports whether it works. Its methods are safe
// for concurrent use.
type Health struct {
	work Work
	// unstored returns why the bus cannot store a kind now. It is nil if the bus cannot
	// say.
	unstored func(trimtab.Kind) error

	mu      sync.Mutex
	began   time.Time
	nextID  int
	running map[int]time.Time // handlers and steps that have not returned, with their start
	sends   map[trimtab.Kind]*sending
	deaf    map[int]*deafness
	// turned is the last time that the goroutine which owns the step went through its loop; zero:
	// there is no such loop.
	turned time.Time
	turns  time.Duration // the interval of that loop
	spoke  time.Time     // the last success of Every
	// leads is the epoch, since its beginning. A part without a lock counts as leading since it
	// began.
	locked   bool
	leads    uint64
	since    time.Time
	asked    time.Time // the first plan that was not answered; zero: none
	refusing refusing  // of plans, by others or by this part
	lastPlan time.Time // the last plan that arrived
	leader   beacon
}

// sending is the state of publishing one kind.
type sending struct {
	flight int
	// since is the time of the first attempt after the last success; zero: there is none.
	since  time.Time
	failed time.Time // the last failure after since
	err    error
}

// deafness is a subscription to which nothing can be delivered.
type deafness struct {
	kind  trimtab.Kind
	since time.Time
	err   error
}

// refusing describes refusals without an acceptance between them.
type refusing struct {
	since time.Time
	why   string
}

func (r *refusing) note(now time.Time, why string) {
	switch {
	case why == "":
		*r = refusing{}
	case r.since.IsZero():
		*r = refusing{now, why}
	default:
		r.why = why
	}
}

// NewHealth returns the health of a part that begins its work now.
func NewHealth(w Work) *Health {
	now := time.Now()
	return &Health{work: w, began: now, since: now, running: map[int]time.Time{}, sends: map[trimtab.Kind]*sending{}, deaf: map[int]*deafness{}}
}

// patience returns how long the part may fail before it counts as not ready.
func (h *Health) patience() time.Duration { return max(roundsToFail*h.work.Round, leastPatience) }

// Report calls ready about once a second, with "" or why the part does not
// work, until ctx ends. b is asked who leads the pool that the part follows.
func (h *Health) Report(ctx context.Context, b bus.Bus, ready func(reason string)) {
	ticks := pause.Ticks(ctx, min(time.Second, h.patience()/3))
	for {
		if h.work.Follows != "" {
			h.lookForLeader(ctx, b)
		}
		ready(h.Reason(time.Now()))
		select {
		case <-ctx.Done():
			return
		case <-ticks:
		}
	}
}

// Reason returns "" if the part works. Otherwise it says what the part does not do, since when, and
// what a person can do.
func (h *Health) Reason(now time.Time) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, judge := range []func(time.Time) string{h.cannotSend, h.cannotReceive, h.standsStill, h.isRefused, h.isNotAnswered, h.isSilent, h.receivesNoPlans} {
		if why := judge(now); why != "" {
			return why
		}
	}
	return ""
}

// long reports whether since is set and at least patience ago.
func (h *Health) long(now, since time.Time) bool {
	return !since.IsZero() && now.Sub(since) >= h.patience()
}

// at prints a time for a person and for a log.
func at(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }

func (h *Health) cannotSend(now time.Time) string {
	for _, info := range topic.All() {
		s := h.sends[info.Kind]
		// If the part has not tried lately, its old failures say nothing about the bus now.
		if s == nil || !h.long(now, s.since) || s.flight == 0 && now.Sub(s.failed) > 2*h.patience() {
			continue
		}
		why := "the bus does not answer"
		if h.unstored != nil && h.unstored(info.Kind) != nil {
			why = h.unstored(info.Kind).Error() // the present attempt
		} else if s.err != nil {
			why = s.err.Error()
		}
		do := "check the NATS server; if its disk was full, make room and restart it (trimtab itself, without nats.url)"
		if info.Delivery == topic.Answered {
			do = "check that an analyzer runs and is ready"
		}
		return fmt.Sprintf("could publish no %s since %s: %s; %s", info.Kind, at(s.since), why, do)
	}
	return ""
}

func (h *Health) cannotReceive(now time.Time) string {
	var worst *deafness
	for _, d := range h.deaf {
		if h.long(now, d.since) && (worst == nil || d.since.Before(worst.since) || d.since.Equal(worst.since) && d.kind < worst.kind) {
			worst = d
		}
	}
	if worst == nil {
		return ""
	}
	return fmt.Sprintf("can receive no %s since %s: %v; check that the NATS server is up and that this process may read its streams", worst.kind, at(worst.since), worst.err)
}

func (h *Health) standsStill(now time.Time) string {
	var first time.Time
	for _, began := range h.running {
		if first.IsZero() || began.Before(first) {
			first = began
		}
	}
	if !h.long(now, first) {
		first = h.turned
		if h.turns == 0 || now.Sub(first) < max(h.patience(), roundsToFail*h.turns) {
			return ""
		}
	}
	return fmt.Sprintf("stands still since %s; keep what `trimtab debug bundle` collects, then restart this process", at(first))
}

func (h *Health) isRefused(now time.Time) string {
	if !h.long(now, h.refusing.since) {
		return ""
	}
	if h.work.Follows != "" {
		return fmt.Sprintf("refused every plan since %s: %s; make room if it is the disk of the journal, else find the planner that sends such plans", at(h.refusing.since), h.refusing.why)
	}
	return fmt.Sprintf("every plan was refused since %s: %s; if another leader acts for this pool, stop one of the two, else see the actuators' logs", at(h.refusing.since), h.refusing.why)
}

func (h *Health) isNotAnswered(now time.Time) string {
	if !h.work.Answered || !h.long(now, h.asked) {
		return ""
	}
	return fmt.Sprintf("no actuator answered its plans since %s; check that actuators run, are ready, and reach the same NATS server", at(h.asked))
}

func (h *Health) isSilent(now time.Time) string {
	if h.work.Every == "" || h.locked && h.leads == 0 {
		return ""
	}
	last := h.since
	if h.spoke.After(last) {
		last = h.spoke
	}
	if !h.long(now, last) {
		return ""
	}
	return fmt.Sprintf("published no %s since %s; see its log lines, then restart this process", h.work.Every, at(last))
}

func (h *Health) receivesNoPlans(now time.Time) string {
	if h.work.Follows == "" || h.leader.since.IsZero() {
		return ""
	}
	last := h.leader.since
	for _, t := range []time.Time{h.lastPlan, h.began} {
		if t.After(last) {
			last = t
		}
	}
	if !h.long(now, last) {
		return ""
	}
	return fmt.Sprintf("received no plan since %s although %s leads pool %s; if that planner is ready, restart this process", at(last), h.leader.holder, h.work.Follows)
}

// begin records that a handler or a step was called.
func (h *Health) begin(now time.Time) (id int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.nextID++
	h.running[h.nextID] = now
	return h.nextID
}

// end records that the call with this id returned.
func (h *Health) end(id int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.running, id)
}

// turn records that the goroutine that owns the step completed a loop, which it should do once per
// every.
func (h *Health) turn(now time.Time, every time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turned, h.turns = now, every
}

// lead records the epoch in which a part leads, 0: it does not lead.
func (h *Health) lead(now time.Time, epoch uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.locked && h.leads == epoch {
		return
	}
	// Plans of an earlier epoch need no answer. Refusals are counted across epochs: a
	// planner that every host refuses may take one new epoch after the other.
	h.locked, h.leads, h.since, h.asked = true, epoch, now, time.Time{}
	if epoch == 0 {
		h.refusing = refusing{}
	}
}

// sending records that Publish was called.
func (h *Health) sending(now time.Time, k trimtab.Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sends[k]
	if s == nil {
		s = &sending{}
		h.sends[k] = s
	}
	s.flight++
	if s.since.IsZero() {
		s.since = now
	}
}

// sent records the result of a call of Publish.
func (h *Health) sent(now time.Time, v trimtab.Value, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.sends[v.Kind()]
	s.flight--
	switch {
	case err == nil, errors.Is(err, trimtab.ErrInvalid):
		// The bus works; a value that is not valid is another fault.
		s.since, s.failed, s.err = time.Time{}, time.Time{}, nil
		if s.flight > 0 {
			s.since = now
		}
	case errors.Is(err, context.Canceled):
		if s.flight == 0 && s.failed.IsZero() {
			s.since = time.Time{}
		}
	default:
		s.failed, s.err = now, err
	}
	if err != nil {
		return
	}
	if v.Kind() == h.work.Every {
		h.spoke = now
	}
	switch v := v.(type) {
	case *trimtab.Plan:
		if h.work.Answered && h.asked.IsZero() {
			h.asked = now
		}
	case *trimtab.Outcome:
		if h.work.Follows != "" {
			h.refusing.note(now, v.Refused)
		}
	}
}

// got records a value that is about to be handled.
func (h *Health) got(now time.Time, v trimtab.Value) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch v := v.(type) {
	case *trimtab.Plan:
		h.lastPlan = now
	case *trimtab.Outcome:
		if !h.work.Answered || h.leads == 0 || v.Epoch != h.leads {
			return
		}
		h.asked = time.Time{}
		h.refusing.note(now, v.Refused)
	}
}

// trouble records that a subscription receives nothing; nil: it does receive.
func (h *Health) trouble(now time.Time, id int, k trimtab.Kind, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d := h.deaf[id]
	switch {
	case err == nil:
		delete(h.deaf, id)
	case d == nil:
		h.deaf[id] = &deafness{k, now, err}
	default:
		d.err = err
	}
}

// Bus wraps b so that everything the part does on it is noted. Call it once, before the
// part begins, and give the part the result.
func (h *Health) Bus(b bus.Bus) bus.Bus {
	if u, ok := b.(interface{ Unstored(trimtab.Kind) error }); ok {
		h.unstored = u.Unstored
	}
	return &notedBus{b, h}
}

// notedBus records what passes through it.
type notedBus struct {
	bus.Bus
	health *Health
}

// Publish publishes, and records whether that works.
func (n *notedBus) Publish(ctx context.Context, v trimtab.Value) error {
	n.health.sending(time.Now(), v.Kind())
	err := n.Bus.Publish(ctx, v)
	n.health.sent(time.Now(), v, err)
	return err
}

// Subscribe subscribes, and records deliveries and whether handlers return.
func (n *notedBus) Subscribe(ctx context.Context, s bus.Subscription) (func(), error) {
	h := n.health
	h.mu.Lock()
	h.nextID++
	id := h.nextID
	h.mu.Unlock()
	handle, kind, told := s.Handle, s.Kind, s.Trouble
	s.Trouble = func(err error) {
		h.trouble(time.Now(), id, kind, err)
		if told != nil {
			told(err)
		}
	}
	if handle != nil {
		s.Handle = func(ctx context.Context, d bus.Delivery) error {
			now := time.Now()
			h.got(now, d.Value)
			defer h.end(h.begin(now))
			return handle(ctx, d)
		}
	}
	stop, err := n.Bus.Subscribe(ctx, s)
	if err != nil {
		return nil, err
	}
	return func() { stop(); h.trouble(time.Now(), id, kind, nil) }, nil
}
