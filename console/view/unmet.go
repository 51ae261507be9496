package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// UnmetOn lists the settings that are not in force on one host.
type UnmetOn struct {
	Host string `json:"host"`
	trimtab.Unmet
}

// Text says it to a person. That others claim capacity may be meant so.
func (u UnmetOn) Text() string {
	if u.What == codes.UnmetClaims {
		return "on " + u.Host + " " + u.Why
	}
	return "not in force on " + u.Host + ": " + u.Why
}

// Unmet returns what the configuration asks for and hosts do not have in force at now, at
// most [trimtab.MaxUnmet], by host.
func (v *Model) Unmet(now time.Time) []UnmetOn {
	v.mu.Lock()
	defer v.mu.Unlock()
	return unmetOn(&v.fleet, &v.jobs, now)
}

func unmetOn(f *fleet, jobs *jobBook, now time.Time) (all []UnmetOn) {
	for h := range f.All() {
		if h.Gone(now) {
			continue
		}
		for _, u := range h.Unmet {
			all = append(all, UnmetOn{h.Name, u})
		}
	}
	for _, name := range jobs.reporting(now) {
		for _, u := range jobs.hosts[name].said.Unmet {
			all = append(all, UnmetOn{name, u})
		}
	}
	slices.SortFunc(all, func(a, b UnmetOn) int {
		return cmp.Or(strings.Compare(a.Host, b.Host), strings.Compare(a.What, b.What), strings.Compare(a.Why, b.Why))
	})
	return all[:min(len(all), trimtab.MaxUnmet)]
}

// exceeds says that the pool does not hold all that a plan recommends of its first
// resource, together with what all others have; "": it does. A knob without a limit counts
// as one at its maximum, and of each the larger of what is set and in force.
func (f *fleet) exceeds(p *trimtab.Plan, c *Config, now time.Time) string {
	advised := map[trimtab.KnobID]trimtab.Amount{}
	resource := cmp.Or(p.Resource, c.Resource)
	for i := range p.Actions {
		a := &p.Actions[i]
		if a.Mode == trimtab.Recommend && (a.Resource == resource || resource == "") {
			id := a.KnobID
			id.Pool = ""
			advised[id] = a.Set
		}
	}
	capacity := p.CapacityOf(resource)
	if len(advised) == 0 || !(capacity > 0) {
		return ""
	}
	sum, raises := 0.0, false
	for h := range f.All() {
		if h.Gone(now) || h.Pool != cmp.Or(p.Pool, c.Pool) {
			continue
		}
		for i := range h.Knobs {
			k := &h.Knobs[i]
			if k.Resource != resource && resource != "" {
				continue
			}
			has, id := k.InForce(), k.KnobID
			id.Pool = ""
			if set, ok := advised[id]; ok {
				raises = raises || has.Less(set)
				has = set
			}
			if has.Unlimited {
				has = trimtab.Units(k.Max)
			}
			sum += has.Value
		}
	}
	if !raises || sum <= capacity*(1+1e-6) {
		return ""
	}
	return "what is recommended and what the others have is " + Sized(round9(sum), resource) + " together, and the pool has " + Sized(capacity, resource) +
		": not all of it can be followed together. Lower first those of whom less is wanted, or give the pool more"
}
