package site

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/common/version"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/exporters/otlp"
	"github.com/trimtab/trimtab/exporters/record"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/supervise"
	"github.com/trimtab/trimtab/pipeline"
)

// This file wires the exporters that are off by default. They start first, so
// that they see everything, and stop last.

// exportWait is how long the end of the process waits for an OTLP endpoint.
const exportWait = 3 * time.Second

func (s *stages) exportParts(cfg *config.Config) ([]supervise.Part, error) {
	var out []supervise.Part
	if r := cfg.Exporters.Record; r.Path != "" && (s.does(natsbus.Analyzer) || s.does(natsbus.Planner)) {
		c := record.Config{Dir: r.Path, MaxBytes: int64(r.MaxBytes), SegmentBytes: int64(r.SegmentBytes), SegmentAge: r.SegmentAge,
			Build: version.Version, Digest: Digest(cfg)}
		out = append(out, supervise.Part{Name: "record", Key: supervise.KeyOf(c), Start: func(context.Context) (func() error, error) { return s.startRecord(c) }})
	}
	if cfg.Exporters.OTLP.Endpoint != "" && s.does(natsbus.Console) {
		c := otlpExport(cfg)
		files, err := readTLS(cfg.Exporters.OTLP.TLS, "OTLP export", "OTLP endpoint")
		if err != nil {
			return nil, err
		}
		key := supervise.KeyOf(c, files.content(), exported(cfg), utilityTexts(cfg))
		c.TLS = files.client()
		out = append(out, supervise.Part{Name: "export-otlp", Key: key, Start: func(ctx context.Context) (func() error, error) { return s.startOTLP(ctx, c) }})
	}
	if k := cfg.Exporters.KEDA; k.ListenAddress != "" && s.does(natsbus.Console) {
		c := kedaExport(cfg)
		files, err := readTLS(k.TLS, "KEDA's listener", "KEDA")
		if err != nil {
			return nil, err
		}
		key := supervise.KeyOf(c, files.content())
		c.TLS = files.server()
		out = append(out, supervise.Part{Name: "export-keda", Key: key, Start: func(ctx context.Context) (func() error, error) { return s.startKEDA(ctx, c) }})
	}
	return append(out, s.kubernetesExport(cfg)...), nil
}

// following runs an exporter that follows the bus, until stop is called. It lives as long as its
// part, and not only as long as the request that reloaded the configuration.
func (s *stages) following(ctx context.Context, name string, follow func(context.Context, bus.Bus) (func(), error), run func(context.Context) error) (stop func() error, err error) {
	h := pipeline.NewHealth(pipeline.Work{})
	unfollow, err := follow(context.WithoutCancel(ctx), h.Bus(s.bus))
	if err != nil {
		return nil, err
	}
	end := s.process.Background(ctx, name, s.process.Working(name, h, run))
	return func() error { unfollow(); return end() }, nil
}

// untilDone waits until ctx ends.
func untilDone(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// tap wraps the step of a stage so that the recorder, once there is one, records it.
func (s *stages) tap(stage string, step trimtab.Step) trimtab.Step {
	return record.NewTap(stage, step, s.recorder.Load)
}

func (s *stages) startRecord(c record.Config) (func() error, error) {
	c.Metrics, c.Logger = s.process.Metrics, s.process.Logger
	r, err := record.Start(c)
	if err != nil {
		return nil, fmt.Errorf("start recording: %w", err)
	}
	s.recorder.Store(r)
	return func() error {
		s.recorder.Store(nil)
		return r.Close()
	}, nil
}

// Digest returns a hash that identifies a configuration without revealing it.
func Digest(cfg *config.Config) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256(cfg.Redacted()))
}

func (s *stages) startOTLP(ctx context.Context, c otlp.Config) (func() error, error) {
	c.Metrics, c.Logger = s.process.Metrics, s.process.Logger
	e, err := otlp.Open(ctx, c)
	if err != nil {
		if errors.Is(err, trimtab.ErrRefused) {
			err = hint.Add(err, "name your own collector in exporters.otlp.endpoint, or move trimtab's otlp receiver to another port")
		}
		return nil, err
	}
	stop, err := s.following(ctx, "export-otlp", e.Follow, untilDone)
	if err != nil {
		return nil, errors.Join(err, e.Close(ctx))
	}
	s.exporter.SetTraces(e.TraceID)
	return func() error {
		s.exporter.SetTraces(nil)
		err := stop()
		ctx, cancel := s.process.Ending.Within(exportWait)
		defer cancel()
		return errors.Join(err, e.Close(ctx))
	}, nil
}

func otlpExport(cfg *config.Config) otlp.Config {
	o := cfg.Exporters.OTLP
	c := otlp.Config{Endpoint: o.Endpoint, Protocol: o.Protocol, Interval: o.Interval, Timeout: o.Timeout, Version: version.Version}
	for name, value := range o.Headers {
		if c.Headers == nil {
			c.Headers = map[string]string{}
		}
		c.Headers[name] = string(value)
	}
	for _, own := range []string{cfg.OTLP.GRPC, cfg.OTLP.HTTP, cfg.Jaeger.GRPC} {
		if unlessOff(own) != "" {
			c.Own = append(c.Own, own)
		}
	}
	utilities := map[string]func(float64) float64{}
	for _, w := range exported(cfg) {
		if w.Utility != nil {
			utilities[w.Name] = w.Utility
		}
	}
	c.Utility = func(workload string, performance float64) (float64, bool) {
		u, ok := utilities[workload]
		if !ok {
			return 0, false
		}
		return u(performance), true
	}
	return c
}
