package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
)

// Leader says which lock a stage runs for.
type Leader struct {
	// Pool is the key of the lock.
	Pool string
	// Holder names this process in the lock; empty: the stage's name.
	Holder string
	// Term is how long a lock holds without renewal; 0: 6 s. A process that is
	// run late takes a longer one, up to 30 s.
	Term time.Duration
	// Sole tells that no other process can run under the name of Holder, as
	// when this one has the lock of the bus's store: after a crash it then
	// takes its own lock back at once.
	Sole bool
}

const (
	defaultTerm = 6 * time.Second
	// maxTerm bounds how long others wait for a leader that died while it was
	// run late.
	maxTerm = 30 * time.Second
	// termOfDelay is how many of the worst delays a term must have room for:
	// the lock is valid for 3/4 of a term and renewed when 1/2 is left, and a
	// renewal can be delayed twice, when it begins and when its answer is read.
	termOfDelay = 4
)

// bucketLeaders holds one lockRecord per pool.
const bucketLeaders = "leaders"

// lockRecord is the value of a pool's key.
type lockRecord struct {
	// Holder is empty after it gave the lock up.
	Holder string `json:"holder"`
	// Instance tells one run of a holder from another.
	Instance uint64 `json:"instance"`
	Epoch    uint64 `json:"epoch"`
	// Term is the promise of the holder to renew, in seconds.
	Term float64 `json:"term_s"`
}

// lock runs for the leadership of one pool. Its own goroutine takes and
// renews; the owner of the step reads what is held.
type lock struct {
	Leader
	// from is the bucket that has the key, and what names the lock to people.
	from, what string
	bus        bus.Bus
	logger     *slog.Logger
	// report is told the epoch that is held, 0 for none, and what keeps it from
	// taking part.
	report   func(epoch uint64, problem string)
	instance uint64
	bucket   bus.Bucket
	told     chan struct{}
	late     lateness
	quit     context.CancelFunc
	done     chan struct{}

	seen atomic.Uint64 // the highest epoch that passed through
	// taken is an epoch that another life led under, as a holding shows that is
	// ahead of sent, the last plan of this one, or an outcome for which sent came too late.
	taken atomic.Uint64
	sent  struct{ epoch, sequence uint64 } // owner

	mu    sync.Mutex
	epoch uint64
	until time.Time // on the monotonic clock

	// goroutine of run:
	revision uint64        // of the key as last seen
	since    time.Time     // when revision was first seen
	top      uint64        // the highest epoch that was in the bucket or ours
	problem  string        // what keeps it from taking part
	length   time.Duration // the term of the lock that is held
	tried    time.Time     // the first attempt to write over revision; zero: none
}

// openLock starts running for the lock; without Stage.Leader there is none.
func (r *stage) openLock(ctx context.Context) {
	if r.Stage.Leader == nil {
		return
	}
	l := &lock{Leader: *r.Stage.Leader, from: bucketLeaders, what: "pool " + r.Stage.Leader.Pool, bus: r.Bus, logger: r.Logger, report: r.lead}
	if l.Holder == "" {
		l.Holder = r.Name
	}
	r.lock = l // before its goroutine, which reports to the stage
	l.start(ctx)
}

// start begins to run for the lock.
func (l *lock) start(ctx context.Context) {
	l.told, l.done, l.instance = make(chan struct{}, 1), make(chan struct{}), uint64(time.Now().UnixMicro())
	if l.Term <= 0 {
		l.Term = defaultTerm
	}
	ctx, l.quit = context.WithCancel(ctx)
	go l.run(ctx)
}

// close gives the lock up and ends its goroutine.
func (l *lock) close() {
	if l == nil {
		return
	}
	l.quit()
	<-l.done
}

// news is ready when what is held may have changed.
func (l *lock) news() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.told
}

// held returns the epoch that is held, 0 for none, and until when at least.
func (l *lock) held() (uint64, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !time.Now().Before(l.until) {
		return 0, l.until
	}
	return l.epoch, l.until
}

// leading returns the epoch that was held last and is not known to be lost. It
// may have run out a moment ago: then nothing is published until it is renewed.
func (l *lock) leading() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// term is how long the lock must hold, for a process that is run this late.
func (l *lock) term() time.Duration {
	return min(max(l.Term, termOfDelay*l.late.worst()), max(l.Term, maxTerm))
}

