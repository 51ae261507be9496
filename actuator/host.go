package actuator

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/arbiter"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// host knows what the pool may have of this host: what was measured, what its own limits
// allow, and what other pools leave.
type host struct {
	*base
	knobs   *knobs
	lending *lending
	// capacity is what the pool may give out of this host, as measured last;
	// unmeasured is what could not be, measureAgain when it is tried again.
	capacity     map[string]float64
	unmeasured   string
	measureAgain time.Duration
	// arbiter has the claims of all pools; nil: this process believes to be the only one.
	arbiter *arbiter.Arbiter
	// left is what other pools leave, by resource; nil: there is none that claims. claimed
	// says of which resource that is less than the pool could have alone.
	left    map[string]float64
	claimed []claimed
	// failed is why nobody could be asked in the present step; "": somebody could.
	failed string
	// kept is what the pool had before a plan that is not yet carried out to its end, by
	// resource: what its first steps freed is for the next. It stays claimed until
	// keepUntil, on the boot clock.
	kept      map[string]float64
	keepUntil time.Duration
	// missed counts the looks at the claims since the last that succeeded.
	missed  int
	problem string
	// buried tells which of the dead have nothing left to restore; nil: nobody looks.
	buried chan []string
	// scanAt is when the locks may be read again to tell what the dead have turned, on
	// the boot clock.
	scanAt time.Duration
}

const (
	// keepFor is how long the next step of a plan may take until other pools may have
	// what it is to use. It is longer than compensateAfter.
	keepFor = 2 * compensateAfter
	// missedMost is how many looks in a row may fail until that is a problem: the
	// first may have met another process that was just looking.
	missedMost = 5
	// buryWait is how long a tick waits to hear of the journals of the dead, which may
	// lie on a disk that does not answer.
	buryWait = 100 * time.Millisecond
	// scanEvery bounds how often all locks of the host are read: there may be thousands.
	scanEvery = 30 * time.Second
)

// newHost makes this pool's side of the arbiter.
func newHost(b *base, ks *knobs, l *lending) *host {
	hs := &host{base: b, knobs: ks, lending: l, measureAgain: never, keepUntil: never}
	if b.config.LockDir != "" {
		who := arbiter.Claimant{Journal: b.config.Dir, Pool: b.config.Pool, PID: os.Getpid(), Boot: b.clock.id}
		hs.arbiter = arbiter.New(filepath.Join(b.config.LockDir, "claims"), who, b.logger)
	}
	return hs
}

func (hs *host) close(over bool) error {
	if hs.arbiter == nil {
		return nil
	}
	return hs.arbiter.Close(over)
}

// settleStep notes what stays claimed once a step was carried out, before which the pool had
// so much, and gives back what was claimed beyond it.
func (hs *host) settleStep(ctx context.Context, p *trimtab.Plan, had map[string]float64) {
	if hs.arbiter == nil {
		return
	}
	now := hs.clock.boot()
	switch {
	case p.Last:
		hs.keepUntil = never
	case now >= hs.keepUntil:
		hs.kept, hs.keepUntil = had, saturate(now, keepFor)
	default:
		for resource, v := range had {
			hs.kept[resource] = max(hs.kept[resource], v)
		}
		hs.keepUntil = saturate(now, keepFor)
	}
	claims := hs.claims(nil)
	for resource, c := range claims {
		if claimed := hs.arbiter.Claimed(resource); claimed.Now > c.Now || claimed.May > c.May {
			// Where it fails the next tick makes up for it.
			_ = hs.arbiter.Settle(ctx, claims)
			return
		}
	}
}

// sums returns what the knobs of this pool have, by resource, and what they have after
// a restore. The given ones count as if they were there already.
func (hs *host) sums(ahead map[*held]float64) (now, back map[string]float64) {
	now, back = map[string]float64{}, map[string]float64{}
	for _, h := range hs.knobs.all {
		if !h.counts() || h.contested != "" && h.entry == nil {
			continue // another turns it, and claims it
		}
		has, comes := h.mayHave()
		now[h.Resource] += max(has, ahead[h])
		back[h.Resource] += comes
	}
	if more := hs.lending.potential(); more > 0 {
		now[trimtab.CPU] += more
	}
	return now, back
}

// claims returns what this pool claims of the host. A restore makes shrinks first, so
// at any instant of it the pool has at most the larger of both sums.
func (hs *host) claims(ahead map[*held]float64) map[string]arbiter.Claim {
	now, back := hs.sums(ahead)
	all := make(map[string]arbiter.Claim, len(now))
	for resource, v := range now {
		c := hs.claimOf(resource)
		c.Now, c.May = v, max(v, back[resource])
		if kept := hs.kept[resource]; hs.clock.boot() < hs.keepUntil {
			c.Now, c.May = max(c.Now, kept), max(c.May, kept)
		}
		all[resource] = c
	}
	return all
}

