// Command torture tries the promises of reliability and security in full size
// and prints a table of promise, cases tried and failures.
//
//	make torture
//	make torture TORTURE="--only R2,R7 --scale 0.01 --seed 5"
//	go run ./lab/torture --list
//
// A promise is shown by tests of this repository. In CI they try a few cases
// each; here they get the number that the promise states (internal/trial).
// What nobody tries is printed as such, with the reason, and never counts as
// passed. Times are those of the machine, with whatever else runs on it.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "comma-separated promises to try, of all")
	flag.Float64Var(&o.scale, "scale", 1, "part of the full number of cases, at least one case of each")
	flag.Uint64Var(&o.seed, "seed", rand.Uint64(), "seed of every test; each prints it")
	flag.StringVar(&o.logs, "logs", "", "directory for what the tests print (default: a new one)")
	flag.BoolVar(&o.list, "list", false, "print promises, tests, cases and the estimated time, and try nothing")
	flag.Parse()
	os.Exit(o.main())
}

// main returns the exit code.
func (o *options) main() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	failures, err := o.run(ctx, all())
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture: error:", err)
	}
	if err != nil || failures > 0 {
		return 1
	}
	return 0
}

type options struct {
	only  string
	scale float64
	seed  uint64
	logs  string
	list  bool
}

// run tries the promises that were asked for and returns the number of failures.
func (o *options) run(ctx context.Context, promises []promise) (failures int, err error) {
	if promises, err = choose(promises, o.only); err != nil {
		return 0, err
	}
	if o.scale <= 0 {
		return 0, fmt.Errorf("read --scale: want more than 0, got %v", o.scale)
	}
	out := newTable(os.Stdout)
	out.head(promises, o)
	if o.list {
		return 0, nil
	}
	if o.logs == "" {
		if o.logs, err = os.MkdirTemp("", "trimtab-torture-"); err != nil {
			return 0, fmt.Errorf("make a directory for logs: %w", err)
		}
	} else if err = os.MkdirAll(o.logs, 0o755); err != nil {
		return 0, fmt.Errorf("make a directory for logs: %w", err)
	}
	out.columns()
	for _, p := range promises {
		if ctx.Err() != nil {
			return failures, fmt.Errorf("stopped before %s: %w", p.id, ctx.Err())
		}
		r := o.try(ctx, p, out)
		failures += r.failures
		out.row(p, r)
	}
	out.foot(failures, o)
	return failures, nil
}

// choose returns the promises of a comma-separated list, or all.
func choose(promises []promise, only string) ([]promise, error) {
	if only == "" {
		return promises, nil
	}
	var chosen []promise
	for id := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(promises, func(p promise) bool {
			return slices.Contains(strings.Split(p.id, "/"), strings.ToUpper(strings.TrimSpace(id)))
		})
		if i < 0 {
			return nil, fmt.Errorf("choose promises: there is no %q", id)
		}
		chosen = append(chosen, promises[i])
	}
	return chosen, nil
}

// estimate is how long the tests of a promise are expected to take, from one earlier
// measurement on two shared cores.
func (p *promise) estimate(scale float64) (d time.Duration) {
	for _, t := range p.tests {
		d += t.once + time.Duration(t.size(scale))*t.each
	}
	return d
}

// size is the number of cases at a scale.
func (t *test) size(scale float64) int {
	if t.full == 0 {
		return 0
	}
	return max(1, int(float64(t.full)*scale+0.5))
}
