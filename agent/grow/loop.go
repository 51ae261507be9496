package grow

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/agent"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/shortage"
)

// Feed has the newest readings of this host's groups.
type Feed struct {
	mu     sync.Mutex
	newest []shortage.Reading
	at     time.Duration
	// fresh says that the loop has not seen them yet.
	fresh bool
	wake  chan struct{}
}

// NewFeed returns a feed without readings.
func NewFeed() *Feed { return &Feed{wake: make(chan struct{}, 1)} }

// Take replaces the readings by the samples of one round of the memory source over the groups, and
// wakes the loop.
func (f *Feed) Take(groups []poll.Group, all []*trimtab.Sample) {
	readings := readingsOf(groups, all)
	f.mu.Lock()
	if f.fresh { // the loop is late: what was counted in between must not be lost
		readings = carried(f.newest, readings)
	}
	f.newest, f.at, f.fresh = readings, hostfs.BootTime(), true
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// next returns readings that were not returned before; none: there are none.
func (f *Feed) next() (time.Duration, []shortage.Reading) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.fresh {
		return 0, nil
	}
	f.fresh = false
	return f.at, f.newest
}

// readingsOf joins the samples of each instance. What is missing is NaN.
func readingsOf(groups []poll.Group, all []*trimtab.Sample) (out []shortage.Reading) {
	index, ids := map[shortage.Name]int{}, map[shortage.Name]uint64{}
	for _, g := range groups {
		ids[shortage.Name{Workload: g.Workload, Instance: g.Name}] = g.ID
	}
	for _, s := range all {
		if s.Workload == trimtab.HostItself {
			continue
		}
		name := shortage.Name{Workload: s.Workload, Instance: s.Instance}
		i, ok := index[name]
		if !ok {
			i, index[name] = len(out), len(out)
			out = append(out, shortage.Unknown(name))
			out[i].ID, out[i].Host = ids[name], s.Host
		}
		if v := out[i].Field(s.Quantity); v != nil && s.Missing == "" {
			*v = s.Value
		}
	}
	return out
}

// carried adds the events of readings that were not looked at to the newer ones, and those of which there is
// no newer one.
func carried(old, now []shortage.Reading) []shortage.Reading {
	counts := func(r *shortage.Reading) [3]*float64 { return [3]*float64{&r.High, &r.Max, &r.Kills} }
	for j := range old {
		i := slices.IndexFunc(now, func(r shortage.Reading) bool { return r.Name == old[j].Name })
		if i < 0 {
			now = append(now, old[j])
			continue
		}
		for k, v := range counts(&now[i]) {
			if was := *counts(&old[j])[k]; was > 0 && *v > 0 {
				*v += was
			} else if was > 0 {
				*v = was
			}
		}
	}
	return now
}

// knobs is the part of an actuator that the loop uses.
type knobs interface {
	Raise(ctx context.Context, all []actuator.Raise) []actuator.Raised
	Reclaim(ctx context.Context, id trimtab.KnobID) (take func(bytes float64) error, refused string)
}

// done is one raise with its result.
type done struct {
	shortage.Raise
	actuator.Raised
}

// look is what one round sees.
type look struct {
	at  time.Duration
	all []shortage.Reading
}

// decision is what one round decides, and what came of it.
type decision struct {
	of     look
	raises []shortage.Raise
	done   []done
}

// mostRefused bounds the refusals that are remembered, so that each is logged once.
const mostRefused = 4096

// Config is what the loop works with.
type Config struct {
	Knobs knobs
	Feed  *Feed
	// Margins has the workloads whose limits may rise, each with how far its limit is above its need, as a
	// part of the need. Probes has those whose instances are probed.
	Margins map[string]float64
	Probes  map[string]Probe
	// Bus has the performance of those workloads, and is told what a probe found.
	Bus     bus.Bus
	Metrics *metric.Set
	Logger  *slog.Logger
}

// Run raises limits, and probes, until ctx ends.
func Run(ctx context.Context, c Config) error {
	l, p := newLoop(&c)
	if len(c.Probes) > 0 {
		defer p.listen(ctx)()
	}
	defer p.stop()
	return l.Run(ctx)
}

func newLoop(c *Config) (*agent.Loop[look, *decision], *prober) {
	rule := &shortage.Rule{Margin: func(workload string) (float64, bool) { m, ok := c.Margins[workload]; return m, ok }}
	p := &prober{of: c.Probes, knobs: c.Knobs, bus: c.Bus, logger: c.Logger, next: map[shortage.Name]due{}, performances: map[string]performance{}}
	refused := map[shortage.Name]string{}
	return &agent.Loop[look, *decision]{
		Every: time.Second, Wake: c.Feed.wake,
		Look: func(context.Context, time.Time) look { at, all := c.Feed.next(); return look{at, all} },
		Decide: func(_ context.Context, _ time.Time, l look) *decision {
			if len(l.all) == 0 {
				return &decision{}
			}
			return &decision{of: l, raises: rule.Look(l.at, l.all)}
		},
		Act: func(ctx context.Context, now time.Time, d *decision) {
			if len(d.of.all) > 0 {
				p.round(ctx, now, d.of)
			}
			if len(d.raises) == 0 {
				return
			}
			asks := make([]actuator.Raise, len(d.raises))
			for i, r := range d.raises {
				asks[i] = actuator.Raise{KnobID: trimtab.KnobID{Workload: r.Workload, Instance: r.Instance, Resource: trimtab.Memory}, To: r.To, Why: string(r.Cause)}
			}
			for i, came := range c.Knobs.Raise(ctx, asks) {
				d.done = append(d.done, done{d.raises[i], came})
			}
		},
		Tell: func(_ context.Context, _ time.Time, d *decision) {
			if len(refused) > mostRefused {
				clear(refused) // of instances that are gone: what still is refused is logged once more
			}
			for _, r := range d.done {
				result := "raised"
				if r.Refused != "" {
					result = "refused"
				}
				c.Metrics.Counter("trimtab_memory_raises_total", r.Workload, string(r.Cause), result).Inc()
				if r.Refused != "" && refused[r.Name] != r.Refused {
					c.Logger.Warn("memory limit not raised", "workload", r.Workload, "instance", r.Instance, "short by", string(r.Cause), "why", r.Refused)
				}
				if refused[r.Name] = r.Refused; r.Refused == "" {
					delete(refused, r.Name)
				}
			}
		},
	}, p
}
