package cgroup

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Share is a group's share by weight of the quota of its parent group. Its amount, in cores, is
// what the group gets whenever it wants as much; it may also use what others leave idle:
//
//	amount = weight / usual weight · Unit
//
// so that n groups of the usual weight under a limit of C have C/n each with Unit = C/n. Adopt
// removes the group's own quota, or raises it to the operator's maximum, and Restore sets it again.
// If the knob is capped, the amount is also a quota: the weight alone does not protect a service
// that works on one CPU while others use up the parent's quota on other CPUs.
//
// Source: Linux, cgroup-v2.rst, "cpu.weight"; sched-design-CFS.rst. docs/operations.md, "CPU by
// weight", shows that weights in proportion to amounts give no less at any instant than quotas of
// these amounts.
type Share struct {
	*Weight
	unit float64
	// most is the group's own quota while it shares. If the knob is capped, amount is its quota, if
	// that is less.
	most, amount trimtab.Amount
	capped       bool
	// bounds watches the group's own quota.
	bounds
	// was is the state of the group before the first write.
	was *shareBefore
	// above has the kernel's counters of the parent groups at the last call of Contended.
	above map[string]rawForce
}

// Traits returns the optional abilities of this knob.
func (k *Share) Traits() actuator.Traits {
	return actuator.Traits{
		Location: k.Location, Status: k.Status, InForce: k.InForce, Recall: k.Recall, Restore: k.Restore, Scale: k.Scale, Shared: k,
	}
}

// shareBefore is the state of a group before trimtab's first write: the weight as [Weight.Read]
// returns it, and the quota.
type shareBefore struct {
	Weight trimtab.Amount `json:"weight"`
	Quota  trimtab.Amount `json:"quota"`
}

// OpenShare opens the root as Open does. unit is the amount to which the default weight
// corresponds, in cores, > 0; most is the group's own maximum.
func OpenShare(c Config, unit float64, most trimtab.Amount) (*Share, error) {
	if !(unit > 0) || math.IsInf(unit, 0) {
		return nil, trimtab.Invalidf("cgroup %s: %v cores of the usual weight", c.Path, unit)
	}
	w, err := OpenWeight(c)
	if err != nil {
		return nil, err
	}
	return &Share{Weight: w, unit: unit, most: most}, nil
}

// shareKind is the format name in what Undo returns.
const shareKind = "cgroup-share/1"

type shareUndo struct {
	Unit float64      `json:"unit"`
	Was  *shareBefore `json:"was,omitempty"`
	Config
}

// ReopenShare opens the knob that undo describes. The error is trimtab.ErrUnsupported if undo
// belongs to another kind of knob.
func ReopenShare(b []byte) (*Share, error) {
	u, err := actuator.ReadUndo[shareUndo](shareKind, b)
	if err != nil {
		return nil, err
	}
	k, err := OpenShare(u.Config, u.Unit, trimtab.Unlimited())
	if err == nil {
		k.was = u.Was
	}
	return k, err
}

// Undo describes the knob for ReopenShare, with the group's state before the first write, or its
// present state if there was none yet.
func (k *Share) Undo() []byte {
	if k.was == nil {
		weight, err := k.Weight.Read(context.Background())
		quota, bad := k.quota()
		if err == nil && bad == nil {
			k.was = &shareBefore{Weight: weight, Quota: quota.Amount()}
		}
	}
	return actuator.UndoOf(shareKind, shareUndo{k.unit, k.was, k.config})
}

// Recall restores the record of the group's state before an earlier process wrote to it.
func (k *Share) Recall(b []byte) error {
	u, err := actuator.ReadUndo[shareUndo](shareKind, b)
	if err == nil && u.Was != nil {
		k.was = u.Was
	}
	return err
}

// Scale returns the ratio between the amount of a weight now and its amount for the knob that undo
// describes.
func (k *Share) Scale(undo []byte) float64 {
	u, err := actuator.ReadUndo[shareUndo](shareKind, undo)
	if err != nil {
		return 1 // undo belongs to another kind of knob, whose amounts are cores
	}
	return k.unit / u.Unit
}

// String names version and path.
func (k *Share) String() string {
	return fmt.Sprintf("cgroup v%d share %s", k.Version("cpu.shares"), k.config.Path)
}

// Resource returns "cpu".
func (k *Share) Resource() string { return trimtab.CPU }

// Read returns the amount of the group's weight, in cores.
func (k *Share) Read(ctx context.Context) (trimtab.Amount, error) {
	w, err := k.Weight.Read(ctx)
	k.amount = trimtab.Units(w.Value / usualWeight * k.unit)
	return k.amount, err
}

// weight returns the weight for an amount.
func (k *Share) weight(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited {
		return a
	}
	return trimtab.Units(max(1, a.Value/k.unit*usualWeight)) // 0 would make the group idle
}

// Nearest rounds to whole weights. An unlimited amount becomes the largest.
func (k *Share) Nearest(a trimtab.Amount) trimtab.Amount {
	return trimtab.Units(k.Weight.Nearest(k.weight(a)).Value / usualWeight * k.unit)
}

// Write sets the weight.
func (k *Share) Write(ctx context.Context, a trimtab.Amount) error {
	if err := a.Validate(); err != nil {
		return fmt.Errorf("write share of cgroup %s: %w", k.config.Path, err)
	}
	k.amount = a
	return k.Weight.Write(ctx, k.weight(a))
}

