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

// host determines the pool's capacity on this host: the measured one, within this host's limits and
// what other pools leave.
type host struct {
	*base
	knobs   *knobs
	lending *lending
	// capacity is the last measured capacity for the pool; unmeasured says what could not be
	// measured; measureAgain is when to measure again.
	capacity     map[string]float64
	unmeasured   string
	measureAgain time.Duration
	// arbiter has the claims of all pools; nil: this process assumes that it is the only one.
	arbiter *arbiter.Arbiter
	// left is what other pools leave, by resource; nil: no pool has claims. claimed says for which
	// resources that is less than the pool could have alone.
	left    map[string]float64
	claimed []claimed
	// failed is why the arbiter could not be asked in the present step; "": it could.
	failed string
	// kept is the allocation of the pool before a plan that is not completely carried out, by
	// resource: the first steps free capacity for the later ones. It stays claimed until keepUntil,
	// on the boot clock.
	kept      map[string]float64
	keepUntil time.Duration
	// missed counts the failed reads of the claims since the last success.
	missed  int
	problem string
	// buried receives the journals of dead processes that have nothing left to restore; nil: no
	// search runs.
	buried chan []string
	// scanAt is the earliest time to read the locks again, which show what dead processes have
	// changed, on the boot clock.
	scanAt time.Duration
}

const (
	// keepFor is how long capacity stays reserved for the next step of a plan before other pools
	// may have it. It is longer than compensateAfter.
	keepFor = 2 * compensateAfter
	// missedMost is the number of failed reads in a row that is reported as a problem: a single one
	// may have met another process that was reading.
	missedMost = 5
	// buryWait is how long a tick waits for the journals of dead processes, which may be on a disk
	// that does not answer.
	buryWait = 100 * time.Millisecond
	// scanEvery bounds how often all locks of the host are read: there may be thousands.
	scanEvery = 30 * time.Second
)

// newHost returns the pool's connection to the arbiter.
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

// settleStep records which capacity stays claimed after a step, given the pool's allocation before
// it, and releases the excess of the claims. last says that it is the plan's last step.
func (hs *host) settleStep(ctx context.Context, last bool, had map[string]float64) {
	if hs.arbiter == nil {
		return
	}
	now := hs.clock.boot()
	switch {
	case last:
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
			// If it fails, the next tick tries again.
			_ = hs.arbiter.Settle(ctx, claims)
			return
		}
	}
}

// sums returns the allocation of this pool's knobs, by resource, now and after a restore. It counts
// the given knobs as if they had their new values already.
func (hs *host) sums(ahead map[*managed]float64) (now, back map[string]float64) {
	now, back = map[string]float64{}, map[string]float64{}
	for _, h := range hs.knobs.all {
		if !h.counts() || h.block.contested != "" && h.entry == nil {
			continue // another process controls and claims it
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

// claims returns what this pool claims of the host: the larger of its allocation now and after a
// restore. A restore lowers knobs first, so that it never has more.
func (hs *host) claims(ahead map[*managed]float64) map[string]arbiter.Claim {
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

// claimOf returns an empty claim.
func (hs *host) claimOf(resource string) arbiter.Claim {
	c := arbiter.Claim{Root: hs.config.Roots[resource]}
	if measured, ok := hs.capacity[resource]; ok {
		c.Capacity = &measured
	}
	return c
}

// mayHave returns the largest amount that a knob may have now, and its amount after a restore.
func (h *managed) mayHave() (now, back float64) {
	if h.gone {
		return 0, 0
	}
	if now = h.Max; h.known {
		now = h.atMost(h.now)
	}
	if h.entry == nil || h.block.foreign { // a restore leaves a value alone that another program set
		return now, now
	}
	return now, max(h.bounded(h.entry.Baseline), min(h.floor, now))
}

// ask claims the pool's allocation with one knob at v. It returns why the claim is refused; "": it
// is granted. An amount that is claimed already is always granted.
func (hs *host) ask(ctx context.Context, h *managed, v trimtab.Amount) (why string) {
	if hs.arbiter == nil {
		return ""
	}
	now, _ := hs.sums(map[*managed]float64{h: h.atMost(v)})
	want := now[h.Resource]
	for _, k := range hs.knobs.all {
		if k != h && k.Resource == h.Resource && k.takesLeft() && k.counts() {
			want -= k.atMost(k.now) - k.Min // this part is claimed already
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

// grantFor returns how much of the wanted amount the pool may have.
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

// askAll claims at once the allocation after all raises of a step, at most a capacity by resource.
// ahead has the largest amounts of the raised knobs.
func (hs *host) askAll(ctx context.Context, ahead map[*managed]float64, capacity func(resource string) float64) {
	if hs.arbiter == nil {
		return
	}
	hs.failed = ""
	wanted, _ := hs.sums(ahead)
	resources := map[string]bool{}
	for h := range ahead {
		resources[h.Resource] = true
	}
	for resource := range resources {
		hs.grantFor(ctx, resource, min(wanted[resource], capacity(resource)))
	}
}

// announce claims the allocation of the pool with the given knobs at their baselines. It does so
// without asking, since a person wants them restored.
func (hs *host) announce(ctx context.Context, knobs []*managed) {
	if hs.arbiter == nil {
		return
	}
	ahead := map[*managed]float64{}
	for _, h := range knobs {
		_, ahead[h] = h.mayHave()
	}
	// If it fails, the next tick tries again.
	_ = hs.arbiter.Settle(ctx, hs.claims(ahead))
}

// arbitrate publishes the pool's claims, and reads what other pools leave. On an error the last
// state stays.
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

// divide records what other pools leave. It is never less than this pool's allocation, as a planner
// would otherwise lower its workloads for another pool.
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
		if alone := min(hs.limit(resource), measured); hs.config.Limits.Capacity != nil && left[resource] < alone-slack {
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

// bury removes the claims of dead processes that have no knob left to restore.
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

// noMarks stands in for the locks while they are not to be read.
func noMarks() (map[string]bool, error) { return nil, errors.ErrUnsupported }

// restored returns those of the journals that have nothing left to restore. marked returns the
// journals whose owner changed a knob that still exists. It may run concurrently, since it uses
// only the configuration.
func (hs *host) restored(journals []string, marked func() (map[string]bool, error)) (over []string) {
	for _, dir := range journals {
		if hostfs.JournalReadable(dir) != nil {
			continue
		}
		s, err := readDir(dir)
		if errors.Is(err, os.ErrNotExist) {
			// If the whole directory is missing, its storage was removed, or it is on a volume that
			// only another container mounts; then the knobs decide.
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

// disowned reports whether the knob of a journal entry is gone, or whether another process has
// taken over its baseline and claims it.
func (hs *host) disowned(e *entry, journal string) bool {
	k, err := hs.config.Reopen(e.Undo)
	if err != nil {
		return false
	}
	defer func() { _ = k.Close() }() // it was opened only to read
	can := k.Traits()
	if can.Location == nil {
		return false
	}
	place, err := can.Location()
	if err != nil {
		return errors.Is(err, os.ErrNotExist)
	}
	last := readMark(lockPath(hs.config.LockDir, e.Resource, place))
	return last.Dir != "" && last.Dir != journal
}

// reportOf returns why a knob cannot be used, or "". While the claims of other pools are unknown,
// nothing may be raised. So that nothing is lowered either, which could not be raised again, no
// changed knob can be used then.
func (hs *host) reportOf(k *managed) string {
	if why := k.report(); why != "" || hs.problem == "" || k.Mode != trimtab.Act {
		return why
	}
	return "claims of other pools on this host: " + hs.problem
}
