package site

import (
	"context"
	"errors"
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/kinds"
	"github.com/trimtab/trimtab/actuator/kubernetes"
	"github.com/trimtab/trimtab/agent/fast"
	"github.com/trimtab/trimtab/agent/grow"
	"github.com/trimtab/trimtab/agent/knobs"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/supervise"
	"github.com/trimtab/trimtab/pipeline"
)

func (s *stages) actuatorPart(cfg *config.Config) ([]supervise.Part, error) {
	locks := knobs.LockDir(cfg)
	cluster := s.cluster.of(cfg)
	kinds := kinds.In(kinds.RDT(locks), cluster)
	all, err := knobs.Of(kinds, cfg, s.process.Host)
	if err != nil || cfg.Pool.Capacity() <= 0 {
		return nil, err
	}
	watchdog, err := supervise.Command(s.options.Watchdog, "watchdog", "--dir", JournalDir(cfg.Storage.Path))
	if err != nil {
		return nil, err
	}
	c := actuator.Config{
		Host: s.process.Host, Pool: cfg.Pool.Name, Dir: JournalDir(cfg.Storage.Path), Reopen: actuator.AnyOf(kinds),
		Shared: s.shares(cfg), Measure: knobs.Measure(kinds, cfg, all), Roots: knobs.Roots(kinds, all), Limits: limitsOf(cfg), NoApply: !cfg.Actuator.Apply, LockDir: locks, Watchdog: watchdog,
		Repeat: actuator.RepeatOf(cfg.Lease), ForeignHold: cfg.Kubernetes.ForeignHold,
	}
	limitMemory(&c, cfg)
	margins := map[string]float64{}
	if c.FreeMemory != nil {
		margins = marginsOf(cfg)
	}
	probes := probesOf(cfg)
	acts := cfg.Fast.Acts() && cfg.Pool.Resource() == trimtab.CPU && len(all) > 0
	c.Fast = acts
	above, no := knobs.Share(cfg, kinds, all, s.process.Host)
	work := pipeline.Work{Round: cfg.Round, Follows: cfg.Pool.Name}
	if hasCluster(all) {
		ofCluster(&c, cfg, cluster)
	}
	key := supervise.KeyOf(c, all, above, work, cfg.Actuator.Reserve, cfg.Fast, cfg.Kubernetes, cfg.Exporters.Kubernetes, cfg.Watched(), cfg.Kinds(), optionsOfCluster(cfg), podsOf(cfg), margins, probes)
	c.Metrics, c.Logger = s.process.Metrics, s.process.Logger
	own := turns{cfg.Pool.Name, locks, all, supervise.KeyOf(above, cfg.Fast.Acts(), cfg.Fast.Parent, cfg.Actuator.CgroupRoot)}
	var heir *turns // the knobs of the actuator that replaces this one at a reload
	// Opened once before anything is stopped, to find errors early.
	once, _, err := knobs.OpenAll(kinds, all)
	if err = errors.Join(err, actuator.CloseTargets(once)); err != nil {
		return nil, err
	}
	start := func(ctx context.Context) (func() error, error) {
		s.process.Ready.Set("actuator", "starting")
		no.Log(s.process.Logger)
		c := c
		var err error
		if c.Targets, c.Finders, err = knobs.OpenAll(kinds, all); err != nil {
			return nil, err
		}
		if c.Parent, err = above.Open(cfg, kinds); err != nil {
			return nil, errors.Join(err, actuator.CloseTargets(c.Targets))
		}
		a, err := actuator.Open(ctx, c)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open actuator: %w", err), actuator.CloseTargets(c.Targets))
		}
		still := s.betweenRounds(ctx, a, acts, margins, probes)
		s.process.Ready.Set("actuator", "")
		h := pipeline.NewHealth(work)
		b := s.beside.Orders(h.Bus(s.bus))
		stop := s.process.Background(ctx, "actuator", s.process.Working("actuator", h, func(ctx context.Context) error { return a.Run(ctx, b) }))
		return func() error {
			err := errors.Join(still(), stop())
			return errors.Join(err, s.closeActuator(a, own, heir))
		}, nil
	}
	if hasCluster(all) {
		start = s.withCluster(cfg, cluster, s.process.Logger, start)
	}
	return []supervise.Part{{Name: "actuator", Key: key, Start: start, Built: &own, Leaves: func(next any) { heir, _ = next.(*turns) }}}, nil
}

// betweenRounds runs the loops that move knobs between rounds: quotas, if moves, and the memory limits
// of the workloads in margins, of which it probes some. They are no parts of their own, since they must end before the actuator
// restores.
func (s *stages) betweenRounds(ctx context.Context, a *actuator.Actuator, moves bool, margins map[string]float64, probes map[string]grow.Probe) (still func() error) {
	var stops []func() error
	if moves {
		stops = append(stops, s.process.Background(ctx, "fast", func(ctx context.Context) error {
			return fast.Run(ctx, a, s.process.Host, s.process.Metrics, s.process.Logger)
		}))
	}
	if len(margins) > 0 {
		stops = append(stops, s.process.Background(ctx, "memory", func(ctx context.Context) error {
			return grow.Run(ctx, grow.Config{Knobs: a, Feed: s.memory, Margins: margins, Probes: probes, Bus: s.bus, Metrics: s.process.Metrics, Logger: s.process.Logger})
		}))
	}
	return func() (err error) {
		for _, stop := range stops {
			err = errors.Join(err, stop())
		}
		return err
	}
}

// turns has the knobs of an actuator. A reload that does not change it restores none of them.
type turns struct {
	pool, locks string
	all         []knobs.Declared
	// above names the parent group that carries a limit.
	above string
}

// kept returns which knobs the next actuator has too, at the same location, and whether it has the
// same parent group.
func (t turns) kept(next *turns) (keeps func(trimtab.KnobID) bool, above bool) {
	before, after := t.locations(), next.locations()
	same := t.pool == next.pool && t.locks == next.locks
	return func(id trimtab.KnobID) bool {
		of := [2]string{id.Workload, id.Resource}
		place, ok := before[of]
		return same && ok && after[of] == place
	}, same && t.above == next.above
}

// locations returns the locations of the knobs that trimtab writes, by workload and resource.
func (t turns) locations() map[[2]string]string {
	out := map[[2]string]string{}
	for _, d := range t.all {
		shares := d.At.ShareUnit > 0 || d.Kind == kubernetes.PodsKind && d.Cap == config.CapNever
		// These two change only what a weight means and the quota of a max, which the next actuator
		// sets again.
		d.At.ShareUnit, d.At.ShareMost = 0, 0
		for _, l := range d.Like {
			if l.Mode == trimtab.Act {
				out[[2]string{l.Workload, l.Resource}] = supervise.KeyOf(d.Kind, d.At, shares)
			}
		}
	}
	return out
}

// closeActuator restores the knobs, except those that next takes over. Rate limits of an API server
// may delay this, and so the end of the process.
func (s *stages) closeActuator(a *actuator.Actuator, own turns, next *turns) error {
	long := a.CloseTime()
	if until := s.process.Ending.Lengthen(max(0, long-actuator.LeastCloseTime)); !until.IsZero() {
		s.bus.EndBy(until)
	}
	ctx, cancel := s.process.Ending.Within(long)
	defer cancel()
	if next == nil {
		return a.Close(ctx)
	}
	keeps, above := own.kept(next)
	return a.HandOver(ctx, keeps, above)
}
