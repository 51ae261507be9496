package site

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/analyzer/path"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/cgroup"
	"github.com/trimtab/trimtab/collector/jaeger"
	"github.com/trimtab/trimtab/collector/kernel"
	"github.com/trimtab/trimtab/collector/otlp"
	"github.com/trimtab/trimtab/collector/prometheus"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/pipeline"
	"github.com/trimtab/trimtab/planner"
	"google.golang.org/grpc"
)

// partsOf builds, without any effect, the parts of cfg in the order in which
// they start: what only looks on first, then what consumes before what
// produces, the receivers last.
func (s *Site) partsOf(cfg *config.Config) ([]part, error) {
	var next []part
	pooled := cfg.Pooled()
	for _, b := range []struct {
		role  natsbus.Role // empty: it looks itself
		build func(*config.Config) ([]part, error)
		jobs  bool // it has to do with best-effort jobs, too
	}{
		{"", s.exportParts, false}, {natsbus.Agent, s.actuatorPart, false}, {natsbus.Agent, s.colocatePart, true}, {natsbus.Agent, s.speculatePart, true},
		{natsbus.Planner, s.plannerPart, false}, {natsbus.Planner, s.batchPart, true},
		{natsbus.Analyzer, s.learnPart, false}, {natsbus.Analyzer, s.pathParts, false}, {natsbus.Collector, s.queryPart, false},
		{natsbus.Agent, s.groupPart, false}, {natsbus.Agent, s.monitorPart, false}, {natsbus.Agent, s.hostParts, false},
		{natsbus.Collector, s.receiverParts, false}, {natsbus.Collector, s.alertPart, false},
	} {
		if b.role != "" && !s.does(b.role) {
			continue
		}
		of := pooled
		if b.jobs {
			of = cfg
		}
		p, err := b.build(of)
		if err != nil {
			return nil, err
		}
		next = append(next, p...)
	}
	return next, nil
}

// background runs a function until stop is called, which waits for its end; an
// error before that ends the process. The end of ctx does not stop it: parts
// stop one by one, in the reverse order of the flow.
func (s *Site) background(ctx context.Context, name string, run func(context.Context) error) (stop func() error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := run(ctx); err != nil && ctx.Err() == nil {
			s.fail(name, err)
		}
	}()
	return func() error {
		cancel()
		<-done
		s.ready.forget(name)
		return nil
	}
}

// working runs a part that is no stage of a step, and tells with its health
// whether it works.
func (s *Site) working(name string, h *pipeline.Health, run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithCancel(ctx)
		var telling sync.WaitGroup
		telling.Go(func() { h.Report(ctx, s.bus, func(why string) { s.ready.set(name, why) }) })
		defer telling.Wait()
		defer cancel()
		return run(ctx)
	}
}

// startWait is how long a stage may take to work before the parts that send to
// it are started all the same.
const startWait = 2 * time.Second

// stage makes a part of a pure step, which is built from the given values.
func (s *Site) stage(st pipeline.Stage, step trimtab.Step, built ...any) part {
	return s.stageIn(nil, st, func() (trimtab.Step, error) { return step, nil }, built...)
}

// stageIn is stage for a step that one process at a time may run, under the lock
// of alone; nil: whoever has the part runs it. Each time that it takes over it
// begins with a new step, and what is stored of the old one.
func (s *Site) stageIn(alone *pipeline.Alone, st pipeline.Stage, step func() (trimtab.Step, error), built ...any) part {
	key := keyOf(st, built)
	st.Bus, st.Metrics, st.Logger = s.bus, s.metrics, s.logger
	return part{name: st.Name, key: key, start: func(ctx context.Context) (func() error, error) {
		works := make(chan struct{})
		var once sync.Once
		st.Ready = func(why string) {
			s.ready.set(st.Name, why)
			if why == "" {
				once.Do(func() { close(works) })
			}
		}
		stop := s.background(ctx, st.Name, s.under(alone, st.Ready, func(ctx context.Context) (err error) {
			st := st
			if st.Step, err = step(); err != nil {
				return fmt.Errorf("set up %s: %w", st.Name, err)
			}
			return pipeline.Run(ctx, st)
		}))
		late := time.NewTimer(startWait)
		defer late.Stop()
		select {
		case <-works:
		case <-late.C:
		case <-ctx.Done():
		}
		return stop, nil
	}}
}

