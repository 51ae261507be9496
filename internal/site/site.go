package site

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/collectors"
	versioncollector "github.com/prometheus/client_golang/prometheus/collectors/version"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/exporter-toolkit/web"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/agent/grow"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/collector/alertmanager"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console"
	"github.com/trimtab/trimtab/console/view"
	exporter "github.com/trimtab/trimtab/exporters/prometheus"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/supervise"
	"github.com/trimtab/trimtab/internal/wire"
	"github.com/trimtab/trimtab/pipeline"
	"github.com/trimtab/trimtab/speculation"
	"github.com/trimtab/trimtab/whatif"
)

// Options are the settings that do not come from the configuration file.
type Options struct {
	Logger *slog.Logger
	// Role selects the parts that run in this process; empty: all parts.
	Role natsbus.Role
	// Host is the name of this host; empty: its host name.
	Host  string
	Hosts []string
	// Load reads the configuration again; nil: it cannot be reloaded.
	Load func() (*config.Config, error)
	// Objectives reads the objects with SLOs for Load; nil: they are not read again.
	Objectives *Objectives
	// Watchdog is the command that guards the actuator's journal; nil: this program.
	Watchdog []string
	// Counter is the command of the process that counts performance events; nil: this program.
	Counter []string
	// Recent holds the newest log lines; nil keeps none.
	Recent *RecentLog
	// AlertGap is the least time between two rounds that alerts start; 0: the planner's default.
	// Only measurements set it.
	AlertGap time.Duration
}

// Site runs a whole pipeline in one process, or the parts of one role. It has the parts of the
// current configuration, and what lasts as long as the process.
type Site struct {
	stages
	view       *view.Model // nil where the role shows nothing
	parts      supervise.Parts
	webAddress string
	stops      []func() error

	mu     sync.Mutex
	config *config.Config
}

// newSite returns a site in which nothing has started.
func newSite(o Options) *Site {
	s := &Site{stages: stages{memory: grow.NewFeed(), options: o, process: supervise.Process{Host: o.Host, Logger: o.Logger, Metrics: metric.NewSet(), Failed: make(chan error, 16)}}}
	s.parts.Logger, s.parts.Stops = o.Logger, s.process.Ending.Stops
	s.process.Ready.Metrics, s.process.Ready.Logger = s.process.Metrics, o.Logger
	s.beside.Process, s.beside.Fleet, s.beside.Watchdog, s.beside.Counter = &s.process, o.Role == natsbus.Agent, o.Watchdog, o.Counter
	return s
}

// Open starts everything. On an error it stops what it has started.
func Open(ctx context.Context, cfg *config.Config, o Options) (_ *Site, err error) {
	if cfg, err = o.resume(cfg); err != nil {
		return nil, fmt.Errorf("open site: %w", err)
	}
	if err := lookedUp(cfg); err != nil && o.Role != natsbus.Agent {
		return nil, fmt.Errorf("open site: %w", err)
	}
	if o.Host == "" {
		if o.Host, err = os.Hostname(); err != nil {
			return nil, fmt.Errorf("find host name: %w", err)
		}
	}
	s := newSite(o)
	s.config = cfg
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	s.process.Metrics.Registry().MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), versioncollector.NewCollector("trimtab"))
	s.process.Ready.Set("pipeline", "starting")
	if err := s.openBus(ctx, cfg); err != nil {
		return nil, err
	}
	s.countBus(ctx)
	if s.does(natsbus.Console) {
		viewed := viewConfig(cfg)
		viewed.Dir = cfg.Storage.Path
		s.view, s.exporter = view.New(viewed), exporter.New(s.process.Metrics)
		configureExporter(s.exporter, cfg)
		s.process.Ready.OnChange(s.view.Touch) // pages then show at once that the bus is out of reach
		if err := s.follow(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.openWeb(cfg); err != nil {
		return nil, err
	}
	next, err := s.partsOf(cfg)
	if err != nil {
		return nil, err
	}
	if err := s.parts.Apply(ctx, next); err != nil {
		return nil, err
	}
	s.onClose(s.parts.Close)
	if o.Objectives != nil && o.Load != nil {
		s.onClose(s.process.Background(ctx, "objectives", func(ctx context.Context) error {
			s.followObjectives(ctx, lookUpEvery)
			return nil
		}))
	}
	s.process.Ready.Set("pipeline", "")
	return s, nil
}

// follow feeds the console and the metrics from the bus. One subscription delivers the newest
// values, which are most of the traffic, to both. The console also reads past decisions, which the
// metrics do not need.
func (s *Site) follow(ctx context.Context) error {
	console, metrics := pipeline.NewHealth(pipeline.Work{}), pipeline.NewHealth(pipeline.Work{})
	both := func(v trimtab.Value) {
		s.view.Observe(v)
		s.exporter.Observe(v)
	}
	decisions := []trimtab.Kind{trimtab.KindPlan, trimtab.KindOutcome}
	for _, f := range []struct {
		health  *pipeline.Health
		history bool
		observe func(trimtab.Value)
		All     []trimtab.Kind
	}{
		{console, false, both, []trimtab.Kind{trimtab.KindEstimate, colocation.KindContributions, colocation.KindColocation, trimtab.KindHolding}},
		{console, false, s.view.Observe, []trimtab.Kind{speculation.KindMachine, speculation.KindJobState}},
		{console, true, s.view.Observe, decisions},
		{metrics, false, s.exporter.Observe, decisions},
	} {
		stop, err := bus.Follow(ctx, f.health.Bus(s.bus), f.history, f.observe, f.All...)
		if err != nil {
			return err
		}
		s.onClose(func() error { stop(); return nil })
	}
	for name, h := range map[string]*pipeline.Health{"console": console, "metrics": metrics} {
		s.onClose(s.process.Background(ctx, name, s.process.Working(name, h, untilDone)))
	}
	return nil
}

// Config returns the configuration in force, which callers must not change.
func (s *Site) Config() *config.Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.config
}

