package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	actuatorcgroup "github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/actuator/process"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/analyzer/path"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/cgroup"
	"github.com/trimtab/trimtab/collector/jaeger"
	"github.com/trimtab/trimtab/collector/otlp"
	"github.com/trimtab/trimtab/collector/prometheus"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/pipeline"
	"github.com/trimtab/trimtab/planner"
	"google.golang.org/grpc"
)

// snapshotBucket keeps the models over a restart.
const snapshotBucket = "snapshots"

// keyOf prints what a part was built from.
func keyOf(parts ...any) string { return fmt.Sprintf("%+v", parts) }

// partsOf builds, without any effect, the parts of cfg in the order in which
// they start: what consumes before what produces, the receivers last.
func (s *site) partsOf(cfg *config.Config) ([]part, error) {
	var next []part
	for _, build := range []func(*config.Config) ([]part, error){
		s.actuatorPart, s.plannerPart, s.learnPart, s.pathParts, s.samplerParts, s.receiverParts, s.alertPart,
	} {
		p, err := build(cfg)
		if err != nil {
			return nil, err
		}
		next = append(next, p...)
	}
	return next, nil
}

// service makes a part of a function that runs until its context ends.
func (s *site) service(name, key string, run func(context.Context) error) part {
	return part{name, key, func(ctx context.Context) (func() error, error) {
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := run(ctx); err != nil && ctx.Err() == nil {
				s.fail(name, err)
			}
			s.ready.set(name, "")
		}()
		return func() error { cancel(); <-done; return nil }, nil
	}}
}

// stage makes a part of a pure step.
func (s *site) stage(key string, st pipeline.Stage) part {
	st.Bus, st.Metrics, st.Logger = s.bus, s.metrics, s.logger
	st.Ready = func(why string) { s.ready.set(st.Name, why) }
	return s.service(st.Name, key, func(ctx context.Context) error { return pipeline.Run(ctx, st) })
}

func (s *site) learnPart(cfg *config.Config) ([]part, error) {
	c, err := analyzerConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("set up analyzer: %w", err)
	}
	step, err := analyzer.New(c)
	if err != nil {
		return nil, fmt.Errorf("set up analyzer: %w", err)
	}
	return []part{s.stage(keyOf(cfg.Analyzer, cfg.Round, cfg.Pool, analysed(cfg)), pipeline.Stage{
		Name: "learn", Step: step, Tick: tickOf(cfg.Analyzer.ReportInterval),
		Consumes: []bus.Subscription{
			{Kind: trimtab.KindSketch}, {Kind: trimtab.KindSample}, {Kind: trimtab.KindHolding},
		},
		Snapshots: &pipeline.Snapshots{Bucket: snapshotBucket, Every: time.Minute},
	})}, nil
}

// pathParts are one stage per partition.
func (s *site) pathParts(cfg *config.Config) ([]part, error) {
	var out []part
	for i := range cfg.Analyzer.Partitions {
		step, err := path.New(pathConfig(cfg, i))
		if err != nil {
			return nil, fmt.Errorf("set up analyzer path: %w", err)
		}
		out = append(out, s.stage(keyOf(cfg.Analyzer, analysed(cfg)), pipeline.Stage{
			Name: "path-" + strconv.Itoa(i), Step: step, Tick: min(100*time.Millisecond, tickOf(cfg.Analyzer.ReportInterval)),
			Consumes: []bus.Subscription{{Kind: trimtab.KindSpans, Key: strconv.Itoa(i), Consumer: "path"}},
		}))
	}
	return out, nil
}

// tickOf is how often a stage looks at the clock when things happen at this
// interval.
func tickOf(interval time.Duration) time.Duration {
	return max(20*time.Millisecond, min(time.Second, interval/4))
}

func (s *site) plannerPart(cfg *config.Config) ([]part, error) {
	if cfg.Pool.Capacity() <= 0 {
		return nil, nil
	}
	c, err := plannerConfig(cfg)
	if err != nil {
		return nil, err
	}
	if s.options.AlertGap > 0 {
		c.AlertGap = s.options.AlertGap
	}
	step, err := planner.New(c)
	if err != nil {
		return nil, fmt.Errorf("set up planner: %w", err)
	}
	return []part{s.stage(keyOf(cfg.Pool, cfg.Objective, cfg.Round, cfg.Lease, cfg.Guard, planned(cfg)), pipeline.Stage{
		Name: "planner", Step: step, Tick: tickOf(cfg.Round),
		Consumes: []bus.Subscription{
			{Kind: trimtab.KindEstimate}, {Kind: trimtab.KindHolding},
			{Kind: trimtab.KindOutcome, Key: cfg.Pool.Name},
			{Kind: trimtab.KindAlert, Consumer: "planner-" + cfg.Pool.Name},
			{Kind: trimtab.KindCommand, Key: cfg.Pool.Name, Consumer: "planner-" + cfg.Pool.Name},
		},
		Leader:    &pipeline.Leader{Pool: cfg.Pool.Name, Sole: cfg.NATS.URL == ""},
		Snapshots: &pipeline.Snapshots{Bucket: snapshotBucket, Every: time.Minute},
	})}, nil
}

