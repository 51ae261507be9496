package throttle

import (
	"fmt"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/num"
)

// snapshotName is the name of the policy's only state, snapshotKind the version of its format.
const snapshotName, snapshotKind = "throttle", "throttle/1"

// snapshot is the state that outlives the process: what was learned. The queue and the throttling
// are not saved: after a restart all tasks are released.
type snapshot struct {
	// Flows are the resources of the regressions.
	Flows   []string            `json:"flows,omitempty"`
	Jobs    map[string]verdicts `json:"jobs,omitempty"`
	Victims []slopes            `json:"victims,omitempty"`
}

// verdicts counts the verdicts on the tasks of a job.
type verdicts struct {
	Guilty   float64 `json:"guilty"`
	Innocent float64 `json:"innocent"`
}

// slopes is the [sensitivity] of a victim.
type slopes struct {
	Workload string    `json:"workload"`
	Signal   string    `json:"signal"`
	B        []float64 `json:"b"`
	P        []float64 `json:"p"`
	A        float64   `json:"a"`
	C        float64   `json:"c"`
	Trials   int       `json:"trials"`
}

// flows returns the names of the resources that throttled tasks do not keep.
func (c *Config) flows() (names []string) {
	for _, r := range c.Resources {
		if !r.Stock {
			names = append(names, r.Name)
		}
	}
	return names
}

// Snapshot returns the verdicts on jobs and the sensitivities of LRAs; see [trimtab.Snapshotter].
func (p *Policy) Snapshot() map[string][]byte {
	out := snapshot{Flows: p.flows(), Jobs: map[string]verdicts{}}
	for name, j := range p.jobs {
		out.Jobs[name] = verdicts{j.guilty, j.innocent}
	}
	for name, a := range p.lras.apps {
		for _, v := range a.victims {
			if s := &v.sensitivity; s.n > 0 {
				out.Victims = append(out.Victims, slopes{name, v.Signal, slices.Clone(s.b), slices.Clone(s.p), s.a, s.c, s.n})
			}
		}
	}
	slices.SortFunc(out.Victims, func(a, b slopes) int {
		return slices.Compare([]string{a.Workload, a.Signal}, []string{b.Workload, b.Signal})
	})
	b, err := num.Seal(snapshotKind, out)
	if err != nil {
		return nil // cannot happen: numbers always marshal
	}
	return map[string][]byte{snapshotName: b}
}

// Restore restores a snapshot, before the first tick. It ignores sensitivities over other resources
// than the configured ones.
func (p *Policy) Restore(name string, state []byte) error {
	if name != snapshotName {
		return trimtab.Invalidf("restore throttle: no state is named %.40q", name)
	}
	var in snapshot
	if err := num.Unseal(snapshotKind, state, &in); err != nil {
		return fmt.Errorf("restore throttle: %w: %w", trimtab.ErrInvalid, err)
	}
	if err := in.check(); err != nil {
		return fmt.Errorf("restore throttle: %w", err)
	}
	p.jobs = make(records, len(in.Jobs))
	for job, v := range in.Jobs {
		p.jobs[job] = &record{guilty: v.Guilty, innocent: v.Innocent}
	}
	if !slices.Equal(in.Flows, p.flows()) {
		return nil
	}
	for _, s := range in.Victims {
		a := p.lras.apps[s.Workload]
		if a == nil {
			a = &app{left: p.clock.now}
			p.lras.apps[s.Workload] = a
		}
		if a.find(s.Signal) != nil {
			continue
		}
		v := newVictim(s.Workload, s.Signal, p.Resources)
		copy(v.sensitivity.b, s.B)
		copy(v.sensitivity.p, s.P)
		v.sensitivity.a, v.sensitivity.c, v.sensitivity.n = s.A, s.C, s.Trials
		a.victims = append(a.victims, v)
	}
	return nil
}

// check returns an error for a state that no policy produces.
func (in *snapshot) check() error {
	ok := len(in.Jobs) <= MaxJobs && len(in.Victims) <= MaxVictims && len(in.Flows) <= MaxDimensions
	for _, v := range in.Jobs {
		ok = ok && v.Guilty >= 0 && v.Innocent >= 0 && v.Guilty+v.Innocent <= mostVerdicts+1
	}
	signals, r := map[string]int{}, len(in.Flows)
	for _, s := range in.Victims {
		signals[s.Workload]++
		ok = ok && s.Signal != "" && signals[s.Workload] <= maxSignals && len(s.B) == r && len(s.P) == r*r
		ok = ok && s.A >= priorA && s.A <= mostA && s.C > 0 && s.C <= greatestAmount && s.Trials > 0
		for i := 0; ok && i < r; i++ {
			ok = s.P[i*r+i] > 0 && s.P[i*r+i] <= wide
		}
		for _, v := range slices.Concat(s.B, s.P) {
			ok = ok && v >= -greatestAmount && v <= greatestAmount
		}
	}
	if !ok || len(signals) > maxLRAs {
		return trimtab.Invalidf("a state that no policy keeps")
	}
	return nil
}
