package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// Newest returns the newest estimates of the declared workloads and the holdings of
// the hosts that count at now, as a planner would be told them. They are not to be
// changed.
func (v *Model) Newest(now time.Time) (estimates []*trimtab.Estimate, holdings []*trimtab.Holding) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.workloads {
		if s.declared && s.estimate != nil {
			estimates = append(estimates, s.estimate)
		}
	}
	for _, h := range v.hosts {
		if !h.gone(now) {
			holdings = append(holdings, &trimtab.Holding{Pool: h.pool, Host: h.name, Time: h.time, LeaseLeft: h.lease(now), Paused: h.paused,
				Capacity: h.capacity, Divided: h.divided, Targets: slices.Clone(h.knobs)})
		}
	}
	slices.SortFunc(estimates, func(a, b *trimtab.Estimate) int { return strings.Compare(a.Workload, b.Workload) })
	slices.SortFunc(holdings, func(a, b *trimtab.Holding) int {
		return cmp.Or(strings.Compare(a.Host, b.Host), strings.Compare(a.Pool, b.Pool))
	})
	return estimates, holdings
}
