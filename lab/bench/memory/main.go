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
)

// options are the flags.
type options struct {
	Services []string
	Parts    []string
	Day      time.Duration
	Rate     float64
	Within   time.Duration
	Trials   int
	Seed     uint64
	Trimtab  string
	Plot     string
	Keep     bool
}

// The parts of a run.
const (
	partRows   = "rows"
	partSweep  = "sweep"
	partTrials = "trials"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "memory: error:", err)
		}
		os.Exit(1)
	}
}

func command(args []string) error {
	if len(args) > 0 && args[0] == childWord {
		return child(args[1:])
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	b := &bench{options: *o, out: os.Stdout, err: os.Stderr}
	return b.run(ctx)
}

// parse reads the flags.
func parse(args []string) (*options, error) {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	var o options
	f := flag.NewFlagSet("memory", flag.ContinueOnError)
	services := f.String("service", strings.Join(names, ","), "services, with commas")
	parts := f.String("part", partRows+","+partSweep+","+partTrials, "parts of the run, with commas; the rows are needed by the others")
	f.DurationVar(&o.Day, "day", 30*time.Second, "length of the day that each row sees")
	f.Float64Var(&o.Rate, "rate", 80, "requests per second of a service at the highest level")
	f.DurationVar(&o.Within, "within", 200*time.Millisecond, "latency of the SLO")
	f.IntVar(&o.Trials, "trials", 15, "steps of the load under limits that trimtab set, over all services")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the load")
	f.StringVar(&o.Trimtab, "trimtab", "", "trimtab program; left out: it is built")
	f.StringVar(&o.Plot, "plot", "", "directory for a drawing of each service")
	f.BoolVar(&o.Keep, "keep", false, "keep data directories and logs")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	for _, list := range []struct {
		name, text string
		known      []string
		into       *[]string
	}{{"service", *services, names, &o.Services}, {"part", *parts, []string{partRows, partSweep, partTrials}, &o.Parts}} {
		*list.into = strings.Split(list.text, ",")
		for _, v := range *list.into {
			if !slices.Contains(list.known, v) {
				return nil, trimtab.Invalidf("--%s %.40q: want some of %s", list.name, v, strings.Join(list.known, ","))
			}
		}
	}
	if o.Trimtab != "" {
		var err error
		if o.Trimtab, err = filepath.Abs(o.Trimtab); err != nil {
			return nil, fmt.Errorf("find trimtab: %w", err)
		}
	}
	switch {
	case f.NArg() > 0:
		return nil, trimtab.Invalidf("arguments: want none but flags")
	case o.Day < 5*time.Second || o.Day > time.Hour:
		return nil, trimtab.Invalidf("day %v: want 5s to 1h", o.Day)
	case !(o.Rate >= 1 && o.Rate <= 1e4) || o.Within < time.Millisecond || o.Within > patience || o.Trials < 0 || o.Trials > 1e5:
		return nil, trimtab.Invalidf("rate %v, within %v, trials %d: out of range", o.Rate, o.Within, o.Trials)
	}
	return &o, nil
}
