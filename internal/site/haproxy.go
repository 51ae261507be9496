package site

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/agent/classes"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/collector"
	"github.com/trimtab/trimtab/collector/haproxy"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/supervise"
)

// refusalParts count what the HAProxies before workloads refuse. A socket with a path is read by the
// collector of its host, one with an address by one collector of all.
func (s *stages) refusalParts(cfg *config.Config, sink *collector.Sink) (out []supervise.Part, err error) {
	here, anywhere := s.backendsOf(cfg)
	alone, err := s.alone(cfg, natsbus.BucketCollectors, "haproxy")
	if err != nil {
		return nil, err
	}
	if len(here) > 0 {
		out = append(out, s.refusalPart("haproxy", here, sink, func(run func(context.Context) error) func(context.Context) error { return run }))
	}
	if len(anywhere) > 0 {
		const name = "haproxy-tcp"
		out = append(out, s.refusalPart(name, anywhere, sink, func(run func(context.Context) error) func(context.Context) error {
			return s.process.Under(alone, func(why string) { s.process.Ready.Set(name, why) }, run)
		}))
	}
	return out, nil
}

func (s *stages) refusalPart(name string, all []haproxy.Backend, sink *collector.Sink, under func(func(context.Context) error) func(context.Context) error) supervise.Part {
	return supervise.Part{Name: name, Key: supervise.KeyOf(all, s.process.Host), Start: func(ctx context.Context) (func() error, error) {
		c, err := haproxy.Open(haproxy.Config{Backends: all, Sink: sink, Logger: s.process.Logger, Rand: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))})
		if err != nil {
			return nil, err
		}
		s.process.Ready.Set(name, "")
		stop := s.process.Background(ctx, name, under(c.Run))
		return func() error { return errors.Join(stop(), c.Close()) }, nil
	}}
}

// backendsOf lists the backends of HAProxy before workloads: those whose socket is a file of this
// host, and those that any host reaches.
func (s *stages) backendsOf(cfg *config.Config) (here, anywhere []haproxy.Backend) {
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		if w.Knob.Concurrency == nil || w.Knob.Concurrency.HAProxy == nil {
			continue
		}
		h := w.Knob.Concurrency.HAProxy
		b := haproxy.Backend{Workload: w.Name, Socket: h.Socket, Backend: h.Backend, Classes: h.Refuses()}
		for key, values := range w.Match.Spans {
			b.Spans = append(b.Spans, trimtab.Attr{Key: key, Value: values[0]})
		}
		if len(b.Spans) == 0 {
			b.Spans = []trimtab.Attr{{Key: "service.name", Value: w.Name}}
		}
		slices.SortFunc(b.Spans, func(a, b trimtab.Attr) int { return strings.Compare(a.Key, b.Key) })
		switch {
		case !filepath.IsAbs(h.Socket):
			anywhere = append(anywhere, b)
		case w.OnHost(s.process.Host):
			here = append(here, b)
		}
	}
	return here, anywhere
}

// classParts bound the classes of requests in the HAProxies before workloads in mode act.
func (s *stages) classParts(cfg *config.Config) (out []supervise.Part, err error) {
	if cfg.Pool.Capacity() <= 0 {
		return nil, nil
	}
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		if w.Knob.Concurrency == nil || w.Mode != trimtab.Act || !w.OnHost(s.process.Host) || w.SLO.Latency <= 0 {
			continue
		}
		h := w.Knob.Concurrency.HAProxy
		refuses := h.Refuses()
		if refuses == nil {
			continue
		}
		name := "classes of " + w.Name
		c := classes.Config{Workload: w.Name, Socket: h.Socket, Classes: *refuses, Within: w.SLO.Latency, ForeignHold: cfg.Kubernetes.ForeignHold}
		out = append(out, supervise.Part{Name: name, Key: supervise.KeyOf(c), Start: func(ctx context.Context) (func() error, error) {
			c := c
			c.Logger, c.Problem = s.process.Logger, func(why string) { s.process.Ready.Note(name, why) }
			b, err := classes.Open(c)
			if err != nil {
				return nil, fmt.Errorf("set up %s: %w", name, err)
			}
			s.process.Ready.Set(name, "")
			return s.process.Background(ctx, name, b.Run), nil
		}})
	}
	return out, nil
}
