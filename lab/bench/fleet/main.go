package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// options are the flags.
type options struct {
	Agents, Workloads string
	Leaves, Instances int
	// Cgroups are those of the one agent that is a real process; 0: there is none.
	Cgroups int
	// Jobs are how many of them are best-effort jobs.
	Jobs int
	// Tasks are the speculative tasks that the real agent runs.
	Tasks         int
	Round, Report time.Duration
	For, Settle   time.Duration
	Binary        string
	// Profile is a directory for the profiles of all processes; empty: none.
	Profile string
	// Keep leaves the files, logs among them, where they are.
	Keep bool
}

// size is one fleet to measure.
type size struct{ agents, workloads int }

func main() {
	if len(os.Args) == 3 { // a process that this program started
		run := map[string]func(context.Context, string) error{"play-nats": serveNATS, "play-agents": playAgents}[os.Args[1]]
		if run != nil {
			exit(run)
		}
	}
	var o options
	flag.StringVar(&o.Agents, "agents", "100,300,1000", "agents, one on each host; several sizes are measured one after the other")
	flag.StringVar(&o.Workloads, "workloads", "1000,3000,10000", "workloads of each size, spread over the hosts")
	flag.IntVar(&o.Leaves, "leaves", 20, "how many agents have a leaf node; the others are clients of the NATS server")
	flag.IntVar(&o.Instances, "instances", 2, "instances of each workload, each on a host of its own with a knob of its own")
	flag.IntVar(&o.Cgroups, "cgroups", 0, "start one more agent, as a real process whose knobs are so many real cgroups, and follow it")
	flag.IntVar(&o.Jobs, "jobs", 0, "let so many of --cgroups be best-effort jobs, which the real agent decides on every 2 s")
	flag.IntVar(&o.Tasks, "tasks", 0, "let the real agent run so many speculative tasks, which sleep, beside its services")
	flag.DurationVar(&o.Round, "round", 10*time.Second, "the planner's round")
	flag.DurationVar(&o.Report, "report", 0, "interval of reports and samples; 0: trimtab's default for so many workloads")
	flag.DurationVar(&o.For, "for", time.Minute, "how long to measure")
	flag.DurationVar(&o.Settle, "settle", 30*time.Second, "how long to wait before anything is measured, once all are ready")
	flag.StringVar(&o.Binary, "binary", "", "the trimtab to measure; empty: build it")
	flag.StringVar(&o.Profile, "profile", "", "directory to write profiles of the measured time to; empty: none")
	flag.BoolVar(&o.Keep, "keep", false, "leave the files and logs of each size, and print where they are")
	flag.Parse()
	exit(func(ctx context.Context, _ string) error { return o.run(ctx) })
}

// exit runs until a signal and ends the program.
func exit(run func(context.Context, string) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[len(os.Args)-1])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "fleet:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// errFlags is the error of flags that do not go together.
var errFlags = errors.New("want as many numbers of --agents as of --workloads, all above 0, and no fewer agents than instances")

// errTasks is the error of tasks that nobody could run.
var errTasks = errors.New("want at most 100 --tasks, and --cgroups beside which they run")

// errJobs is the error of more jobs than there can be.
var errJobs = errors.New("want fewer --jobs than --cgroups: one is the service beside which they run")

// sizes reads the two lists.
func (o *options) sizes() (all []size, err error) {
	if o.Jobs < 0 || o.Jobs > 0 && o.Jobs >= o.Cgroups {
		return nil, errJobs
	}
	if o.Tasks < 0 || o.Tasks > 100 || o.Tasks > 0 && o.Cgroups == 0 {
		return nil, errTasks
	}
	agents, workloads := strings.Split(o.Agents, ","), strings.Split(o.Workloads, ",")
	if len(agents) != len(workloads) {
		return nil, errFlags
	}
	for i := range agents {
		a, bad := strconv.Atoi(agents[i])
		w, worse := strconv.Atoi(workloads[i])
		if bad != nil || worse != nil || a < o.Instances || w < 1 || o.Instances < 1 {
			return nil, errFlags
		}
		all = append(all, size{a, w})
	}
	return all, nil
}

func (o *options) run(ctx context.Context) error {
	sizes, err := o.sizes()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "trimtab-fleet-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	if o.Keep {
		fmt.Println("files:", dir)
	} else {
		defer func() { _ = os.RemoveAll(dir) }()
	}
	if o.Binary == "" {
		o.Binary = filepath.Join(dir, "trimtab")
		if err := rig.BuildTrimtab(ctx, o.Binary, rig.Released(o.Profile != "")...); err != nil {
			return err
		}
	}
	fmt.Printf("rounds of %v, measured for %v after %v; knobs and journals in memory, agents in one process\n", o.Round, o.For, o.Settle)
	var results []*result
	for _, s := range sizes {
		r, err := o.measure(ctx, s, filepath.Join(dir, fmt.Sprintf("%d-%d", s.agents, s.workloads)))
		if err != nil {
			return fmt.Errorf("measure %d agents, %d workloads: %w", s.agents, s.workloads, err)
		}
		results = append(results, r)
	}
	printTable(os.Stdout, results)
	return nil
}
