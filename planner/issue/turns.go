package issue

import (
	"fmt"
	"maps"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// turns removes actions that a host cannot carry out in time: a host whose knobs belong to an API
// server makes only a limited number of changes a second. The most urgent actions stay; the next
// plan decides on the others again. A plan that a person applies is left whole: the host carries
// out all of it or nothing.
func (i *Issuer) turns(d Decision) Decision {
	paces := i.Ledger.Paces()
	if len(paces) == 0 || d.Applies != "" {
		return d
	}
	later := map[trimtab.KnobID]bool{}
	for host, pace := range paces {
		all, most := d.on(host), max(1, int(pace*i.turn().Seconds()))
		if len(all) <= most {
			continue
		}
		for _, at := range trimtab.Urgent(all)[most:] {
			later[all[at].KnobID] = true
		}
	}
	if len(later) == 0 {
		return d
	}
	i.Later += uint64(len(later))
	r := rest{later, map[string]bool{}, map[[2]string]trimtab.Reason{}}
	d.Shrinks, d.Grows = r.of(d.Shrinks), r.of(d.Grows)
	unmoved := make(map[string]trimtab.Held, len(d.Unmoved))
	maps.Copy(unmoved, d.Unmoved)
	for id := range later {
		if !r.moved[id.Workload] {
			unmoved[id.Workload] = trimtab.Held{Code: codes.StayTurn, Text: fmt.Sprintf("its turn has not come: the API server takes %.0f changes a second, the most urgent go first", paces[id.Host])}
		}
	}
	d.Unmoved = unmoved
	return d
}

// on returns all actions for a host.
func (d *Decision) on(host string) []trimtab.Action {
	all := make([]trimtab.Action, 0, len(d.Shrinks)+len(d.Grows))
	for _, list := range [][]trimtab.Action{d.Shrinks, d.Grows} {
		for n := range list {
			if list[n].Host == host {
				all = append(all, list[n])
			}
		}
	}
	return all
}

// turn is how long the changes of one plan may take: a sixth of the lease for both of its steps, so
// that a plan is carried out long before it expires.
func (i *Issuer) turn() time.Duration { return i.Lease / 6 }

// rest filters the actions of a decision that are left for later.
type rest struct {
	later map[trimtab.KnobID]bool
	// moved has the workloads with an action that stays. The first action of a workload has the
	// reason that applies to all its instances; said keeps it for the next one, if the first is
	// left for later.
	moved map[string]bool
	said  map[[2]string]trimtab.Reason
}

// of returns the actions that stay.
func (r *rest) of(actions []trimtab.Action) []trimtab.Action {
	var out []trimtab.Action
	for n := range actions {
		a := actions[n]
		name := [2]string{a.Workload, a.Resource}
		if r.later[a.KnobID] {
			if a.Why.Target != nil {
				r.said[name] = a.Why
			}
			continue
		}
		if why, waits := r.said[name]; waits && a.Why.Target == nil {
			why.Summary = a.Why.Summary
			a.Why = why
			delete(r.said, name)
		}
		r.moved[a.Workload] = true
		out = append(out, a)
	}
	return out
}