// claimOf is a claim of nothing.
func (hs *host) claimOf(resource string) arbiter.Claim {
	c := arbiter.Claim{Root: hs.config.Roots[resource]}
	if measured, ok := hs.capacity[resource]; ok {
		c.Capacity = &measured
	}
	return c
}

// mayHave returns the most that a knob has now, and what it has after a restore.
func (h *held) mayHave() (now, back float64) {
	if h.gone {
		return 0, 0
	}
	if now = h.Max; h.known {
		now = h.atMost(h.now)
	}
	if h.entry == nil || h.foreign { // what another set is left alone
		return now, now
	}
	return now, max(h.bounded(h.entry.Baseline), min(h.floor, now))
}

// ask claims what the pool has with one knob at v, and returns why that is not to be
// had, or "". What was claimed already costs nothing.
func (hs *host) ask(ctx context.Context, h *held, v trimtab.Amount) (why string) {
	if hs.arbiter == nil {
		return ""
	}
	now, _ := hs.sums(map[*held]float64{h: h.atMost(v)})
	want := now[h.Resource]
	for _, k := range hs.knobs.all {
		if k != h && k.Resource == h.Resource && k.takesLeft() && k.counts() {
			want -= k.atMost(k.now) - k.Min // which is claimed, and needs no room
		}
	}
	granted := hs.grantFor(ctx, h.Resource, want)
	switch {
	case want <= granted*(1+tolerance):
		return ""
	case hs.failed != "":
		return "what other pools of this host have cannot be told, so nothing is raised: " + hs.failed
	}
	return fmt.Sprintf("the sum would be %.4g over a capacity of %.4g of %s: other pools of this host claim the rest", want, granted, h.Resource)
}

// grantFor returns how much the pool may have where it wants so much.
func (hs *host) grantFor(ctx context.Context, resource string, want float64) float64 {
	granted := hs.arbiter.Claimed(resource).Now
	if want <= granted*(1+tolerance) || hs.failed != "" {
		return granted
	}
	granted, err := hs.arbiter.Ask(ctx, hs.claims(nil), resource, want)
	if err != nil {
		hs.failed = err.Error()
	}
	return granted
}

// askAll claims what the pool has when all grows of a step are made, as far as the plan
// and the host's own limits let them, so that they are asked for once.
func (hs *host) askAll(ctx context.Context, p *trimtab.Plan, moves []*move) {
	if hs.arbiter == nil {
		return
	}
	hs.failed = ""
	ahead, resources := map[*held]float64{}, map[string]bool{}
	for _, m := range moves {
		if !m.goal.Less(m.result.Before) {
			ahead[m.held], resources[m.held.Resource] = m.held.atMost(m.goal), true
		}
	}
	wanted, _ := hs.sums(ahead)
	for resource := range resources {
		hs.grantFor(ctx, resource, min(wanted[resource], p.CapacityOf(resource), hs.room(resource)))
	}
}

// announce claims what the pool has once the given knobs have their baselines. It is
// not asked for: a person wants them back.
func (hs *host) announce(ctx context.Context, knobs []*held) {
	if hs.arbiter == nil {
		return
	}
	ahead := map[*held]float64{}
	for _, h := range knobs {
		_, ahead[h] = h.mayHave()
	}
	// Where it fails the next tick makes up for it.
	_ = hs.arbiter.Settle(ctx, hs.claims(ahead))
}

// arbitrate writes down what the pool has, and finds out what other pools leave. What
// cannot be found out is as it was.
func (hs *host) arbitrate(ctx context.Context) {
	if hs.arbiter == nil {
		return
	}
	hs.failed = ""
	claims := hs.claims(nil)
	err := hs.arbiter.Settle(ctx, claims)
	if err == nil {
		err = hs.bury(ctx)
	}
	hs.missed++
	problem := ""
	if err == nil {
		hs.missed = 0
	} else if problem = err.Error(); hs.missed < missedMost && errors.Is(err, trimtab.ErrRefused) {
		problem = hs.problem
	}
	if problem != hs.problem {
		if hs.problem = problem; problem == "" {
			hs.logger.Info("the claims of other pools on this host can be read again")
		} else {
			hs.logger.Warn("cannot read or write claims on this host, so no limit is raised", "problem", problem)
		}
	}
	hs.divide(claims)
}

