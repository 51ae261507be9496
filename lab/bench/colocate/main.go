package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/colocate"
)

// options are the flags.
type options struct {
	Policies []string
	Seconds  float64
	Repeat   int
	Seed     uint64
	Day      int
	Data     string
	Cost     time.Duration
	Factor   float64
	SLO      time.Duration
	Max      float64
	Weight   int
	Start    float64
	Step     float64
	Limits   *[2]float64
	Direct   bool
	History  string
	Output   string
	Trimtab  string
	Keep     bool
}

// The rows that nobody controls: the jobs beside the service by the kernel alone, which shares
// by weight, or runs them only while nobody else wants a CPU (cpu.idle), and the service without
// a job.
const (
	theKernel = "weights"
	idle      = "idle"
	alone     = "none"
)

// policies lists the rows.
func policies() []string {
	return []string{idle, theKernel, alone, colocate.Heracles, colocate.Indiscriminate, colocate.Rhythm, colocate.Deflation}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := command(ctx, os.Args[1:])
	stop()
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "colocate: error:", err)
		}
		os.Exit(1)
	}
}

// command is the bench, or one of its own best-effort jobs.
func command(ctx context.Context, args []string) error {
	var w worker
	f := flag.NewFlagSet("colocate", flag.ContinueOnError)
	work := f.Bool("worker", false, "be a best-effort job, as the bench starts it")
	f.StringVar(&w.Dir, "dir", ".", "with -worker: where its files are")
	f.IntVar(&w.Size, "size", 1<<20, "with -worker: bytes to work on")
	f.DurationVar(&w.Every, "checkpoint", 10*time.Second, "with -worker: time between two checkpoints")
	o, err := parse(f, args)
	if err != nil {
		return err
	}
	if *work {
		return w.run(ctx)
	}
	b := &bench{options: *o, out: os.Stdout, err: os.Stderr}
	return b.run(ctx)
}

// parse reads the flags.
func parse(f *flag.FlagSet, args []string) (*options, error) {
	var o options
	policy := f.String("policy", strings.Join(policies(), ","), "rows, with commas")
	f.Float64Var(&o.Seconds, "seconds", 150, "how long a row lasts: a day of the recorded load")
	f.IntVar(&o.Repeat, "repeat", 1, "how often each row is run")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the arrivals; each repetition adds 1")
	f.IntVar(&o.Day, "day", 2, "which day of the recording")
	f.StringVar(&o.Data, "data", os.Getenv("TRIMTAB_DATA"), "directory with recorded loads; without one a built-in day is played")
	f.DurationVar(&o.Cost, "cost", 1500*time.Microsecond, "CPU time that a request is made to take in each component")
	f.Float64Var(&o.Factor, "factor", 4, "the SLO's latency is so many times the p99 of the service alone at half load")
	f.DurationVar(&o.SLO, "slo", 0, "the SLO's latency; 0: it is measured")
	f.Float64Var(&o.Max, "max", 0, "the most load, in requests/s; 0: it is measured")
	f.IntVar(&o.Weight, "weight", 2, "CPU weight of a best-effort job; each component has 100")
	f.Float64Var(&o.Start, "start", 0.2, "CPU time that a new job gets, in cores")
	f.Float64Var(&o.Step, "step", 0.1, "CPU time that one decision gives or takes, in cores")
	limits := f.String("limits", "0,0.2", "loadlimit,slacklimit of Rhythm, declared; 0: trimtab finds it. The search for a slacklimit takes longer than a row")
	f.BoolVar(&o.Direct, "direct", false, "drive the policies with the bench's own figures and hands, without trimtab")
	f.StringVar(&o.History, "history", "", "directory with what trimtab learnt of the service alone; where it is not there, it is made")
	f.StringVar(&o.Output, "o", "text", "text or json")
	f.StringVar(&o.Trimtab, "trimtab", "", "trimtab program; left out: it is built")
	f.BoolVar(&o.Keep, "keep", false, "keep data directories and logs")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	o.Policies = strings.Split(*policy, ",")
	if *limits != "" {
		o.Limits = new([2]float64)
		if n, err := fmt.Sscanf(*limits, "%f,%f", &o.Limits[0], &o.Limits[1]); n != 2 || err != nil || !(o.Limits[0] >= 0 && o.Limits[0] <= 1 && o.Limits[1] >= 0 && o.Limits[1] <= 1) || *o.Limits == [2]float64{} {
			return nil, trimtab.Invalidf("limits %.40q: want loadlimit,slacklimit", *limits)
		}
	}
	if o.Trimtab != "" {
		var err error
		if o.Trimtab, err = filepath.Abs(o.Trimtab); err != nil {
			return nil, fmt.Errorf("find trimtab: %w", err)
		}
	}
	return &o, o.validate(f.NArg())
}

func (o *options) validate(left int) error {
	known := policies()
	for i, p := range o.Policies {
		if !slices.Contains(known, p) || slices.Contains(o.Policies[:i], p) {
			return trimtab.Invalidf("policy %.40q: want some of %s, each once", p, strings.Join(known, ", "))
		}
	}
	switch {
	case left > 0:
		return trimtab.Invalidf("arguments: want none but flags")
	case !(o.Seconds >= 4 && o.Seconds <= 3600) || o.Repeat < 1 || o.Repeat > 100:
		return trimtab.Invalidf("seconds %v, repeat %d: want 4 to 3600, 1 to 100", o.Seconds, o.Repeat)
	case o.Cost < 100*time.Microsecond || o.Cost > 100*time.Millisecond || !(o.Factor > 1 && o.Factor <= 100):
		return trimtab.Invalidf("cost %v, factor %v: out of range", o.Cost, o.Factor)
	case o.SLO < 0 || !(o.Max >= 0 && o.Max < 1e6) || o.Weight < 1 || o.Weight > 10000:
		return trimtab.Invalidf("slo %v, max %v, weight %d: out of range", o.SLO, o.Max, o.Weight)
	case !(o.Start > 0 && o.Start <= 64) || !(o.Step > 0 && o.Step <= 64):
		return trimtab.Invalidf("start %v, step %v: out of range", o.Start, o.Step)
	case (o.SLO == 0) != (o.Max == 0):
		return trimtab.Invalidf("slo %v, max %v: want both or none", o.SLO, o.Max)
	case o.Output != "text" && o.Output != "json":
		return trimtab.Invalidf("output %.40q: want text or json", o.Output)
	}
	return nil
}
