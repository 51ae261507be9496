package config

import (
	"cmp"
	"math"
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/trimtab/trimtab"
)

// Default returns the configuration without a file: loopback only, no
// workload, services are found from spans and shown, and no limit is set.
func Default() *Config {
	c := zero()
	c.fill()
	return c
}

// endToEndMoveCost is Planning.MoveCost for EndToEnd, a share of the latency and
// not of a utility. It is planner/endtoend.DefaultMoveCost, which this package
// may not import.
const endToEndMoveCost = 0.01

// zero returns the defaults that do not depend on other settings.
func zero() *Config {
	return &Config{
		Pool:      Pool{Name: "default"},
		Objective: "njc",
		Planning:  Planning{MoveCost: 0.05},
		Round:     5 * time.Second,
		Guard: Guard{
			MaxFall: 0.2, MaxLowered: 0.25, MaxMoved: 0.25, DeadBand: 0.1,
			ReversalWindow: 5 * time.Minute, HoldRounds: 3,
		},
		Analyzer: Analyzer{
			Partitions: 1, TraceTimeout: 15 * time.Second, MaxSpans: 400_000,
			MaxTraceSpans: 10_000, MaxDiscovered: 200, Confidence: 0.9,
		},
		Actuator: Actuator{
			Apply: true, ClockSkew: 30 * time.Second, MaxFall: 0.5, FallWindow: 5 * time.Second,
			MaxLowered: 0.5, LoweredWindow: 2 * time.Second,
		},
		Fast:         Fast{Mode: trimtab.Off, Floor: 0.3, Ceiling: 4, Stall: 70 * time.Millisecond, Burst: 1},
		Kubernetes:   Kubernetes{ForeignHold: 10 * time.Minute, DeferTimeout: time.Minute, Restore: "upwards", Memory: MemoryByMetrics},
		Storage:      Storage{Path: "trimtab-data", Limit: 1 << 30},
		Web:          Web{ListenAddress: "127.0.0.1:9600"},
		OTLP:         OTLP{GRPC: "127.0.0.1:4317", HTTP: "127.0.0.1:4318", MaxBody: 8 << 20},
		Jaeger:       Jaeger{GRPC: "127.0.0.1:14250"},
		Sockets:      Sockets{Settle: 200 * time.Millisecond},
		Exporters:    Exporters{Record: Record{MaxBytes: 1 << 30, SegmentBytes: 16 << 20, SegmentAge: time.Hour}},
		Alertmanager: Alertmanager{MaxHold: 5 * time.Hour},
		Prometheus:   Prometheus{HTTP: promconfig.DefaultHTTPClientConfig},
	}
}

// reportEach is the shortest report interval per workload: 1,000 workloads are reported
// once a second at most. A report, its estimate on the bus and the readers of that
// estimate take about 0.4 ms of CPU together, and a round uses only one of each.
const reportEach = time.Millisecond

// fill sets what was left out and follows from other settings.
func (c *Config) fill() {
	c.Lease = cmp.Or(c.Lease, defaultLease(c.Round))
	c.Actuator.MaxLease = cmp.Or(c.Actuator.MaxLease, c.Lease+10*time.Second)
	many := time.Duration(len(c.Workloads)) * reportEach
	c.Analyzer.ReportInterval = cmp.Or(c.Analyzer.ReportInterval, min(10*time.Second, max(c.Round/5, time.Second, many), c.Round))
	c.Prometheus.Interval = cmp.Or(c.Prometheus.Interval, max(c.Analyzer.ReportInterval, min(5*time.Second, c.Round)))
	c.Prometheus.Timeout = cmp.Or(c.Prometheus.Timeout, min(10*time.Second, c.Prometheus.Interval))
	if c.Pool.Unit == 0 {
		c.Pool.Unit = defaultUnit(&c.Pool)
	}
	c.Pool.Step = cmp.Or(c.Pool.Step, max(c.Pool.Unit, math.Round(c.Pool.Capacity()/3/c.Pool.Unit)*c.Pool.Unit))
	for i := range c.Groups {
		c.Groups[i].Weight = cmp.Or(c.Groups[i].Weight, 1)
	}
	if c.Beside.Jobs != nil {
		c.Beside.Jobs.fill(c.Analyzer.ReportInterval)
	}
	if c.Beside.Tasks != nil {
		c.Beside.Tasks.fill()
		if c.Beside.Manager == nil {
			c.Beside.Manager = &TaskManager{}
		}
	}
	if c.Beside.Manager != nil {
		c.Beside.Manager.fill()
	}
	for i := range c.Workloads {
		w := &c.Workloads[i]
		if c.IsJob(w) {
			w.fillJob(c.Beside.Jobs)
		}
		w.fill(&c.Pool, c.IsJob(w))
	}
	c.shareSLO()
}

// fill sets what was left out of one workload; of a job the pool says nothing.
func (w *Workload) fill(p *Pool, job bool) {
	w.Class = cmp.Or(w.Class, trimtab.LatencyCritical)
	w.Mode = cmp.Or(w.Mode, trimtab.Recommend)
	w.Utility = cmp.Or(w.Utility, "linear")
	w.Weight = cmp.Or(w.Weight, 1)
	if w.Match.Spans == nil && w.Match.Kubernetes != nil {
		w.Match.Spans = w.Match.Kubernetes.spans()
	}
	if w.Match.Spans == nil && w.Name != "" {
		w.Match.Spans = map[string]Values{"service.name": {w.Name}}
	}
	if w.Match.Alert == nil && w.Name != "" {
		w.Match.Alert = map[string]string{"workload": w.Name}
	}
	if b := w.Knob.Bounds(); b != nil && !job {
		b.Min = cmp.Or(b.Min, p.Unit)
		b.Max = cmp.Or(b.Max, p.Capacity())
	}
	if !job {
		w.Knob.fillFurther(p)
	}
}

// defaultLease outlasts two rounds that are lost.
func defaultLease(round time.Duration) time.Duration { return max(3*round, time.Minute) }

// defaultUnit returns 1 for what is counted; for cores the largest of 1, 2 and 5
// times a power of ten that is at most a thousandth of the capacity, and at
// least the step of knobs.
func defaultUnit(p *Pool) float64 {
	least := trimtab.ResourceOf(p.Resource()).Step
	if p.Capacity() == 0 || least == 1 {
		return 1
	}
	want := p.Capacity() / 1000
	k := math.Floor(math.Log10(want) + 1e-9)
	for _, digit := range []float64{5, 2, 1} {
		// Dividing by a power of ten gives the float nearest to the decimal.
		unit := digit / math.Pow(10, -k)
		if unit <= want*(1+1e-9) {
			return max(unit, least)
		}
	}
	return least
}
