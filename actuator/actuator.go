package actuator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
)

// lockWait is how long Open waits for a watchdog that is just restoring.
const lockWait = 3 * time.Second

// Actuator holds the knobs of one host for one pool. Its methods are safe for
// concurrent use; plans, commands and ticks take turns.
type Actuator struct {
	config Config
	clock  clock
	// life tells this actuator from others that say they are the same host.
	life    uint64
	logger  *slog.Logger
	metrics *metric.Set
	lock    *hostfs.Lock
	// presence is held beside lock by actuators alone: a watchdog that restores
	// takes only lock.
	presence *hostfs.Lock
	// changed has room for one: the news that the holding changed.
	changed chan struct{}

	mu      sync.Mutex
	journal Journal
	// knobs are those declared and those found, in order of name.
	knobs   []*held
	finders []*finder
	// orphans are entries of the journal that have no knob, and whose turn to be restored
	// has not come.
	orphans []*entry
	// released are the workloads that a person let go of.
	released map[string]bool
	// capacity is what the pool may give out of this host, as measured last;
	// unmeasured is what could not be, measureAgain when it is tried again.
	capacity     map[string]float64
	unmeasured   string
	measureAgain time.Duration
	// host is what other pools of this host leave; nil: this process believes to be
	// the only one.
	host     *host
	position position
	lease    lease
	// returned is set once what was borrowed was to go back, until the next lease.
	returned bool
	// expired is set once the lease ran out, until the next one; unrestored counts the
	// baselines whose turn to come back then has not come.
	expired    bool
	unrestored int
	// paused is when the pause in force was asked for; zero: not paused.
	paused time.Time
	// outcomes answer repeated deliveries of the plan at position, by step.
	outcomes map[int]*answer
	// wished are the plans that a person asked to apply; heard has room for one:
	// the news that there is another.
	wished map[string]wish
	heard  chan struct{}
	// waitAgain is when a plan may wait for its wish again.
	waitAgain time.Duration
	// unfinished is the plan whose next step is awaited.
	unfinished *unfinished
	closed     bool
	// unlowered: the last restore failed, as all since unloweredAt did.
	unlowered   bool
	unloweredAt time.Duration
	watchdog    *guarded
	fast        fast
	// parent is the group above those of the pool; nil: none is declared. parentWhy is why it
	// does not bound them, parentDo what to do about it; "": it does.
	parent              *held
	parentWhy, parentDo string
	paced               paced
}

// clock is the two clocks in use, so that tests can make them jump.
type clock struct {
	wall func() time.Time
	boot func() time.Duration
	// id names the boot that boot counts in.
	id string
}

// held is one knob with what is known of it.
type held struct {
	Target
	// named is Knob.String(), unit that of a [Unified] knob.
	named, unit string
	// mark is that of a [Marked] knob when it was looked at last, lookAgain when it is looked
	// at again all the same.
	mark      Mark
	lookAgain time.Duration
	// finder found it, as an instance with that ID; nil: it is declared.
	finder *finder
	id     uint64
	// entry is the journal's; nil: never written, or restored since.
	entry *entry
	// now was read last, at first seen as it is since; known is false while
	// it was never read.
	now   trimtab.Amount
	since time.Time
	known bool
	// gone: the limit did not exist at the last attempt to read it.
	gone bool
	// effective is the value in force where that is not the value set, now; nil: they are
	// the same.
	effective *trimtab.Amount
	// peaks are recent values above every later one, the oldest and highest first.
	peaks []peak
	// lowered is when a plan last lowered it, on the boot clock, or never.
	lowered time.Duration
	// floor is what a [Floored] knob must keep, 0 for others.
	floor float64
	// lock is not nil while this process may set the knob; contested is the reason why it
	// may not.
	lock      *hostfs.Lock
	contested string
	// written is the file that was written last. A group that is made again has another
	// file.
	written os.FileInfo
	// envelope is what the fast loop may move the knob within; nil: it stays. account is
	// what the loop told of it, fastOff why an envelope was not taken.
	envelope *trimtab.Envelope
	account  *trimtab.Fast
	fastOff  string
	// problem is why the knob cannot be used now; foreign marks the problem
	// that somebody else changed it.
	problem  string
	foreign  bool
	released bool
	// touched is what is kept of the last time that somebody else turned a [Remote] knob;
	// nil: nobody did, for an hour.
	touched *touched
	// hopeless is why a [Remote] knob was put back, until a time of the boot clock.
	hopeless      string
	hopelessUntil time.Duration
	// standing is what a [Stander] knows of its instance, and of what is above it.
	standing *trimtab.Standing
	// barred is why a write would be refused, of a knob that only recommends:
	// no problem before somebody wants to apply.
	barred string
}

