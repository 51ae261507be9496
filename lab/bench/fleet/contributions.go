package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/colocation"
)

// openAnalyzer publishes, once a second, how the service of the real agent stands: its
// slack and load go up and down, so that its jobs start, grow, are cut and suspended.
func (p *play) openAnalyzer(ctx context.Context) error {
	b, err := p.connect(ctx, "analyzer", natsbus.Config{Source: "fleet analyzer", Role: natsbus.Analyzer})
	if err != nil {
		return fmt.Errorf("open analyzer: %w", err)
	}
	p.running.Go(func() {
		defer func() { _ = b.Close() }() // it ends
		every(ctx, time.Second, 0, func(now time.Time) {
			if err := b.Publish(ctx, standing(now)); err != nil && ctx.Err() == nil {
				p.log.Warn("publish contributions", "err", err)
			}
		})
	})
	return nil
}

// standing is a slack from -0.05 to 0.95 and a load from 20% to 90%, once in two minutes.
func standing(now time.Time) *colocation.Contributions {
	wave := math.Sin(2 * math.Pi * now.Sub(time.Unix(0, 0)).Seconds() / 120)
	slo := trimtab.Seconds(threshold.Seconds())
	tail, loadLimit, slackLimit := float64(slo)*(0.55+0.5*wave), 0.8, 0.3
	const most = 1000
	return &colocation.Contributions{
		Workload: realWorkload, Time: now, Window: 10, Load: most * (0.55 + 0.35*wave), MaxLoad: most, SLO: slo, Quantile: 0.99, Tail: &tail, Requests: 10 * most, Levels: 6,
		Servpods: []colocation.Servpod{{Component: realWorkload, Host: realHost, Sojourn: 0.05, Weight: 1, Correlation: 1, Variation: 0.5, Contribution: 0.5,
			LoadLimit: &loadLimit, SlackLimit: &slackLimit, Origin: colocation.FromHistory, SlackOrigin: colocation.FromSearch}},
	}
}
