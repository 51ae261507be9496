package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trimtab/trimtab/planner/instances"
)

// recall takes back what hosts that are lost have lent. A knob below its baseline
// lends the difference, on lease: when its host is lost the lease ends, the
// baseline comes back, and what others have above theirs no longer fits:
//
//	over = Σ believed_j − R, at most what lost hosts have lent
//	a_j <= now_j − (now_j − baseline_j) · over / Σ (now − baseline)
//
// The others are lowered in proportion to what they borrowed, never below their
// own baseline, and the guard has no say: the lease is running.
func (r *decision) recall(resource int) {
	p := r.planner
	if !p.ledger.LostAny(r.now) {
		return
	}
	var lent float64
	var lost []string
	for _, e := range p.ledger.Knobs() {
		if e.Resource != p.resources[resource].Name || !p.ledger.Lost(e, r.now) {
			continue
		}
		if v := e.Lends(); v > 0 {
			lent += v
			lost = append(lost, e.Host)
		}
	}
	over := math.Min(-r.idle(resource, r.believed(resource)), lent)
	var borrowed float64
	var from []lender
	for _, s := range r.seats {
		if s.resource != resource || !s.acts() {
			continue
		}
		for i := range s.knobs {
			k := &s.knobs[i]
			if k.Held.Problem != "" || k.Stuck {
				continue
			}
			over -= math.Max(0, k.Has-k.Set)
			if v := k.Above(); v > 0 {
				borrowed += v
				from = append(from, lender{s, k})
			}
		}
	}
	u := p.resources[resource].Unit
	if over < grain*u || borrowed <= 0 {
		return
	}
	slices.Sort(lost)
	part := math.Min(1, over/borrowed)
	for _, f := range from {
		s, k := f.seat, f.Instance
		baseline := k.Baseline()
		set := math.Max(baseline, math.Floor((baseline+k.Above()*(1-part))/u+grain)*u)
		if set < k.Set {
			k.Set = set
			s.grant.Set = s.knobs.Set()
			s.recalled = fmt.Sprintf("what it has above its baseline is lent by host %s, which is lost: its lease ends", strings.Join(slices.Compact(lost), ", "))
		}
	}
}

// lender is one that may have to give back.
type lender struct {
	*seat
	*instances.Instance
}
