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

// Leader names the lock that a stage must win to lead.
type Leader struct {
	// Pool is the key of the lock.
	Pool string
	// Holder names this process in the lock; empty: the stage's name.
	Holder string
	// Term is how long a lock lasts without renewal; 0: 6 s. If the operating system
	// schedules this process late, it takes a longer term, up to 30 s.
	Term time.Duration
	// Sole is true if no other process can use the name Holder, as when this one holds the
	// file lock of the bus's store. After a crash it then takes its own lock back at once.
	Sole bool
}

const (
	defaultTerm = 6 * time.Second
	// maxTerm bounds how long others wait for a dead leader whose term was long.
	maxTerm = 30 * time.Second
	// A term is at least termOfDelay times the worst scheduling delay. A renewal begins
	// when the lock is valid for another 1/2 term, and can be delayed twice within it: when
	// it begins and when its answer is read.
	termOfDelay = 4
)

// bucketLeaders is the bucket with one lockRecord for each pool.
const bucketLeaders = "leaders"

// lockRecord is the value of a pool's key.
type lockRecord struct {
	// Holder is empty if the last holder gave the lock up.
	Holder string `json:"holder"`
	// Instance differs between two runs of the same holder.
	Instance uint64 `json:"instance"`
	Epoch    uint64 `json:"epoch"`
	// Term is the time in seconds within which the holder promises to renew.
	Term float64 `json:"term_s"`
}

// lock competes for one key of a bucket. Its goroutine takes and renews the key; the goroutine
// that owns the step reads the epoch with held.
type lock struct {
	Leader
	// from is the bucket with the key; what names the lock in logs.
	from, what string
	bus        bus.Bus
	logger     *slog.Logger
	// report is called with the epoch that is held, 0 for none, and with the reason why
	// this process cannot compete, or "".
	report   func(epoch uint64, problem string)
	instance uint64
	bucket   bus.Bucket
	changed  chan struct{}
	late     lateness
	quit     context.CancelFunc
	done     chan struct{}

	seen atomic.Uint64 // the highest epoch seen in messages
	// taken is an epoch that another process also led under before a store was wiped or rolled
	// back. Two things show that: a holding of this epoch with a plan newer than sent, the last
	// plan of this process, or an outcome that calls sent overtaken.
	taken atomic.Uint64
	sent  struct{ epoch, sequence uint64 } // owner

	mu    sync.Mutex
	epoch uint64
	until time.Time // on the monotonic clock

	key keyState // of the goroutine of run
}

// keyState is the known state of the key in the bucket.
type keyState struct {
	revision uint64        // of the key as last seen
	since    time.Time     // when revision was first seen
	top      uint64        // the highest epoch known from the bucket or this process
	problem  string        // why this process cannot take part
	length   time.Duration // the term of the lock that is held
	tried    time.Time     // the first attempt to write over revision; zero: none
}

// openLock starts to compete for the lock; without Stage.Leader there is none.
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

// start begins to compete for the lock.
func (l *lock) start(ctx context.Context) {
	l.changed, l.done, l.instance = make(chan struct{}, 1), make(chan struct{}), uint64(time.Now().UnixMicro())
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

// changes returns the channel that receives when the epoch held may have changed.
func (l *lock) changes() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.changed
}

// held returns the epoch that this process leads under, 0 for none, and the time until
// which that is certain.
func (l *lock) held() (uint64, time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !time.Now().Before(l.until) {
		return 0, l.until
	}
	return l.epoch, l.until
}

// leading returns the last epoch of this process unless another leader is known. Its term
// may have run out a moment ago; then nothing is published until it is renewed.
func (l *lock) leading() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.epoch
}

// term returns the length of the next term, given how late this process was scheduled.
func (l *lock) term() time.Duration {
	return min(max(l.Term, termOfDelay*l.late.worst()), max(l.Term, maxTerm))
}

// every returns the interval in which delays are measured. It is short enough that ticks on time do
// not lengthen the term.
func (l *lock) every() time.Duration { return l.Term / (4 * termOfDelay) }

// set changes the epoch that is held and wakes the owner of the step.
func (l *lock) set(epoch uint64, until time.Time) {
	l.mu.Lock()
	changed := l.epoch != epoch
	l.epoch, l.until = epoch, until
	l.mu.Unlock()
	if changed {
		l.notify()
	}
}

func (l *lock) notify() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// saw records the epoch of a value that passes through.
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
		// A host refused our newest plan as overtaken, so it has a newer one of the same
		// epoch that this process did not send.
		if held, _ := l.held(); held == epoch && v.Overtaken() && l.sent.epoch == epoch && l.sent.sequence == v.Sequence {
			l.taken.Store(epoch)
		}
	case *trimtab.Plan:
		epoch = v.Epoch
	}
	l.sawEpoch(epoch)
}

// sawEpoch records an epoch that was seen in use.
func (l *lock) sawEpoch(epoch uint64) {
	// Epochs contain the time. One far in the future is ignored: actuators would refuse the
	// epoch after it.
	for trimtab.PlausibleEpoch(epoch, time.Now()) {
		old := l.seen.Load()
		if epoch <= old || l.seen.CompareAndSwap(old, epoch) {
			return
		}
	}
}

