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
			out[i].ID = ids[name]
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

// raiser is the part of an actuator that the loop uses.
type raiser interface {
	Raise(ctx context.Context, all []actuator.Raise) []actuator.Raised
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
	raises []shortage.Raise
	done   []done
}

// mostRefused bounds the refusals that are remembered, so that each is logged once.
const mostRefused = 4096

// Run raises limits until ctx ends. margins has the workloads whose limits may rise, each with how far
// its limit is above its need, as a part of the need.
func Run(ctx context.Context, a raiser, feed *Feed, margins map[string]float64, set *metric.Set, logger *slog.Logger) error {
	return newLoop(a, feed, margins, set, logger).Run(ctx)
}

func newLoop(a raiser, feed *Feed, margins map[string]float64, set *metric.Set, logger *slog.Logger) *agent.Loop[look, *decision] {
	rule := &shortage.Rule{Margin: func(workload string) (float64, bool) { m, ok := margins[workload]; return m, ok }}
	refused := map[shortage.Name]string{}
	return &agent.Loop[look, *decision]{
		Every: time.Second, Wake: feed.wake,
		Look: func(context.Context, time.Time) look { at, all := feed.next(); return look{at, all} },
		Decide: func(_ context.Context, _ time.Time, l look) *decision {
			if len(l.all) == 0 {
				return &decision{}
			}
			return &decision{raises: rule.Look(l.at, l.all)}
		},
		Act: func(ctx context.Context, _ time.Time, d *decision) {
			if len(d.raises) == 0 {
				return
			}
			asks := make([]actuator.Raise, len(d.raises))
			for i, r := range d.raises {
				asks[i] = actuator.Raise{KnobID: trimtab.KnobID{Workload: r.Workload, Instance: r.Instance, Resource: trimtab.Memory}, To: r.To, Why: string(r.Cause)}
			}
			for i, came := range a.Raise(ctx, asks) {
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
				set.Counter("trimtab_memory_raises_total", r.Workload, string(r.Cause), result).Inc()
				if r.Refused != "" && refused[r.Name] != r.Refused {
					logger.Warn("memory limit not raised", "workload", r.Workload, "instance", r.Instance, "short by", string(r.Cause), "why", r.Refused)
				}
				if refused[r.Name] = r.Refused; r.Refused == "" {
					delete(refused, r.Name)
				}
			}
		},
	}
}
