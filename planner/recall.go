package planner

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trimtab/trimtab/planner/allocation"
	"github.com/trimtab/trimtab/planner/instances"
	"github.com/trimtab/trimtab/planner/recall"
)

// recall lowers workloads that use capacity lent by a lost host, before that host restores its
// baselines: see package recall.
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
	var from []borrower
	var borrowers []recall.Borrower
	for _, s := range r.allocations {
		if s.Index != resource || !s.Acts() {
			continue
		}
		for i := range s.Knobs {
			if k := &s.Knobs[i]; k.Held.Problem == "" && !k.Stuck {
				from = append(from, borrower{s, k})
				borrowers = append(borrowers, recall.Borrower{Now: k.Has, Set: k.Set, Baseline: k.Baseline()})
			}
		}
	}
	slices.Sort(lost)
	for i, set := range recall.Sets(borrowers, over, p.resources[resource].Unit) {
		if s, k := from[i].of, from[i].in; set < k.Set {
			k.Set = set
			s.Step.Set = s.Knobs.Set()
			s.Notes.Recalled = fmt.Sprintf("what it has above its baseline is lent by host %s, which is lost: its lease ends", strings.Join(slices.Compact(lost), ", "))
		}
	}
}

// borrower is an instance that may have to give back lent capacity.
type borrower struct {
	of *allocation.Allocation
	in *instances.Instance
}