// set changes what is held and tells the owner.
func (l *lock) set(epoch uint64, until time.Time) {
	l.mu.Lock()
	changed := l.epoch != epoch
	l.epoch, l.until = epoch, until
	l.mu.Unlock()
	if changed {
		l.tell()
	}
}

func (l *lock) tell() {
	select {
	case l.told <- struct{}{}:
	default:
	}
}

// saw notes the epoch of a value that passes through.
func (l *lock) saw(v trimtab.Value) {
	if l == nil {
		return
	}
	var epoch uint64
	switch v := v.(type) {
	case *trimtab.Holding:
		epoch = v.Epoch
		if held, _ := l.held(); held == epoch && (l.sent.epoch != epoch || l.sent.sequence < v.Sequence) {
			l.taken.Store(epoch)
		}
	case *trimtab.Outcome:
		epoch = v.Epoch
		// Our newest plan came too late for a host that nobody else leads: it follows
		// what another life sent under this epoch.
		if held, _ := l.held(); held == epoch && v.Overtaken() && l.sent.epoch == epoch && l.sent.sequence == v.Sequence {
			l.taken.Store(epoch)
		}
	case *trimtab.Plan:
		epoch = v.Epoch
	}
	l.sawEpoch(epoch)
}

// sawEpoch notes an epoch that somebody acted under.
func (l *lock) sawEpoch(epoch uint64) {
	// One that no pool can have come to is a lie: actuators would refuse the
	// epoch after it.
	for trimtab.PlausibleEpoch(epoch, time.Now()) {
		old := l.seen.Load()
		if epoch <= old || l.seen.CompareAndSwap(old, epoch) {
			return
		}
	}
}

// sends notes a plan that is about to be published.
func (l *lock) sends(v trimtab.Value) {
	if p, ok := v.(*trimtab.Plan); ok && l != nil && p.Host == "" {
		l.sent.epoch, l.sent.sequence = p.Epoch, p.Sequence
	}
}

// run takes the lock, renews it four times a term, and gives it up at the end.
func (l *lock) run(ctx context.Context) {
	defer close(l.done)
	var measuring sync.WaitGroup
	defer measuring.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end() // also of a panic, which must end the process
	measuring.Go(func() { l.late.measure(ctx) })
	t := time.NewTicker(l.Term / 8)
	defer t.Stop()
	for {
		if err := l.turn(ctx); err != nil && ctx.Err() == nil {
			// What is held runs out by itself.
			l.problem = fmt.Sprintf("no lock on %s: %v; check the NATS server and the free space on its disk", l.what, err)
		}
		l.reports()
		select {
		case <-t.C:
		case <-ctx.Done():
			l.release()
			return
		}
	}
}

// turn reads the key and takes, renews or leaves it.
func (l *lock) turn(ctx context.Context) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, l.term()/4)
	defer cancel()
	defer func() {
		// A bus that answers late needs the same room as a process that is run
		// late. That it did not answer at all is another matter.
		if ctx.Err() == nil {
			now := time.Now()
			l.late.note(now, now.Sub(began))
		}
	}()
	if l.bucket == nil {
		b, err := l.bus.Bucket(ctx, l.from)
		if err != nil {
			return err
		}
		l.bucket = b
	}
	if epoch, until := l.held(); epoch != 0 {
		if seen := l.seen.Load(); seen > epoch || l.taken.Load() == epoch {
			// Someone acted under a later epoch, or under this one before us: a
			// store was wiped or rolled back.
			epoch = max(seen, l.top) + 1
		} else if time.Until(until) > l.length/2 && l.term() <= l.length {
			return nil
		}
		// Over an attempt without an answer nobody writes again: what take finds
		// tells whether it arrived.
		if l.tried.IsZero() {
			if err := l.write(ctx, l.revision, epoch); !errors.Is(err, bus.ErrConflict) {
				return err
			}
			// Someone else wrote.
			l.since = time.Time{}
		}
	}
	return l.take(ctx)
}

