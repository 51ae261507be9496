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
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/collector/sources"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/supervise"
	"github.com/trimtab/trimtab/pipeline"
)

// monitorPart polls the sources of this host that the configuration asks for. What the host lacks
// of them is logged once and shown in the status of the part; the other quantities are read.
func (s *stages) monitorPart(cfg *config.Config) ([]supervise.Part, error) {
	groups := groupsOf(cfg, s.process.Host, s.shares(cfg))
	var all []poll.Source
	for _, of := range sources.All() {
		if _, asked := cfg.Measure.Asks(of); asked && (len(groups) > 0 || !of.Grouped) {
			all = append(all, of)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	c := poll.Config{Host: s.process.Host, Targets: groups}
	var err error
	if len(groups) > 0 {
		if c.Root, err = hostfs.CPURoot(cfg.Actuator.CgroupRoot); err != nil {
			return nil, err
		}
	}
	if c.Helper, err = supervise.Command(s.options.Counter, "perf-counter"); err != nil {
		return nil, err
	}
	pods := refsOf(cfg)
	c.Pod = s.cluster.podIn(pods)
	work := pipeline.Work{Round: cfg.Analyzer.ReportInterval}
	return []supervise.Part{{Name: "monitors", Key: supervise.KeyOf(c.Root, c.Host, groups, work, cfg.Measure, pods), Start: func(ctx context.Context) (func() error, error) {
		h := pipeline.NewHealth(work)
		c := c
		c.Seen = s.memory.Take
		c.Bus, c.Metrics, c.Logger = h.Bus(s.bus), s.process.Metrics, s.process.Logger
		return s.startMonitors(ctx, h, all, func(of poll.Source) poll.Config {
			c := c
			c.Settings, _ = cfg.Measure.Asks(of)
			if of.Grouped && !of.Prompt {
				c.Interval = cfg.Analyzer.ReportInterval
			}
			return c
		})
	}}}, nil
}

// startMonitors opens the sources that this host has, and polls them.
func (s *stages) startMonitors(ctx context.Context, h *pipeline.Health, all []poll.Source, of func(poll.Source) poll.Config) (func() error, error) {
	var open []*poll.Poller
	var mu sync.Mutex
	lacks := make([][]string, len(all))
	note := func() { s.process.Ready.Note("monitors", strings.Join(slices.Concat(lacks...), "; ")) }
	for i, from := range all {
		c := of(from)
		c.Unavailable = func(now []string) {
			mu.Lock()
			defer mu.Unlock()
			lacks[i] = now
			note()
		}
		p, err := poll.Open(from, c)
		switch {
		case errors.Is(err, trimtab.ErrUnsupported):
			lacks[i] = []string{err.Error()}
		case err != nil:
			for _, p := range open {
				err = errors.Join(err, p.Close())
			}
			return nil, fmt.Errorf("set up monitors: %w", err)
		default:
			open, lacks[i] = append(open, p), p.Unavailable()
		}
	}
	if all := slices.Concat(lacks...); len(all) > 0 {
		s.process.Logger.Info("monitors that this host does not have", "lacks", all)
	}
	s.process.Ready.Set("monitors", "")
	note()
	stop := s.process.Background(ctx, "monitors", s.process.Working("monitors", h, func(ctx context.Context) error {
		errs := make([]error, len(open))
		var running sync.WaitGroup
		for i, p := range open {
			running.Go(func() { errs[i] = p.Run(ctx) })
		}
		running.Wait()
		<-ctx.Done() // a host may have no source
		return errors.Join(errs...)
	}))
	return func() error {
		err := stop()
		for _, p := range open {
			err = errors.Join(err, p.Close())
		}
		return err
	}, nil
}

// groupWork defines when the reading of groups is healthy: each round must give a sample, or the
// reason why there is none, for each declared group. A pattern may match no instance.
func groupWork(c cgroup.Config) pipeline.Work {
	work := pipeline.Work{Round: c.Interval}
	if slices.ContainsFunc(c.Targets, func(t cgroup.Target) bool { return !strings.Contains(t.Path, "*") }) {
		work.Every = trimtab.KindSample
	}
	return work
}
