package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// Term is how long a lock holds without renewal; 0: 6 s.
	Term time.Duration
	// Sole tells that no other process can run under the name of Holder, as
	// when this one has the lock of the bus's store: after a crash it then
	// takes its own lock back at once.
	Sole bool
}

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
	stage    *stage
	instance uint64
	bucket   bus.Bucket
	told     chan struct{}
	quit     context.CancelFunc
	done     chan struct{}

	seen atomic.Uint64 // the highest epoch that passed through
	// taken is an epoch that another life led under, as a holding shows that is
	// ahead of sent, the last plan of this one.
	taken atomic.Uint64
	sent  struct{ epoch, sequence uint64 } // owner

	mu    sync.Mutex
	epoch uint64
	until time.Time // on the monotonic clock

	// goroutine of run:
	revision uint64    // of the key as last seen
	since    time.Time // when revision was first seen
	top      uint64    // the highest epoch that was in the bucket or ours
	problem  string    // what keeps it from taking part
}

// openLock starts running for the lock; nil without Stage.Leader.
func (r *stage) openLock(ctx context.Context) *lock {
	if r.Stage.Leader == nil {
		return nil
	}
	l := &lock{Leader: *r.Stage.Leader, stage: r, told: make(chan struct{}, 1), done: make(chan struct{}),
		instance: uint64(time.Now().UnixMicro())}
	if l.Holder == "" {
		l.Holder = r.Name
	}
	if l.Term <= 0 {
		l.Term = 6 * time.Second
	}
	ctx, l.quit = context.WithCancel(ctx)
	go l.run(ctx)
	return l
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
	case *trimtab.Plan:
		epoch = v.Epoch
	}
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
	if p, ok := v.(*trimtab.Plan); ok && l != nil {
		l.sent.epoch, l.sent.sequence = p.Epoch, p.Sequence
	}
}

// run takes the lock, renews it four times a term, and gives it up at the end.
func (l *lock) run(ctx context.Context) {
	defer close(l.done)
	t := time.NewTicker(l.Term / 8)
	defer t.Stop()
	for {
		if err := l.turn(ctx); err != nil && ctx.Err() == nil {
			// What is held runs out by itself.
			l.problem = fmt.Sprintf("no lock on pool %s: %v", l.Pool, err)
		}
		l.report()
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
	ctx, cancel := context.WithTimeout(ctx, l.Term/4)
	defer cancel()
	if l.bucket == nil {
		b, err := l.stage.Bus.Bucket(ctx, bucketLeaders)
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
		} else if time.Until(until) > l.Term/2 {
			return nil
		}
		err := l.write(ctx, l.revision, epoch)
		if !errors.Is(err, bus.ErrConflict) {
			return err
		}
		// Someone else wrote, or we did and the answer was lost.
		l.set(0, time.Time{})
		l.since = time.Time{}
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
	l.top = max(l.top, r.Epoch)
	if revision != l.revision || l.since.IsZero() {
		l.revision, l.since = revision, time.Now()
	}
	term := max(l.Term, time.Duration(r.Term*float64(time.Second)))
	ours := r.Holder == l.Holder && (l.Sole || r.Instance == l.instance)
	if r.Holder != "" && !ours && began.Sub(l.since) < term {
		l.problem = ""
		return nil
	}
	return l.write(ctx, revision, max(l.top, l.seen.Load())+1)
}

// write writes the key over revision and holds the lock from now on.
func (l *lock) write(ctx context.Context, revision, epoch uint64) error {
	began := time.Now()
	raw, err := json.Marshal(lockRecord{Holder: l.Holder, Instance: l.instance, Epoch: epoch, Term: l.Term.Seconds()})
	if err != nil {
		return err
	}
	now, err := l.bucket.Update(ctx, l.Pool, raw, revision)
	if err != nil {
		return err
	}
	l.revision, l.top, l.problem = now, max(l.top, epoch), ""
	l.set(epoch, began.Add(l.Term*3/4))
	return nil
}

// report tells the owner about a lock that ran out, and readiness.
func (l *lock) report() {
	epoch, _ := l.held()
	if epoch == 0 {
		l.set(0, time.Time{})
	}
	l.stage.lead(epoch, l.problem)
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
	epoch, _ := r.lock.held()
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
