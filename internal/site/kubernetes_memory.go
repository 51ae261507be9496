package site

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	names "github.com/trimtab/trimtab/collector/kubernetes"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/kube"
)

// This file reads the memory of the cluster's pods, beside the part that watches the cluster.

// workingSet returns how many bytes of memory a container uses; false: that is not known.
func (w *watchedCluster) workingSet(p *kube.Pod, container string) (float64, bool) {
	u := w.usage.Load()
	if u == nil {
		return 0, false
	}
	return u.WorkingSet(p, container, time.Now())
}

// podsOf lists the containers whose memory is sized.
func podsOf(cfg *config.Config) (all []names.Target) {
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		if t := w.Knob.Kubernetes; t != nil && w.Knob.Sized(&cfg.Pool) {
			kind, name := t.Workload()
			all = append(all, names.Target{Workload: w.Name, Host: w.Knob.Host, Ref: kube.Ref{Namespace: t.Namespace, Kind: kind, Name: name}, Container: t.Container})
		}
	}
	return all
}

// readPods begins to read the memory of pods, and to tell of kills, until stop is called.
func (s *stages) readPods(ctx context.Context, cfg *config.Config) (stop func() error, err error) {
	targets, c := podsOf(cfg), s.cluster.Load()
	if len(targets) == 0 {
		return func() error { return nil }, nil
	}
	log, metrics := s.process.Logger, s.process.Metrics
	for _, t := range targets {
		metrics.Counter(killsMetric, t.Workload) // from 0 on, so that a rate has the first kill
	}
	kills := names.Kills{Cluster: c, Targets: targets, Logger: log,
		Killed: func(workload string) { metrics.Counter(killsMetric, workload).Inc() },
		Publish: func(ctx context.Context, sample *trimtab.Sample) {
			poll.Publish(ctx, s.bus, metrics, log, sample, "trimtab_collector_samples_total", names.SourceName)
		}}
	all := []func(context.Context) error{kills.Run}
	end := func() error { return nil }
	if cfg.Kubernetes.Memory != config.MemoryByPrometheus {
		var kubelets *kube.Kubelets
		if cfg.Kubernetes.Memory == config.MemoryByKubelet {
			if kubelets, err = c.OpenKubelets(cfg.Kubernetes.KubeletCAFile); err != nil {
				return nil, err
			}
		}
		u := names.UsageOf(c, kubelets, targets)
		p, err := poll.Open(u.Source(), poll.Config{Host: s.process.Host, Bus: s.bus, Metrics: metrics, Logger: log,
			Unavailable: func(lacks []string) { s.process.Ready.Note(podsPart, strings.Join(lacks, "; ")) }})
		if err != nil {
			return nil, err
		}
		s.cluster.usage.Store(u)
		all = append(all, p.Run)
		end = func() error {
			s.cluster.usage.CompareAndSwap(u, nil)
			return p.Close()
		}
	}
	run := func(ctx context.Context) error {
		errs := make([]error, len(all))
		var group sync.WaitGroup
		for i, one := range all {
			group.Go(func() { errs[i] = one(ctx) })
		}
		group.Wait()
		return errors.Join(errs...)
	}
	s.process.Ready.Set(podsPart, "")
	still := s.process.Background(ctx, podsPart, run)
	return func() error { return errors.Join(still(), end()) }, nil
}

// podsPart names the reading of pods in the status of the process.
const podsPart = "pods"

// killsMetric counts kills by workload.
const killsMetric = "trimtab_workload_oom_kills_total"
