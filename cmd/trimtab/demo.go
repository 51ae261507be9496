package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/demo"
	"github.com/trimtab/trimtab/internal/demo/loadgen"
	"github.com/trimtab/trimtab/internal/demo/service"
	"github.com/trimtab/trimtab/internal/site"
)

// demoCmd is `trimtab demo`.
type demoCmd struct {
	For      time.Duration `help:"Length of all phases together: the kernel alone (with cgroups), equal shares, trimtab." default:"6m"`
	Report   string        `help:"File for the report, as JSON." type:"path" placeholder:"FILE"`
	Headless bool          `help:"Print lines instead of a live table."`
	Knob     string        `help:"What to adjust: a cgroup quota if a hierarchy is writable, else the number of worker processes." enum:"auto,cgroup,process" default:"auto"`
	Seed     uint64        `help:"Seed of load and services; 0 picks one and prints it." default:"0"`
	Record   string        `help:"Directory to record into, with the configuration, so that trimtab replay can be tried at once." type:"path" placeholder:"DIR"`
	Keep     bool          `help:"Go on after all phases, with trimtab in charge, until Ctrl-C."`
	Listen   string        `name:"web.listen-address" help:"Address of page, API and metrics while it runs." default:"127.0.0.1:9600"`
}

// Example is shown by --help.
func (demoCmd) Example() string {
	return "trimtab demo                                       # a live table; the page is at http://127.0.0.1:9600\ntrimtab demo --headless --for 4m --report out.json # for programs\ntrimtab demo --record rec --keep                   # goes on until Ctrl-C; then trimtab replay rec --config.file rec/trimtab.yaml"
}

// Run plays the demo.
func (c *demoCmd) Run(ctx context.Context, log *logFlags, t terminal) error {
	dir, err := os.MkdirTemp("", "trimtab-demo-")
	if err != nil {
		return fmt.Errorf("make demo directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	logs, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		return fmt.Errorf("make demo log: %w", err)
	}
	defer logs.Close()
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find own program: %w", err)
	}
	logger, err := log.logger(logs)
	if err != nil {
		return err
	}
	// A closed pipe (`| head`) ends the demo as Ctrl-C does; by default the signal would kill the
	// process before it restores anything.
	broken := make(chan os.Signal, 1)
	signal.Notify(broken, syscall.SIGPIPE)
	defer signal.Stop(broken)
	report, err := demo.Run(ctx, demo.Config{
		For: c.For, Report: c.Report, Knob: c.Knob, Seed: c.Seed, Self: []string{self, "demo-service"}, Keep: c.Keep, Next: c.next(),
		Screen: screenOf(t, c.Headless),
		Start: func(ctx context.Context, s *demo.Setup) (demo.Pipeline, error) {
			cfg := demoConfig(s, dir, c.Listen)
			if err := c.record(cfg); err != nil {
				return nil, err
			}
			running, err := site.Open(ctx, cfg, site.Options{Logger: logger})
			if err != nil {
				return nil, explainStart(err)
			}
			p := &demoPipeline{site: running}
			return p, p.await(ctx)
		},
	})
	if errors.Is(err, demo.ErrOutput) && report != nil && report.Restored {
		return nil // the reader closed the output
	}
	if errors.Is(err, context.Canceled) && report != nil && report.Restored {
		// An interrupt by the user is no error.
		fmt.Fprintln(t.out, "Stopped before its end. Everything it started is gone, and what was changed has been restored.")
		return nil
	}
	return err
}

// record starts the recorder of the demo, and writes the configuration beside the recording.
func (c *demoCmd) record(cfg *config.Config) error {
	if c.Record == "" {
		return nil
	}
	cfg.Exporters.Record.Path = c.Record
	if err := os.MkdirAll(c.Record, 0o755); err != nil {
		return fmt.Errorf("make directory of the recording: %w", err)
	}
	if err := os.WriteFile(filepath.Join(c.Record, demoFile), cfg.Redacted(), 0o644); err != nil {
		return fmt.Errorf("write configuration of the recording: %w", err)
	}
	return nil
}

// demoFile is the name of the configuration beside a recording of the demo.
const demoFile = "trimtab.yaml"

// next suggests commands to try after the demo.
func (c *demoCmd) next() string {
	if c.Record != "" {
		return fmt.Sprintf("Next: trimtab replay %s --config.file %s --policy egalitarian", c.Record, filepath.Join(c.Record, demoFile))
	}
	return "Next: start `trimtab run` and send it OTLP spans of a service of yours, to\n127.0.0.1:4317: it watches and changes nothing; `trimtab status` shows it."
}