// Open takes the directory's lock, reads the journal and every knob. Baselines
// of targets that are no longer declared, and all of them when the lease ran
// out meanwhile, are restored before it returns. A knob that does not work is
// no error: it is reported with its problem, and plans for it are refused.
func Open(ctx context.Context, c Config) (*Actuator, error) {
	id, err := hostfs.BootID()
	if err != nil {
		return nil, fmt.Errorf("open actuator: %w", err)
	}
	return open(ctx, c, clock{wall: wall, boot: hostfs.BootTime, id: id})
}

// wall is the time as it is after it travelled: in UTC, without a monotonic reading.
func wall() time.Time { return time.Now().Round(0).UTC() }

func open(ctx context.Context, c Config, k clock) (*Actuator, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("open actuator: %w", err)
	}
	a := &Actuator{
		config: c, clock: k, logger: c.Logger, metrics: c.Metrics,
		changed: make(chan struct{}, 1), outcomes: map[int]*answer{},
		wished: map[string]wish{}, heard: make(chan struct{}, 1), measureAgain: never,
		life: uint64(max(0, k.wall().UnixMicro())),
	}
	a.config.Limits.fill()
	if a.logger == nil {
		a.logger = slog.New(slog.DiscardHandler)
	}
	if a.metrics == nil {
		a.metrics = metric.NewSet()
	}
	if a.config.Heartbeat <= 0 {
		a.config.Heartbeat = DefaultHeartbeat
	}
	if a.config.MaxKnobs <= 0 {
		a.config.MaxKnobs = MaxKnobs
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open actuator: %w", err)
	}
	var err error
	if a.config.Dir, err = filepath.Abs(c.Dir); err != nil {
		return nil, fmt.Errorf("open actuator: %w", err)
	}
	if a.lock, err = hostfs.TakeLock(ctx, c.Dir, lockWait); err != nil {
		return nil, fmt.Errorf("open actuator: %w", err)
	}
	if a.presence, err = hostfs.TakeFile(ctx, presencePath(c.Dir), lockWait); err != nil {
		a.lock.Close()
		return nil, fmt.Errorf("open actuator: %w", err)
	}
	for _, l := range []*hostfs.Lock{a.lock, a.presence} {
		if aside := l.Aside(); aside != "" {
			a.logger.Warn("something else was in place of a lock file and was renamed: it is of no use to trimtab", "file", aside)
		}
	}
	if a.config.JournalSize == 0 && len(c.Finders) > 0 {
		a.config.JournalSize = 4 * hostfs.DefaultJournalSize // for MaxKnobs, and as many in one plan
	}
	if a.journal, err = a.openJournal(ctx); err != nil {
		return nil, fmt.Errorf("open actuator: %w", errors.Join(err, a.presence.Close(), a.lock.Close()))
	}
	_ = a.presence.SetContent([]byte("there is a journal\n")) // see readHeld, which does without
	a.host = a.openHost()
	a.start(ctx)
	a.watchdog = a.guard()
	return a, nil
}

