package view

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/newest"
)

// maxHosts bounds the hosts that are known; those that have not reported for the longest time are
// dropped first.
const maxHosts = 10_000

// fleet has the hosts, and the trend of the amount that each gives out.
type fleet struct {
	newest.Hosts
	trends map[newest.HostKey]*trend
}

// observe stores the report of a host; resource is that of the pool.
func (f *fleet) observe(said *trimtab.Holding, now time.Time, resource string, all *workloads) {
	h, changed := f.Observe(said, now)
	f.mark(changed, h.Time, all)
	t := f.trends[h.HostKey]
	if t == nil {
		t = &trend{}
		f.trends[h.HostKey] = t
	}
	if now.Unix()/60 != t.minute {
		t.note(now, given(h, resource))
	}
	for key := range f.trends {
		if len(f.trends) <= f.Len() {
			break
		}
		if f.Host(key.Pool, key.Name) == nil {
			delete(f.trends, key)
		}
	}
}

// mark marks workloads of which a knob changed at a time.
func (f *fleet) mark(names []string, at time.Time, all *workloads) {
	for _, name := range names {
		if all.all[name] == nil && len(f.On(name)) == 0 {
			continue
		}
		if s := all.state(name); s != nil {
			s.since.knob = newest.Begun(s.since.knob, f.Problems(name) > 0, at)
		}
	}
}