// sends records a plan that is about to be published.
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
	measuring.Go(func() { l.late.measure(ctx, l.every()) })
	t := time.NewTicker(l.Term / 8)
	defer t.Stop()
	for {
		if err := l.turn(ctx); err != nil && ctx.Err() == nil {
			// The epoch that is held ends by itself when its term does.
			l.key.problem = fmt.Sprintf("no lock on %s: %v; check the NATS server and the free space on its disk", l.what, err)
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
		// A slow answer of the bus lengthens the term as a late process does. A missing answer is
		// an error, and not counted as a delay.
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
			// Another process acted under a later epoch, or under this one: the store was
			// wiped or rolled back.
			epoch = max(seen, l.key.top) + 1
		} else if time.Until(until) > l.key.length/2 && l.term() <= l.key.length {
			return nil
		}
		// After a write without an answer do not write again: take reads the key and sees
		// whether the write arrived.
		if l.key.tried.IsZero() {
			if err := l.write(ctx, l.key.revision, epoch); !errors.Is(err, bus.ErrConflict) {
				return err
			}
			// Someone else wrote.
			l.key.since = time.Time{}
		}
	}
	return l.acquire(ctx)
}

// acquire writes the key if it is free or its holder has not renewed it for a term.
func (l *lock) acquire(ctx context.Context) error {
	began := time.Now()
	raw, revision, err := l.bucket.Get(ctx, l.Pool)
	var r lockRecord
	switch {
	case errors.Is(err, bus.ErrNotFound):
		revision = 0
	case err != nil:
		return err
	case json.Unmarshal(raw, &r) != nil || !trimtab.PlausibleEpoch(r.Epoch, time.Now()) || !(r.Term >= 0 && r.Term < 3600):
		// A record that cannot be read has no holder; wait for a term of our own.
		r = lockRecord{Holder: "unreadable", Term: l.Term.Seconds()}
	}
	mine := revision != 0 && r.Holder == l.Holder && r.Instance == l.instance
	if !mine {
		l.set(0, time.Time{})
	}
	l.key.top = max(l.key.top, r.Epoch)
	if mine && revision != l.key.revision && !l.key.tried.IsZero() {
		// The write arrived, only its answer was lost: the term counts from the attempt.
		wrote := time.Duration(r.Term * float64(time.Second))
		if until := l.key.tried.Add(wrote * 3 / 4); time.Now().Before(until) && r.Epoch >= l.seen.Load() {
			l.key.length = wrote
			l.set(r.Epoch, until)
		}
		l.late.note(began, began.Sub(l.key.tried))
	}
	if revision != l.key.revision || l.key.since.IsZero() {
		l.key.revision, l.key.since, l.key.tried = revision, time.Now(), time.Time{}
	}
	term := max(l.Term, time.Duration(r.Term*float64(time.Second)))
	ours := r.Holder == l.Holder && (l.Sole || r.Instance == l.instance)
	if r.Holder != "" && !ours && began.Sub(l.key.since) < term {
		l.key.problem = ""
		return nil
	}
	return l.write(ctx, revision, l.next(mine, r.Epoch))
}

// next returns the epoch to lead under. If this process was the last to write the key, the epoch
// stays: no other process led in between, a renewal was late or its answer was lost. A new epoch
// would make the planner wait for leases of a leader that did not exist.
func (l *lock) next(mine bool, epoch uint64) uint64 {
	seen := l.seen.Load()
	if mine && epoch != 0 && epoch == l.key.top && seen <= epoch && l.taken.Load() != epoch {
		return epoch
	}
	return max(l.key.top, seen) + 1
}

// write writes the key if it still has the given revision. On success this process has the lock.
func (l *lock) write(ctx context.Context, revision, epoch uint64) error {
	began := time.Now()
	term := l.term()
	raw, err := json.Marshal(lockRecord{Holder: l.Holder, Instance: l.instance, Epoch: epoch, Term: term.Seconds()})
	if err != nil {
		return err
	}
	if l.key.tried.IsZero() {
		l.key.tried = began
	}
	now, err := l.bucket.Update(ctx, l.Pool, raw, revision)
	if err != nil {
		return err
	}
	if term > l.Term && term > l.key.length {
		l.logger.Warn("this process is run late, or the bus answers late: the lock holds longer", "lock", l.what, "delay", l.late.worst(), "term", term)
	}
	l.key.revision, l.key.top, l.key.problem, l.key.length, l.key.tried = now, max(l.key.top, epoch), "", term, time.Time{}
	l.set(epoch, began.Add(term*3/4))
	return nil
}

// reports ends a term that ran out without renewal, and calls report.
func (l *lock) reports() {
	epoch, _ := l.held()
	if epoch == 0 {
		l.set(0, time.Time{})
	}
	l.report(epoch, l.key.problem)
}

// release gives the lock up, so that others need not wait for the end of the term. The
// epoch stays in the key.
func (l *lock) release() {
	epoch, _ := l.held()
	l.set(0, time.Time{})
	if epoch == 0 || l.bucket == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if raw, err := json.Marshal(lockRecord{Epoch: epoch, Term: l.Term.Seconds()}); err == nil {
		// If this fails the others wait for the end of the term.
		_, _ = l.bucket.Update(ctx, l.Pool, raw, l.key.revision)
	}
}

// publishLeader passes the epoch to the step if it changed.
func (r *stage) publishLeader(ctx context.Context) {
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