// Failed delivers the error of a part that ended by itself: the caller must then close the site.
func (s *Site) Failed() <-chan error { return s.process.Failed }

// NotReady returns the reasons of the parts that are not ready, by name.
func (s *Site) NotReady() map[string]string { return s.process.Ready.NotReady() }

// WebAddress returns the address of the page, the API and the metrics.
func (s *Site) WebAddress() string { return s.webAddress }

// OTLPAddress returns the address that receives OTLP over gRPC; "": it is switched off.
func (s *Site) OTLPAddress() string { return s.otlpAddress }

// Bus returns the bus of the stages.
func (s *Site) Bus() bus.Bus { return s.bus }

// View returns the data of the page and the API; nil if the role shows nothing.
func (s *Site) View() *view.Model { return s.view }

// Metrics returns the metrics served at /metrics.
func (s *Site) Metrics() *metric.Set { return s.process.Metrics }

func (s *Site) onClose(f func() error) { s.stops = append(s.stops, f) }

// Close stops the parts in the reverse order of their start, then the rest. It returns within
// [EndWithin], plus the time to restore knobs behind an API server; if something has not ended by
// then it returns an error, and the caller must end the process.
func (s *Site) Close() error {
	began, first := s.process.Ending.Begin()
	if !first {
		return nil
	}
	if s.bus != nil {
		s.bus.EndBy(began.Add(supervise.EndBus))
	}
	ended := make(chan error, 1)
	go func() {
		var err error
		for i := len(s.stops) - 1; i >= 0; i-- {
			err = errors.Join(err, s.stops[i]())
		}
		s.stops = nil
		ended <- err
	}()
	return s.process.Ending.Await(ended)
}

func (s *Site) openBus(ctx context.Context, cfg *config.Config) error {
	if err := os.MkdirAll(cfg.Storage.Path, 0o700); err != nil {
		return fmt.Errorf("make storage: %w", err)
	}
	c, err := wire.Bus(cfg, s.options.Role, s.process.Host)
	if err != nil {
		return fmt.Errorf("open bus: %w", err)
	}
	c.Logger = s.process.Logger
	b, err := natsbus.Open(ctx, c)
	if err != nil {
		return fmt.Errorf("open bus: %w", err)
	}
	s.bus, s.process.Bus = b, b
	s.onClose(func() error {
		s.process.Ending.Stops("bus")
		return b.Close()
	})
	return nil
}

// countBus exports the bus's counts, and reports as not ready while the bus cannot be reached,
// until the bus is closed.
func (s *Site) countBus(ctx context.Context) {
	s.onClose(s.process.Background(ctx, "bus", func(ctx context.Context) error {
		return pipeline.CountBus(ctx, s.bus, s.process.Metrics, func(why string) { s.process.Ready.Set("bus", why) })
	}))
}

