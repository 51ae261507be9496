package rose

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/planner/machines"
	"github.com/trimtab/trimtab/sim"
)

// The parts of an experiment.
const (
	// Submissions is table 1: tasks submitted at once, centralised.
	Submissions = "submission"
	// Yarns is table 3.
	Yarns = "yarn"
	// BatchOnly is tables 4 and 5, figures 13 to 15.
	BatchOnly = "batch"
	// Rescheduling is figure 16.
	Rescheduling = "rescheduling"
	// Beside is table 6, figures 17 and 18.
	Beside = "mixed"
)

// Parts are all of them.
func Parts() []string { return []string{Submissions, Yarns, BatchOnly, Rescheduling, Beside} }

// The names of policies and modes.
const (
	None, RB, SLB, QLB, ROSE = "none", "RB", "SLB", "QLB", "ROSE"
	UP, RP                   = "UP", "RP"
)

// PolicyNames are the policies that can be played.
func PolicyNames() []string { return []string{None, RB, SLB, QLB, ROSE} }

// Modes are the modes.
func Modes() []string { return []string{UP, RP} }

func policyOf(name string) machines.Policy {
	return map[string]machines.Policy{RB: machines.RB, SLB: machines.SLB, QLB: machines.QLB, ROSE: machines.MMF}[name]
}

// Experiment plays parts, each row with the same seeds.
type Experiment struct {
	lab.Frame
	Usage    *Usage
	Machines int
	// Parts, Policies and Modes to be played.
	Parts, Policies, Modes []string
	// Change, when not nil, changes the worlds of the batch jobs before they are played.
	Change func(*World)
}

// Row is one row of a table: the mean of its runs, and what the paper states.
type Row struct {
	Part string `json:"part"`
	Name string `json:"name"`
	// Policy selects machines, in a Mode where there are LRAs; "" where the part is about
	// something else.
	Policy string `json:"policy,omitempty"`
	Mode   string `json:"mode,omitempty"`
	Figures
	// StdErr is that of the makespan; nil: one run tells nothing of it.
	StdErr *float64 `json:"makespan_stderr_s,omitempty"`
	// Makespans of all runs.
	Makespans []float64 `json:"makespans_s"`
	Paper     Published `json:"paper,omitempty"`
	// History is that of the first run.
	History *History `json:"-"`
}

// planned is a row to be played.
type planned struct {
	part, name   string
	policy, mode string
	world        *World
	run          Run
}

const maxSeeds = 1000

// Validate returns an error that is trimtab.ErrInvalid.
func (x *Experiment) Validate() error {
	if x.Seeds < 1 || x.Seeds > maxSeeds {
		return trimtab.Invalidf("simulation: %d seeds: want 1 to %d", x.Seeds, maxSeeds)
	}
	for _, c := range []struct {
		what         string
		names, known []string
	}{{"policy", x.Policies, PolicyNames()}, {"mode", x.Modes, Modes()}, {"part", x.Parts, Parts()}} {
		if err := sim.Known(c.what, c.names, c.known); err != nil {
			return err
		}
	}
	return Batch(x.Machines, x.Usage).Validate()
}

// Runs is how many there will be.
func (x *Experiment) Runs() int { return len(x.plan()) * x.Seeds }

func (x *Experiment) plan() (all []planned) {
	chosen := func(p planned) {
		if slices.Contains(x.Parts, p.part) {
			all = append(all, p)
		}
	}
	add := func(part, name string, w *World, r Run) { chosen(planned{part: part, name: name, world: w, run: r}) }
	for _, tasks := range []int{2000, 5000} {
		for _, queue := range []int{10, 15, 20, 50, 70} {
			add(Submissions, fmt.Sprintf("%d/%d", tasks, queue), Submission(x.Usage, tasks, queue), Run{Scheme: Centralised, Attempts: tasks})
		}
	}
	add(Yarns, "YARN-n", Yarn(x.Usage), Run{Scheme: Native})
	add(Yarns, "YARN-o", Yarn(x.Usage), Run{Scheme: Centralised})
	add(Yarns, "YARN-r", Yarn(x.Usage), Run{Scheme: Distributed, Policy: machines.MMF})
	batch, mixed := Batch(x.Machines, x.Usage), Mixed(x.Machines, x.Usage)
	if x.Change != nil {
		x.Change(batch)
		x.Change(mixed)
	}
	still := *batch
	still.Timeout = 0
	for _, name := range x.Policies {
		if name == None {
			chosen(planned{BatchOnly, name, name, "", batch, Run{Scheme: Native}})
			chosen(planned{Beside, name, name, "", mixed, Run{Scheme: Native}})
			continue
		}
		r := Run{Scheme: Distributed, Policy: policyOf(name)}
		chosen(planned{BatchOnly, name, name, "", batch, r})
		if name == RB || name == ROSE {
			again := r
			again.Reschedule = true
			add(Rescheduling, name+" with", batch, again)
			add(Rescheduling, name+" without", &still, r)
		}
		for _, mode := range x.Modes {
			r.RP = mode == RP
			chosen(planned{Beside, name + "-" + mode, name, mode, mixed, r})
		}
	}
	return all
}

