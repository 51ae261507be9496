package site

import (
	"context"
	"errors"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/config"
	kubeexport "github.com/trimtab/trimtab/exporters/kubernetes"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/supervise"
)

// kubernetesExport returns the part that writes events and values to a cluster, if there is one. By
// default, events come from the process that watches the cluster anyway.
func (s *stages) kubernetesExport(cfg *config.Config) []supervise.Part {
	k := cfg.Exporters.Kubernetes
	if k.Events == "" && s.does(natsbus.Agent) {
		k.Events = kubeexport.Changes
	}
	c := kubernetesExportConfig(cfg, k)
	if !s.does(natsbus.Console) || len(c.Workloads) == 0 || (c.Events == kubeexport.NoEvents && c.StartValues == "" && c.Recommender == "") {
		return nil
	}
	return []supervise.Part{{Name: "export-kubernetes", Key: supervise.KeyOf(c, cfg.Kubernetes), Start: func(ctx context.Context) (func() error, error) { return s.startKubernetesExport(ctx, cfg, c) }}}
}

func kubernetesExportConfig(cfg *config.Config, k config.ExportKubernetes) kubeexport.Config {
	c := kubeexport.Config{Pool: cfg.Pool.Name, Round: cfg.Round, Resource: cfg.Pool.Resource(), Events: k.Events, StartValues: k.StartValues, Recommender: k.Recommender}
	if c.Events == "" {
		c.Events = kubeexport.NoEvents
	}
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		t := w.Knob.Kubernetes
		if t == nil || w.Mode == trimtab.Off {
			continue
		}
		kind, name := t.Workload()
		one := kubeexport.Workload{Name: w.Name, Mode: w.Mode, Ref: kube.Ref{Namespace: t.Namespace, Kind: kind, Name: name}, Container: t.Container, SLO: w.SLO.Target(), Max: map[string]float64{}}
		for _, resource := range []string{trimtab.CPU, trimtab.Memory} {
			if b, ok := w.Knob.BoundsOf(resource); ok {
				one.Max[resource] = b.Max
			}
		}
		c.Workloads = append(c.Workloads, one)
	}
	return c
}

func (s *stages) startKubernetesExport(ctx context.Context, cfg *config.Config, c kubeexport.Config) (func() error, error) {
	of := s.cluster.of(cfg)
	c.Metrics, c.Logger, c.Watched = s.process.Metrics, s.process.Logger, of.Watched
	e, err := kubeexport.Open(c)
	if err != nil {
		return nil, err
	}
	unwatch := func() error { return nil }
	if !s.does(natsbus.Agent) { // no other part here watches the cluster
		if unwatch, err = s.cluster.watch(ctx, cfg, of, s.process.Logger); err != nil {
			return nil, err
		}
	}
	stop, err := s.following(ctx, "export-kubernetes", e.Follow, e.Run)
	if err != nil {
		return nil, errors.Join(err, unwatch())
	}
	return func() error { return errors.Join(stop(), unwatch()) }, nil
}
