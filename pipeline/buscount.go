package pipeline

import (
	"context"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/pause"
)

// CountBus exports the counts of b every second until ctx ends, and then returns nil. Each time it
// calls ready with "" or, where the bus can tell that it is not connected (Ready() error), with the
// reason.
func CountBus(ctx context.Context, b bus.Bus, set *metric.Set, ready func(reason string)) error {
	ticks := pause.Ticks(ctx, time.Second)
	var last bus.Stats
	damaged := countDamaged(b, set)
	for {
		ready(busReady(b))
		damaged()
		gaugeUntested(b, set)
		now := b.Stats()
		exportStats(set, last, now)
		last = now
		select {
		case <-ctx.Done():
			exportStats(set, last, b.Stats())
			return nil
		case <-ticks:
		}
	}
}

// countDamaged returns a function that exports how much the bus had to create again since the
// last call, if the bus counts that.
func countDamaged(b bus.Bus, set *metric.Set) func() {
	d, ok := b.(interface {
		Damaged() (stores, consumers uint64)
	})
	if !ok {
		return func() {}
	}
	var stores, consumers uint64
	return func() {
		s, c := d.Damaged()
		set.Counter("trimtab_bus_damaged_total", "store").Add(float64(s - stores))
		set.Counter("trimtab_bus_damaged_total", "consumer").Add(float64(c - consumers))
		stores, consumers = s, c
	}
}

// gaugeUntested exports whether the NATS server of the bus, if it has one, is of another release
// than the tested one.
func gaugeUntested(b bus.Bus, set *metric.Set) {
	u, ok := b.(interface{ Untested() bool })
	if !ok {
		return
	}
	v := 0.0
	if u.Untested() {
		v = 1
	}
	set.Gauge("trimtab_bus_server_untested").Set(v)
}

func busReady(b bus.Bus) string {
	r, ok := b.(interface{ Ready() error })
	if !ok {
		return ""
	}
	err := r.Ready()
	if err == nil {
		return ""
	}
	if h := hint.Of(err); h != "" {
		return err.Error() + "; " + h
	}
	return err.Error()
}

// exportStats adds the differences of two readings.
func exportStats(set *metric.Set, last, now bus.Stats) {
	add := func(name string, last, now map[trimtab.Kind]uint64) {
		for k, n := range now {
			if d := n - last[k]; n > last[k] {
				set.Counter(name, string(k)).Add(float64(d))
			}
		}
	}
	add("trimtab_bus_published_total", last.Published, now.Published)
	add("trimtab_bus_delivered_total", last.Delivered, now.Delivered)
	add("trimtab_bus_lost_total", last.Lost, now.Lost)
	add("trimtab_bus_unreadable_total", last.Unreadable, now.Unreadable)
	add("trimtab_bus_redelivered_total", last.Again, now.Again)
	add("trimtab_bus_older_version_total", last.Older, now.Older)
}
