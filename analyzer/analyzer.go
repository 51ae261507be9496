package analyzer

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/report"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/quantity"
)

// maxReported bounds the number of hosts whose holding times are remembered.
const maxReported = 10_000

// Analyzer is the learn step of the loop; make one with [New]. It implements trimtab.Step,
// trimtab.Parted and trimtab.Counted.
type Analyzer struct {
	config Config
	// workloads are in order of name.
	workloads  []*workload
	app        *application // nil: no Config.Entry
	discovered int
	counts     counts
	// about has, by key of a holding, the workloads in it, in order of name. room is how many more
	// instances may be remembered. forgot is when old ones were last dropped.
	about  map[string][]*workload
	room   int
	forgot time.Time
	// reportedAt is, by key, the time of the latest holding, by the clock of its host.
	reportedAt map[string]time.Time
	// beside has the hosts on which best-effort jobs run.
	beside beside
}

var (
	_ trimtab.Step    = (*Analyzer)(nil)
	_ trimtab.Parted  = (*Analyzer)(nil)
	_ trimtab.Counted = (*Analyzer)(nil)
)

// New returns an analyzer without any history.
func New(c Config) (*Analyzer, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	a := &Analyzer{config: c.withDefaults(), about: map[string][]*workload{}, reportedAt: map[string]time.Time{}, beside: beside{}, room: report.MaxKept}
	for _, w := range a.config.Workloads {
		a.workloads = append(a.workloads, newWorkload(&a.config, a.beside, w))
	}
	slices.SortFunc(a.workloads, byName)
	if c.Entry != "" {
		var err error
		if a.app, err = newApplication(&a.config, a.workloads); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// Step reads a value: a sketch, a sample, a holding, or where best-effort jobs run. On a tick (nil)
// it closes the intervals that are due, and returns estimates and contributions.
func (a *Analyzer) Step(now time.Time, in trimtab.Value) []trimtab.Value {
	switch v := in.(type) {
	case nil:
		return a.tick(now)
	case *trimtab.Sketch:
		a.sketch(now, v)
	case *trimtab.Sample:
		a.sample(now, v)
		if w := a.find(v.Workload); w != nil && w.memories.news && w.intervals.begun && w.member == 0 {
			a.counts.estimates++
			return []trimtab.Value{w.estimate(now, w.hold(now), w.standIn(now, w.hold(now)))} // memory is short: a raise must not wait for a report
		}
	case *trimtab.Holding:
		a.holding(now, v)
	case *colocation.Colocation:
		a.beside.observe(now, v)
	default:
		a.counts.ignored++
	}
	return nil
}

func (a *Analyzer) sketch(now time.Time, s *trimtab.Sketch) {
	a.counts.sketches++
	w := a.find(s.Workload)
	if w == nil {
		w = a.discover(s.Workload)
	}
	switch {
	case w == nil:
		a.counts.unknown++
	case s.Partition < 0 || s.Partition >= a.config.Partitions:
		a.counts.misplaced++
	case !a.believed(now, s.To) || s.To.Sub(s.From) > 2*a.config.Report:
		a.counts.misdated++
	case s.Requests <= 0:
		// An interval without requests is not a measurement of load 0.
		w.samples.arrival.observe(s)
		a.counts.empty++
	default:
		w.samples.arrival.observe(s)
		w.samples.arrival.foretell(s, w.spec.SLO.Latency, a.config.Partitions)
		w.intervals.observeSketch(s, &a.counts)
	}
}

func (a *Analyzer) sample(now time.Time, s *trimtab.Sample) {
	a.counts.samples++
	if s.Quantity.Monitored() {
		a.counter(now, s)
		return // it plays no part in estimates
	}
	w := a.find(s.Workload)
	switch {
	case w == nil:
		a.counts.unknown++
	case w.spec.elsewhere(s.Host):
		a.counts.misplaced++
	case !a.believed(now, s.Time):
		a.counts.misdated++
	default:
		w.observeSample(s, &a.counts)
	}
}

// counter keeps a sample of a performance counter, of memory, or a remark.
func (a *Analyzer) counter(now time.Time, s *trimtab.Sample) {
	w := a.find(s.Workload)
	if w == nil || w.spec.elsewhere(s.Host) || !a.believed(now, s.Time) {
		return
	}
	switch {
	case s.Quantity == quantity.Remarks:
		w.remarks.observe(s)
	case s.Quantity.Counted() && !w.counters.observe(s), !w.memories.observe(s):
		a.counts.overflow++
	}
}

func (a *Analyzer) holding(now time.Time, h *trimtab.Holding) {
	a.counts.holdings++
	h = a.dated(now, h)
	// Each workload gets only its own targets, and only holdings that are about it or were before.
	// If each searched all targets, this would take time in proportion to workloads times hosts,
	// every second.
	own := make(map[string][]trimtab.KnobState, len(h.Targets))
	about := append(slices.Clone(a.about[h.Key()]), a.about[h.Host]...)
	for i := range h.Targets {
		t := &h.Targets[i]
		mine := own[t.Workload]
		if len(mine) == 0 {
			w := a.find(t.Workload)
			if w != nil && w.spec.elsewhere(h.Host) {
				a.counts.misplaced++
				continue
			}
			if w != nil {
				about = append(about, w)
			}
		}
		switch n := len(mine); {
		case n == 0:
			mine = h.Targets[i : i+1]
		case &mine[n-1] == &h.Targets[i-1]: // they are usually adjacent: extend the slice without a copy
			mine = mine[:n+1]
		default:
			mine = append(slices.Clip(mine), *t)
		}
		own[t.Workload] = mine
	}
	slices.SortFunc(about, byName)
	about = slices.Compact(about)
	part := *h
	about = slices.DeleteFunc(about, func(w *workload) bool {
		part.Targets = own[w.spec.Name]
		return !w.observeHolding(&part, &a.room, &a.counts)
	})
	if a.about[h.Key()] = about; len(about) == 0 {
		delete(a.about, h.Key())
	}
}

// dated returns the holding with times of our clock, if the clock of its host differs by more than
// a message takes. Otherwise the workload would seem to do with less than it has, since that host's
// instances would be missing. An old holding that the bus replays to a new subscriber keeps its
// time: only a host that sends a newer one is still there.
func (a *Analyzer) dated(now time.Time, h *trimtab.Holding) *trimtab.Holding {
	last, known := a.reportedAt[h.Key()]
	if known || len(a.reportedAt) < maxReported {
		a.reportedAt[h.Key()] = h.Time
	}
	off := now.Sub(h.Time)
	if a.believed(now, h.Time) && (off < report.LeastSilence/2 || !known || !h.Time.After(last)) {
		return h
	}
	a.counts.misdated++
	ours := *h
	ours.Time, ours.Targets = now, slices.Clone(h.Targets)
	for i := range ours.Targets {
		if t := &ours.Targets[i]; !t.Since.IsZero() {
			t.Since = t.Since.Add(off)
		}
	}
	return &ours
}

// forget drops the history of instances that went away long ago.
func (a *Analyzer) forget(now time.Time) {
	if !a.forgot.IsZero() && now.Sub(a.forgot) < report.Forgotten/10 {
		return
	}
	a.forgot = now
	before := now.Add(-report.Forgotten - 4*a.config.Round)
	clear(a.about)
	for _, w := range a.workloads {
		for _, h := range w.histories() {
			h.Forget(before, &a.room)
			for _, key := range h.Keys() {
				if l := a.about[key]; len(l) == 0 || l[len(l)-1] != w {
					a.about[key] = append(l, w)
				}
			}
		}
	}
	maps.DeleteFunc(a.reportedAt, func(key string, _ time.Time) bool { return len(a.about[key]) == 0 })
}

func byName(x, y *workload) int { return strings.Compare(x.spec.Name, y.spec.Name) }

// believed reports whether a time is not in the future by our clock, with a tolerance of Skew.
func (a *Analyzer) believed(now, t time.Time) bool { return !t.After(now.Add(a.config.Skew)) }

// tick closes the intervals that are due, in order of workload and interval.
func (a *Analyzer) tick(now time.Time) []trimtab.Value {
	a.forget(now)
	var out []trimtab.Value
	for _, w := range a.workloads {
		if e := w.tick(now, &a.counts); e != nil && w.member == 0 {
			out = append(out, e)
		}
	}
	if a.app != nil {
		out = append(out, a.app.tick(now)...)
	}
	a.counts.estimates += uint64(len(out))
	for _, w := range a.workloads {
		if w.tail.latest != nil {
			out, w.tail.latest = append(out, w.tail.latest), nil
		}
	}
	return out
}

func (a *Analyzer) search(name string) (int, bool) {
	return slices.BinarySearchFunc(a.workloads, name, func(w *workload, name string) int { return strings.Compare(w.spec.Name, name) })
}

func (a *Analyzer) find(name string) *workload {
	if i, ok := a.search(name); ok {
		return a.workloads[i]
	}
	return nil
}

// discover adds a workload of an unknown name. It returns nil if that is disabled or there are too
// many.
func (a *Analyzer) discover(name string) *workload {
	if !a.config.Discover || a.discovered >= a.config.MaxDiscovered || name == "" {
		return nil
	}
	a.discovered++
	i, _ := a.search(name)
	w := newWorkload(&a.config, a.beside, Workload{Name: name, LoadFrom: FromSpans, PerformanceFrom: FromSpans, Observe: true, Forecaster: a.config.Forecaster})
	a.workloads = slices.Insert(a.workloads, i, w)
	return w
}
