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
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/lab/services"
	"github.com/trimtab/trimtab/lab/services/shape"
)

// options are the flags.
type options struct {
	Minutes   float64
	Scenarios []string
	Seed      uint64
	Pool      float64
	Cost      time.Duration
	Range     time.Duration
	Output    string
	Plot      string
	Trimtab   string
	Override  string
	Keep      bool
	Fast      bool
	Repeat    int

	policies                      []string
	statics, thresholds, captains []float64
}

func main() {
	o, err := parse(os.Args[1:])
	if err == nil {
		b := &bench{options: *o, out: os.Stdout, err: os.Stderr}
		if o.Override != "" {
			b.override, err = os.ReadFile(o.Override)
		}
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		switch {
		case err != nil:
		case o.Fast:
			err = b.runFast(ctx)
		default:
			err = b.run(ctx)
		}
		stop()
	}
	if err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "real: error:", err)
		}
		os.Exit(1)
	}
}

// parse reads the flags.
func parse(args []string) (*options, error) {
	var o options
	f := flag.NewFlagSet("real", flag.ContinueOnError)
	f.Float64Var(&o.Minutes, "minutes", 0, "length of each run; 0: that of the scenario (6 to 8)")
	scenario := f.String("scenario", "peaks,steps,doubling,slower,noise", "scenarios, with commas")
	policy := f.String("policy", "weights,equal,static,threshold,proportional,trimtab", "policies, with commas: weights (the kernel alone), equal, static, threshold, proportional, oracle:OBJECTIVE (knows what comes and what it costs; njc, egalitarian, social or nash), weights+haproxy and weights+gate (with a proxy before each service of a mixed scenario that refuses requests), trimtab (all objectives) or trimtab:OBJECTIVE[:SIGNAL[:always|:fast|:gate]] with njc, egalitarian, social, resource-fair or default (none in the file); always: a quota for each service (cap: always); fast: with quotas that move between rounds; gate: with trimtab's gate before each service, of spans alone")
	signals := f.String("signal", "spans,promql", "what trimtab learns from, with commas, where the policy does not say")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the arrivals")
	f.Float64Var(&o.Pool, "pool", 0.66, "CPU that the services share, in cores")
	f.DurationVar(&o.Cost, "cost", 10*time.Millisecond, "CPU time that a request of each service is made to take")
	f.DurationVar(&o.Range, "range", 20*time.Second, "range of trimtab's PromQL queries; Prometheus scrapes every 5 s")
	f.StringVar(&o.Output, "o", "text", "text or json (one line for each scenario)")
	f.StringVar(&o.Plot, "plot", "", "directory for figures (SVG)")
	f.StringVar(&o.Trimtab, "trimtab", "", "trimtab program; left out: it is built")
	f.StringVar(&o.Override, "override", "", "YAML file that is laid over trimtab's file, such as \"round: 5s\"; what stands under each_workload is laid over every workload")
	f.BoolVar(&o.Fast, "fast", false, "steps of the load that end before a round can see them: trimtab's fast loop beside rules for quotas; of the other flags only minutes (by default 0.87), repeat, static, threshold, captain, seed, pool and cost count")
	f.IntVar(&o.Repeat, "repeat", 1, "with --fast: how often each policy is played")
	statics := f.String("static", "3,4", "with --fast: fixed quotas beside trimtab's, over the mean use, with commas")
	thresholds := f.String("threshold", "0.5,0.7,0.9", "with --fast: thresholds of k8s-cpu-fast, with commas")
	captains := f.String("captain", "0.04,0.1,0.2", "with --fast: throttle targets of Autothrottle's Captain, with commas")
	f.BoolVar(&o.Keep, "keep", false, "keep data directories and logs")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	o.Scenarios = strings.Split(*scenario, ",")
	var err error
	if o.Trimtab != "" {
		if o.Trimtab, err = filepath.Abs(o.Trimtab); err != nil {
			return nil, fmt.Errorf("find trimtab: %w", err)
		}
	}
	if o.policies, err = policies(strings.Split(*policy, ","), strings.Split(*signals, ",")); err != nil {
		return nil, err
	}
	for _, list := range []struct {
		name, text string
		into       *[]float64
	}{{"static", *statics, &o.statics}, {"threshold", *thresholds, &o.thresholds}, {"captain", *captains, &o.captains}} {
		if *list.into, err = settings(list.name, list.text); err != nil {
			return nil, err
		}
	}
	return &o, o.validate(f.NArg())
}

func (o *options) validate(left int) error {
	switch {
	case left > 0:
		return trimtab.Invalidf("arguments: want none but flags")
	case !(o.Pool >= 0.1 && o.Pool <= 1000) || o.Minutes < 0 || o.Minutes > 24*60:
		return trimtab.Invalidf("pool %v, minutes %v: out of range", o.Pool, o.Minutes)
	case o.Cost < time.Millisecond || o.Cost > time.Second || o.Range < time.Second:
		return trimtab.Invalidf("cost %v, range %v: out of range", o.Cost, o.Range)
	case o.Repeat < 1 || o.Repeat > 100:
		return trimtab.Invalidf("repeat %d: out of range", o.Repeat)
	case o.Output != "text" && o.Output != "json":
		return trimtab.Invalidf("output %.40q: want text or json", o.Output)
	}
	found, err := shape.Find(o.Scenarios)
	if err != nil {
		return err
	}
	for _, s := range found {
		if s.Two != found[0].Two || s.Mixed != found[0].Mixed {
			return trimtab.Invalidf("scenarios %s and %s have different services or hosts: run each by itself", found[0].Name, s.Name)
		}
	}
	if !found[0].Two {
		return nil
	}
	for _, name := range o.policies {
		if name != theKernel && !strings.HasPrefix(name, "trimtab:") || strings.HasSuffix(name, ":"+fastLoop) {
			return trimtab.Invalidf("policy %.40q: on two hosts there are weights and trimtab without fast", name)
		}
	}
	return nil
}