// Play runs all of it. One that was stopped returns the rows of which every run was
// finished, beside the error.
func (x *Experiment) Play() ([]Row, error) {
	if err := x.Validate(); err != nil {
		return nil, err
	}
	rows := x.plan()
	runs, histories := make([]Figures, len(rows)*x.Seeds), make([]*History, len(rows))
	finished, err := x.Frame.Play(len(rows), func(i, k int) error {
		r := rows[i].run
		r.Seed, r.Stop = x.First+uint64(k), x.Stop
		f, h, err := rows[i].world.Play(r)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", rows[i].part, rows[i].name, err)
		}
		if runs[i*x.Seeds+k] = *f; k == 0 {
			histories[i] = h
		}
		return nil
	})
	if err != nil && !errors.Is(err, sim.ErrStopped) {
		return nil, err
	}
	var out []Row
	for i := range rows {
		if !finished[i] {
			continue
		}
		of := runs[i*x.Seeds : (i+1)*x.Seeds]
		row := Row{Part: rows[i].part, Name: rows[i].name, Policy: rows[i].policy, Mode: rows[i].mode, Figures: Mean(of), Paper: Paper(rows[i].part, rows[i].name), History: histories[i]}
		for k := range of {
			row.Makespans = append(row.Makespans, of[k].Makespan)
		}
		if e := Spread(of); !math.IsNaN(e) {
			row.StdErr = &e
		}
		out = append(out, row)
	}
	return out, err
}

// Target is one of what the simulation must reach.
type Target struct {
	Name  string  `json:"name"`
	Paper float64 `json:"paper"`
	// Want is the bound, at least it if Least, else at most it.
	Want  float64 `json:"want"`
	Least bool    `json:"at_least"`
	Got   float64 `json:"got"`
	Held  bool    `json:"held"`
}

// Targets compares rows; those of which a row is missing are left out.
func Targets(rows []Row) (all []Target) {
	find := func(part, name string) *Row {
		for i := range rows {
			if rows[i].Part == part && rows[i].Name == name {
				return &rows[i]
			}
		}
		return nil
	}
	add := func(name string, paper, want float64, least bool, got float64) {
		all = append(all, Target{name, paper, want, least, got, least && got >= want || !least && got <= want})
	}
	if a, b := find(BatchOnly, ROSE), find(BatchOnly, RB); a != nil && b != nil {
		add("batch: makespan of ROSE over RB", 1-.3011, 0.7, false, a.Makespan/b.Makespan)
		add("batch: speculative tasks at once, ROSE over RB", 1.94, 1.9, true, a.Speculative/b.Speculative)
	}
	up, rp := find(Beside, ROSE+"-"+UP), find(Beside, ROSE+"-"+RP)
	if up != nil && rp != nil && rp.LRA != nil {
		add("mixed: p95 of the LRA under ROSE-RP over alone", 1.054, 1.054, false, rp.LRA.P95[2])
		add("mixed: cpu of ROSE-RP over ROSE-UP", .5634/.6302, 0.85, true, rp.CPU/up.CPU)
	}
	if a, b := find(Yarns, "YARN-r"), find(Yarns, "YARN-o"); a != nil && b != nil {
		add("yarn: started speculative tasks, distributed over centralised", 8.5, 8, true, a.Started/max(b.Started, 1))
	}
	return all
}
