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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
)

// options are the flags.
type options struct {
	Services []string
	Rows     []string
	Loads    []float64
	Maxconns []int
	Before   time.Duration
	Step     time.Duration
	After    time.Duration
	Sweep    time.Duration
	Learn    time.Duration
	Within   time.Duration
	Patience time.Duration
	Retries  int
	Reuse    bool
	Seed     uint64
	Cores    float64
	Cost     time.Duration
	Capacity float64
	Output   string
	Trimtab  string
	Keep     bool
	// Proxy measures what proxies take of themselves instead.
	Proxy bool
}

func main() {
	err := command(os.Args[1:])
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "overload: error:", err)
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
	var o options
	f := flag.NewFlagSet("overload", flag.ContinueOnError)
	service := f.String("service", strings.Join(serviceNames(), ","), "services, with commas")
	rows := f.String("row", strings.Join(rowNames(), ","), "what stands before the service, with commas")
	loads := f.String("load", "0.8,1.2,2,3", "loads over the capacity, with commas")
	maxconns := f.String("maxconn", "1,2,3,4,6,8,12,16", "HAProxy's limits to choose from in hindsight, with commas; of one there is no sweep")
	seconds := f.Float64("seconds", 12, "length of the step")
	before := f.Float64("before", 3, "seconds of low load before it")
	after := f.Float64("after", 8, "seconds of low load after it")
	sweep := f.Float64("sweep", 5, "seconds of the step in a sweep")
	f.DurationVar(&o.Learn, "learn", time.Minute, "load from which trimtab learns before it sets HAProxy's limit for the first time")
	f.DurationVar(&o.Within, "within", 200*time.Millisecond, "latency of the SLO")
	f.DurationVar(&o.Patience, "time-out", 0, "when clients give up; 0: 5 times the SLO")
	f.IntVar(&o.Retries, "retries", 0, "how often a client tries again")
	f.BoolVar(&o.Reuse, "reuse", false, "use connections again, as a load balancer does; otherwise each request has its own, as users have")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the arrivals")
	f.Float64Var(&o.Cores, "cores", 0.4, "CPU of the service, in cores")
	f.DurationVar(&o.Cost, "cost", 4*time.Millisecond, "CPU time that a request is made to take")
	f.Float64Var(&o.Capacity, "capacity", 0, "capacity in requests per second, for one service; 0: it is measured")
	f.StringVar(&o.Output, "o", "text", "text or json (one line for each load)")
	f.StringVar(&o.Trimtab, "trimtab", "", "trimtab program; left out: it is built")
	f.BoolVar(&o.Keep, "keep", false, "keep data directories and logs")
	f.BoolVar(&o.Proxy, "proxy", false, "measure instead what HAProxy, a proxy of Go's library and the gate take of themselves; of the other flags only seconds, trimtab and keep count")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	for _, list := range []struct {
		name, text string
		known      []string
		into       *[]string
	}{{"service", *service, serviceNames(), &o.Services}, {"row", *rows, rowNames(), &o.Rows}} {
		*list.into = strings.Split(list.text, ",")
		for _, v := range *list.into {
			if !slices.Contains(list.known, v) {
				return nil, trimtab.Invalidf("--%s %.40q: want some of %s", list.name, v, strings.Join(list.known, ","))
			}
		}
	}
	var err error
	if o.Loads, err = numbers("load", *loads, 0.01, 20); err != nil {
		return nil, err
	}
	limits, err := numbers("maxconn", *maxconns, 1, 10_000)
	if err != nil {
		return nil, err
	}
	for _, v := range limits {
		o.Maxconns = append(o.Maxconns, int(v))
	}
	o.Before, o.Step, o.After, o.Sweep = seconded(*before), seconded(*seconds), seconded(*after), seconded(*sweep)
	if o.Patience == 0 {
		o.Patience = 5 * o.Within
	}
	if o.Trimtab != "" {
		if o.Trimtab, err = filepath.Abs(o.Trimtab); err != nil {
			return nil, fmt.Errorf("find trimtab: %w", err)
		}
	}
	return &o, o.validate(f.NArg())
}

func seconded(v float64) time.Duration { return time.Duration(v * float64(time.Second)) }

func (o *options) validate(left int) error {
	switch {
	case left > 0:
		return trimtab.Invalidf("arguments: want none but flags")
	case o.Before < 0 || o.After < 0 || o.Step < time.Second || o.Sweep < time.Second || o.Learn < time.Second || max(o.Before, o.Step, o.After, o.Sweep, o.Learn) > time.Hour:
		return trimtab.Invalidf("seconds %v, before %v, after %v, sweep %v, learn %v: out of range", o.Step, o.Before, o.After, o.Sweep, o.Learn)
	case o.Within < time.Millisecond || o.Patience < o.Within || o.Patience > time.Minute:
		return trimtab.Invalidf("within %v, time-out %v: out of range", o.Within, o.Patience)
	case o.Retries < 0 || o.Retries > 10:
		return trimtab.Invalidf("retries %d: out of range", o.Retries)
	case !(o.Cores >= 0.05 && o.Cores <= 100) || o.Cost < 100*time.Microsecond || o.Cost > time.Second:
		return trimtab.Invalidf("cores %v, cost %v: out of range", o.Cores, o.Cost)
	case !(o.Capacity >= 0 && o.Capacity <= 1e5) || o.Capacity > 0 && len(o.Services) > 1:
		return trimtab.Invalidf("capacity %v: out of range, or given for more than one service", o.Capacity)
	case o.Output != "text" && o.Output != "json":
		return trimtab.Invalidf("output %.40q: want text or json", o.Output)
	}
	return nil
}

// numbers reads a list of numbers within a range.
func numbers(name, text string, least, most float64) (out []float64, err error) {
	for word := range strings.SplitSeq(text, ",") {
		v, err := strconv.ParseFloat(word, 64)
		if err != nil || !(v >= least && v <= most) {
			return nil, trimtab.Invalidf("--%s %.40q: want numbers from %v to %v, with commas", name, text, least, most)
		}
		out = append(out, v)
	}
	return out, nil
}