// start takes over what the journal says.
func (a *Actuator) start(ctx context.Context) {
	s := readState(journalState(a.journal))
	if n := a.journal.Damaged() + s.unreadable; n > 0 {
		a.metrics.Counter("trimtab_actuator_journal_damaged_total").Add(float64(n))
		a.tellDamage(n, len(s.entries))
	}
	a.position, a.lease, a.paused, a.released = s.position, s.lease, s.paused, s.released
	for _, t := range a.config.Targets {
		t.KnobID = a.config.here(t.KnobID)
		h := newHeld(t)
		h.released = s.released[t.Workload]
		a.insert(h)
	}
	a.fast.looked = never
	a.openParent(ctx)
	for _, f := range a.config.Finders {
		a.finders = append(a.finders, &finder{Finder: f, there: map[string]uint64{}})
	}
	a.seek(ctx)
	a.measure()
	a.orphans = a.adopt(s.entries)
	a.remember(s.touched)
	if a.config.LockDir != "" {
		// For a restore from the journal alone.
		if err := a.journal.Append(put(locksKey, a.config.LockDir)); err != nil {
			a.logger.Error("journal the directory of locks", "err", err)
		}
	}
	for _, h := range a.knobs {
		if h.Mode == trimtab.Act {
			a.claim(ctx, h)
		}
	}
	a.restoreOrphans(ctx)
	for _, h := range a.knobs {
		if h.Mode == trimtab.Act {
			a.claim(ctx, h) // what waited for an orphan
		}
		a.probe(ctx, h)
	}
	a.expire(ctx)
	a.endLoans(ctx)
	a.arbitrate(ctx)
}

// adopt gives the journal's entries to their knobs, and returns those that have
// none. An instance that came again under its name has nothing to restore.
func (a *Actuator) adopt(entries []*entry) (orphans []*entry) {
	var gone []hostfs.Entry
	for _, e := range entries {
		h := a.heldOf(a.config.here(e.KnobID))
		switch {
		case h != nil && h.id != e.ID && e.ID != 0:
			gone = append(gone, hostfs.Entry{Key: e.journalKey()})
		case h != nil && h.Mode == trimtab.Act && takesOver(h.Knob, e.Undo):
			h.entry = e.scaled(h.Knob)
			a.recallUndo(h, e.Undo)
		default:
			orphans = append(orphans, e)
		}
	}
	a.drop(gone)
	return orphans
}

// takesOver reports whether what was written by the knob that undo describes is what this one
// writes.
func takesOver(k Knob, undo []byte) bool {
	h, ok := k.(Heir)
	return !ok || h.TakesOver(undo)
}

func journalState(j Journal) (map[string][]byte, []string) {
	keys := j.Keys("")
	state := make(map[string][]byte, len(keys))
	for _, k := range keys {
		state[k], _ = j.Get(k)
	}
	return state, keys
}

// probe looks whether the knob works and what it holds.
func (a *Actuator) probe(ctx context.Context, h *held) {
	err := h.Knob.Probe(ctx)
	if err == nil && h.Mode == trimtab.Act {
		if err = h.Knob.MayWrite(ctx); errors.Is(err, ErrBarred) {
			err = nil // see observeBar
		}
	}
	if err == nil && a.clock.boot() < h.hopelessUntil {
		err = errors.New(h.hopeless)
	}
	// One problem at a time, so that it is told once and not in turns: what
	// cannot be read, then who else turned it, then what the probe found.
	switch {
	case !a.observe(ctx, h) || h.foreign:
	case err != nil:
		a.setProblem(h, err.Error())
	default:
		a.setProblem(h, notInForce(h.Knob))
	}
}

// observe reads the knob and notes a change. It reports whether the knob
// could be read.
func (a *Actuator) observe(ctx context.Context, h *held) bool {
	v, err := h.Knob.Read(ctx)
	h.gone = errors.Is(err, os.ErrNotExist)
	if err == nil {
		err = v.Validate()
	}
	var effective *trimtab.Amount
	if err == nil {
		effective, err = effectiveOf(ctx, h.Knob, v)
	}
	if err != nil {
		a.setProblem(h, err.Error())
		return false
	}
	before := h.now
	if !h.known || !same(v, h.now) || (effective == nil) != (h.effective == nil) || effective != nil && !same(*effective, *h.effective) {
		if h.known && !h.moves() { // loans are outside the memory of falls
			h.remember(h.amount(), a.clock.boot())
		}
		h.now, h.effective, h.since, h.known = v, effective, a.clock.wall(), true
		a.notify()
	}
	h.observeFloor(ctx)
	a.observeStanding(ctx, h)
	a.judge(h, before)
	if why := notInForce(h.Knob); why != "" && !h.foreign {
		a.setProblem(h, why)
	}
	a.observeBar(ctx, h)
	return true
}

