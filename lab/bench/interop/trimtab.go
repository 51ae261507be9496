package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/trimtab/trimtab/internal/pause"
	"github.com/trimtab/trimtab/lab/bench/rig"
)

// product is a trimtab that runs.
type product struct {
	*rig.Process
	web, grpc, http string
}

// start runs the program with a configuration whose only workload is web, and
// waits until it is ready. extra are further sections, workload further keys of
// the workload.
func start(ctx context.Context, binary, dir, extra, workload string) (*product, error) {
	at, err := rig.FreeAddresses(3)
	if err != nil {
		return nil, err
	}
	p := &product{web: at[0], grpc: at[1], http: at[2]}
	group := filepath.Join(dir, "tree/web")
	if err := os.MkdirAll(group, 0o755); err != nil {
		return nil, fmt.Errorf("make a control group: %w", err)
	}
	file := filepath.Join(dir, "trimtab.yaml")
	for name, text := range map[string]string{
		filepath.Join(group, "cpu.max"): "100000 100000\n",
		file: fmt.Sprintf(`web: {listen_address: %q}
otlp: {grpc: %q, http: %q}
jaeger: {grpc: "off"}
storage: {path: %q}
actuator: {cgroup_root: %q, lock_dir: %q}
pool: {cpu: 4}
%s
workloads:
  - name: web
    knob: {cgroup: web, cpu: {min: 0.2, max: 4}}
    mode: recommend
    %s
`, p.web, p.grpc, p.http, filepath.Join(dir, "data"), filepath.Join(dir, "tree"), filepath.Join(dir, "lock"), extra, workload),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return nil, fmt.Errorf("write the configuration: %w", err)
		}
	}
	program := rig.Program{Args: []string{binary, "run", "--config.file", file}, Dir: dir, Log: filepath.Join(dir, "trimtab.log"), Stop: syscall.SIGTERM}
	p.Process, err = rig.StartAt(ctx, program, nil, "http://"+p.web+"/-/ready")
	return p, err
}

// metrics are the families of /metrics, by name.
type metrics map[string]*dto.MetricFamily

// metrics reads them to the end, though ctx may end with the load.
func (p *product) metrics(ctx context.Context) (metrics, error) {
	return rig.Metrics(context.WithoutCancel(ctx), "http://"+p.web+"/metrics")
}

// by sums a family by one label; a gauge and a counter read alike.
func (m metrics) by(name, label string) map[string]float64 {
	out := map[string]float64{}
	for _, one := range m[name].GetMetric() {
		for _, l := range one.GetLabel() {
			if l.GetName() == label {
				if v := one.GetCounter().GetValue() + one.GetGauge().GetValue(); v != 0 {
					out[l.GetValue()] += v
				}
			}
		}
	}
	return out
}

// counted is what trimtab made of it.
type counted struct {
	// Load, in requests per second, is the mean of what was read each half second
	// once the first batches had come, Least and Most its range; Upper the highest bound.
	Load, Least, Most, Upper float64
	// Read of Loads readings had a load.
	Read, Loads int
	P50, P95    time.Duration
	// Accepted are spans; Refused counts spans and requests by reason.
	Accepted float64
	Refused  map[string]float64
	// Samples of Prometheus and alerts by result, where the sender sends those.
	Samples map[string]float64
}

// watch reads the load until ctx ends, beginning after the time to settle.
func (p *product) watch(ctx context.Context, settle time.Duration) (counted, error) {
	var c counted
	if !pause.For(ctx, settle) {
		return c, nil
	}
	for pause.For(ctx, time.Second/2) {
		m, err := p.metrics(ctx)
		if err != nil {
			return c, err
		}
		c.Loads++
		if load, ok := m.by("trimtab_workload_load", "workload")["web"]; ok {
			if c.Read++; c.Read == 1 {
				c.Least = load
			}
			c.Load += load
			c.Least, c.Most = min(c.Least, load), max(c.Most, load)
		}
		c.Upper = max(c.Upper, m.by("trimtab_workload_load_upper", "workload")["web"])
		seconds := m.by("trimtab_workload_latency_seconds", "percentile")
		c.P50, c.P95 = time.Duration(seconds["50"]*1e9), time.Duration(seconds["95"]*1e9)
	}
	if c.Read > 0 {
		c.Load /= float64(c.Read)
	}
	return c, nil
}

// finish adds what can be said at the end.
func (c *counted) finish(ctx context.Context, p *product) error {
	m, err := p.metrics(ctx)
	if err != nil {
		return err
	}
	for _, n := range m.by("trimtab_collector_spans_accepted_total", "source") {
		c.Accepted += n
	}
	c.Refused = m.by("trimtab_collector_spans_rejected_total", "reason")
	for reason, n := range m.by("trimtab_collector_requests_rejected_total", "reason") {
		c.Refused["whole requests: "+reason] += n
	}
	c.Samples = m.by("trimtab_collector_prometheus_samples_total", "result")
	return nil
}
