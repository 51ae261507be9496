package microservices

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/lab/evolve"
	"github.com/trimtab/trimtab/sim"
)

// Experiment runs policies side by side, each with the same seeds.
type Experiment struct {
	lab.Frame
	Run    []string
	Rounds int
	Units  int
	Settings
	// Guard lets the guard of production bound the policies that learn, with its
	// defaults and a step of a third of the CPUs, as in production; off by
	// default, as in the paper.
	Guard bool
	// Both plays the policies that learn a second time, with the guard.
	Both bool

	static []int
}

// Outcome is what came of one policy, per run.
type Outcome struct {
	Policy string
	// P99 is that of each window, in ms, per run.
	P99 [][]float64
	// Compute is the time to learn and decide, per run and round.
	Compute []time.Duration
	// Guarded is the same with the guard; nil for a policy that has none, or
	// where the experiment is not to play both.
	Guarded *Outcome
}

// learns reports whether a policy runs through the steps of production.
func learns(name string) bool { return name == EndToEnd || name == WithSpans }

// Runs is how many runs the experiment has.
func (x *Experiment) Runs() int {
	runs := x.Seeds * len(x.Run)
	for _, name := range x.Run {
		if x.Both && learns(name) {
			runs += x.Seeds
		}
	}
	return runs
}

// Validate returns an error that is trimtab.ErrInvalid.
func (x *Experiment) Validate() error {
	switch {
	case x.Rounds < 1 || x.Rounds > 100_000 || x.Seeds < 1 || x.Seeds > 10_000:
		return trimtab.Invalidf("simulation: %d rounds of %d seeds", x.Rounds, x.Seeds)
	case x.Units < (leastUnits+1)*Count || x.Units > 1024:
		return trimtab.Invalidf("simulation: %d CPUs: want %d to 1024", x.Units, (leastUnits+1)*Count)
	case !(x.Rate > 0 && x.Rate < 1e9) || !(x.Speed >= 0.01 && x.Speed <= 100) || !(x.Scaling >= 0 && x.Scaling <= 1):
		return trimtab.Invalidf("simulation: %v requests/s at speed %v, scaling %v", x.Rate, x.Speed, x.Scaling)
	}
	return sim.Known("policy", x.Run, PolicyNames())
}

// series are the runs of one policy, with the settings of an experiment.
type series struct {
	of *Experiment
	to *Outcome
}

func (x *Experiment) outcome(name string) Outcome {
	return Outcome{Policy: name, P99: make([][]float64, x.Seeds), Compute: make([]time.Duration, x.Seeds)}
}

// Play runs all of it. One that was stopped returns the policies of which every run was
// finished, beside the error.
func (x *Experiment) Play() ([]Outcome, error) {
	if err := x.Validate(); err != nil {
		return nil, err
	}
	if x.static == nil && (slices.Contains(x.Run, BestStatic) || slices.Contains(x.Run, FirstSight)) {
		x.static = bestStatic(x.Settings, x.Units)
	}
	out := make([]Outcome, len(x.Run))
	guarded := *x
	guarded.Guard = true
	var all []series
	for i, name := range x.Run {
		out[i] = x.outcome(name)
		if all = append(all, series{x, &out[i]}); x.Both && learns(name) {
			o := x.outcome(name)
			out[i].Guarded = &o
			all = append(all, series{&guarded, &o})
		}
	}
	finished, err := x.Frame.Play(len(all), func(i, k int) error {
		s := &all[i]
		p, err := s.of.policy(s.to.Policy, x.First+uint64(k))
		if err != nil {
			return err
		}
		return s.of.play(p, s.to, k)
	})
	if err != nil && !errors.Is(err, sim.ErrStopped) {
		return nil, err
	}
	left := map[string]bool{} // with the guard or without
	for i, done := range finished {
		left[all[i].to.Policy] = left[all[i].to.Policy] || !done
	}
	var whole []Outcome
	for i := range out {
		if !left[out[i].Policy] {
			whole = append(whole, out[i])
		}
	}
	return whole, err
}

// Best returns the best static allocation found offline, and its P99 after the
// start, in ms. The experiment must be valid.
func (x *Experiment) Best() (cpus map[string]int, p99 float64) {
	if x.static == nil {
		x.static = bestStatic(x.Settings, x.Units)
	}
	cpus = map[string]int{}
	for i, name := range Names() {
		cpus[name] = x.static[i]
	}
	return cpus, meanP99(x.Settings, x.static) + floorSpread/2
}

