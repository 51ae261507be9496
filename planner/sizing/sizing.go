// Package sizing says which memory limit an instance should have, from what it uses and needs:
//
//	limit = need · (1 + margin),   within [min, max] of the operator
//	        at least use · (1 + margin), and at least the limit in force while the need is not learnt
//	        at least 1.2 · limit in force while the instance is short of memory
//
// An instance is short of memory if it met its limit or memory.high with a working set near it, waited
// for memory, or was killed for want of it. What is unknown lowers nobody: without a need there is no
// limit. An instance without a limit is only asked to get one.
//
// The package decides one instance at a time. The planner's guard bounds the steps, and the host
// refuses limits that exceed its memory together, and those below what is in use.
package sizing

import (
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

const (
	// grow is by how much the limit of an instance that is short of memory rises at least.
	grow = 1.2
	// recent is how long a shortage counts after it was last seen.
	recent = 15 * time.Second
	// underWay is how old a reading may be when it comes: one from just before the limit was set says
	// nothing of that.
	underWay = time.Second
)

// Bounds are the operator's: bytes, and the part of the need that a limit has above it.
type Bounds struct {
	Min, Max, Margin float64
}

// Valid reports whether the bounds make sense.
func (b *Bounds) Valid() bool {
	return b.Min > 0 && b.Max >= b.Min && b.Max <= 1<<60 && b.Margin >= 0 && b.Margin <= 10
}

// Size is a limit, and why.
type Size struct {
	// Limit is in bytes. Learnt says that it may be below the limit in force.
	Limit  float64
	Learnt bool
	// Short: the instance is short of memory, so that the limit must not wait for a round.
	Short bool
	Why   string
}

// Of returns the limit for an instance with a need and a limit in force, which was set at a time: only a
// shortage seen after that asks for more.
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
		if s.Short && s.Limit < grow*has.Value {
			s.Limit = grow * has.Value
			s.Why += "; it is short of memory now, so the limit rises by a fifth"
		}
		if !s.Learnt && s.Limit < has.Value {
			s.Limit = has.Value
			s.Why += "; it is not lowered: " + n.Unlearnt
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

// short reports whether an instance was short of memory lately, and since its limit was set.
func short(now, set time.Time, n *quantity.MemoryNeed) bool {
	for _, at := range []*time.Time{n.Short, n.Killed} {
		if at != nil && !at.After(now.Add(recent)) && now.Sub(*at) <= recent && at.Sub(set) > underWay {
			return true
		}
	}
	return false
}

func show(v float64) string { return trimtab.AmountOf(trimtab.Memory, trimtab.Units(v)) }
