package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/sim"
)

// simCmd is `trimtab-lab sim`.
type simCmd struct {
	Cilantro simCilantroCmd `cmd:"" help:"A cluster shared by many jobs: learning policies, oracles and baselines side by side."`

	Colocate simColocateCmd `cmd:"" help:"Latency-critical services beside best-effort jobs: co-location policies side by side, with an oracle."`

	Kubernetes simKubernetesCmd `cmd:"" help:"A day of ten services whose pods take seconds to a minute to start: trimtab, HPA and KEDA at their best thresholds, an oracle."`

	Memory simMemoryCmd `cmd:"" help:"Recorded memory usage under rules that set a limit: trimtab, Autopilot, VPA side by side."`

	Microservices simMicroservicesCmd `cmd:"" help:"One application of 19 services that share CPUs: its P99 under policies that see only that P99, or its spans."`

	Rose simRoseCmd `cmd:"" help:"Batch jobs that use what is reserved and idle: ROSE beside other ways to select machines, the paper's tables with theirs and ours."`

	Services simServicesCmd `cmd:"" help:"Three services behind CPU quotas under load that moves, with the settings of production."`
}

// runFlags are those of every experiment whose runs are played beside each other.
type runFlags struct {
	Seeds   int    `help:"Runs of each ${row=policy}, 1 to ${most=10000}." default:"${seeds=5}"`
	Seed    uint64 `help:"Seed of the first run." default:"1"`
	Threads int    `help:"Runs at the same time, 0 to 1024; 0: one per core." default:"0"`
	Output  string `short:"o" help:"Form of the output: ${enum}." enum:"text,json,yaml" default:"text"`
}

func (f *runFlags) ranges(most float64) []cli.Ranged {
	return []cli.Ranged{cli.In("seeds", float64(f.Seeds), 1, most), cli.In("threads", float64(f.Threads), 0, 1024)}
}

// frame has the seeds, and ends the runs with ctx.
func (f *runFlags) frame(ctx context.Context) lab.Frame {
	return lab.Frame{Seeds: f.Seeds, First: f.Seed, Runner: cli.Parallel(ctx, f.Threads), Watch: stopwatch(), Stop: func() bool { return ctx.Err() != nil }}
}

// playing is an experiment to be played.
type playing struct {
	// command is that of its help, what what the progress bar tells of.
	command, what string
	frame         *lab.Frame
	runs          int
	// play returns how much was finished.
	play func() (finished int, err error)
}

// under plays it under a progress bar. stopped is the error of one that was told to stop
// after some of it was finished, which is to be printed; without any of it there is err.
func (p playing) under(ctx context.Context, t terminal) (stopped, err error) {
	finished := 0
	err = cli.Counted(t.err, p.what, p.runs, func(done func()) (err error) {
		p.frame.Done = done
		finished, err = p.play()
		return err
	})
	stopped = cutShort(ctx, finished)
	switch {
	case stopped != nil && finished == 0:
		return nil, stopped
	case stopped != nil || err == nil:
		return stopped, nil
	}
	var unknown *sim.UnknownError
	if errors.As(err, &unknown) {
		return nil, hint.Add(err, "%s", cli.DidYouMean(unknown.Name, unknown.Known))
	}
	return nil, hint.Else(err, "trimtab-lab sim %s --help has the ranges of all flags", p.command)
}

// simFlags are those of simulations in rounds. A command that embeds them sets policies,
// rounds and their length, the figures that it draws, and what else a policy may be.
type simFlags struct {
	Policy cli.Names `help:"Policies to run, side by side; \"all\" for every one${own=.}" default:"${policies}" placeholder:"NAME,..."`
	Rounds int       `help:"Rounds of ${length}, 1 to 100000." default:"${rounds}"`
	runFlags
	Plot string `help:"Directory to draw the paper's ${figures} into, as SVG." type:"path" placeholder:"DIR"`
}

// Validate is called by kong.
func (f *simFlags) Validate() error { return cli.Within(f.ranges()...) }

func (f *simFlags) ranges() []cli.Ranged {
	return append([]cli.Ranged{cli.In("rounds", float64(f.Rounds), 1, 100_000)}, f.runFlags.ranges(10_000)...)
}

// chosen are the names, each once; "all" stands for every known one.
func chosen(names cli.Names, known []string) (all []string) {
	for _, p := range names {
		of := []string{p}
		if p == "all" {
			of = known
		}
		for _, name := range of {
			if !slices.Contains(all, name) {
				all = append(all, name)
			}
		}
	}
	return all
}

// cutShort is the error of a simulation that was told to stop, after what was finished
// of it was printed; nil: it was not.
func cutShort(ctx context.Context, finished int) error {
	switch {
	case ctx.Err() == nil:
		return nil
	case finished == 0:
		return fmt.Errorf("run simulation: nothing was finished: %w", ctx.Err())
	}
	return fmt.Errorf("run simulation: only what was finished is printed: %w", ctx.Err())
}

// stopwatch returns the time since the call.
func stopwatch() lab.Watch {
	begin := time.Now()
	return func() time.Duration { return time.Since(begin) }
}

// readFile reads one input file with parse, and names it in errors.
func readFile[T any](name string, parse func(io.Reader, string) (T, error)) (T, error) {
	f, err := os.Open(name)
	if err != nil {
		var none T
		return none, fmt.Errorf("read %s: %w", filepath.Base(name), err)
	}
	defer f.Close()
	return parse(f, filepath.Base(name))
}
