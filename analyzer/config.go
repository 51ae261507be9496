package analyzer

import (
	"fmt"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/contribution"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/kernel"
	"github.com/trimtab/trimtab/analyzer/report"
)

// The sources of loads and performances.
const (
	FromSpans      = "spans"
	FromPrometheus = "prometheus"
)

// SLO is the service level objective of a workload.
type SLO struct {
	// Latency is the latency limit of a request; 0: none.
	Latency time.Duration
	// Fraction is the fraction of requests that should stay within it, in (0, 1].
	Fraction float64
}

// Workload is the configuration of one workload.
type Workload struct {
	Name string
	// Host is the only host that may have instances of it; "": any host may.
	Host string
	SLO  SLO
	// Target is the performance asked for, in the unit of the performance.
	Target float64
	// Resource is the resource of the curve: "cpu", "workers".
	Resource string
	// Min and Max bound the allocation, 0 <= Min < Max. Max 0: unknown, and there is no curve.
	Min, Max float64
	// Others are further resources. Each has a curve of its own from the same kind of learner. They
	// need Learner and Max.
	Others []Axis
	// LoadFrom and PerformanceFrom are FromSpans (default) or FromPrometheus.
	LoadFrom, PerformanceFrom string
	// Learner makes the learner of the curve; nil: no curve. There is none either if Max is 0, or
	// if performance comes from spans and SLO.Latency is 0.
	Learner func() learn.Learner
	// Observe: its requests are summed up as those of a discovered one, since its SLO is only proposed.
	Observe bool
	// RestAfter is for how long it must have had no load until its minimum is enough, also where its use
	// is not measured; 0: as soon as that shows it, and only then.
	RestAfter time.Duration
	// Forecaster makes the load's forecaster; nil: Config.Forecaster.
	Forecaster func() forecast.Forecaster
	// Queue: performance is a fraction of requests, and use is measured in the unit of Resource.
	// The cost of a request then also predicts allocations that were never tried; see learn/queue.
	Queue bool
	// Within is the latency limit of a performance that comes from a metric; 0: unknown.
	Within time.Duration
	// Fallback stands in while performance is missing.
	Fallback Fallback
	// MaxLoad is the declared highest load that it can carry, in requests/s; 0: not declared.
	MaxLoad float64
	// Servpods has the declared thresholds of its components.
	Servpods map[string]contribution.Thresholds
	// MemoryAlone: only memory limits follow from what it uses, and neither its load nor its performance has
	// to be known.
	MemoryAlone bool
	// Ahead is a second horizon of the load forecast beside the coming round, for what takes longer
	// than a round to start; 0: none.
	Ahead time.Duration
}

// Config configures an [Analyzer]. Zero values stand for the defaults.
type Config struct {
	Workloads []Workload
	// Entry names the workload whose requests are served together by all workloads with a Resource
	// and a Max. Their Learner, Fallback and Others are then not used: one learner works over the
	// allocations of all, and the curve of each is the performance of the entry as a function of
	// its own allocation. "": each workload has its own performance.
	Entry string
	// Discover adds workloads for unknown names in sketches, with load and latency but without a
	// curve: at most MaxDiscovered, default 512.
	Discover      bool
	MaxDiscovered int
	// Forecaster makes the forecaster of workloads that have none of their own, and of discovered
	// ones. Nil: no forecast; the current load is used instead.
	Forecaster func() forecast.Forecaster
	// Report is the length of a report's interval, >= 10 ms. Default 1 s.
	Report time.Duration
	// Round is the length of the planner's round, >= Report. Default 10 s. The load is forecast for
	// Round/Report reports.
	Round time.Duration
	// Level is the confidence of all bounds, in (0, 1). Default 0.9.
	Level float64
	// StaleAfter is the number of rounds after which an input is stale rather than late; a source
	// with a longer interval than a round counts its own intervals. Default 3. The workload is held
	// from one round, or two intervals, on.
	StaleAfter int
	// Partitions is the number of path steps that share the spans. Default 1.
	Partitions int
	// Settle is how long after a change of the allocation reports are not learned from, in addition
	// to the report during which it changes. Default Report, at most a quarter of Round; negative:
	// 0.
	Settle time.Duration
	// Grace is how long after its end an interval waits for missing values. Default 500 ms, at most
	// Report.
	Grace time.Duration
	// Skew is how far in the future a time may lie, by our clock, without being rejected. Default
	// one round.
	Skew time.Duration
}

