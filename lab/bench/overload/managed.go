package main

import (
	"context"
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

	"github.com/trimtab/trimtab/actuator/haproxy"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/lab/bench/rig"
)

// managed is a trimtab that sets HAProxy's maxconn and the bounds of its classes. It learns from one span
// for each try that HAProxy did not refuse, from HAProxy's counters of the others, and from the control
// group of the service. What it
// has learnt stays in its directory from one row to the next.
type managed struct {
	process *rig.Process
	spans   rig.Tracers
	tracer  trace.Tracer
	knob    *haproxy.MaxConn
}

// limitMost is the largest limit that trimtab may set. The limit comes down from there in steps.
const limitMost = 50

// manage starts a trimtab beside the HAProxy of a row. Its files are in dir.
func (s *scene) manage(ctx context.Context, dir string, f *fronts) (m *managed, err error) {
	m = &managed{}
	defer func(opened *managed) {
		if err != nil {
			opened.close()
		}
	}(m)
	if m.knob, err = haproxy.Open(haproxy.Config{Socket: f.socket(), Backend: "out", Server: "one"}); err != nil {
		return nil, err
	}
	at, err := rig.FreeAddresses(4)
	if err != nil {
		return nil, err
	}
	text, err := s.managedConf(dir, f, at)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of trimtab: %w", err)
	}
	file := filepath.Join(dir, "trimtab.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("write trimtab's file: %w", err)
	}
	program := rig.Program{Args: []string{f.trimtab, "run", "--config.file", file}, Dir: dir, Log: filepath.Join(dir, "trimtab.log"), Stop: syscall.SIGTERM}
	if m.process, err = rig.StartAt(ctx, program, s.Control, "http://"+at[0]+"/-/ready"); err != nil {
		return nil, err
	}
	m.tracer, err = m.spans.Add(ctx, at[1], []attribute.KeyValue{attribute.String("service.name", "bench")}, sdk.WithBatchTimeout(time.Second), sdk.WithMaxQueueSize(1<<15))
	return m, err
}

// managedConf is trimtab's file: what a user has to write, and addresses that are free. at are those
// of the page, of spans by gRPC and HTTP, and of Jaeger.
func (s *scene) managedConf(dir string, f *fronts, at []string) ([]byte, error) {
	group, err := filepath.Rel(s.Root, s.group.Dir())
	if err != nil {
		return nil, fmt.Errorf("write trimtab's file: %w", err)
	}
	root, c := "", f.classes()
	if mount, err := hostfs.CPUHierarchy(); err != nil || mount != s.Root {
		root = fmt.Sprintf("actuator: {cgroup_root: %q}\n", s.Root)
	}
	return fmt.Appendf(nil, `pool: {cpu: %v}
storage: {path: %q}
web: {listen_address: %q}
otlp: {grpc: %q, http: %q}
jaeger: {grpc: %q}
%sworkloads:
  - name: bench
    slo: {latency: %v, fraction: 0.95}
    match: {spans: {service.name: bench}}
    knob:
      cgroup: %s
      cpu: {cap: never}
      concurrency: {haproxy: {socket: %q, backend: out, server: one, map: %q, header: %s, classes: [%s]}, max: %d}
    mode: act
`, s.cores, filepath.Join(dir, "data"), at[0], at[1], at[2], at[3], root, f.within, group, f.socket(), c.Map, c.Header, strings.Join(c.Names, ", "), limitMost), nil
}

// observe sends the span of a try that was not refused.
func (m *managed) observe(from time.Time, took time.Duration, end ending) {
	if end == shed {
		return
	}
	_, s := m.tracer.Start(context.Background(), "request", trace.WithTimestamp(from), trace.WithSpanKind(trace.SpanKindServer), trace.WithNewRoot())
	if end != answered {
		s.SetStatus(codes.Error, "not answered")
	}
	s.End(trace.WithTimestamp(from.Add(took)))
}

// limit returns HAProxy's maxconn, 0 if it has none.
func (m *managed) limit(ctx context.Context) (int, error) {
	v, err := m.knob.Read(ctx)
	if err != nil || v.Unlimited {
		return 0, err
	}
	return int(v.Value), nil
}

// close ends trimtab, which takes its limit back.
func (m *managed) close() {
	if m == nil {
		return
	}
	m.spans.Close()
	stop(m.process)
}

// teachMost bounds how long trimtab may take to set a limit that stays, teachPiece is the length of
// the load between two looks at it. It stays if it is the same for longer than a round of trimtab.
const teachMost, teachPiece, teachStays = 4 * time.Minute, 6 * time.Second, 33 * time.Second

// errUntaught says that trimtab did not set a limit.
var errUntaught = errors.New("set no limit that stayed")

// teach sends the load from which trimtab learns before the first row of a service, and then a low
// load until its limit stays where it is. It returns the limit.
func (b *bench) teach(ctx context.Context, t *stage, m *managed, clients *client) (limit int, err error) {
	play := func(c course) error {
		clients.send(ctx, c.arrivals(b.Seed))
		select {
		case <-m.process.Done():
			return m.process.Gone()
		default:
			return ctx.Err()
		}
	}
	full := t.about.Capacity
	if !t.taught {
		if err := play(course{Before: b.Learn / 2, Step: b.Learn / 2, Low: 0.4 * full, High: 0.8 * full}); err != nil {
			return 0, err
		}
		t.taught = true
	}
	begin := time.Now()
	for since, before := begin, 0; time.Since(begin) < teachMost; before = limit {
		if err := play(course{Step: teachPiece, High: lowLoad * full}); err != nil {
			return 0, err
		}
		if limit, err = m.limit(ctx); err != nil {
			return 0, err
		}
		if limit != before {
			since = time.Now()
		}
		if limit > 0 && limit < limitMost && time.Since(since) > teachStays {
			return limit, nil
		}
	}
	return limit, fmt.Errorf("teach trimtab: within %v it %w; see %s", teachMost, errUntaught, "--keep")
}