// alone returns the lock of what one process at a time does, in a bucket of its
// role; nil where no other process can reach the bus.
func (s *Site) alone(cfg *config.Config, bucket, what string) (*pipeline.Alone, error) {
	if cfg.NATS.URL == "" {
		return nil, nil
	}
	holder, err := s.holderOf(cfg)
	if err != nil {
		return nil, err
	}
	return &pipeline.Alone{Bus: s.bus, Bucket: bucket, Key: cfg.Pool.Name + "/" + what, Holder: holder,
		What: what + " of pool " + cfg.Pool.Name, Logger: s.logger}, nil
}

// under runs something while a lock is held; nil: always.
func (s *Site) under(alone *pipeline.Alone, ready func(string), run func(context.Context) error) func(context.Context) error {
	if alone == nil {
		return run
	}
	a := *alone
	a.Ready = ready
	return func(ctx context.Context) error { return a.Run(ctx, run) }
}

func (s *Site) learnPart(cfg *config.Config) ([]part, error) {
	c, err := AnalyzerConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("set up analyzer: %w", err)
	}
	step := func() (trimtab.Step, error) {
		step, err := analyzer.New(c)
		if err != nil {
			return nil, err
		}
		return s.tap("learn", step), nil
	}
	if _, err := step(); err != nil {
		return nil, fmt.Errorf("set up analyzer: %w", err)
	}
	alone, err := s.alone(cfg, natsbus.BucketAnalyzers, "learn")
	if err != nil {
		return nil, fmt.Errorf("set up analyzer: %w", err)
	}
	return []part{s.stageIn(alone, pipeline.Stage{
		Name: "learn", Tick: tickOf(cfg.Analyzer.ReportInterval),
		Work: pipeline.Work{Round: cfg.Analyzer.ReportInterval},
		Consumes: []bus.Subscription{
			{Kind: trimtab.KindSketch}, {Kind: trimtab.KindSample}, {Kind: trimtab.KindHolding}, {Kind: trimtab.KindColocation},
		},
		Snapshots: &pipeline.Snapshots{Bucket: natsbus.BucketSnapshots, Every: time.Minute},
	}, step, c, demandUtilityTexts(cfg))}, nil
}

// pathParts are one stage per partition.
func (s *Site) pathParts(cfg *config.Config) ([]part, error) {
	var out []part
	for i := range cfg.Analyzer.Partitions {
		c := PathConfig(cfg, i)
		step := func() (trimtab.Step, error) { return path.New(c) }
		if _, err := step(); err != nil {
			return nil, fmt.Errorf("set up analyzer path: %w", err)
		}
		name := "path-" + strconv.Itoa(i)
		// Not a group alone: that would tear the traces of a partition apart.
		alone, err := s.alone(cfg, natsbus.BucketAnalyzers, name)
		if err != nil {
			return nil, fmt.Errorf("set up analyzer path: %w", err)
		}
		out = append(out, s.stageIn(alone, pipeline.Stage{
			Name: name, Tick: min(100*time.Millisecond, tickOf(cfg.Analyzer.ReportInterval)),
			Work:      pipeline.Work{Round: cfg.Analyzer.ReportInterval},
			Consumes:  []bus.Subscription{{Kind: trimtab.KindSpans, Key: strconv.Itoa(i), Consumer: "path"}},
			Snapshots: &pipeline.Snapshots{Bucket: natsbus.BucketSnapshots, Every: time.Minute},
		}, step, c))
	}
	return out, nil
}

// tickOf is how often a stage looks at the clock when things happen at this
// interval.
func tickOf(interval time.Duration) time.Duration {
	return max(20*time.Millisecond, min(time.Second, interval/4))
}