func (c Config) withDefaults() Config {
	duration := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	duration(&c.Report, time.Second)
	duration(&c.Round, max(10*time.Second, c.Report))
	duration(&c.Settle, min(c.Report, c.Round/4))
	duration(&c.Grace, min(500*time.Millisecond, c.Report))
	duration(&c.Skew, c.Round)
	c.Settle = max(0, c.Settle)
	for n, v := range map[*int]int{&c.StaleAfter: 3, &c.Partitions: 1, &c.MaxDiscovered: 512} {
		if *n == 0 {
			*n = v
		}
	}
	if c.Level == 0 {
		c.Level = 0.9
	}
	c.Workloads = slices.Clone(c.Workloads)
	for i := range c.Workloads {
		w := &c.Workloads[i]
		for _, from := range []*string{&w.LoadFrom, &w.PerformanceFrom} {
			if *from == "" {
				*from = FromSpans
			}
		}
		if w.Forecaster == nil {
			w.Forecaster = c.Forecaster
		}
		if c.Entry != "" && w.Resource != "" && w.Max > 0 {
			w.Learner, w.Fallback, w.Others = nil, Fallback{}, nil
		}
	}
	return c
}

// Validate returns an error that is trimtab.ErrInvalid if c is invalid. Zero values stand for the
// defaults.
func (c Config) Validate() error {
	c = c.withDefaults()
	switch {
	case c.Report < 10*time.Millisecond || c.Round < c.Report || c.Round > 24*time.Hour:
		return trimtab.Invalidf("analyzer: report %v, round %v: want 10ms <= report <= round <= 24h", c.Report, c.Round)
	case !(c.Level > 0 && c.Level < 1):
		return trimtab.Invalidf("analyzer: level %v: want a number in (0, 1)", c.Level)
	case c.StaleAfter < 1 || c.Partitions < 1 || c.MaxDiscovered < 0:
		return trimtab.Invalidf("analyzer: stale after %d rounds, %d partitions, %d discovered workloads", c.StaleAfter, c.Partitions, c.MaxDiscovered)
	case c.Grace < 0 || c.Skew < 0:
		return trimtab.Invalidf("analyzer: grace %v, skew %v: want >= 0", c.Grace, c.Skew)
	}
	seen := map[string]bool{}
	for i := range c.Workloads {
		w := &c.Workloads[i]
		if seen[w.Name] {
			return trimtab.Invalidf("analyzer: workload %q given twice", w.Name)
		}
		seen[w.Name] = true
		if err := w.validate(); err != nil {
			return err
		}
	}
	return c.validateEntry()
}

func (c *Config) validateEntry() error {
	if c.Entry == "" {
		return nil
	}
	members, found := 0, false
	for i := range c.Workloads {
		w := &c.Workloads[i]
		if w.Resource != "" && w.Max > 0 {
			members++
		}
		if w.Name != c.Entry {
			continue
		}
		found = true
		if w.PerformanceFrom == FromSpans && !(w.SLO.Latency > 0 && w.SLO.Fraction > 0 && w.SLO.Fraction < 1) || w.PerformanceFrom != FromSpans && !(w.Target > 0) {
			return trimtab.Invalidf("analyzer: entry %s: SLO of %v under %v, target %v: want one", w.Name, w.SLO.Fraction, w.SLO.Latency, w.Target)
		}
	}
	if !found || members < 1 || members > kernel.MaxDimensions {
		return trimtab.Invalidf("analyzer: entry %.40q, %d workloads with a resource and a maximum: want the name of one, and 1 to %d", c.Entry, members, kernel.MaxDimensions)
	}
	return nil
}

