// Package feed has what collectors share that read values of workloads at an interval: the
// beat, the way of a sample to the bus, and the control groups that they follow.
package feed

import (
	"context"
	"log/slog"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/metric"
)

// Publisher is the part of a bus in use.
type Publisher interface {
	Publish(ctx context.Context, v trimtab.Value) error
}

// Target is the control group of one workload, or with a * in Path those of its instances.
type Target struct {
	Workload string
	// Host is named in the samples, which are of its copy of the workload alone; "": of
	// the whole workload.
	Host string
	// Path is relative to the root of the hierarchy.
	Path string
}

// Fill sets what was left out of a configuration.
func Fill(interval *time.Duration, usual time.Duration, metrics **metric.Set, logger **slog.Logger) {
	if *interval <= 0 {
		*interval = usual
	}
	if *metrics == nil {
		*metrics = metric.NewSet()
	}
	if *logger == nil {
		*logger = slog.New(slog.DiscardHandler)
	}
}

// Run calls round at once and then at every interval until ctx ends; it then returns nil.
func Run(ctx context.Context, interval time.Duration, round func(context.Context)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		round(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// Publish counts a sample in a metric, by why its value is missing, and publishes it.
func Publish(ctx context.Context, bus Publisher, metrics *metric.Set, logger *slog.Logger, counter string, s *trimtab.Sample) {
	result := "ok"
	if s.Missing != "" {
		result = s.Missing
	}
	metrics.Counter(counter, result).Inc()
	Send(ctx, bus, logger, s)
}

// Send publishes a sample. Samples may be lost: what comes next matters more.
func Send(ctx context.Context, bus Publisher, logger *slog.Logger, s *trimtab.Sample) {
	if err := bus.Publish(ctx, s); err != nil && ctx.Err() == nil {
		logger.Warn("publish sample", "workload", s.Workload, "source", s.Source, "err", err)
	}
}
