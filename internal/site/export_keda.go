package site

import (
	"context"
	"errors"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/exporters/keda"
	"github.com/trimtab/trimtab/pipeline"
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

func (s *Site) startKEDA(ctx context.Context, c keda.Config) (func() error, error) {
	c.Metrics = s.process.Metrics
	e, err := keda.Open(c)
	if err != nil {
		return nil, err
	}
	// Following lasts as long as the part, not as the request that reloads.
	h := pipeline.NewHealth(pipeline.Work{})
	unfollow, err := e.Follow(context.WithoutCancel(ctx), h.Bus(s.bus))
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	untell := s.process.Background(ctx, "export-keda", s.process.Working("export-keda", h, untilDone))
	s.process.Logger.Info("answering KEDA", "address", e.Addr())
	return func() error {
		unfollow()
		return errors.Join(untell(), e.Close())
	}, nil
}