func (w *Workload) validate() error {
	known := func(s string) bool { return s == FromSpans || s == FromPrometheus }
	switch {
	case w.Name == "" || len(w.Name) > 253:
		return trimtab.Invalidf("analyzer: workload %.40q: want 1 to 253 bytes", w.Name)
	case !known(w.LoadFrom) || !known(w.PerformanceFrom):
		return trimtab.Invalidf("workload %s: load from %q, performance from %q", w.Name, w.LoadFrom, w.PerformanceFrom)
	case w.Ahead < 0 || w.Ahead > maxAhead:
		return trimtab.Invalidf("workload %s: ahead %v: want at most %v", w.Name, w.Ahead, maxAhead)
	case !(w.Min >= 0) || !(w.Max == 0 || w.Max > w.Min) || w.Max > 1e15:
		return trimtab.Invalidf("workload %s: allocation from %v to %v", w.Name, w.Min, w.Max)
	case w.SLO.Latency < 0 || !(w.SLO.Fraction >= 0 && w.SLO.Fraction <= 1):
		return trimtab.Invalidf("workload %s: SLO of %v under %v", w.Name, w.SLO.Fraction, w.SLO.Latency)
	case len(w.Others) >= trimtab.MaxResources:
		return trimtab.Invalidf("workload %s: %d resources, limit %d", w.Name, len(w.Others)+1, trimtab.MaxResources)
	}
	seen := map[string]bool{w.Resource: true}
	for i := range w.Others {
		if err := w.Others[i].validate(w.Name); err != nil {
			return err
		}
		if seen[w.Others[i].Resource] {
			return trimtab.Invalidf("workload %s: resource %.40q given twice", w.Name, w.Others[i].Resource)
		}
		seen[w.Others[i].Resource] = true
	}
	if d := w.Fallback.Demand; d != nil {
		if err := d.Validate(); err != nil {
			return fmt.Errorf("workload %s: %w", w.Name, err)
		}
	}
	return nil
}

// elsewhere reports whether the configuration assigns the workload to another host than the given
// one, "" if unknown.
func (w *Workload) elsewhere(host string) bool {
	return w.Host != "" && host != "" && w.Host != host
}

// bySpans reports whether load or performance comes from spans.
func (w *Workload) bySpans() bool { return w.LoadFrom == FromSpans || w.PerformanceFrom == FromSpans }

// measured reports whether the workload has a performance.
func (w *Workload) measured() bool { return w.PerformanceFrom == FromPrometheus || w.SLO.Latency > 0 }

// knowsEnough reports whether the workload has only a declared demand to plan by, so that no input
// can be missing.
func (w *Workload) knowsEnough() bool {
	return !w.measured() && w.Fallback.Demand != nil && w.Fallback.Profile == nil && !w.Fallback.Proxy
}

// enough returns the performance that is assumed for a resource of which the workload has enough: 1
// for a fraction of requests, else 1.25 times the target. With the target itself no lower bound
// would ever reach it.
func (w *Workload) enough(r *report.Report) float64 {
	if r.Requests > 0 && w.Target <= 1 {
		return 1
	}
	return 1.25 * w.Target
}

// ratio returns the SLO's latency divided by the measured latency at the SLO's fraction: 1 if the
// SLO is just met, more if it is met with a margin.
func (w *Workload) ratio(s *report.Spans) (float64, bool) {
	q, ok := s.Latency.Quantile(w.SLO.Fraction)
	if !ok || !(q > 0) {
		return 0, false
	}
	return w.SLO.Latency.Seconds() / q, true
}

// history returns an empty history of a resource.
func (c *Config) history(resource string) report.History {
	return report.NewHistory(resource, time.Duration(c.StaleAfter)*c.Round)
}

// maxAhead bounds the horizon of a load forecast.
const maxAhead = time.Hour

// horizon returns the number of reports in a round.
func (c *Config) horizon() int { return c.reports(c.Round) }

// reports returns the number of reports in a time, rounded up.
func (c *Config) reports(d time.Duration) int { return int((d + c.Report - 1) / c.Report) }
