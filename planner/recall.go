package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"
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
	var lent float64
	var lost []string
	for _, e := range p.ledger.sorted() {
		if e.Resource != p.resources[resource].Name || !p.ledger.lost(e.Host, r.now) {
			continue
		}
		if v := e.lends(p.most(e)); v > 0 {
			lent += v
			lost = append(lost, e.Host)
		}
	}
	over := math.Min(-p.idle(r.now, resource, nil), lent)
	var borrowed float64
	var from []*seat
	for _, s := range r.seats {
		if s.resource != resource || !s.acts() || s.entry.held.Problem != "" || p.ledger.lost(s.entry.Host, r.now) {
			continue
		}
		over -= math.Max(0, s.now-s.grant.Set)
		if v := s.above(p); v > 0 {
			borrowed += v
			from = append(from, s)
		}
	}
	u := p.resources[resource].Unit
	if over < grain*u || borrowed <= 0 {
		return
	}
	slices.Sort(lost)
	part := math.Min(1, over/borrowed)
	for _, s := range from {
		baseline := bounded(s.entry.held.Baseline, p.most(s.entry))
		set := math.Max(baseline, math.Floor((baseline+s.above(p)*(1-part))/u+grain)*u)
		if set < s.grant.Set {
			s.grant.Set = set
			s.recalled = fmt.Sprintf("what it has above its baseline is lent by host %s, which is lost: its lease ends", strings.Join(slices.Compact(lost), ", "))
		}
	}
}

// above is what the seat is to have above its baseline.
func (s *seat) above(p *Planner) float64 {
	return math.Min(s.now, s.grant.Set) - bounded(s.entry.held.Baseline, p.most(s.entry))
}