func (s *site) actuatorPart(cfg *config.Config) ([]part, error) {
	targets, err := targetsOf(cfg)
	if err != nil || cfg.Pool.Capacity() <= 0 {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find host name: %w", err)
	}
	watchdog := s.options.Watchdog
	if watchdog == nil {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("find own program: %w", err)
		}
		watchdog = []string{self, "watchdog", "--dir", journalDir(cfg.Storage.Path)}
	}
	c := actuator.Config{
		Host: host, Pool: cfg.Pool.Name, Dir: journalDir(cfg.Storage.Path), Targets: targets, Reopen: reopen,
		Limits: limitsOf(cfg), Watchdog: watchdog, Metrics: s.metrics, Logger: s.logger,
	}
	start := func(ctx context.Context) (func() error, error) {
		s.ready.set("actuator", "starting")
		a, err := actuator.Open(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("open actuator: %w", err)
		}
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if err := a.Run(ctx, s.bus); err != nil && ctx.Err() == nil {
				s.fail("actuator", err)
			}
		}()
		s.ready.set("actuator", "")
		return func() error {
			cancel()
			<-done
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			return a.Close(ctx)
		}, nil
	}
	return []part{{"actuator", keyOf(cfg.Pool, cfg.Guard, cfg.Actuator, planned(cfg)), start}}, nil
}

// reopen makes a knob from the journal alone.
func reopen(undo []byte) (actuator.Knob, error) {
	// The kinds know their own.
	group, err := actuatorcgroup.Reopen(undo)
	if err == nil || !errors.Is(err, trimtab.ErrUnsupported) {
		return group, err
	}
	return process.Reopen(undo)
}

// reader is a collector that asks: it runs until its context ends.
type reader interface {
	Run(context.Context) error
	Close() error
}

// reading makes a part of a reader, which is opened when the part starts.
func (s *site) reading(name, key string, open func() (reader, error)) part {
	return part{name, key, func(ctx context.Context) (func() error, error) {
		r, err := open()
		if err != nil {
			return nil, fmt.Errorf("set up %s collector: %w", name, err)
		}
		stop, err := s.service(name, key, r.Run).start(ctx)
		return func() error { return errors.Join(stop(), r.Close()) }, err
	}}
}

// samplerParts read what spans do not tell: PromQL and cgroup files.
func (s *site) samplerParts(cfg *config.Config) ([]part, error) {
	var out []part
	if queries := queriesOf(cfg); len(queries) > 0 {
		c := prometheus.Config{
			URL: cfg.Prometheus.URL, HTTP: cfg.Prometheus.HTTP, Interval: cfg.Prometheus.Interval,
			Timeout: cfg.Prometheus.Timeout, Queries: queries, Bus: s.bus, Metrics: s.metrics, Logger: s.logger,
		}
		out = append(out, s.reading("prometheus", keyOf(cfg.Prometheus, queries), func() (reader, error) { return prometheus.Open(c) }))
	}
	if groups := groupsOf(cfg); len(groups) > 0 {
		root, err := cgroupRoot(cfg)
		if err != nil {
			return nil, err
		}
		c := cgroup.Config{Root: root, Targets: groups, Interval: cfg.Analyzer.ReportInterval, Bus: s.bus, Metrics: s.metrics, Logger: s.logger}
		out = append(out, s.reading("cgroup", keyOf(root, groups, c.Interval), func() (reader, error) { return cgroup.Open(c) }))
	}
	return out, nil
}

// receiverParts listen for spans.
func (s *site) receiverParts(cfg *config.Config) ([]part, error) {
	tls, err := serverTLS(cfg.OTLP.TLS)
	if err != nil {
		return nil, err
	}
	receivers := []struct {
		name string
		c    otlp.Config
	}{
		{"otlp", otlp.Config{GRPC: unlessOff(cfg.OTLP.GRPC), HTTP: unlessOff(cfg.OTLP.HTTP), TLS: tls, MaxBody: int(cfg.OTLP.MaxBody)}},
		{"jaeger", otlp.Config{GRPC: unlessOff(cfg.Jaeger.GRPC)}},
	}
	var out []part
	for _, r := range receivers {
		if r.c.GRPC == "" && r.c.HTTP == "" {
			continue
		}
		out = append(out, part{r.name, keyOf(cfg.OTLP, cfg.Jaeger, cfg.Analyzer.Partitions), func(ctx context.Context) (func() error, error) {
			return s.startReceiver(ctx, r.name, r.c, cfg.Analyzer.Partitions)
		}})
	}
	return out, nil
}

func unlessOff(address string) string {
	if address == "off" {
		return ""
	}
	return address
}

func (s *site) startReceiver(ctx context.Context, name string, c otlp.Config, partitions int) (func() error, error) {
	sink, err := collector.Open(collector.Config{Bus: s.bus, Metrics: s.metrics, Partitions: partitions})
	if err != nil {
		return nil, err
	}
	c.Sink, c.Metrics, c.Log = sink, s.metrics, s.logger
	if name == "jaeger" {
		spans := jaeger.New(sink, s.metrics)
		c.Register = func(r grpc.ServiceRegistrar) { jaeger.Register(r, spans) }
	}
	r, err := otlp.Open(c)
	if err != nil {
		return nil, fmt.Errorf("receive %s: %w", name, err)
	}
	if name == "otlp" {
		s.otlpAddress = r.GRPCAddr()
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		err := r.Serve(ctx)
		if err != nil && ctx.Err() == nil {
			s.fail(name, err)
		}
		done <- nil
	}()
	return func() error {
		cancel()
		return errors.Join(<-done, r.Close())
	}, nil
}