// settings reads the settings of a rule.
func settings(name, text string) (out []float64, err error) {
	for word := range strings.SplitSeq(text, ",") {
		if word == "" {
			continue
		}
		v, err := strconv.ParseFloat(word, 64)
		if err != nil || !(v > 0 && v <= 100) {
			return nil, trimtab.Invalidf("--%s %.40q: want numbers over 0, with commas", name, text)
		}
		out = append(out, v)
	}
	return out, nil
}

// rivals are the policies that are not trimtab.
func rivals() []string {
	out := []string{theKernel, theKernel + "+" + frontHAProxy, theKernel + "+" + frontGate, "equal", "static", "threshold", "proportional"}
	for _, objective := range services.Objectives() {
		out = append(out, oraclePrefix+objective)
	}
	return out
}

// theKernel is the policy that decides nothing; oraclePrefix begins the names of those that know
// everything.
const theKernel, oraclePrefix = "weights", "oracle:"

// policies returns the full names of the wanted policies, in order, each once.
func policies(wanted, signals []string) ([]string, error) {
	objectives := []string{"njc", "egalitarian", "social", "resource-fair"}
	var out []string
	for _, name := range wanted {
		parts := strings.Split(name, ":")
		if parts[0] != "trimtab" {
			if !slices.Contains(rivals(), name) {
				return nil, trimtab.Invalidf("policy %.40q: want "+strings.Join(rivals(), ", ")+" or trimtab[:OBJECTIVE[:SIGNAL[:always|:fast]]]", name)
			}
			out = append(out, name)
			continue
		}
		of, by, loop := objectives, signals, ""
		if len(parts) > 1 {
			of = parts[1:2]
		}
		if len(parts) > 2 {
			by = parts[2:3]
		}
		if len(parts) == 4 && (parts[3] == fastLoop || parts[3] == config.CapAlways || parts[3] == frontGate && parts[2] == "spans") {
			loop = ":" + parts[3]
		} else if len(parts) > 3 {
			return nil, trimtab.Invalidf("policy %.40q: after objective and signal only always, fast or, by spans, gate can follow", name)
		}
		for _, objective := range of {
			for _, signal := range by {
				if !slices.Contains(append(objectives, "default"), objective) || signal != "spans" && signal != "promql" {
					return nil, trimtab.Invalidf("policy %.40q: want an objective of %s or default, and a signal of spans, promql", name, strings.Join(objectives, ", "))
				}
				out = append(out, "trimtab:"+objective+":"+signal+loop)
			}
		}
	}
	var once []string
	for _, name := range out {
		if !slices.Contains(once, name) {
			once = append(once, name)
		}
	}
	return once, nil
}

// fastLoop ends the name of a policy with the fast loop on, [config.CapAlways] that of one with
// quotas.
const fastLoop = "fast"

// needsTrimtab says whether a policy is trimtab.
func (o *options) needsTrimtab() bool {
	return slices.ContainsFunc(o.policies, func(name string) bool {
		return strings.HasPrefix(name, "trimtab:") || strings.HasSuffix(name, "+"+frontGate)
	})
}

// fronts are proxies of a kind that are not started yet.
func (b *bench) fronts(kind string) *fronts {
	return &fronts{kind: kind, trimtab: b.Trimtab, maxconn: fixedLimit}
}

// policy makes the policy of a full name.
func (b *bench) policy(name string) policy {
	switch name {
	case theKernel:
		return kernel{}
	case theKernel + "+" + frontHAProxy, theKernel + "+" + frontGate:
		return kernel{b.fronts(strings.TrimPrefix(name, theKernel+"+"))}
	case "equal":
		return &still{shares: equal}
	case "static":
		return &still{shares: static, say: true}
	case "threshold":
		return newThreshold()
	case "proportional":
		return newProportional()
	}
	if objective, ok := strings.CutPrefix(name, oraclePrefix); ok {
		return &oracle{objective: objective}
	}
	parts := strings.Split(name, ":")
	s := &subject{Binary: b.Trimtab, Objective: parts[1], Keep: b.Keep, Override: b.override, Signal: &spans{}}
	if len(parts) > 3 {
		s.Fast, s.Quotas = parts[3] == fastLoop, parts[3] == config.CapAlways
	}
	if len(parts) > 3 && parts[3] == frontGate {
		s.Fronts, s.Signal = b.fronts(frontGate), &gateSpans{}
	}
	if parts[2] == "promql" {
		s.Signal = &promql{Range: b.Range}
	}
	return s
}