// Cap sets whether the amount is also a quota, from the next Adopt on.
func (k *Share) Cap(on bool) { k.capped = on }

// Capped returns what Cap set.
func (k *Share) Capped() bool { return k.capped }

// Reserves returns false: other groups may use what this group does not use.
func (k *Share) Reserves() bool { return false }

// leastPeriods and mostPeriods bound the number of quota periods over which Contended measures.
const leastPeriods, mostPeriods = 5, 100

// Contended reports whether the quota of a parent group throttled it in most of its periods since
// the last call.
func (k *Share) Contended() (so bool) {
	was := k.above
	k.above = map[string]rawForce{}
	for _, group := range ancestors(k.root, k.config.Path) {
		text, err := k.root.Read(path.Join(group, "cpu.stat"))
		if err != nil {
			continue
		}
		now := parseForce(text)
		k.above[group] = now
		if before, ok := was[group]; ok && now.periods >= before.periods && now.stopped >= before.stopped {
			periods := now.periods - before.periods
			so = so || periods >= leastPeriods && periods <= mostPeriods && 2*(now.stopped-before.stopped) > periods
		}
	}
	return so
}

// leastCap is the least quota of a capped group, in cores: the kernel accepts no less than 1 ms
// in a period of 100 ms.
const leastCap = 0.01

// own returns the group's own quota below the parent's limit: its maximum, or its cap, if that is
// less.
func (k *Share) own(above trimtab.Amount) trimtab.Amount {
	most := k.most
	if limit := trimtab.Units(math.Max(k.amount.Value, leastCap)); k.capped && !k.amount.Unlimited && limit.Less(most) {
		most = limit
	}
	if most.Less(above) {
		return most
	}
	return trimtab.Unlimited()
}

// Adopted reports whether the group has no quota of its own except its maximum.
func (k *Share) Adopted(ctx context.Context, above trimtab.Amount) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("read quota of cgroup %s: %w", k.config.Path, err)
	}
	q, err := k.quota()
	if err != nil {
		return false, err
	}
	own := q.With(k.own(above)).Amount()
	if !q.Amount().Equal(own, quantum) {
		return k.another(q.Amount()), nil
	}
	k.ours(own)
	return true, nil
}

// Fit lowers the group's own quota to the parent's next quota.
func (k *Share) Fit(ctx context.Context, above trimtab.Amount) error {
	q, err := k.quota()
	if err != nil || q.Amount().Unlimited || !above.Less(q.Amount()) {
		return err
	}
	return k.bound(ctx, above)
}

// Adopt raises the group's own quota to its maximum.
func (k *Share) Adopt(ctx context.Context, above trimtab.Amount) error {
	return k.bound(ctx, k.own(above))
}

func (k *Share) bound(ctx context.Context, to trimtab.Amount) error {
	if err := k.Owned(); err != nil {
		return fmt.Errorf("set quota of cgroup %s: %w", k.config.Path, err)
	}
	q, err := k.quota()
	if err != nil || k.another(q.Amount()) {
		return err
	}
	if err = k.setQuota(ctx, to); err == nil {
		k.ours(q.With(to).Amount())
	}
	return err
}

// Restore restores weight and quota.
func (k *Share) Restore(ctx context.Context, b []byte) error {
	u, err := actuator.ReadUndo[shareUndo](shareKind, b)
	if err == nil && u.Was == nil {
		err = trimtab.Invalidf("undo %.60q has no weight", b)
	}
	if k.bounds = (bounds{}); err == nil {
		err = k.Weight.Write(ctx, u.Was.Weight)
	}
	if err == nil {
		err = k.setQuota(ctx, u.Was.Quota)
	}
	if err == nil {
		k.was = nil
		err = k.check(ctx, u.Was)
	}
	if err != nil {
		return fmt.Errorf("restore share of cgroup %s: %w", k.config.Path, err)
	}
	return nil
}

// check reads the restored values back.
func (k *Share) check(ctx context.Context, was *shareBefore) error {
	weight, err := k.Weight.Read(ctx)
	quota, bad := k.quota()
	if err = errors.Join(err, bad); err == nil && (!weight.Equal(was.Weight, 1e-7) || !quota.Amount().Equal(was.Quota, quantum)) {
		err = fmt.Errorf("it has the weight %v and the quota %v, and had %v and %v", weight, quota.Amount(), was.Weight, was.Quota)
	}
	return err
}

func (k *Share) quota() (hostfs.Quota, error) { return k.root.Quota(k.config.Path) }

// setQuota sets the group's own quota if it differs.
func (k *Share) setQuota(ctx context.Context, a trimtab.Amount) error {
	now, err := k.quota()
	q := now.With(a)
	if err != nil || q == now {
		return err
	}
	switch {
	case k.Unit() != "":
		return k.SetUnit(ctx, "CPUQuotaPerSecUSec", perSecond(a))
	case k.shared():
		return k.Files.Write("cpu.cfs_quota_us", q.CFSQuota())
	}
	return k.Files.Write("cpu.max", q.CPUMax())
}

// Status returns the limit of the parent group.
func (k *Share) Status(ctx context.Context) *trimtab.KnobStatus {
	return tightest(ancestors(k.root, k.config.Path), func(group string) (trimtab.Amount, error) {
		q, err := k.root.QuotaIn(ctx, group)
		return q.Amount(), err
	})
}
