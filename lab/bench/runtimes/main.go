package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// options are the flags.
type options struct {
	Cycles    int
	Cycle     time.Duration
	Untouched time.Duration
	Trials    int
	Cut       float64
	Low, High float64
	Collector string
	Only      string
	Seed      uint64
	begun     time.Time
	// root is where groups can be made.
	root string
	// groups numbers the groups of this process.
	groups *atomic.Int64
}

// say tells how far the run is.
func (o *options) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%5.0f s  %s\n", time.Since(o.begun).Seconds(), fmt.Sprintf(format, args...))
}

// childWord is the first argument of the Go service, which is this program.
const childWord = "service"

func main() {
	err := command(os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "runtimes: error:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	if len(args) == 4 && args[0] == childWord {
		return child(args[1:])
	}
	o := options{groups: new(atomic.Int64), begun: time.Now()}
	flags := flag.NewFlagSet("runtimes", flag.ContinueOnError)
	flags.IntVar(&o.Cycles, "cycles", 100, "falls of the limit, each followed by a rise")
	flags.DurationVar(&o.Cycle, "cycle", time.Second, "length of a cycle")
	flags.DurationVar(&o.Untouched, "untouched", 25*time.Second, "length of each of the two parts in which the limit stays")
	flags.IntVar(&o.Trials, "trials", 3, "starts anew, with and without the runtime")
	flags.Float64Var(&o.Cut, "cut", 0.3, "part of the limit that a fall takes")
	flags.Float64Var(&o.Low, "low", 50, "requests per second in half of each period of 3 s")
	flags.Float64Var(&o.High, "high", 200, "requests per second in the other half")
	flags.StringVar(&o.Collector, "collector", "-XX:+UseShenandoahGC", "flags of the JVM that choose its collector")
	flags.StringVar(&o.Only, "only", "", "jvm or go: that service alone")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the arrivals")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var err error
	if o.root, err = rig.FindRoot(); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Printf("seed %d; a fall takes %.0f%%; %d cycles of %v; %.0f and %.0f requests/s; JVM: %s\n", o.Seed, 100*o.Cut, o.Cycles, o.Cycle, o.Low, o.High, o.Collector)
	// Both services run at once, in every part.
	var wg sync.WaitGroup
	var mu sync.Mutex
	var all []error
	for _, s := range services(&o) {
		if o.Only != "" && o.Only != s.name {
			continue
		}
		wg.Go(func() {
			r, err := measure(ctx, &o, s)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				all = append(all, fmt.Errorf("%s: %w", s.name, err))
				return
			}
			r.print(os.Stdout)
		})
	}
	wg.Wait()
	return errors.Join(all...)
}
