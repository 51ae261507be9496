package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/prometheus/common/version"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/exporters/otlp"
	"github.com/trimtab/trimtab/exporters/record"
	"github.com/trimtab/trimtab/pipeline"
)

// This file wires the exporters that are off by default. They start first, so
// that they see everything, and stop last.

// exportWait is how long the end of a process waits for an OTLP endpoint.
const exportWait = 3 * time.Second

func (s *site) exportParts(cfg *config.Config) ([]part, error) {
	var out []part
	if r := cfg.Exporters.Record; r.Path != "" {
		out = append(out, part{"record", keyOf(r, digest(cfg)), func(context.Context) (func() error, error) { return s.startRecord(cfg) }})
	}
	if o := cfg.Exporters.OTLP; o.Endpoint != "" {
		headers := sha256.New()
		for _, name := range slices.Sorted(maps.Keys(o.Headers)) {
			fmt.Fprintf(headers, "%q: %q\n", name, string(o.Headers[name])) // %v would hide what changed
		}
		key := keyOf(o, headers.Sum(nil), cfg.OTLP, cfg.Jaeger, planned(cfg))
		out = append(out, part{"export-otlp", key, func(ctx context.Context) (func() error, error) { return s.startOTLP(ctx, cfg) }})
	}
	return out, nil
}

// tap lets a recording see the step of a stage, whenever there is one.
func (s *site) tap(stage string, step trimtab.Step) trimtab.Step {
	return record.NewTap(stage, step, s.recorder.Load)
}

func (s *site) startRecord(cfg *config.Config) (func() error, error) {
	c := cfg.Exporters.Record
	r, err := record.Start(record.Config{
		Dir: c.Path, MaxBytes: int64(c.MaxBytes), SegmentBytes: int64(c.SegmentBytes), SegmentAge: c.SegmentAge,
		Build: version.Version, Digest: digest(cfg), Metrics: s.metrics, Logger: s.logger,
	})
	if err != nil {
		return nil, fmt.Errorf("start recording: %w", err)
	}
	s.recorder.Store(r)
	return func() error {
		s.recorder.Store(nil)
		return r.Close()
	}, nil
}

// digest names a configuration without showing it.
func digest(cfg *config.Config) string {
	return fmt.Sprintf("sha256:%x", sha256.Sum256(cfg.Redacted()))
}

func (s *site) startOTLP(ctx context.Context, cfg *config.Config) (func() error, error) {
	c, err := otlpExport(cfg)
	if err != nil {
		return nil, err
	}
	c.Metrics, c.Logger = s.metrics, s.logger
	e, err := otlp.Open(ctx, c)
	if err != nil {
		if errors.Is(err, trimtab.ErrRefused) {
			err = hint(err, "name your own collector in exporters.otlp.endpoint, or move trimtab's otlp receiver to another port")
		}
		return nil, err
	}
	// Following lasts as long as the part, not as the request that reloads.
	h := pipeline.NewHealth(pipeline.Work{})
	unfollow, err := e.Follow(context.WithoutCancel(ctx), h.Bus(s.bus))
	if err != nil {
		return nil, errors.Join(err, e.Close(ctx))
	}
	untell := s.background(ctx, "export-otlp", s.working("export-otlp", h, untilDone))
	s.exporter.SetTraces(e.TraceID)
	return func() error {
		s.exporter.SetTraces(nil)
		unfollow()
		ctx, cancel := context.WithTimeout(context.Background(), exportWait)
		defer cancel()
		return errors.Join(untell(), e.Close(ctx))
	}, nil
}

func otlpExport(cfg *config.Config) (otlp.Config, error) {
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
	var err error
	c.TLS, err = clientTLS(o.TLS)
	return c, err
}

// clientTLS reads the files of a client's TLS; nil without any.
func clientTLS(c config.TLS) (*tls.Config, error) {
	if c == (config.TLS{}) {
		return nil, nil
	}
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read certificate for OTLP export: %w", err)
		}
		out.Certificates = []tls.Certificate{cert}
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read authorities of OTLP endpoint: %w", err)
		}
		if out.RootCAs = x509.NewCertPool(); !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, trimtab.Invalidf("authorities of OTLP endpoint: no certificate in %s", c.CAFile)
		}
	}
	return out, nil
}
