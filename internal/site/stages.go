package site

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/agent/beside"
	"github.com/trimtab/trimtab/agent/grow"
	"github.com/trimtab/trimtab/agent/knobs"
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
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/config"
	exporter "github.com/trimtab/trimtab/exporters/prometheus"
	"github.com/trimtab/trimtab/exporters/record"
	"github.com/trimtab/trimtab/internal/batch"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/supervise"
	"github.com/trimtab/trimtab/internal/wire"
	"github.com/trimtab/trimtab/pipeline"
	"github.com/trimtab/trimtab/planner"
	"google.golang.org/grpc"
)

// stages builds the parts of a configuration from what they share.
type stages struct {
	options  Options
	process  supervise.Process
	bus      *natsbus.Bus
	exporter *exporter.Exporter              // nil: the role shows nothing
	recorder atomic.Pointer[record.Recorder] // nil: steps are not recorded
	cluster  watchedCluster                  // cluster whose workloads have knobs
	beside   beside.Host                     // runs jobs and tasks beside the services of this host
	webhook  webhook
	// memory has the newest readings of the memory of this host's groups.
	memory *grow.Feed
	// otlpAddress is the address that receives OTLP over gRPC.
	otlpAddress string
}

// does reports whether the parts of a role run in this process.
func (s *stages) does(r natsbus.Role) bool { return s.options.Role == "" || s.options.Role == r }

