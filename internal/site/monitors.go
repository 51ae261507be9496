package site

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/cgroup"
	"github.com/trimtab/trimtab/collector/perf"
	"github.com/trimtab/trimtab/collector/psi"
	"github.com/trimtab/trimtab/collector/resctrl"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/supervise"
	"github.com/trimtab/trimtab/pipeline"
)

// monitor is a collector whose source a host may lack.
type monitor interface {
	supervise.Reader
	// Lacks lists what of it this host does not have.
	Lacks() []string
}

// monitorPart reads the monitors of this host's kernel and hardware: pressure, cache occupancy,
// memory bandwidth, and, if configured, performance counters. What the host lacks is logged once,
// and shown in the status of the part; the rest is read.
func (s *Site) monitorPart(cfg *config.Config) ([]supervise.Part, error) {
	groups := groupsOf(cfg, s.process.Host, s.shares(cfg))
	if len(groups) == 0 {
		return nil, nil
	}
	root, err := hostfs.CPURoot(cfg.Actuator.CgroupRoot)
	if err != nil {
		return nil, err
	}
	p := psi.Config{Host: s.process.Host, Root: root, Interval: cfg.Analyzer.ReportInterval}
	r := resctrl.Config{Host: s.process.Host, Root: root, Interval: cfg.Analyzer.ReportInterval}
	n := perf.Config{Host: s.process.Host, Root: root, Interval: cfg.Analyzer.ReportInterval}
	for _, t := range groups {
		p.Targets = append(p.Targets, psi.Target(t))
		r.Targets = append(r.Targets, resctrl.Target(t))
		n.Targets = append(n.Targets, perf.Target(t))
	}
	if n.Helper, err = supervise.Command(s.options.Counter, "perf-counter"); err != nil {
		return nil, err
	}
	work := pipeline.Work{Round: cfg.Analyzer.ReportInterval}
	return []supervise.Part{{Name: "monitors", Key: supervise.KeyOf(root, s.process.Host, groups, work, cfg.Measure.Perf), Start: func(ctx context.Context) (func() error, error) {
		h := pipeline.NewHealth(work)
		b := h.Bus(s.bus)
		p, r, n := p, r, n
		p.Bus, p.Metrics, p.Logger = b, s.process.Metrics, s.process.Logger
		r.Bus, r.Metrics, r.Logger = b, s.process.Metrics, s.process.Logger
		n.Bus, n.Metrics, n.Logger = b, s.process.Metrics, s.process.Logger
		opens := []func() (monitor, error){
			func() (monitor, error) { return psi.Open(p) },
			func() (monitor, error) { return resctrl.Open(r) },
		}
		if cfg.Measure.Perf {
			opens = append(opens, func() (monitor, error) { return perf.Open(n) })
		}
		return s.startMonitors(ctx, h, opens...)
	}}}, nil
}

// startMonitors opens what the host has, and runs it.
func (s *Site) startMonitors(ctx context.Context, h *pipeline.Health, opens ...func() (monitor, error)) (func() error, error) {
	var open []monitor
	var lacks []string
	for _, o := range opens {
		m, err := o()
		switch {
		case errors.Is(err, trimtab.ErrUnsupported):
			lacks = append(lacks, err.Error())
		case err != nil:
			for _, m := range open {
				err = errors.Join(err, m.Close())
			}
			return nil, fmt.Errorf("set up monitors: %w", err)
		default:
			open = append(open, m)
			lacks = append(lacks, m.Lacks()...)
		}
	}
	if len(lacks) > 0 {
		s.process.Logger.Info("monitors that this host does not have", "lacks", lacks)
	}
	s.process.Ready.Set("monitors", "")
	s.process.Ready.Note("monitors", strings.Join(lacks, "; "))
	stop := s.process.Background(ctx, "monitors", s.process.Working("monitors", h, func(ctx context.Context) error {
		errs := make([]error, len(open))
		var running sync.WaitGroup
		for i, m := range open {
			running.Go(func() { errs[i] = m.Run(ctx) })
		}
		running.Wait()
		<-ctx.Done() // a host may have none
		return errors.Join(errs...)
	}))
	return func() error {
		err := stop()
		for _, m := range open {
			err = errors.Join(err, m.Close())
		}
		return err
	}, nil
}

// groupWork returns what reading groups must achieve: each round a sample, or the reason why
// there is none, for each declared group; a pattern may have no instance.
func groupWork(c cgroup.Config) pipeline.Work {
	work := pipeline.Work{Round: c.Interval}
	if slices.ContainsFunc(c.Targets, func(t cgroup.Target) bool { return !strings.Contains(t.Path, "*") }) {
		work.Every = trimtab.KindSample
	}
	return work
}