// divide notes what other pools leave. It is never less than what this pool has: a
// planner that was told so would lower its workloads for another pool.
func (hs *host) divide(claims map[string]arbiter.Claim) {
	has, left := map[string]float64{}, maps.Clone(hs.capacity)
	for _, h := range hs.knobs.all {
		if h.Mode != trimtab.Off || h.entry != nil {
			now, _ := h.mayHave()
			has[h.Resource] += now
		}
	}
	divided := false
	var less []claimed
	for _, resource := range slices.Sorted(maps.Keys(has)) {
		own, ok := claims[resource]
		if !ok {
			own = hs.claimOf(resource)
		}
		others := hs.arbiter.Others(resource, own)
		hs.metrics.Gauge("trimtab_actuator_host_claimed", resource, "own").Set(own.May)
		hs.metrics.Gauge("trimtab_actuator_host_claimed", resource, "others").Set(others)
		measured, isMeasured := hs.capacity[resource]
		room := hs.arbiter.Left(resource, own)
		if others == 0 || !isMeasured {
			continue
		}
		divided = true
		if left[resource] = max(room, has[resource], 0); hs.config.Shared {
			left[resource] = min(left[resource], measured)
		}
		if alone := min(hs.room(resource), measured); hs.config.Limits.Capacity != nil && left[resource] < alone-slack {
			less = append(less, claimed{resource, alone, left[resource], hs.arbiter.Shares(resource, own)})
		}
	}
	if !divided {
		left = nil
	}
	same := sameClaims(less, hs.claimed)
	if !same {
		begun := len(hs.claimed) == 0
		if hs.claimed = less; begun {
			hs.logger.Warn("other pools of this host claim capacity of the pool", "unmet", hs.unmet())
		}
	}
	if !same || !maps.Equal(left, hs.left) {
		hs.left = left
		hs.logger.Debug("what other pools leave of this host", "left", left)
		hs.notify()
	}
}

// bury drops the claims of the dead of whose knobs none is left to restore.
func (hs *host) bury(ctx context.Context) error {
	wait := time.Duration(0)
	if hs.buried == nil {
		dead := hs.arbiter.Dead()
		if len(dead) == 0 {
			return nil
		}
		buried := make(chan []string, 1)
		hs.buried, wait = buried, buryWait
		marked := noMarks
		if now := hs.clock.boot(); now >= hs.scanAt {
			hs.scanAt = saturate(now, scanEvery)
			marked = sync.OnceValues(func() (map[string]bool, error) { return journalsOf(hs.config.LockDir) })
		}
		go func() { buried <- hs.restored(dead, marked) }()
	}
	select {
	case over := <-hs.buried:
		hs.buried = nil
		if len(over) == 0 {
			return nil
		}
		return hs.arbiter.Drop(ctx, over)
	case <-time.After(wait):
		return nil
	}
}

// noMarks is while the locks are not read.
func noMarks() (map[string]bool, error) { return nil, errors.ErrUnsupported }

// restored returns those of the journals that have nothing left to restore; marked are
// those whose owner turned something that is still there. It reads nothing of the
// actuator but its configuration.
func (hs *host) restored(journals []string, marked func() (map[string]bool, error)) (over []string) {
	for _, dir := range journals {
		if hostfs.JournalReadable(dir) != nil {
			continue
		}
		s, err := readDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			// A directory that is wholly missing was removed with all of its storage, or is
			// a volume that only another container mounts: the knobs tell.
			_, gone := os.Stat(filepath.Dir(dir))
			there, err := map[string]bool(nil), error(nil)
			if gone != nil {
				there, err = marked()
			}
			if err == nil && !there[dir] {
				over = append(over, dir)
			}
			continue
		}
		if err == nil && s.whole() && !slices.ContainsFunc(s.entries, func(e *entry) bool { return !hs.disowned(e, dir) }) {
			over = append(over, dir)
		}
	}
	return over
}

// disowned reports whether what an entry of a journal restores is gone, or whether
// another process has taken over its baseline, and claims it.
func (hs *host) disowned(e *entry, journal string) bool {
	k, err := hs.config.Reopen(e.Undo)
	if err != nil {
		return false
	}
	defer func() { _ = k.Close() }() // it was only asked
	can := k.Traits()
	if can.Place == nil {
		return false
	}
	place, err := can.Place()
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	last := readMark(lockPath(hs.config.LockDir, e.Resource, place))
	return last.Dir != "" && last.Dir != journal
}

// reportOf returns why a knob cannot be used, or "". While it cannot be told what other
// pools of the host have, nothing is raised; so that nothing is lowered either, and
// stays so, no knob that is turned is offered.
func (hs *host) reportOf(k *held) string {
	if why := k.report(); why != "" || hs.problem == "" || k.Mode != trimtab.Act {
		return why
	}
	return "claims of other pools on this host: " + hs.problem
}
