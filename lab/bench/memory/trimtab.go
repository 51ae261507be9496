package main

import (
	"context"

	"encoding/json"
	"errors"
	"fmt"

	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/trimtab/trimtab/analyzer/workingset"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/num"
	"github.com/trimtab/trimtab/internal/wire"
	"github.com/trimtab/trimtab/lab/bench/rig"
	"github.com/trimtab/trimtab/pipeline"
)

// product is a trimtab that runs, with what it hears of requests.
type product struct {
	process *rig.Process
	spans   rig.Tracers
	tracers []trace.Tracer
	web     string
}

// most is the largest limit that trimtab may set.
const most = 2 << 30

// conf is trimtab's file: what a user has to write, and addresses that are free. at are those of the
// page, of spans by gRPC and HTTP, and of Jaeger.
func (b *bench) conf(mode string, at []string) ([]byte, error) {
	var t strings.Builder
	fmt.Fprintf(&t, "storage: {path: %q}\nweb: {listen_address: %q}\notlp: {grpc: %q, http: %q}\njaeger: {grpc: %q}\n", filepath.Join(b.dir, "data"), at[0], at[1], at[2], at[3])
	if mount, err := hostfs.CPUHierarchy(); err != nil || mount != b.host.Root {
		fmt.Fprintf(&t, "actuator: {cgroup_root: %q}\n", b.host.Root)
	}
	fmt.Fprintf(&t, "pool: {cpu: 2}\nworkloads:\n")
	for _, s := range b.services {
		group, err := filepath.Rel(b.host.Root, s.group.Dir())
		if err != nil {
			return nil, fmt.Errorf("write trimtab's file: %w", err)
		}
		fmt.Fprintf(&t, `  - name: %s
    slo: {latency: %v, fraction: 0.95}
    match: {spans: {service.name: %s}}
    knob: {cgroup: %s, cpu: {cap: never}, memory: {max: %d}}
    mode: %s
`, s.name, b.Within, s.name, group, most, mode)
	}
	return []byte(t.String()), nil
}

// manage starts trimtab in a mode. What it learns stays in its directory from one start to the next.
func (b *bench) manage(ctx context.Context, mode string) (p *product, err error) {
	at, err := rig.FreeAddresses(4)
	if err != nil {
		return nil, err
	}
	text, err := b.conf(mode, at)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(b.file(), text, 0o600); err != nil {
		return nil, fmt.Errorf("write trimtab's file: %w", err)
	}
	p = &product{web: at[0]}
	program := rig.Program{Args: []string{b.Trimtab, "run", "--config.file", b.file()}, Dir: b.dir, Log: filepath.Join(b.dir, "trimtab.log"), Stop: syscall.SIGTERM}
	if p.process, err = rig.StartAt(ctx, program, b.host.Control, "http://"+at[0]+"/-/ready"); err != nil {
		return nil, err
	}
	for _, s := range b.services {
		t, err := p.spans.Add(ctx, at[1], []attribute.KeyValue{attribute.String("service.name", s.name)}, sdk.WithBatchTimeout(time.Second), sdk.WithMaxQueueSize(1<<15))
		if err != nil {
			p.close()
			return nil, err
		}
		p.tracers = append(p.tracers, t)
	}
	return p, nil
}

func (b *bench) file() string { return filepath.Join(b.dir, "trimtab.yaml") }

// tell sends the span of a request.
func (p *product) tell(service int, from time.Time, took time.Duration, ok bool) {
	_, s := p.tracers[service].Start(context.Background(), "request", trace.WithTimestamp(from), trace.WithSpanKind(trace.SpanKindServer), trace.WithNewRoot())
	if !ok {
		s.SetStatus(codes.Error, "not answered")
	}
	s.End(trace.WithTimestamp(from.Add(took)))
}

// close ends trimtab, which puts back the limits that it found; nil was never started.
func (p *product) close() {
	if p != nil {
		p.spans.Close()
		p.process.Close()
	}
}

// learnKind is the format of what trimtab stores of a workload; its keys begin with learnStage.
const learnKind, learnStage = "learn/1", "learn/"

// errUnstored says that trimtab stored nothing of a workload.
var errUnstored = errors.New("trimtab stored nothing of its memory")

// teach replaces what trimtab has stored of the memory of each service by what it would have stored
// after eight days of use like those that were recorded. trimtab must not run.
func (b *bench) teach(ctx context.Context, days map[string][][]reading) error {
	text, err := os.ReadFile(b.file())
	if err != nil {
		return fmt.Errorf("teach trimtab: %w", err)
	}
	cfg, err := config.Parse(b.file(), text)
	if err != nil {
		return fmt.Errorf("teach trimtab: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("teach trimtab: %w", err)
	}
	at, err := wire.Bus(cfg, "", host)
	if err != nil {
		return fmt.Errorf("teach trimtab: %w", err)
	}
	bus, err := natsbus.Open(ctx, at)
	if err != nil {
		return fmt.Errorf("teach trimtab: %w", err)
	}
	defer func() { _ = bus.Close() }() // what was put is stored
	bucket, err := bus.Bucket(ctx, natsbus.BucketSnapshots)
	if err != nil {
		return fmt.Errorf("teach trimtab: %w", err)
	}
	for _, s := range b.services {
		key := learnStage + s.name
		raw, _, err := bucket.Get(ctx, key)
		if err != nil {
			return fmt.Errorf("teach trimtab about %s: %w", s.name, err)
		}
		state, err := taught(raw, learnt(days[s.name], time.Now()))
		if err != nil {
			return fmt.Errorf("teach trimtab about %s: %w", s.name, err)
		}
		if _, err := bucket.Put(ctx, key, state); err != nil {
			return fmt.Errorf("teach trimtab about %s: %w", s.name, err)
		}
	}
	return nil
}

// taught puts a learner into what trimtab stored of a workload, which has one instance.
func taught(raw []byte, l *workingset.Learner) ([]byte, error) {
	state, err := pipeline.Unseal(raw)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := num.Unseal(learnKind, state, &all); err != nil {
		return nil, err
	}
	var instances []map[string]json.RawMessage
	if err := json.Unmarshal(all["memory"], &instances); err != nil || len(instances) != 1 {
		return nil, fmt.Errorf("%w (%d instances)", errors.Join(errUnstored, err), len(instances))
	}
	text, err := json.Marshal(l)
	if err == nil {
		err = json.Unmarshal(text, &instances[0]) // beside host, instance and limit
	}
	if err == nil {
		all["memory"], err = json.Marshal(instances)
	}
	if err != nil {
		return nil, fmt.Errorf("put what is learnt: %w", err)
	}
	if state, err = num.Seal(learnKind, all); err != nil {
		return nil, err
	}
	return pipeline.Seal(state), nil
}