// demoConfig is a configuration as a person would write it for the demo's services.
func demoConfig(s *demo.Setup, dir, listen string) *config.Config {
	cfg := config.Default()
	cfg.Pool = config.Pool{Name: s.Pool, Unit: s.Unit, Step: 10 * s.Unit}
	if s.Knob == demo.KnobProcess {
		cfg.Pool.Workers, cfg.Pool.Step = s.Capacity, 2*s.Unit
	} else {
		cfg.Pool.CPU = s.Capacity
	}
	cfg.Objective, cfg.Round, cfg.Lease = s.Objective, s.Round, 10*time.Second
	cfg.Analyzer.ReportInterval, cfg.Analyzer.Partitions = s.Round, 1
	// A day lasts two minutes here, so the load changes within seconds: moves must be as quick.
	cfg.Guard = config.Guard{MaxFall: 0.5, MaxLowered: 1, MaxMoved: 0.5, DeadBand: 0.02, HoldRounds: 3}
	// Loads of the demo double within seconds: plan for the highest of a round.
	cfg.Planning.LoadWeight = 1
	if s.Knob == demo.KnobCgroup {
		cfg.Actuator.CgroupRoot = s.Root
	}
	cfg.Storage.Path = filepath.Join(dir, "data")
	cfg.Web.ListenAddress = listen
	cfg.OTLP.GRPC, cfg.OTLP.HTTP, cfg.Jaeger.GRPC = s.OTLP, "off", "off"
	for _, svc := range s.Services {
		w := config.Workload{
			Name: svc.Name, Class: trimtab.LatencyCritical, Mode: trimtab.Recommend, Utility: "linear", Weight: 1,
			SLO:   config.SLO{Latency: svc.SLO.Latency, Fraction: svc.SLO.Fraction},
			Match: config.Match{Spans: map[string]config.Values{}},
		}
		for key, value := range svc.Spans {
			w.Match.Spans[key] = config.Values{value}
		}
		bounds := &config.Bounds{Min: svc.Min, Max: svc.Max, Default: svc.Equal}
		if s.Knob == demo.KnobProcess {
			w.Knob = config.Knob{Process: &config.Process{Dir: filepath.Join(s.Root, svc.Handle)}, Workers: bounds}
		} else {
			w.Knob = config.Knob{Cgroup: svc.Handle, CPU: &config.CPUBounds{Bounds: *bounds}}
		}
		cfg.Workloads = append(cfg.Workloads, w)
	}
	return cfg
}

// demoPipeline is the site as the demo sees it.
type demoPipeline struct{ site *site.Site }

// await returns when the pipeline is ready.
func (p *demoPipeline) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for len(p.site.NotReady()) > 0 {
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("start pipeline: not ready: %v: %w", p.site.NotReady(), ctx.Err()), p.site.Close())
		case err := <-p.site.Failed():
			return errors.Join(err, p.site.Close())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// SetMode gives all workloads a mode, as a person would by a reload.
func (p *demoPipeline) SetMode(ctx context.Context, m trimtab.Mode) error {
	next := *p.site.Config()
	next.Workloads = append([]config.Workload(nil), next.Workloads...)
	for i := range next.Workloads {
		next.Workloads[i].Mode = m
	}
	return p.site.Apply(ctx, &next)
}

// Rounds returns how many plans were made.
func (p *demoPipeline) Rounds() int { return p.site.View().Rounds() }

// Page returns the address that is really listened on.
func (p *demoPipeline) Page() string { return "http://" + p.site.WebAddress() }

// Close stops and restores.
func (p *demoPipeline) Close() error { return p.site.Close() }

// serviceCmd runs one component of a service of the demo as a separate process.
type serviceCmd struct {
	Args []string `arg:"" optional:"" passthrough:""`
}

// Run serves until ctx ends.
func (c *serviceCmd) Run(ctx context.Context) error {
	cfg, err := service.ParseArgs(c.Args)
	if err != nil {
		return err
	}
	return service.Run(ctx, cfg)
}

// loadCmd puts load on one service of the demo, for deploy/examples/cluster.sh.
type loadCmd struct {
	URL  string        `arg:"" help:"Where the requests go."`
	Base float64       `default:"5" help:"Least requests per second."`
	Peak float64       `default:"20" help:"Most requests per second."`
	Day  time.Duration `default:"1m" help:"From one peak to the next."`
	At   float64       `help:"When in a day the peak is, from 0 to 1."`
}

// Run replays one day after another until ctx ends.
func (c *loadCmd) Run(ctx context.Context) error {
	day := loadgen.Day{Base: c.Base, Peak: c.Peak, At: c.At, Width: 0.5}
	for seed := uint64(1); ctx.Err() == nil; seed++ {
		g := loadgen.Generator{Targets: []loadgen.Target{{Name: "load", URL: c.URL, Day: day, Latency: time.Second}}, For: c.Day, Seed: seed}
		if _, err := g.Run(ctx); err != nil && ctx.Err() == nil {
			return fmt.Errorf("put load on %s: %w", c.URL, err)
		}
	}
	return nil
}

// screenOf draws on the terminal, or prints lines elsewhere.
func screenOf(t terminal, headless bool) *demo.Screen {
	if f, ok := t.out.(*os.File); ok {
		return demo.NewScreen(f, headless)
	}
	return &demo.Screen{Out: t.out}
}
