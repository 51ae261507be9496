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

// host is this pool's side of the host's arbiter.
type host struct {
	*arbiter.Arbiter
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

// openHost makes this pool's side of the arbiter.
func (a *Actuator) openHost() *host {
	if a.config.LockDir == "" {
		return nil
	}
	who := arbiter.Claimant{Journal: a.config.Dir, Pool: a.config.Pool, PID: os.Getpid(), Boot: a.clock.id}
	return &host{Arbiter: arbiter.New(filepath.Join(a.config.LockDir, "claims"), who, a.logger), keepUntil: never}
}

func (h *host) close(over bool) error {
	if h == nil {
		return nil
	}
	return h.Close(over)
}

// settleStep notes what stays claimed once a step was carried out, before which the pool had
// so much, and gives back what was claimed beyond it.
func (a *Actuator) settleStep(ctx context.Context, p *trimtab.Plan, had map[string]float64) {
	if a.host == nil {
		return
	}
	now := a.clock.boot()
	switch {
	case p.Last:
		a.host.keepUntil = never
	case now >= a.host.keepUntil:
		a.host.kept, a.host.keepUntil = had, saturate(now, keepFor)
	default:
		for resource, v := range had {
			a.host.kept[resource] = max(a.host.kept[resource], v)
		}
		a.host.keepUntil = saturate(now, keepFor)
	}
	claims := a.claims(nil)
	for resource, c := range claims {
		if claimed := a.host.Claimed(resource); claimed.Now > c.Now || claimed.May > c.May {
			// Where it fails the next tick makes up for it.
			_ = a.host.Settle(ctx, claims)
			return
		}
	}
}

// sums returns what the knobs of this pool have, by resource, and what they have after
// a restore. The given ones count as if they were there already.
func (a *Actuator) sums(ahead map[*held]float64) (now, back map[string]float64) {
	now, back = map[string]float64{}, map[string]float64{}
	for _, h := range a.knobs {
		if !h.counts() || h.contested != "" && h.entry == nil {
			continue // another turns it, and claims it
		}
		has, comes := h.mayHave()
		now[h.Resource] += max(has, ahead[h])
		back[h.Resource] += comes
	}
	if more := a.potential(); more > 0 {
		now[trimtab.CPU] += more
	}
	return now, back
}

// claims returns what this pool claims of the host. A restore makes shrinks first, so
// at any instant of it the pool has at most the larger of both sums.
func (a *Actuator) claims(ahead map[*held]float64) map[string]arbiter.Claim {
	now, back := a.sums(ahead)
	all := make(map[string]arbiter.Claim, len(now))
	for resource, v := range now {
		c := a.claimOf(resource)
		c.Now, c.May = v, max(v, back[resource])
		if kept := a.host.kept[resource]; a.clock.boot() < a.host.keepUntil {
			c.Now, c.May = max(c.Now, kept), max(c.May, kept)
		}
		all[resource] = c
	}
	return all
}

// claimOf is a claim of nothing.
func (a *Actuator) claimOf(resource string) arbiter.Claim {
	c := arbiter.Claim{Root: a.config.Roots[resource]}
	if measured, ok := a.capacity[resource]; ok {
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
func (a *Actuator) ask(ctx context.Context, h *held, v trimtab.Amount) (why string) {
	if a.host == nil {
		return ""
	}
	now, _ := a.sums(map[*held]float64{h: h.atMost(v)})
	want := now[h.Resource]
	for _, k := range a.knobs {
		if k != h && k.Resource == h.Resource && k.takesLeft() && k.counts() {
			want -= k.atMost(k.now) - k.Min // which is claimed, and needs no room
		}
	}
	granted := a.grantFor(ctx, h.Resource, want)
	switch {
	case want <= granted*(1+tolerance):
		return ""
	case a.host.failed != "":
		return "what other pools of this host have cannot be told, so nothing is raised: " + a.host.failed
	}
	return fmt.Sprintf("the sum would be %.4g over a capacity of %.4g of %s: other pools of this host claim the rest", want, granted, h.Resource)
}

// grantFor returns how much the pool may have where it wants so much.
func (a *Actuator) grantFor(ctx context.Context, resource string, want float64) float64 {
	granted := a.host.Claimed(resource).Now
	if want <= granted*(1+tolerance) || a.host.failed != "" {
		return granted
	}
	granted, err := a.host.Ask(ctx, a.claims(nil), resource, want)
	if err != nil {
		a.host.failed = err.Error()
	}
	return granted
}

// askAll claims what the pool has when all grows of a step are made, as far as the plan
// and the host's own limits let them, so that they are asked for once.
func (a *Actuator) askAll(ctx context.Context, p *trimtab.Plan, moves []*move) {
	if a.host == nil {
		return
	}
	a.host.failed = ""
	ahead, resources := map[*held]float64{}, map[string]bool{}
	for _, m := range moves {
		if !m.goal.Less(m.result.Before) {
			ahead[m.held], resources[m.held.Resource] = m.held.atMost(m.goal), true
		}
	}
	wanted, _ := a.sums(ahead)
	for resource := range resources {
		a.grantFor(ctx, resource, min(wanted[resource], p.CapacityOf(resource), a.room(resource)))
	}
}

// announce claims what the pool has once the given knobs have their baselines. It is
// not asked for: a person wants them back.
func (a *Actuator) announce(ctx context.Context, knobs []*held) {
	if a.host == nil {
		return
	}
	ahead := map[*held]float64{}
	for _, h := range knobs {
		_, ahead[h] = h.mayHave()
	}
	// Where it fails the next tick makes up for it.
	_ = a.host.Settle(ctx, a.claims(ahead))
}

// arbitrate writes down what the pool has, and finds out what other pools leave. What
// cannot be found out is as it was.
func (a *Actuator) arbitrate(ctx context.Context) {
	if a.host == nil {
		return
	}
	a.host.failed = ""
	claims := a.claims(nil)
	err := a.host.Settle(ctx, claims)
	if err == nil {
		err = a.bury(ctx)
	}
	a.host.missed++
	problem := ""
	if err == nil {
		a.host.missed = 0
	} else if problem = err.Error(); a.host.missed < missedMost && errors.Is(err, trimtab.ErrRefused) {
		problem = a.host.problem
	}
	if problem != a.host.problem {
		if a.host.problem = problem; problem == "" {
			a.logger.Info("the claims of other pools on this host can be read again")
		} else {
			a.logger.Warn("cannot read or write claims on this host, so no limit is raised", "problem", problem)
		}
	}
	a.divide(claims)
}

// divide notes what other pools leave. It is never less than what this pool has: a
// planner that was told so would lower its workloads for another pool.
func (a *Actuator) divide(claims map[string]arbiter.Claim) {
	has, left := map[string]float64{}, maps.Clone(a.capacity)
	for _, h := range a.knobs {
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
			own = a.claimOf(resource)
		}
		others := a.host.Others(resource, own)
		a.metrics.Gauge("trimtab_actuator_host_claimed", resource, "own").Set(own.May)
		a.metrics.Gauge("trimtab_actuator_host_claimed", resource, "others").Set(others)
		measured, isMeasured := a.capacity[resource]
		room := a.host.Left(resource, own)
		if others == 0 || !isMeasured {
			continue
		}
		divided = true
		if left[resource] = max(room, has[resource], 0); a.config.Shared {
			left[resource] = min(left[resource], measured)
		}
		if alone := min(a.room(resource), measured); a.config.Limits.Capacity != nil && left[resource] < alone-slack {
			less = append(less, claimed{resource, alone, left[resource], a.host.Shares(resource, own)})
		}
	}
	if !divided {
		left = nil
	}
	same := sameClaims(less, a.host.claimed)
	if !same {
		begun := len(a.host.claimed) == 0
		if a.host.claimed = less; begun {
			a.logger.Warn("other pools of this host claim capacity of the pool", "unmet", a.unmetCapacity())
		}
	}
	if !same || !maps.Equal(left, a.host.left) {
		a.host.left = left
		a.logger.Debug("what other pools leave of this host", "left", left)
		a.notify()
	}
}

// leftByOthers returns what other pools leave of the host; nil: there is none.
func (a *Actuator) leftByOthers() map[string]float64 {
	if a.host == nil {
		return nil
	}
	return a.host.left
}

// bury drops the claims of the dead of whose knobs none is left to restore.
func (a *Actuator) bury(ctx context.Context) error {
	wait := time.Duration(0)
	if a.host.buried == nil {
		dead := a.host.Dead()
		if len(dead) == 0 {
			return nil
		}
		buried := make(chan []string, 1)
		a.host.buried, wait = buried, buryWait
		marked := noMarks
		if now := a.clock.boot(); now >= a.host.scanAt {
			a.host.scanAt = saturate(now, scanEvery)
			marked = sync.OnceValues(func() (map[string]bool, error) { return journalsOf(a.config.LockDir) })
		}
		go func() { buried <- a.restored(dead, marked) }()
	}
	select {
	case over := <-a.host.buried:
		a.host.buried = nil
		if len(over) == 0 {
			return nil
		}
		return a.host.Drop(ctx, over)
	case <-time.After(wait):
		return nil
	}
}

// noMarks is while the locks are not read.
func noMarks() (map[string]bool, error) { return nil, errors.ErrUnsupported }

// restored returns those of the journals that have nothing left to restore; marked are
// those whose owner turned something that is still there. It reads nothing of the
// actuator but its configuration.
func (a *Actuator) restored(journals []string, marked func() (map[string]bool, error)) (over []string) {
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
		if err == nil && s.whole() && !slices.ContainsFunc(s.entries, func(e *entry) bool { return !a.disowned(e, dir) }) {
			over = append(over, dir)
		}
	}
	return over
}

// disowned reports whether what an entry of a journal restores is gone, or whether
// another process has taken over its baseline, and claims it.
func (a *Actuator) disowned(e *entry, journal string) bool {
	k, err := a.config.Reopen(e.Undo)
	if err != nil {
		return false
	}
	defer func() { _ = k.Close() }() // it was only asked
	p, ok := k.(Placed)
	if !ok {
		return false
	}
	place, err := p.Place()
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	last := readMark(lockPath(a.config.LockDir, e.Resource, place))
	return last.Dir != "" && last.Dir != journal
}

// reportOf returns why a knob cannot be used, or "". While it cannot be told what other
// pools of the host have, nothing is raised; so that nothing is lowered either, and
// stays so, no knob that is turned is offered.
func (a *Actuator) reportOf(k *held) string {
	if why := k.report(); why != "" || a.host == nil || a.host.problem == "" || k.Mode != trimtab.Act {
		return why
	}
	return "claims of other pools on this host: " + a.host.problem
}