// openWeb listens at once, so that a port in use is an error at the start.
func (s *Site) openWeb(cfg *config.Config) error {
	l, err := net.Listen("tcp", cfg.Web.ListenAddress)
	if err != nil {
		return fmt.Errorf("serve web: %w", err)
	}
	s.webAddress = l.Addr().String()
	ending, end := context.WithCancel(context.Background())
	o := console.Options{
		Metrics: promhttp.HandlerFor(s.process.Metrics, promhttp.HandlerOpts{EnableOpenMetrics: true,
			DisableCompression: true}), // the console's handler compresses, in a third of the time
		Config: func() []byte { return s.Config().Redacted() }, Debug: s.options.Recent.texts(),
		Ready: s.process.Ready.NotReady, Reload: s.reloader(), Hosts: s.options.Hosts,
		Send:    func(ctx context.Context, c *trimtab.Command) error { return s.bus.Publish(ctx, c) },
		Request: func(ctx context.Context, r *speculation.JobRequest) error { return s.bus.Publish(ctx, r) },
		Bus:     s.bus, Stages: s.process.Ready.Stages, Done: ending.Done(), Jobs: s.beside.Jobs,
		WhatIf: func(change whatif.Change, now time.Time) (*whatif.Answer, error) {
			return WhatIf(s.Config(), s.view, change, now)
		},
		Leader: func(ctx context.Context, pool string) (string, uint64, error) {
			return pipeline.Leads(ctx, s.bus, pool)
		},
	}
	if s.does(natsbus.Collector) {
		o.Mount = map[string]http.Handler{alertmanager.Path: &s.webhook}
	}
	handler := console.Plain(o)
	if s.view != nil {
		handler = console.Handler(s.view, o)
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 15 * time.Second, WriteTimeout: 30 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 64 << 10,
	}
	flags := &web.FlagConfig{WebListenAddresses: &[]string{s.webAddress}, WebSystemdSocket: new(bool), WebConfigFile: &cfg.Web.ConfigFile}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := web.Serve(l, server, flags, s.process.Logger); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.process.Fail("web", err)
		}
	}()
	s.onClose(func() error {
		// Ends the streams of events, which would otherwise run forever.
		end()
		s.process.Ending.Stops("web server")
		ctx, cancel := s.process.Ending.Within(3 * time.Second)
		defer cancel()
		err := server.Shutdown(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close()
		}
		// Shutdown closes only the listeners that Serve has been given.
		_ = l.Close()
		<-done
		return err
	})
	return nil
}

func (s *Site) reloader() func(context.Context) error {
	if s.options.Load == nil {
		return nil
	}
	return s.Reload
}

// Reload reads the configuration again and applies it; on any error the old
// one stays in force.
func (s *Site) Reload(ctx context.Context) error {
	next, err := s.options.Load()
	if err == nil {
		err = s.Apply(ctx, next)
	}
	if err != nil {
		s.process.Logger.Error("reload: the old configuration stays", "err", err)
		s.process.Metrics.Counter("trimtab_config_reloads_total", "refused").Inc()
		return err
	}
	s.process.Metrics.Counter("trimtab_config_reloads_total", "applied").Inc()
	s.process.Logger.Info("reloaded", "workloads", len(next.Workloads))
	return nil
}

// Apply makes cfg the configuration in force, or returns an error and keeps
// the old one.
func (s *Site) Apply(ctx context.Context, cfg *config.Config) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := config.Changed(s.config, cfg)
	for _, c := range changes {
		if c.Restart {
			return hint.Add(trimtab.Invalidf("apply configuration: %s cannot change while running", c.Path), "restart trimtab to change it")
		}
	}
	next, err := s.partsOf(cfg)
	if err != nil {
		return err
	}
	// The reload is completed even if the client that asked for it goes away.
	if err := s.parts.Apply(context.WithoutCancel(ctx), next); err != nil {
		return err
	}
	for _, c := range changes {
		s.process.Logger.Info("changed", "setting", c.Path, "from", c.Old, "to", c.New)
	}
	s.config = cfg
	if s.view != nil {
		s.view.Configure(viewConfig(cfg))
		configureExporter(s.exporter, cfg)
	}
	return nil
}

// JournalDir is where the actuator keeps its undo journal.
func JournalDir(storage string) string { return filepath.Join(storage, "actuator") }