// partsOf builds the parts of cfg, without starting them, in the order in which they start: first
// those that only observe, then consumers before producers, the receivers last.
func (s *stages) partsOf(cfg *config.Config) ([]supervise.Part, error) {
	var next []supervise.Part
	pooled := cfg.Pooled()
	for _, b := range []struct {
		role  natsbus.Role // empty: the part itself decides
		build func(*config.Config) ([]supervise.Part, error)
		jobs  bool // it also serves best-effort jobs
	}{
		{"", s.exportParts, false}, {natsbus.Agent, s.actuatorPart, false}, {natsbus.Agent, s.classParts, false}, {natsbus.Agent, s.beside.JobsPart, true}, {natsbus.Agent, s.beside.TasksPart, true},
		{natsbus.Planner, s.plannerPart, false}, {natsbus.Planner, s.batchPart, true},
		{natsbus.Analyzer, s.learnPart, false}, {natsbus.Analyzer, s.pathParts, false}, {natsbus.Collector, s.queryPart, false},
		{natsbus.Agent, s.groupPart, false}, {natsbus.Agent, s.monitorPart, false},
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

// alone returns the lock for work that only one process may do at a time, in a bucket of its role;
// nil: no other process can reach the bus.
func (s *stages) alone(cfg *config.Config, bucket, what string) (*pipeline.Alone, error) {
	if cfg.NATS.URL == "" {
		return nil, nil
	}
	holder, err := s.holderOf(cfg)
	if err != nil {
		return nil, err
	}
	return &pipeline.Alone{Bus: s.bus, Bucket: bucket, Key: cfg.Pool.Name + "/" + what, Holder: holder,
		What: what + " of pool " + cfg.Pool.Name, Logger: s.process.Logger}, nil
}

func (s *stages) learnPart(cfg *config.Config) ([]supervise.Part, error) {
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
	return []supervise.Part{s.process.StageIn(alone, pipeline.Stage{
		Name: "learn", Tick: tickOf(cfg.Analyzer.ReportInterval),
		Work: pipeline.Work{Round: cfg.Analyzer.ReportInterval},
		Consumes: []bus.Subscription{
			{Kind: trimtab.KindSketch}, {Kind: trimtab.KindSample}, {Kind: trimtab.KindHolding}, {Kind: colocation.KindColocation},
		},
		Snapshots: &pipeline.Snapshots{Bucket: natsbus.BucketSnapshots, Every: time.Minute},
	}, step, c, demandUtilityTexts(cfg))}, nil
}

// pathParts returns one path stage for each partition.
func (s *stages) pathParts(cfg *config.Config) ([]supervise.Part, error) {
	var out []supervise.Part
	for i := range cfg.Analyzer.Partitions {
		c := PathConfig(cfg, i)
		step := func() (trimtab.Step, error) { return path.New(c) }
		if _, err := step(); err != nil {
			return nil, fmt.Errorf("set up analyzer path: %w", err)
		}
		name := "path-" + strconv.Itoa(i)
		// A subscriber group alone is not enough: it would spread the traces of a partition over
		// its members.
		alone, err := s.alone(cfg, natsbus.BucketAnalyzers, name)
		if err != nil {
			return nil, fmt.Errorf("set up analyzer path: %w", err)
		}
		out = append(out, s.process.StageIn(alone, pipeline.Stage{
			Name: name, Tick: min(100*time.Millisecond, tickOf(cfg.Analyzer.ReportInterval)),
			Work:      pipeline.Work{Round: cfg.Analyzer.ReportInterval},
			Consumes:  []bus.Subscription{{Kind: trimtab.KindSpans, Key: strconv.Itoa(i), Consumer: "path"}},
			Snapshots: &pipeline.Snapshots{Bucket: natsbus.BucketSnapshots, Every: time.Minute},
		}, step, c))
	}
	return out, nil
}

// tickOf returns how often a stage with this interval ticks.
func tickOf(interval time.Duration) time.Duration {
	return max(20*time.Millisecond, min(time.Second, interval/4))
}

func (s *stages) plannerPart(cfg *config.Config) ([]supervise.Part, error) {
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
	return []supervise.Part{s.process.Stage(pipeline.Stage{
		Name: "planner", Tick: tickOf(cfg.Round),
		Work: pipeline.Work{Round: cfg.Round, Every: trimtab.KindPlan, Answered: true},
		Consumes: []bus.Subscription{
			{Kind: trimtab.KindEstimate}, {Kind: trimtab.KindHolding},
			{Kind: trimtab.KindOutcome},
			// Without a name: every planner receives them, whether it leads or not, and a new
			// planner does not repeat old requests.
			{Kind: trimtab.KindAlert}, {Kind: trimtab.KindCommand, Key: cfg.Pool.Name},
			{Kind: colocation.KindContributions},
		},
		Leader:    &pipeline.Leader{Pool: cfg.Pool.Name, Holder: holder, Sole: cfg.NATS.URL == ""},
		Snapshots: &pipeline.Snapshots{Bucket: natsbus.BucketPlanner, Every: time.Minute},
	}, s.tap("planner", step), c, utilityTexts(cfg))}, nil
}

// batchPart manages the jobs of the pool.
func (s *stages) batchPart(cfg *config.Config) ([]supervise.Part, error) {
	if cfg.Beside.Manager == nil {
		return nil, nil
	}
	holder, err := s.holderOf(cfg)
	if err != nil {
		return nil, fmt.Errorf("set up job manager: %w", err)
	}
	p, err := batch.Part(&s.process, cfg, holder)
	return []supervise.Part{p}, err
}

// holderOf returns this process's name in a leader's lock. It is unique since no other process on
// this host uses this storage.
func (s *stages) holderOf(cfg *config.Config) (string, error) {
	storage, err := filepath.Abs(cfg.Storage.Path)
	if err != nil {
		return "", fmt.Errorf("find storage: %w", err)
	}
	return s.process.Host + ":" + storage, nil
}

// queryPart reads from Prometheus the quantities that spans do not have. Of several processes only
// one does so.
func (s *stages) queryPart(cfg *config.Config) ([]supervise.Part, error) {
	queries := wire.Queries(cfg)
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
	// Each round it publishes what it read, or why it could not.
	work := pipeline.Work{Round: c.Interval + c.Timeout, Every: trimtab.KindSample}
	return []supervise.Part{s.process.Reading(alone, "prometheus", c, work, func(b bus.Bus) (supervise.Reader, error) {
		c := c
		c.Bus, c.Metrics, c.Logger = b, s.process.Metrics, s.process.Logger
		return prometheus.Open(c)
	})}, nil
}

// shares reports whether other hosts may have knobs of the pool: always, except in a single process
// that has all roles, on a bus that no other can reach. If so, planner and actuator limit a host's
// allocations to its measured capacity; otherwise to the configured capacity.
func (s *stages) shares(cfg *config.Config) bool {
	return s.options.Role != "" || cfg.ManyHosts(s.process.Host) != ""
}

// groupPart reads the files of this host's cgroups.
func (s *stages) groupPart(cfg *config.Config) ([]supervise.Part, error) {
	groups := groupsOf(cfg, s.process.Host, s.shares(cfg))
	if len(groups) == 0 || cfg.Pool.Resource() != "" && cfg.Pool.Resource() != trimtab.CPU {
		return nil, nil // these files give CPU use in cores, which the pool does not share
	}
	root, err := hostfs.CPURoot(cfg.Actuator.CgroupRoot)
	if err != nil {
		return nil, err
	}
	c := cgroup.Config{Root: root, Targets: groups, Interval: cfg.Analyzer.ReportInterval}
	if len(groups) > 1 {
		c.Remark = knobs.Remark(cfg, kinds.On(kinds.RDT(cfg.Actuator.LockDir)), s.process.Host)
	}
	return []supervise.Part{s.process.Reading(nil, "cgroup", c, groupWork(c), func(b bus.Bus) (supervise.Reader, error) {
		c := c
		c.Bus, c.Metrics, c.Logger = b, s.process.Metrics, s.process.Logger
		return cgroup.Open(c)
	})}, nil
}

// receiverParts listen for spans. They have one key, since they share one sink, which bounds the
// spans in progress of all of them together.
func (s *stages) receiverParts(cfg *config.Config) ([]supervise.Part, error) {
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
	key := supervise.KeyOf(receivers, files.content(), shared, work)
	receivers[0].c.TLS = files.server()
	h := pipeline.NewHealth(work)
	shared.Bus, shared.Metrics = h.Bus(s.bus), s.process.Metrics
	if len(cfg.Watched()) > 0 {
		shared.Naming = s.cluster.nameSenders
	}
	sink, err := collector.Open(shared)
	if err != nil {
		return nil, err
	}
	var out []supervise.Part
	for _, r := range receivers {
		if r.c.GRPC == "" && r.c.HTTP == "" {
			continue
		}
		r.c.Sink = sink
		out = append(out, supervise.Part{Name: r.name, Key: key, Start: func(ctx context.Context) (func() error, error) {
			return s.startReceiver(ctx, r.name, r.c, h)
		}})
	}
	s.process.Metrics.Gauge("trimtab_collector_kernel_attached").Set(0)
	if c := cfg.Sockets; len(c.Components) > 0 {
		out = append(out, supervise.Part{Name: "sockets", Key: supervise.KeyOf(key, c), Start: func(ctx context.Context) (func() error, error) { return s.startSockets(ctx, c, sink) }})
	}
	refusals, err := s.refusalParts(cfg, sink)
	return append(out, refusals...), err
}

// startSockets traces programs without instrumentation. A host that cannot reports why, and the
// rest continues.
func (s *stages) startSockets(ctx context.Context, cfg config.Sockets, sink *collector.Sink) (func() error, error) {
	c := kernel.Config{Sink: sink, Host: s.process.Host, Settle: cfg.Settle, Metrics: s.process.Metrics, Logger: s.process.Logger}
	for _, of := range cfg.Components {
		c.Components = append(c.Components, kernel.Component{Name: of.Name, Program: of.Program, Cgroup: of.Cgroup})
	}
	attached := s.process.Metrics.Gauge("trimtab_collector_kernel_attached")
	k, err := kernel.Open(c)
	if errors.Is(err, trimtab.ErrUnsupported) {
		s.process.Logger.Warn("requests of components without spans are not seen on this host", "cause", err)
		return func() error { return nil }, nil
	}
	if err != nil {
		return nil, err
	}
	attached.Set(1)
	stop := s.process.Background(ctx, "sockets", k.Run)
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

func (s *stages) startReceiver(ctx context.Context, name string, c otlp.Config, h *pipeline.Health) (func() error, error) {
	c.Metrics, c.Log = s.process.Metrics, s.process.Logger
	if name == "jaeger" {
		spans := jaeger.New(c.Sink, s.process.Metrics)
		c.Register = func(r grpc.ServiceRegistrar) { jaeger.Register(r, spans) }
	}
	r, err := otlp.Open(c)
	if err != nil {
		return nil, fmt.Errorf("receive %s: %w", name, err)
	}
	if name == "otlp" {
		s.otlpAddress = r.GRPCAddr()
	}
	s.process.Ready.Set(name, "")
	stop := s.process.Background(ctx, name, s.process.Working(name, h, r.Serve))
	return func() error { return errors.Join(stop(), r.Close()) }, nil
}
