package site

import (
	"context"
	"errors"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/exporters/keda"
)

func kedaExport(cfg *config.Config) keda.Config {
	c := keda.Config{Listen: cfg.Exporters.KEDA.ListenAddress, Pool: cfg.Pool.Name, Round: cfg.Round}
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		one := keda.Workload{Name: w.Name, Mode: w.Mode}
		_, one.Replicas = w.Knob.BoundsOf(trimtab.Replicas)
		if w.Knob.Kubernetes != nil {
			one.Namespace = w.Knob.Kubernetes.Namespace
		}
		c.Workloads = append(c.Workloads, one)
	}
	return c
}

func (s *stages) startKEDA(ctx context.Context, c keda.Config) (func() error, error) {
	c.Metrics = s.process.Metrics
	e, err := keda.Open(c)
	if err != nil {
		return nil, err
	}
	stop, err := s.following(ctx, "export-keda", e.Follow, untilDone)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	s.process.Logger.Info("answering KEDA", "address", e.Addr())
	return func() error { return errors.Join(stop(), e.Close()) }, nil
}