// take takes the key when nobody has it or its holder was silent for a term.
func (l *lock) take(ctx context.Context) error {
	began := time.Now()
	raw, revision, err := l.bucket.Get(ctx, l.Pool)
	var r lockRecord
	switch {
	case errors.Is(err, bus.ErrNotFound):
		revision = 0
	case err != nil:
		return err
	case json.Unmarshal(raw, &r) != nil || !trimtab.PlausibleEpoch(r.Epoch, time.Now()) || !(r.Term >= 0 && r.Term < 3600):
		// Nobody can hold a lock that cannot be read; its term is ours.
		r = lockRecord{Holder: "unreadable", Term: l.Term.Seconds()}
	}
	mine := revision != 0 && r.Holder == l.Holder && r.Instance == l.instance
	if !mine {
		l.set(0, time.Time{})
	}
	l.top = max(l.top, r.Epoch)
	if mine && revision != l.revision && !l.tried.IsZero() {
		// What was written arrived and its answer did not: it holds from the
		// attempt on.
		wrote := time.Duration(r.Term * float64(time.Second))
		if until := l.tried.Add(wrote * 3 / 4); time.Now().Before(until) && r.Epoch >= l.seen.Load() {
			l.length = wrote
			l.set(r.Epoch, until)
		}
		l.late.note(began, began.Sub(l.tried))
	}
	if revision != l.revision || l.since.IsZero() {
		l.revision, l.since, l.tried = revision, time.Now(), time.Time{}
	}
	term := max(l.Term, time.Duration(r.Term*float64(time.Second)))
	ours := r.Holder == l.Holder && (l.Sole || r.Instance == l.instance)
	if r.Holder != "" && !ours && began.Sub(l.since) < term {
		l.problem = ""
		return nil
	}
	return l.write(ctx, revision, l.next(mine, r.Epoch))
}

// next returns the epoch to lead under. It is the one that the key has when
// nobody wrote the key after this very process: a renewal that came late, or
// whose answer was lost, begins no term, for nobody else led in between. A new
// term would make the planner wait for leases of a leader that never was.
func (l *lock) next(mine bool, epoch uint64) uint64 {
	seen := l.seen.Load()
	if mine && epoch != 0 && epoch == l.top && seen <= epoch && l.taken.Load() != epoch {
		return epoch
	}
	return max(l.top, seen) + 1
}

// write writes the key over revision and holds the lock from now on.
func (l *lock) write(ctx context.Context, revision, epoch uint64) error {
	began := time.Now()
	term := l.term()
	raw, err := json.Marshal(lockRecord{Holder: l.Holder, Instance: l.instance, Epoch: epoch, Term: term.Seconds()})
	if err != nil {
		return err
	}
	if l.tried.IsZero() {
		l.tried = began
	}
	now, err := l.bucket.Update(ctx, l.Pool, raw, revision)
	if err != nil {
		return err
	}
	if term > l.Term && term > l.length {
		l.logger.Warn("this process is run late, or the bus answers late: the lock holds longer", "lock", l.what, "delay", l.late.worst(), "term", term)
	}
	l.revision, l.top, l.problem, l.length, l.tried = now, max(l.top, epoch), "", term, time.Time{}
	l.set(epoch, began.Add(term*3/4))
	return nil
}

// reports tells the owner about a lock that ran out and could not be renewed,
// and readiness.
func (l *lock) reports() {
	epoch, _ := l.held()
	if epoch == 0 {
		l.set(0, time.Time{})
	}
	l.report(epoch, l.problem)
}

// release lets others take the lock at once. The epoch stays.
func (l *lock) release() {
	epoch, _ := l.held()
	l.set(0, time.Time{})
	if epoch == 0 || l.bucket == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if raw, err := json.Marshal(lockRecord{Epoch: epoch, Term: l.Term.Seconds()}); err == nil {
		// Without it the others wait for a term.
		_, _ = l.bucket.Update(ctx, l.Pool, raw, l.revision)
	}
}

// tellLeader hands the step its epoch when that changed.
func (r *stage) tellLeader(ctx context.Context) {
	epoch := r.lock.leading()
	if epoch == r.epoch {
		return
	}
	r.Logger.Info("leadership changed", "pool", r.lock.Pool, "epoch", epoch, "before", r.epoch)
	r.epoch = epoch
	out, err := r.call(&trimtab.Leader{Pool: r.lock.Pool, Epoch: epoch})
	if err == nil {
		err = r.publish(ctx, out)
	}
	if err != nil {
		r.Logger.Warn("outputs of a change of leadership are lost", "err", err)
	}
}