// effectiveOf returns what is in force of a knob that is set to v; nil: v is.
func effectiveOf(ctx context.Context, k Knob, v trimtab.Amount) (*trimtab.Amount, error) {
	d, ok := k.(Delayed)
	if !ok {
		return nil, nil
	}
	e, err := d.Effective(ctx)
	if err == nil {
		err = e.Validate()
	}
	if err != nil || same(e, v) {
		return nil, err
	}
	return &e, nil
}

// observeBar notes whether a plan of the knob could be applied: of a recommending one,
// and of one that others may come to turn.
func (a *Actuator) observeBar(ctx context.Context, h *held) {
	if _, contested := h.Knob.(Remote); h.Mode != trimtab.Recommend && !contested {
		return
	}
	barred := ""
	if err := h.Knob.MayWrite(ctx); err != nil && (h.Mode == trimtab.Recommend || errors.Is(err, ErrBarred)) {
		barred = err.Error()
	}
	if h.touched != nil && h.touched.Twice {
		barred = h.touched.Why
	}
	if barred != h.barred {
		h.barred = barred
		a.notify()
	}
}

// observeStanding notes where the knob's instance is, and how it stands.
func (a *Actuator) observeStanding(ctx context.Context, h *held) {
	s, ok := h.Knob.(Stander)
	if !ok {
		return
	}
	now := s.Standing(ctx)
	if now != nil && now.Caps && now.Most >= h.Max {
		now = nil // it has more room above it than it may have
	}
	if now != nil && now.Caps && a.config.Shared && h.sharing() && a.parent != nil && a.parent.entry != nil && same(trimtab.Units(now.Most), a.parent.now) {
		now = nil // the limit is the sum of the shares, and goes with them
	}
	if reflect.DeepEqual(now, h.standing) {
		return
	}
	if !same(now.Cap(h.now), h.standing.Cap(h.now)) {
		h.since = a.clock.wall()
	}
	h.standing = now
	a.notify()
}

// observeFloor reads what must be kept. What cannot be read is all of it.
func (h *held) observeFloor(ctx context.Context) {
	f, ok := h.Knob.(Floored)
	if !ok {
		return
	}
	h.floor = h.amount()
	if v, err := f.Floor(ctx); err == nil && v.Validate() == nil && !v.Unlimited {
		h.floor = min(v.Value, h.floor)
	}
}

// amount returns what the knob is set to, unlimited as its Max.
func (h *held) amount() float64 { return h.bounded(h.now) }

func (h *held) bounded(v trimtab.Amount) float64 {
	if v = h.standing.Cap(v); v.Unlimited {
		return h.Max
	}
	return v.Value
}

// highest returns the upper bound of what may be set now: a knob is not set to more than what
// is above it lets through.
func (h *held) highest() float64 {
	most := h.standing.Cap(trimtab.Units(h.Max)).Value
	if most == h.Max {
		return most
	}
	v := h.Knob.Nearest(trimtab.Units(most)).Value
	for gap := v - most; v > most && gap < most; gap *= 2 { // rounded up it would not be let through
		v = h.Knob.Nearest(trimtab.Units(most - gap)).Value
	}
	return v
}

// atMost returns the most that the knob may give when it is set to v: what is in
// force lasts until v takes effect.
func (h *held) atMost(v trimtab.Amount) float64 {
	if h.effective != nil {
		return max(h.bounded(v), h.bounded(*h.effective))
	}
	return h.bounded(v)
}

// least returns the lower bound of what may be set now.
func (h *held) least() float64 { return max(h.Min, min(h.floor, h.Max)) }

func (a *Actuator) setProblem(h *held, problem string) {
	if h.problem == problem {
		return
	}
	h.problem = problem
	a.logger.Info("knob", "workload", h.Workload, "resource", h.Resource, "knob", h.Knob.String(), "problem", problem)
	a.notify()
}

// notify asks Run to publish the holding.
func (a *Actuator) notify() {
	select {
	case a.changed <- struct{}{}:
	default:
	}
}
