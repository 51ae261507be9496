package colocate

import (
	control "github.com/trimtab/trimtab/planner/colocate"
)

// Figures are what a run, or a part of it, came to. Shares are in [0, 1].
type Figures struct {
	// EMU is the load as a share of the maximum, and Work the progress of jobs per
	// time on the hosts beside, alone on a machine = 1, less what was lost.
	EMU  float64 `json:"emu"`
	Load float64 `json:"load"`
	Work float64 `json:"be_throughput"`
	CPU  float64 `json:"cpu"`
	Band float64 `json:"membw"`
	// Held is the share of periods with the SLO held, Worst the worst p99 over it.
	Held  float64 `json:"slo_held"`
	Worst float64 `json:"worst_p99_over_slo"`
	// Kills of jobs, and Lost the hours of a machine that were done in vain.
	Kills float64 `json:"be_kills"`
	Lost  float64 `json:"lost_be_hours"`
	// Refused are changes that would have exceeded a host's capacity.
	Refused float64 `json:"refused,omitempty"`
	// Decisions of all hosts, by kind.
	Decisions map[control.Verb]float64 `json:"decisions,omitempty"`
	// Services has the same of each; nil in that of a service.
	Services map[string]Figures `json:"services,omitempty"`
}

// figures sums up a run: shares are means over the services, counts are sums. A
// host that two services share counts for both.
func (w *world) figures(periods int) Figures {
	all := Figures{Decisions: map[control.Verb]float64{}, Services: map[string]Figures{}}
	n, n2 := float64(len(w.services)), float64(periods)
	for _, s := range w.services {
		f := Figures{Load: s.tally.load / n2, Held: float64(s.tally.held) / n2, Worst: s.tally.worst, Decisions: map[control.Verb]float64{}}
		hosts := float64(len(s.of))
		for _, k := range s.of {
			t := &w.hosts[k].tally
			f.Work += (t.work - t.lost) / (n2 * PeriodSeconds) / hosts
			f.CPU += t.cpu / n2 / hosts
			f.Band += t.membw / n2 / hosts
			f.Kills += float64(t.kills)
			f.Lost += t.lost / 3600
			f.Refused += float64(t.refused)
			for verb, count := range t.verbs {
				f.Decisions[verb] += float64(count)
			}
		}
		f.EMU = f.Load + f.Work
		all.Services[s.Name] = f
		all.add(&f, 1/n)
	}
	all.Kills, all.Lost, all.Refused = all.Kills*n, all.Lost*n, all.Refused*n
	for verb := range all.Decisions {
		all.Decisions[verb] *= n
	}
	return all
}

// add adds o times weight; the worst stays the worst.
func (f *Figures) add(o *Figures, weight float64) {
	for i, v := range o.numbers() {
		*f.fields()[i] += weight * v
	}
	f.Worst = max(f.Worst, o.Worst)
	for verb, count := range o.Decisions {
		f.Decisions[verb] += weight * count
	}
}

// fields are those that add up.
func (f *Figures) fields() []*float64 {
	return []*float64{&f.EMU, &f.Load, &f.Work, &f.CPU, &f.Band, &f.Held, &f.Kills, &f.Lost, &f.Refused}
}

func (f *Figures) numbers() []float64 {
	var out []float64
	for _, p := range f.fields() {
		out = append(out, *p)
	}
	return out
}

// Mean returns the mean of runs; Worst is the worst of all.
func Mean(runs []Figures) Figures {
	out := Figures{Decisions: map[control.Verb]float64{}}
	of := map[string][]Figures{}
	for i := range runs {
		out.add(&runs[i], 1/float64(len(runs)))
		for name, f := range runs[i].Services {
			of[name] = append(of[name], f)
		}
	}
	for name := range of {
		if out.Services == nil {
			out.Services = map[string]Figures{}
		}
		out.Services[name] = Mean(of[name])
	}
	return out
}
