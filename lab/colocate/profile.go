package colocate

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/contribution"
	"github.com/trimtab/trimtab/lab"
	control "github.com/trimtab/trimtab/planner/colocate"
)

// Profile is what a run of a service alone tells of it, and the limits of its
// Servpods.
type Profile struct {
	Service string `json:"service"`
	// SLO is the bound of the p99, in seconds.
	SLO  float64 `json:"slo_s"`
	Pods []Pod   `json:"servpods"`
	// uncertain is, by load level, the p99 of a period that 1 in 200 exceeds, over
	// the mean.
	uncertain []float64
}

// Pod is the Servpod of a service on one host: its components there.
type Pod struct {
	Host string `json:"host"`
	// Contribution is C, and Share its part of all of the service.
	Contribution float64  `json:"contribution"`
	Share        float64  `json:"share"`
	Sojourn      float64  `json:"sojourn_s"`
	LoadLimit    *float64 `json:"loadlimit"`
	SlackLimit   *float64 `json:"slacklimit"`
}

func (p *Profile) pods(at map[string]int) []pod {
	var out []pod
	for i := range p.Pods {
		x := &p.Pods[i]
		out = append(out, pod{at[x.Host], x.Share, x.LoadLimit, x.SlackLimit})
	}
	return out
}

// The solo run: so many load levels up to the maximum, and periods at each; and the
// 30 minutes at the maximum whose worst p99 is the SLO.
const (
	levels, levelPeriods = 20, 200
	sloPeriods           = 900
)

// solo runs a service alone.
func solo(e *Environment, number int, seed uint64) (Profile, error) {
	at := map[string]int{}
	for k := range e.Hosts {
		at[e.Hosts[k].Name] = k
	}
	s := newService(&e.Services[number], at, seed, uint64(number))
	out := Profile{Service: s.Name, SLO: s.SLO}
	study := contribution.Profile{CoV: map[string][]float64{}, Clamp: true}
	for _, h := range s.of {
		study.Components = append(study.Components, contribution.Series{Name: e.Hosts[h].Name})
	}
	for j := 1; j <= levels; j++ {
		load := float64(j) / levels
		var tails []float64
		for range levelPeriods {
			s.serve(s.noisy(load, e.Load.Noise), nil)
			tails = append(tails, s.p99)
		}
		clear(s.backlog)
		s.serve(load, nil)
		clear(s.backlog)
		study.Loads = append(study.Loads, load)
		study.Tail = append(study.Tail, lab.Mean(tails))
		out.uncertain = append(out.uncertain, lab.Quantile(tails, 0.995)/lab.Mean(tails))
		for i, h := range s.of {
			mean, cov := s.stay(h)
			c := &study.Components[i]
			c.Sojourn = append(c.Sojourn, mean)
			study.CoV[c.Name] = append(study.CoV[c.Name], cov)
		}
	}
	if out.SLO == 0 {
		for range sloPeriods {
			s.serve(s.noisy(1, e.Load.Noise), nil)
			out.SLO = math.Max(out.SLO, s.p99)
		}
	}
	study.Paths = s.paths(e, &s.sampler.root)
	for name, cov := range study.CoV {
		if !rises(cov) {
			delete(study.CoV, name)
		}
	}
	result, err := study.Compute()
	if err != nil {
		return out, fmt.Errorf("profile service %s: %w", s.Name, err)
	}
	for i := range result.Components {
		c := &result.Components[i]
		out.Pods = append(out.Pods, Pod{Host: c.Name, Contribution: c.C, Share: c.CNorm, Sojourn: c.Mean, LoadLimit: c.LoadLimit})
	}
	return out, nil
}

// leastRise is by how much the coefficient of variation must rise over the levels
// for the loadlimit to be read off it: of a flat curve, the first level over the mean
// says nothing, and the limit is left to the policy's search.
const leastRise = 0.1

func rises(cov []float64) bool {
	mean := lab.Mean(cov)
	return cov[0] <= mean && cov[len(cov)-1]-slices.Min(cov) >= leastRise*mean
}

// stay is the mean time of a request in the components on one host, and its
// coefficient of variation.
func (s *service) stay(h int) (mean, cov float64) {
	variance := 0.0
	for i := range s.Components {
		if s.hosts[i] == h {
			mean += s.visits[i] * s.stations[i].sojourn()
			variance += s.visits[i] * s.stations[i].variance(s.Components[i].CV)
		}
	}
	if mean == 0 {
		return 0, 0
	}
	return mean, math.Sqrt(variance) / mean
}

// maxPaths bounds the paths of a call; further ones are left out.
const maxPaths = 64

// paths are the chains of hosts that a request may wait for: of the calls that are
// made at the same time, each path has one.
func (s *service) paths(e *Environment, v *visit) [][]string {
	all := [][]string{{e.Hosts[s.hosts[v.component]].Name}}
	for _, stage := range v.stages {
		var next [][]string
		for i := range stage {
			for _, tail := range s.paths(e, &stage[i]) {
				for _, head := range all {
					if len(next) < maxPaths {
						next = append(next, joined(head, tail))
					}
				}
			}
		}
		all = next
	}
	return all
}

