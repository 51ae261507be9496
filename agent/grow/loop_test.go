package grow

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/internal/shortage"
	"github.com/trimtab/trimtab/quantity"
)

// asked records what the loop asks for.
type asked struct {
	all     []actuator.Raise
	refused string
}

func (a *asked) Raise(_ context.Context, all []actuator.Raise) []actuator.Raised {
	a.all = append(a.all, all...)
	out := make([]actuator.Raised, len(all))
	for i := range out {
		out[i].Refused = a.refused
	}
	return out
}

func (a *asked) Reclaim(context.Context, trimtab.KnobID) (func(float64) error, string) {
	return nil, a.refused
}

// samples are those of one instance of a workload, by quantity; a value below 0 is missing.
func samples(workload, instance string, values map[quantity.Quantity]float64) (all []*trimtab.Sample) {
	for q, v := range values {
		s := &trimtab.Sample{Workload: workload, Instance: instance, Quantity: q, Value: v}
		if v < 0 {
			s.Value, s.Missing = 0, "absent"
		}
		all = append(all, s)
	}
	return all
}

func TestAnInstanceThatIsShortIsRaisedInTheSameRoundAndOthersAreNot(t *testing.T) {
	a, feed, set := &asked{}, NewFeed(), metric.NewSet()
	l, _ := newLoop(&Config{Knobs: a, Feed: feed, Margins: map[string]float64{"web": 0.07, "db": 0.07}, Metrics: set, Logger: slog.New(slog.DiscardHandler)})
	l.Round(t.Context(), time.Time{}) // nothing was read yet
	full := map[quantity.Quantity]float64{quantity.WorkingSet: 99 << 20, quantity.MemoryAnonymous: 99 << 20, quantity.MemoryLimit: 100 << 20, quantity.MemoryMaxEvents: 3}
	all := append(samples("web", "a", full), samples("stranger", "", full)...)
	all = append(all, samples("db", "", map[quantity.Quantity]float64{quantity.WorkingSet: -1, quantity.MemoryLimit: 100 << 20, quantity.MemoryMaxEvents: 3})...)
	feed.Take(nil, append(all, poll.OfHost(quantity.Power, "")))
	select {
	case <-feed.wake:
	default:
		t.Error("the loop is not woken")
	}
	l.Round(t.Context(), time.Time{})
	l.Round(t.Context(), time.Time{}) // the same readings do not count twice
	want := []actuator.Raise{{KnobID: trimtab.KnobID{Workload: "web", Instance: "a", Resource: trimtab.Memory}, To: 120 << 20, Why: "limit"}}
	if diff := cmp.Diff(want, a.all); diff != "" {
		t.Error(diff)
	}
}

func TestEventsOfReadingsThatTheLoopMissedCount(t *testing.T) {
	feed := NewFeed()
	feed.Take(nil, samples("w", "", map[quantity.Quantity]float64{quantity.OOMKills: 1, quantity.MemoryMaxEvents: 2, quantity.WorkingSet: 7}))
	feed.Take([]poll.Group{{Workload: "w", Instance: hostfs.Instance{ID: 9}}}, samples("w", "", map[quantity.Quantity]float64{quantity.OOMKills: 0, quantity.MemoryMaxEvents: -1, quantity.WorkingSet: 8}))
	feed.Take(nil, samples("other", "", map[quantity.Quantity]float64{quantity.WorkingSet: 1}))
	_, all := feed.next()
	all = slices.DeleteFunc(all, func(r shortage.Reading) bool { return r.Workload == "other" })
	if len(all) != 1 || all[0].Kills != 1 || all[0].Max != 2 || all[0].Use != 8 || all[0].ID != 9 || !math.IsNaN(all[0].Pressure) || all[0].Name != (shortage.Name{Workload: "w"}) {
		t.Errorf("%+v", all)
	}
	if _, again := feed.next(); again != nil {
		t.Errorf("%+v is told twice", again)
	}
}

func TestARefusalIsToldOnceUntilItChanges(t *testing.T) {
	lines := 0
	a, feed := &asked{refused: "no plan is in force"}, NewFeed()
	l, _ := newLoop(&Config{Knobs: a, Feed: feed, Margins: map[string]float64{"w": 0}, Metrics: metric.NewSet(), Logger: slog.New(counting{&lines})})
	for i := range 3 {
		feed.Take(nil, samples("w", "", map[quantity.Quantity]float64{quantity.WorkingSet: 99, quantity.MemoryLimit: 100, quantity.PressureMemorySome: 0.5}))
		feed.at += time.Duration(i) * 2 * time.Second
		l.Round(t.Context(), time.Time{})
	}
	if len(a.all) != 3 || lines != 1 {
		t.Errorf("%d asked, %d lines", len(a.all), lines)
	}
}

// counting counts log records.
type counting struct{ n *int }

func (c counting) Enabled(context.Context, slog.Level) bool  { return true }
func (c counting) Handle(context.Context, slog.Record) error { *c.n++; return nil }
func (c counting) WithAttrs([]slog.Attr) slog.Handler        { return c }
func (c counting) WithGroup(string) slog.Handler             { return c }
