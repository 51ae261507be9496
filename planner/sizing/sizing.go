// Package sizing computes the memory limit of an instance from its use and its need:
//
//	limit = need · (1 + margin),   within [min, max] of the operator
//	        at least use · (1 + margin), and at least the limit in force while the need is not learnt
//	        at least 1.2 · limit in force while the instance is short of memory, and not below the limit
//	        in force for 15 s after that
//
// An instance was short of memory if the kernel killed a process of it, or if its working set was near
// its limit and it met the limit or memory.high, or waited for memory, or would soon have reached the
// limit. The analyzer finds that out and says when it was last so (quantity.MemoryNeed).
//
// The package decides one instance at a time; [Fit] then lowers what nodes of a cluster have no room
// for. It only computes. The planner's guard bounds the steps; the host refuses a limit below the use,
// and limits that together exceed its memory.
package sizing

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

const (
	// grow is the least factor by which the limit of an instance that is short of memory rises.
	grow = 1.2
	// recent is how long a shortage counts after it was last seen.
	recent = 15 * time.Second
	// underWay is how old a reading may be when it arrives. A shortage that is seen within underWay of a
	// new limit may have occurred under the old one, and does not count.
	underWay = time.Second
)

// Bounds are set by the operator: Min and Max in bytes, and Margin, how far a limit is above the need,
// as a part of the need.
type Bounds struct {
	Min, Max, Margin float64
}

// Valid reports whether the bounds make sense.
func (b *Bounds) Valid() bool {
	return b.Min > 0 && b.Max >= b.Min && b.Max <= 1<<60 && b.Margin >= 0 && b.Margin <= 10
}

// Size is a limit and the reason for it.
type Size struct {
	// Limit is in bytes. Learnt says that the need is learnt, so that Limit may be below the limit in
	// force.
	Limit  float64
	Learnt bool
	// Wanted is what Limit would be if its cluster allowed it, where [Fit] changed it; 0: it did not.
	Wanted float64
	// Short: the instance is short of memory. Soon: it is, or it starts with less than it needs, so
	// that its limit is raised at once.
	Short, Soon bool
	Why         string
}

// NeedOf returns the need of the instance that a knob belongs to; nil: it is not known.
func NeedOf(all []quantity.MemoryNeed, k trimtab.KnobID) *quantity.MemoryNeed {
	for i := range all {
		if n := &all[i]; n.Instance == k.Instance && (n.Host == k.Host || n.Host == "") {
			return n
		}
	}
	return nil
}

// Of returns the limit for an instance that needs n and has the limit has, which was set at the time
// set: only a shortage after that raises the limit again.
func (b *Bounds) Of(now, set time.Time, n *quantity.MemoryNeed, has trimtab.Amount) Size {
	s := Size{Limit: math.Max(n.Need, n.Use) * (1 + b.Margin), Learnt: n.Unlearnt == "", Short: short(now, set, n)}
	s.Why = fmt.Sprintf("its working set is %s, it needs up to %s, and the margin is %.3g%%", show(n.Use), show(n.Need), 100*b.Margin)
	if n.Kills > 0 && n.Killed != nil && now.Sub(*n.Killed) < 24*time.Hour {
		s.Why += fmt.Sprintf("; the kernel killed %.0f of its processes for want of memory, last %v ago", n.Kills, max(0, now.Sub(*n.Killed)).Round(time.Second))
	}
	if n.Growth > 0 {
		s.Why += fmt.Sprintf("; its use grows by %s a minute and does not stop: no limit is enough for that", show(60*n.Growth))
	}
	if !has.Unlimited {
		s.Soon = s.Short || !s.Learnt && n.Need > has.Value
		if s.Short && s.Limit < grow*has.Value {
			s.Limit = grow * has.Value
			s.Why += "; it is short of memory now, so the limit rises by a fifth"
		}
		switch {
		case math.Max(s.Limit, b.Min) >= has.Value: // it rises
		case !s.Learnt:
			s.Limit = has.Value
			s.Why += "; it is not lowered: " + n.Unlearnt
		case short(now, time.Time{}, n): // a use that rises still does
			s.Limit = has.Value
			s.Why += "; it is not lowered: it was short of memory less than 15 s ago"
		}
	}
	bounded := math.Min(math.Max(s.Limit, b.Min), b.Max)
	if bounded != s.Limit {
		s.Why += fmt.Sprintf("; within %s to %s", show(b.Min), show(b.Max))
	}
	s.Limit = bounded
	if now := has.Value; !has.Unlimited && s.Limit < now && n.Use*(1+b.Margin) > s.Limit {
		s.Limit = now // its max is below what it uses: only the operator may decide that
		s.Why += "; its max is below what it uses: it is not lowered to that"
	}
	return s
}

// short reports whether an instance was short of memory in the last 15 s, and after its limit was set.
func short(now, set time.Time, n *quantity.MemoryNeed) bool {
	for _, at := range []*time.Time{n.Short, n.Killed} {
		if at != nil && !at.After(now.Add(recent)) && now.Sub(*at) <= recent && at.Sub(set) > underWay {
			return true
		}
	}
	return false
}

func show(v float64) string { return trimtab.AmountOf(trimtab.Memory, trimtab.Units(v)) }
