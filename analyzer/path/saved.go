package path

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/num"
)

const (
	// servingState is the name of the package's only state, servingKind the version of its format.
	servingState = "serving"
	servingKind  = "path-serving/1"
)

// serving is a component that has served requests.
type serving struct {
	Workload  string `json:"workload"`
	Component string `json:"component"`
}

func (a serving) compare(b serving) int {
	return cmp.Or(cmp.Compare(a.Workload, b.Workload), cmp.Compare(a.Component, b.Component))
}

// Snapshot returns which components have served requests. Without it, their spans without a caller
// would count as requests after a restart, until they serve again.
func (p *Path) Snapshot() map[string][]byte {
	all := p.places.serving()
	if len(all) == 0 {
		return nil
	}
	b, err := num.Seal(servingKind, all)
	if err != nil {
		return nil // cannot happen: texts always marshal
	}
	return map[string][]byte{servingState: b}
}

// Restore restores the Snapshot of an earlier Path. It is valid for the time [places.idle], in
// which the components should serve again: one that does not may be another program.
func (p *Path) Restore(name string, state []byte) error {
	if name != servingState {
		return trimtab.Invalidf("restore %.40q: there is no such state", name)
	}
	var all []serving
	if err := num.Unseal(servingKind, state, &all); err != nil {
		return fmt.Errorf("restore %s: %w: %w", name, err, trimtab.ErrInvalid)
	}
	p.places.served = map[serving]bool{}
	for _, s := range all[:min(len(all), p.config.MaxComponents)] {
		p.places.served[s] = true
	}
	return nil
}

// serving returns the components that serve requests, sorted.
func (p *places) serving() (all []serving) {
	for key, id := range p.byPlace {
		if p.serves(id) && len(key.component) <= maxName {
			all = append(all, serving{p.workloads[key.workload].name, key.component})
		}
	}
	if p.servedUntil == 0 || p.now < p.servedUntil {
		for s := range p.served {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, serving.compare)
	return slices.Compact(all)
}

// servedBefore returns until when a new component counts as serving because it served before a
// restart, in Unix ns; 0: it did not.
func (p *places) servedBefore(workload int32, component string) int64 {
	if p.servedUntil == 0 {
		p.servedUntil = p.now + p.idle()
	}
	if !p.served[serving{p.workloads[workload].name, component}] {
		return 0
	}
	return p.servedUntil
}
