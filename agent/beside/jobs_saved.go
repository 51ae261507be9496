package beside

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/planner/colocate"
)

const (
	// thresholdsFile is the file with the state of the step, in the directory of the jobs.
	thresholdsFile = "thresholds.json"
	// maxSaved is the largest saved state that is read again, in bytes.
	maxSaved = 16 << 20
	// saveThresholds is how often the state is saved, in addition to the end.
	saveThresholds = time.Minute
	// storePatience is the time limit for one request to the bus.
	storePatience = 5 * time.Second
)

// savedState stores the state that outlives the controller: limits found for services, hysteresis,
// and the learned limits of jobs. It is stored in the bucket of thresholds, in case the host loses
// its disk, and in a file, in case the link is cut.
type savedState struct {
	dir string
	// key is this host's key in the bucket that open opens; open nil: there is no bucket.
	key    string
	open   func(ctx context.Context) (bus.Bucket, error)
	saving oneAtATime
}

func newSavedState(dir, pool, host string, b bus.Bus) *savedState {
	return &savedState{dir: dir, key: natsbus.ThresholdsKey(pool, host), open: func(ctx context.Context) (bus.Bucket, error) {
		return b.Bucket(ctx, natsbus.BucketThresholds)
	}}
}

// save writes a state to the file and the bucket.
func (k *savedState) save(ctx context.Context, state []byte) error {
	err := hostfs.ReplaceFile(filepath.Join(k.dir, thresholdsFile), state)
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	b, open := k.open(ctx)
	if open == nil {
		_, open = b.Put(ctx, k.key, state)
	}
	if err = errors.Join(err, open); err != nil {
		return fmt.Errorf("keep thresholds: %w", err)
	}
	return nil
}

// load passes the saved state to restore: from the file, or else from the bucket. The error
// includes the reasons of a refused state.
func (k *savedState) load(ctx context.Context, restore func(state []byte) error) error {
	state, err := hostfs.ReadFile(filepath.Join(k.dir, thresholdsFile), maxSaved)
	if err == nil {
		if err = restore(state); err == nil {
			return nil
		}
	}
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	b, stored := k.open(ctx)
	if stored == nil {
		if state, _, stored = b.Get(ctx, k.key); stored == nil {
			stored = restore(state)
		}
	}
	if errors.Is(stored, bus.ErrNotFound) {
		stored = nil // nothing was saved yet
	}
	if err = errors.Join(err, stored); err != nil {
		return fmt.Errorf("take back thresholds: %w", err)
	}
	return nil
}

// save saves the state of the step concurrently with the decisions, so that a disk or link that
// hangs delays none. One save runs at a time.
func (h *jobHost) save(ctx context.Context, _ time.Time) {
	k := h.savedState
	if k == nil {
		return
	}
	state := h.step.Snapshot()[colocate.SnapshotName]
	k.saving.start(func() {
		if err := k.save(ctx, state); err != nil && ctx.Err() == nil {
			h.logger.Warn("limits of services may have to be found again after a restart", "err", err)
		}
	})
}

// takeBack restores the saved state of the step.
func (h *jobHost) takeBack(ctx context.Context) {
	err := h.savedState.load(ctx, func(state []byte) error { return h.step.Restore(colocate.SnapshotName, state) })
	if err != nil {
		h.logger.Warn("what was found of the limits of services is not all there", "err", err)
	}
}

// close saves the state once more, after the loop has ended.
func (h *jobHost) close(ctx context.Context) error {
	h.savedState.saving.running.Wait()
	return h.savedState.save(ctx, h.step.Snapshot()[colocate.SnapshotName])
}

// oneAtATime runs functions concurrently with the decisions, one at a time.
type oneAtATime struct {
	busy    atomic.Bool
	running sync.WaitGroup
}

// start starts a function, unless one still runs.
func (o *oneAtATime) start(do func()) {
	if o.busy.CompareAndSwap(false, true) {
		o.running.Go(func() {
			defer o.busy.Store(false)
			do()
		})
	}
}