func (s *Site) plannerPart(cfg *config.Config) ([]part, error) {
	if cfg.Pool.Capacity() <= 0 {
		return nil, nil
	}
	c, err := PlannerConfig(cfg)
	if err != nil {
		return nil, err
	}
	c.Shared = s.shares(cfg)
	if s.options.AlertGap > 0 {
		c.AlertGap = s.options.AlertGap
	}
	step, err := planner.New(c)
	if err != nil {
		return nil, fmt.Errorf("set up planner: %w", err)
	}
	holder, err := s.holderOf(cfg)
	if err != nil {
		return nil, fmt.Errorf("set up planner: %w", err)
	}
	return []part{s.stage(pipeline.Stage{
		Name: "planner", Tick: tickOf(cfg.Round),
		Work: pipeline.Work{Round: cfg.Round, Every: trimtab.KindPlan, Answered: true},
		Consumes: []bus.Subscription{
			{Kind: trimtab.KindEstimate}, {Kind: trimtab.KindHolding},
			{Kind: trimtab.KindOutcome},
			// Nameless: every planner hears them, whichever leads, and nobody
			// carries out what was asked before it was there.
			{Kind: trimtab.KindAlert}, {Kind: trimtab.KindCommand, Key: cfg.Pool.Name},
			{Kind: trimtab.KindContributions},
		},
		Leader:    &pipeline.Leader{Pool: cfg.Pool.Name, Holder: holder, Sole: cfg.NATS.URL == ""},
		Snapshots: &pipeline.Snapshots{Bucket: natsbus.BucketPlanner, Every: time.Minute},
	}, s.tap("planner", step), c, utilityTexts(cfg))}, nil
}

// holderOf names this process in a leader's lock: no other has this storage on
// this host.
func (s *Site) holderOf(cfg *config.Config) (string, error) {
	storage, err := filepath.Abs(cfg.Storage.Path)
	if err != nil {
		return "", fmt.Errorf("find storage: %w", err)
	}
	return s.host + ":" + storage, nil
}

// reader is a collector that asks: it runs until its context ends.
type reader interface {
	Run(context.Context) error
	Close() error
}

// reading makes a part of a reader, which is opened when the part starts, or
// when this process takes over under the lock of alone, with the configuration
// that it is built from.
func (s *Site) reading(alone *pipeline.Alone, name string, built any, work pipeline.Work, open func(bus.Bus) (reader, error)) part {
	start := func() (func(context.Context) error, error) {
		h := pipeline.NewHealth(work)
		r, err := open(h.Bus(s.bus))
		if err != nil {
			return nil, fmt.Errorf("set up %s collector: %w", name, err)
		}
		s.ready.set(name, "")
		reads := s.working(name, h, r.Run)
		return func(ctx context.Context) error { return errors.Join(reads(ctx), r.Close()) }, nil
	}
	return part{name: name, key: keyOf(built, work), start: func(ctx context.Context) (func() error, error) {
		if alone != nil {
			return s.background(ctx, name, s.under(alone, func(why string) { s.ready.set(name, why) }, func(ctx context.Context) error {
				run, err := start()
				if err != nil {
					return err
				}
				return run(ctx)
			})), nil
		}
		run, err := start()
		if err != nil {
			return nil, err
		}
		return s.background(ctx, name, run), nil
	}}
}

// queryPart reads what spans do not tell: the answers of Prometheus. Of several
// processes one asks.
func (s *Site) queryPart(cfg *config.Config) ([]part, error) {
	queries := queriesOf(cfg)
	if len(queries) == 0 {
		return nil, nil
	}
	c := prometheus.Config{
		URL: cfg.Prometheus.URL, HTTP: cfg.Prometheus.HTTP, Interval: cfg.Prometheus.Interval,
		Timeout: cfg.Prometheus.Timeout, Queries: queries,
	}
	alone, err := s.alone(cfg, natsbus.BucketCollectors, "prometheus")
	if err != nil {
		return nil, err
	}
	// It tells every round what it read, or why it read nothing.
	work := pipeline.Work{Round: c.Interval + c.Timeout, Every: trimtab.KindSample}
	return []part{s.reading(alone, "prometheus", c, work, func(b bus.Bus) (reader, error) {
		c := c
		c.Bus, c.Metrics, c.Logger = b, s.metrics, s.logger
		return prometheus.Open(c)
	})}, nil
}

// shares tells whether other hosts may have knobs of the pool: all but one process
// that does everything, on a bus that no other can reach, must believe so. What a
// host was measured to have then bounds what it is given, for the planner and for
// its actuator alike; alone, a host has what the file says.
func (s *Site) shares(cfg *config.Config) bool {
	return s.options.Role != "" || manyHosts(cfg, s.host) != ""
}

