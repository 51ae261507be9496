package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/internal/pause"
	"github.com/trimtab/trimtab/lab/bench/rig"
)

// options are the flags.
type options struct {
	Groups int
	Round  time.Duration
	Spans  int
	For    time.Duration
	Settle time.Duration
	Mode   string
	Binary string
	Memory string
	Slack  time.Duration
	// Profile is a directory for the profiles of CPU and heap; empty: none.
	Profile string
}

func main() {
	var o options
	flag.IntVar(&o.Groups, "groups", 100, "workloads, each with a CPU group of its own")
	flag.DurationVar(&o.Round, "round", time.Second, "the planner's round")
	flag.IntVar(&o.Spans, "spans", 600, "spans a second, of all workloads together")
	flag.DurationVar(&o.For, "for", 3*time.Minute, "how long to measure")
	flag.DurationVar(&o.Settle, "settle", 10*time.Second, "how long to wait before CPU is measured")
	flag.StringVar(&o.Mode, "mode", "act", "mode of all workloads")
	flag.StringVar(&o.Binary, "binary", "", "the program to measure; empty: build it")
	flag.StringVar(&o.Memory, "memory", "", "GOMEMLIMIT of the program; empty: none")
	flag.DurationVar(&o.Slack, "slack", time.Millisecond, "how late a sleep may end, as deploy/systemd/trimtab.service has it; 0: as the kernel has it, 50 us")
	flag.StringVar(&o.Profile, "profile", "", "directory to write cpu.pprof and heap.pprof of the measured time to; empty: none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "small:", err)
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "trimtab-small-")
	if err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	binary := o.Binary
	if binary == "" {
		binary = filepath.Join(dir, "trimtab")
		if err := rig.BuildTrimtab(ctx, binary, rig.Released(o.Profile != "")...); err != nil {
			return err
		}
	}
	g, err := makeGroups(dir, o.Groups)
	if err != nil {
		return err
	}
	defer g.remove()
	p, err := o.start(ctx, dir, binary, g)
	if err != nil {
		return err
	}
	defer p.stop()
	fmt.Printf("%d groups (%s), rounds of %v, %d spans/s, mode %s: ready after %.2f s\n", o.Groups, g.kind, o.Round, o.Spans, o.Mode, p.ready.Seconds())
	return o.measure(ctx, p, g)
}

// warm is from when on growth is told, and most how many lines are printed.
const (
	warm = 10 * time.Minute
	most = 70
)

// measure prints a line at each quarter of the time, or every minute of a long
// one, and the sum at the end.
func (o *options) measure(ctx context.Context, p *process, g *groups) error {
	ctx, cancel := context.WithCancel(ctx)
	sent := make(chan error, 1)
	go func() { sent <- o.send(ctx, p.otlp, g) }()
	defer func() {
		cancel()
		if err := <-sent; err != nil {
			fmt.Fprintln(os.Stderr, "small: send:", err)
		}
	}()
	if !pause.For(ctx, o.Settle) {
		return ctx.Err()
	}
	parts := 4
	if o.For >= 2*warm {
		parts = min(most, int(o.For/time.Minute))
	}
	first, err := p.read(ctx)
	if err != nil {
		return err
	}
	fmt.Println(first.line(first))
	if o.Profile != "" {
		if err := p.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
			return fmt.Errorf("start profile: %w", err)
		}
	}
	last, settled := first, []reading(nil)
	for range parts {
		if !pause.For(ctx, o.For/time.Duration(parts)) {
			return ctx.Err()
		}
		now, err := p.read(ctx)
		if err != nil {
			return err
		}
		fmt.Println(now.line(last))
		if last = now; now.at.Sub(first.at) >= warm {
			settled = append(settled, now)
		}
	}
	if o.Profile != "" {
		if err := p.cmd.Process.Signal(syscall.SIGUSR2); err != nil {
			return fmt.Errorf("end profile: %w", err)
		}
	}
	fmt.Printf("together: %s\n", last.line(first))
	if len(settled) > 2 {
		fmt.Printf("growth after %v, by least squares: resident %+.2f MiB/h, heap %+.2f MiB/h\n", warm,
			growth(settled, func(r *reading) float64 { return r.resident }), growth(settled, func(r *reading) float64 { return r.heap }))
	}
	for _, path := range []string{"/metrics", "/", "/workloads/" + name(0), "/pipeline", "/fairness", "/api/v1/status"} {
		took, size, err := p.ask(ctx, path)
		if err != nil {
			return err
		}
		fmt.Printf("GET %-20s %4.0f ms, %5.0f KiB\n", path, 1000*took.Seconds(), float64(size)/1024)
	}
	select {
	case err := <-sent:
		sent <- nil
		return fmt.Errorf("send spans: %w", err)
	default:
	}
	return p.lag(ctx)
}
