// Package hosted publishes, at every interval, what was measured of a host as a
// whole: samples whose workload is [trimtab.HostItself].
package hosted

import (
	"context"
	"log/slog"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/internal/feed"
	"github.com/trimtab/trimtab/internal/metric"
)

// DefaultInterval is how often a host is measured.
const DefaultInterval = 2 * time.Second

// Config is shared by all collectors of a host's hardware.
type Config struct {
	// Host is named in the samples.
	Host string
	// Interval is the window of what is a rate; 0: [DefaultInterval].
	Interval time.Duration
	// Bus gets the samples.
	Bus feed.Publisher
	// Metrics and Logger may be nil.
	Metrics *metric.Set
	Logger  *slog.Logger
}

// Fill checks what must be there, and sets what was left out.
func (c *Config) Fill(source string) error {
	if c.Bus == nil || c.Host == "" {
		return trimtab.Invalidf("collect %s of host %q: want a bus and a name", source, c.Host)
	}
	feed.Fill(&c.Interval, DefaultInterval, &c.Metrics, &c.Logger)
	return nil
}

// Run publishes what measure returns until ctx ends; it then returns nil. A change of
// what is missing is logged once.
func (c *Config) Run(ctx context.Context, source string, measure func() []*trimtab.Sample) error {
	missing := map[string]string{}
	return feed.Run(ctx, c.Interval, func(ctx context.Context) {
		for _, s := range measure() {
			s.Workload, s.Host, s.Source, s.Time = trimtab.HostItself, c.Host, source, time.Now().Round(0).UTC()
			if key := string(s.Quantity) + " " + s.Instance; missing[key] != s.Missing {
				missing[key] = s.Missing
				c.Logger.Info(source, "quantity", string(s.Quantity), "of", s.Instance, "missing", s.Missing)
			}
			c.publish(ctx, s)
		}
	})
}

func (c *Config) publish(ctx context.Context, s *trimtab.Sample) {
	result := "ok"
	if s.Missing != "" {
		result = "missing"
	}
	c.Metrics.Counter("trimtab_collector_host_samples_total", s.Source, result).Inc()
	feed.Send(ctx, c.Bus, c.Logger, s)
}