// groupPart reads the files of this host's cgroups.
func (s *Site) groupPart(cfg *config.Config) ([]part, error) {
	groups := groupsOf(cfg, s.host, s.shares(cfg))
	if len(groups) == 0 || cfg.Pool.Resource() != "" && cfg.Pool.Resource() != trimtab.CPU {
		return nil, nil // what they used is cores, which a pool of something else does not share
	}
	root, err := cgroupRoot(cfg)
	if err != nil {
		return nil, err
	}
	c := cgroup.Config{Root: root, Targets: groups, Interval: cfg.Analyzer.ReportInterval}
	if len(groups) > 1 {
		c.Remark = quotaRemark(cfg, kindsOn(rdtOf(cfg.Actuator.LockDir)), s.host)
	}
	return []part{s.reading(nil, "cgroup", c, groupWork(c), func(b bus.Bus) (reader, error) {
		c := c
		c.Bus, c.Metrics, c.Logger = b, s.metrics, s.logger
		return cgroup.Open(c)
	})}, nil
}

// receiverParts listen for spans. They share one sink, whose bound of what is
// under way holds for all of them together, and so they have one key.
func (s *Site) receiverParts(cfg *config.Config) ([]part, error) {
	files, err := readTLS(cfg.OTLP.TLS, "OTLP receiver", "OTLP clients")
	if err != nil {
		return nil, err
	}
	receivers := []struct {
		name string
		c    otlp.Config
	}{
		{"otlp", otlp.Config{GRPC: unlessOff(cfg.OTLP.GRPC), HTTP: unlessOff(cfg.OTLP.HTTP), MaxBody: int(cfg.OTLP.MaxBody)}},
		{"jaeger", otlp.Config{GRPC: unlessOff(cfg.Jaeger.GRPC)}},
	}
	shared := collector.Config{Partitions: cfg.Analyzer.Partitions}
	work := pipeline.Work{Round: cfg.Analyzer.ReportInterval}
	key := keyOf(receivers, files.content(), shared, work)
	receivers[0].c.TLS = files.server()
	h := pipeline.NewHealth(work)
	shared.Bus, shared.Metrics = h.Bus(s.bus), s.metrics
	if len(cfg.Watched()) > 0 {
		shared.Naming = s.nameSenders
	}
	sink, err := collector.Open(shared)
	if err != nil {
		return nil, err
	}
	var out []part
	for _, r := range receivers {
		if r.c.GRPC == "" && r.c.HTTP == "" {
			continue
		}
		r.c.Sink = sink
		out = append(out, part{name: r.name, key: key, start: func(ctx context.Context) (func() error, error) {
			return s.startReceiver(ctx, r.name, r.c, h)
		}})
	}
	s.metrics.Gauge("trimtab_collector_kernel_attached").Set(0)
	if c := cfg.Sockets; len(c.Components) > 0 {
		out = append(out, part{name: "sockets", key: keyOf(key, c), start: func(ctx context.Context) (func() error, error) { return s.startSockets(ctx, c, sink) }})
	}
	return out, nil
}

// startSockets traces what is not instrumented. A host that cannot says why, and the
// rest goes on.
func (s *Site) startSockets(ctx context.Context, cfg config.Sockets, sink *collector.Sink) (func() error, error) {
	c := kernel.Config{Sink: sink, Host: s.host, Settle: cfg.Settle, Metrics: s.metrics, Logger: s.logger}
	for _, of := range cfg.Components {
		c.Components = append(c.Components, kernel.Component{Name: of.Name, Program: of.Program, Cgroup: of.Cgroup})
	}
	attached := s.metrics.Gauge("trimtab_collector_kernel_attached")
	k, err := kernel.Open(c)
	if errors.Is(err, trimtab.ErrUnsupported) {
		s.logger.Warn("requests of components without spans are not seen on this host", "cause", err)
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	attached.Set(1)
	stop := s.background(ctx, "sockets", k.Run)
	return func() error {
		attached.Set(0)
		return errors.Join(stop(), k.Close())
	}, nil
}

func unlessOff(address string) string {
	if address == "off" {
		return ""
	}
	return address
}

func (s *Site) startReceiver(ctx context.Context, name string, c otlp.Config, h *pipeline.Health) (func() error, error) {
	c.Metrics, c.Log = s.metrics, s.logger
	if name == "jaeger" {
		spans := jaeger.New(c.Sink, s.metrics)
		c.Register = func(r grpc.ServiceRegistrar) { jaeger.Register(r, spans) }
	}
	r, err := otlp.Open(c)
	if err != nil {
		return nil, fmt.Errorf("receive %s: %w", name, err)
	}
	if name == "otlp" {
		s.otlpAddress = r.GRPCAddr()
	}
	s.ready.set(name, "")
	stop := s.background(ctx, name, s.working(name, h, r.Serve))
	return func() error { return errors.Join(stop(), r.Close()) }, nil
}
