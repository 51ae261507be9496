package actuator

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Command carries out Pause, Resume and Release, and notes Apply, without which no plan may act on
// a recommending target; the planner carries out the other verbs. A pause takes effect even if it
// cannot be stored. An error means that the command was not stored and must be delivered again.
func (a *Actuator) Command(ctx context.Context, c *trimtab.Command) error {
	if err := c.Validate(); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if c.Pool != a.config.Pool || a.fence.closed {
		return nil
	}
	var err error
	switch c.Verb {
	case trimtab.Pause:
		a.fence.paused = c.Time
		if now := a.clock.wall(); now.Before(c.Time) {
			a.fence.paused = now // so that a clock that was ahead does not block a resume
		}
		err = a.journal.Append(put(pausedKey, a.fence.paused))
		if a.knobs.holds() {
			a.fence.keep()
		}
	case trimtab.Resume:
		err = a.resume(ctx, c)
	case trimtab.Release:
		err = a.release(ctx, c.Workload)
	case trimtab.Apply:
		a.approvals.observe(c)
	default:
		return nil
	}
	a.logger.Info("command", "verb", string(c.Verb), "workload", c.Workload, "by", c.By, "err", err)
	a.gauges()
	a.notify()
	if err != nil {
		return fmt.Errorf("%s: %w", c.Verb, err)
	}
	return nil
}

// resume ends an earlier pause, takes released workloads under control again, and accepts values
// that another program set: they become the baselines. It restarts the lease.
func (a *Actuator) resume(ctx context.Context, c *trimtab.Command) error {
	if c.Time.Before(a.fence.paused) && !a.clock.wall().Before(a.fence.paused) {
		return nil
	}
	batch := []hostfs.Entry{{Key: pausedKey}}
	for _, h := range a.knobs.all {
		a.knobs.observe(ctx, h)
		if h.block.foreign && h.entry != nil {
			batch = append(batch, hostfs.Entry{Key: h.entry.journalKey()})
		}
		if h.block.touched != nil {
			batch = append(batch, hostfs.Entry{Key: h.block.touched.journalKey()})
		}
	}
	for workload := range a.knobs.released {
		batch = append(batch, hostfs.Entry{Key: releasePrefix + workload})
	}
	l := a.fence.lease
	if !a.fence.paused.IsZero() {
		l.Boot, l.Until, l.BorrowUntil = a.clock.id, saturate(a.clock.boot(), l.Length.Duration()), 0
		batch = append(batch, put(leaseKey, l))
	}
	if err := a.journal.Append(batch...); err != nil {
		return err
	}
	a.fence.paused, a.fence.lease = time.Time{}, l
	clear(a.knobs.released)
	for _, h := range a.knobs.all {
		h.block.released, h.block.touched = false, nil
		if h.block.foreign {
			h.entry, h.block.foreign = nil, false
			a.knobs.setProblem(h, "")
		}
	}
	return nil
}

// release restores a workload, and does not change it again until the next resume.
func (a *Actuator) release(ctx context.Context, workload string) error {
	var knobs []*managed
	for _, h := range a.knobs.all {
		if h.Workload == workload {
			h.block.released = true
			knobs = append(knobs, h)
		}
	}
	if len(knobs) == 0 && !slices.ContainsFunc(a.instances.finders, func(f *finder) bool { return f.Workload == workload }) {
		return nil
	}
	a.knobs.released[workload] = true // including instances that start later
	err := a.journal.Append(put(releasePrefix+workload, true))
	a.host.announce(ctx, knobs)
	r := a.baselines.restore(ctx, knobs)
	r.Left = 0 // goOn restores these
	for _, h := range knobs {
		a.knobs.observe(ctx, h)
	}
	if err != nil {
		return err
	}
	return r.Err()
}