// policy is one of newPolicy, or an oracle that has the best static allocation.
func (x *Experiment) policy(name string, seed uint64) (policy, error) {
	switch name {
	case BestStatic:
		return fixed(x.static), nil
	case FirstSight:
		p, err := newLearning(x.Units, x.Settings, false, false)
		return &told{policy: p, best: x.static}, err
	case EndToEnd, WithSpans:
		return newLearning(x.Units, x.Settings, name == WithSpans, x.Guard)
	case EvoAlg:
		return newTrying(x.Units, 0, seed), nil
	case EpsilonGreedy:
		return newTrying(x.Units, greedyShare, seed), nil
	}
	return fixed(evolve.Equal(x.Units, Count)), nil
}

// play is one run.
func (x *Experiment) play(p policy, o *Outcome, run int) error {
	s := x.Settings
	s.Seed = x.First + uint64(run)
	w := NewWorld(s)
	p99 := make([]float64, x.Rounds)
	begin := x.Now()
	for r := range p99 {
		if x.Stopped() {
			return sim.ErrStopped
		}
		report := w.Play(p.next())
		p99[r] = report.P99
		if err := p.tell(&report); err != nil {
			return fmt.Errorf("run %s: %w", o.Policy, err)
		}
	}
	o.P99[run], o.Compute[run] = p99, (x.Now()-begin)/time.Duration(x.Rounds)
	return nil
}

// Summary is the answer for one policy.
type Summary struct {
	Policy string `json:"policy"`
	// P99 is the mean over windows and runs, LastHour that of the last 120
	// windows (all of a shorter run), Warm that of all after the start, in ms.
	P99      float64 `json:"p99_ms_mean"`
	LastHour float64 `json:"p99_ms_last_hour"`
	Warm     float64 `json:"p99_ms_after_start"`
	// StdErr is the standard error of P99 over the runs; nil: one run tells
	// nothing of it.
	StdErr *float64 `json:"stderr,omitempty"`
	// Rounds until the P99, averaged over ten windows and all runs, is within
	// 1.15 of that of the best static allocation after the start; nil: never.
	Rounds *int `json:"rounds_to_level"`
	// Slowest is that of the run that took the most; nil: one never did.
	Slowest *int    `json:"rounds_to_level_slowest"`
	Compute float64 `json:"compute_ms"`
}

const (
	startWindows = 20
	hourWindows  = 120
	levelWindows = 10
	levelFactor  = 1.15
)

// Summarize sums up one policy; level is the P99 of the best static allocation
// after the start, in ms, 0 when it is not known.
func Summarize(o *Outcome, level float64) Summary {
	s := Summary{Policy: o.Policy}
	var all, last, warm []float64
	for _, run := range o.P99 {
		all = append(all, lab.Mean(run))
		last = append(last, lab.Mean(run[max(0, len(run)-hourWindows):]))
		warm = append(warm, lab.Mean(run[min(len(run)-1, startWindows):]))
	}
	stat := lab.StatOf(all)
	s.P99, s.LastHour, s.Warm = stat.Mean, lab.Mean(last), lab.Mean(warm)
	if len(all) > 1 {
		s.StdErr = &stat.StdErr
	}
	for _, c := range o.Compute {
		s.Compute += float64(c) / float64(time.Millisecond) / float64(len(o.Compute))
	}
	if level > 0 {
		s.Rounds = reached(o.P99, level*levelFactor)
		for i := range o.P99 {
			r := reached(o.P99[i:i+1], level*levelFactor)
			if r == nil {
				s.Slowest = nil
				break
			}
			if s.Slowest == nil || *r > *s.Slowest {
				s.Slowest = r
			}
		}
	}
	return s
}

// reached is the first window from which on the mean of levelWindows is below
// level, in the mean of all runs, for the first time.
func reached(runs [][]float64, level float64) *int {
	n := len(runs[0])
	for r := 0; r+levelWindows <= n; r++ {
		sum := 0.0
		for _, run := range runs {
			sum += lab.Mean(run[r : r+levelWindows])
		}
		if sum/float64(len(runs)) <= level {
			return &r
		}
	}
	return nil
}