// joined appends the hosts of b that a does not have.
func joined(a, b []string) []string {
	out := append([]string(nil), a...)
	for _, name := range b {
		known := false
		for _, have := range out {
			known = known || have == name
		}
		if !known {
			out = append(out, name)
		}
	}
	return out
}

// Limits is how the slacklimits of Rhythm's policies are found.
type Limits string

// The ways to find slacklimits.
const (
	// Algorithm1 is the paper's, before the run: the limit falls by 1 − C/ΣC at a
	// time while ten minutes beside best-effort jobs hold the SLO.
	Algorithm1 Limits = "algorithm1"
	// Searched is the online search of planner/colocate, before the run.
	Searched Limits = "search"
	// Online leaves the search to the policy, in the run.
	Online Limits = "online"
)

// Candidates begin and end so: an end below firstLoad is that of the profile.
const (
	windowPeriods = 300 // ten minutes
	maxWindows    = 60
	// missedShare of a window's periods may be out of the SLO.
	missedShare = 0.01
	// The load rises and falls between these in each window.
	lowLoad, highLoad = 0.05, 0.95
)

// swept is the load of a period of the profiling: up and down again.
func swept(period int) float64 {
	x := float64(period%windowPeriods) / windowPeriods
	return lowLoad + (highLoad-lowLoad)*(1-math.Abs(2*x-1))
}

// profiles runs every service alone, and finds the slacklimits.
func (x *Experiment) profiles() ([]Profile, error) {
	var out []Profile
	for i := range x.Env.Services {
		p, err := solo(x.Env, i, x.First)
		if err != nil {
			return nil, err
		}
		out = append(out, p)
	}
	switch x.Limits {
	case Online:
		return out, nil
	case Searched:
		return out, x.searched(out)
	case Algorithm1, "":
		return out, x.algorithm1(out)
	}
	return nil, trimtab.Invalidf("limits %.40q: want %s, %s or %s", x.Limits, Algorithm1, Searched, Online)
}

// profileSeed is that of the profiling, apart from those of the runs.
const profileSeed = 0x70726f66

// window plays ten minutes from empty hosts and counts the periods of each service
// that missed the SLO.
func (x *Experiment) window(known []Profile, seed uint64) ([]int, error) {
	w := newWorld(x.Env, known, seed)
	if err := x.equip(w, control.Rhythm); err != nil {
		return nil, err
	}
	missed := make([]int, len(w.services))
	for p := range windowPeriods {
		w.play(swept(p))
		for i, s := range w.services {
			if s.p99 > s.slo {
				missed[i]++
			}
		}
		w.decide()
	}
	return missed, nil
}

// algorithm1 is that of the paper. A Servpod whose limit would not be over 0 keeps
// its last; the loop of a service ends when none moves, or when the SLO is missed.
func (x *Experiment) algorithm1(out []Profile) error {
	good := make([][]float64, len(out))
	done := make([]bool, len(out))
	for i := range out {
		for j := range out[i].Pods {
			one := 1.0
			out[i].Pods[j].SlackLimit = &one
			good[i] = append(good[i], 1)
		}
	}
	for n := range maxWindows {
		moving := false
		for i := range out {
			moved := false
			for j := range out[i].Pods {
				p := &out[i].Pods[j]
				if next := good[i][j] - (1 - p.Share); !done[i] && next > 1e-9 && p.Share < 1 {
					p.SlackLimit, moved = &next, true
				}
			}
			done[i] = done[i] || !moved
			moving = moving || moved
		}
		if !moving {
			return nil
		}
		missed, err := x.window(out, x.First+profileSeed+uint64(n))
		if err != nil {
			return err
		}
		for i := range out {
			held := float64(missed[i]) <= missedShare*windowPeriods
			for j := range out[i].Pods {
				if p := &out[i].Pods[j]; held {
					good[i][j] = *p.SlackLimit
				} else if !done[i] {
					was := good[i][j]
					p.SlackLimit = &was
				}
			}
			done[i] = done[i] || !held
		}
	}
	return nil
}

// searched lets the online search of planner/colocate try candidates, for so many
// windows or until all are done.
func (x *Experiment) searched(out []Profile) error {
	var all [][]*control.Search
	for i := range out {
		var of []*control.Search
		for j := range out[i].Pods {
			s := control.NewSearch(out[i].Pods[j].Share)
			of = append(of, s)
			out[i].Pods[j].SlackLimit = &s.SlackLimit
		}
		all = append(all, of)
	}
	w := newWorld(x.Env, out, x.First+profileSeed)
	if err := x.equip(w, control.Rhythm); err != nil {
		return err
	}
	for p := range maxWindows * windowPeriods {
		w.play(swept(p))
		done := true
		for i, s := range w.services {
			for j := range s.pods {
				d := &s.pods[j]
				e := control.Evidence{Held: s.p99 <= s.slo, Ran: w.hosts[d.host].busy > 0, Slack: (s.slo - s.p99) / s.slo, Load: s.load, Share: d.share}
				all[i][j].Observe(control.SearchConfig{Window: 10 * time.Minute}, e)
				done = done && all[i][j].Done
			}
		}
		if done {
			break
		}
		w.decide()
	}
	for i := range out {
		for j := range out[i].Pods {
			v := all[i][j].SlackLimit
			out[i].Pods[j].SlackLimit = &v
		}
	}
	return nil
}
