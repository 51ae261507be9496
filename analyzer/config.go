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

// SLO is what a latency-critical workload promises.
type SLO struct {
	// Latency is the threshold that a request should stay under; 0: none.
	Latency time.Duration
	// Fraction is the share of requests that should, in (0, 1].
	Fraction float64
}

// Workload says what is known of one workload beforehand.
type Workload struct {
	Name string
	// Host is the only one that may have instances of it; "": any host may.
	Host string
	SLO  SLO
	// Target is the performance asked for, in the unit of the performance.
	Target float64
	// Resource is the one that the curve is over: "cpu", "workers".
	Resource string
	// Min and Max bound the allocation, 0 <= Min < Max; Max 0: unknown, and
	// there is no curve.
	Min, Max float64
	// Others are further resources, each with a curve of its own by the same
	// learner. They need Learner and Max.
	Others []Axis
	// LoadFrom and PerformanceFrom are FromSpans (default) or FromPrometheus.
	LoadFrom, PerformanceFrom string
	// Learner makes the curve's learner; nil: no curve. Nor is there one
	// without Max, or when performance comes from spans and SLO.Latency is 0.
	Learner func() learn.Learner
	// Forecaster makes the load's forecaster; nil: Config.Forecaster.
	Forecaster func() forecast.Forecaster
	// Queue tells that performance is a share of requests and that use is
	// measured in the unit of Resource: what a request costs then tells what was
	// never tried; see learn/queue.
	Queue bool
	// Within is the latency that a performance which comes from a metric counts
	// requests under; 0: not known.
	Within time.Duration
	// Fallback is what stands in while performance is missing.
	Fallback Fallback
	// MaxLoad is the most that it is declared to carry, in requests/s; 0: nothing is.
	MaxLoad float64
	// Servpods are the thresholds declared for its components.
	Servpods map[string]contribution.Thresholds
	// Ahead is how far the load is forecast beside the coming round, for what takes
	// longer than one to start; 0: no further.
	Ahead time.Duration
}

// Config holds the parameters of an [Analyzer]. Zero durations stand for the
// defaults.
type Config struct {
	Workloads []Workload
	// Entry names the workload whose requests all workloads with a Resource and
	// a Max serve together; their Learner, Fallback and Others are not used then:
	// one learner is over the allocations of all, and each gets, as its curve,
	// the performance of the entry over its own allocation. "": each workload
	// speaks for itself.
	Entry string
	// Discover makes workloads of unknown names in sketches: load and
	// latency, no curve. At most MaxDiscovered, default 512.
	Discover      bool
	MaxDiscovered int
	// Forecaster makes the forecaster of workloads that bring none, and of
	// discovered ones. Nil: no forecast, the load now stands for it.
	Forecaster func() forecast.Forecaster
	// Report is the interval of a report, >= 10 ms. Default 1 s.
	Report time.Duration
	// Round is the planner's, >= Report. Default 10 s. The load is forecast
	// for Round/Report reports.
	Round time.Duration
	// Level is the confidence of all bounds, in (0, 1). Default 0.9.
	Level float64
	// StaleAfter is the number of rounds, or of the source's own intervals where
	// those are longer, after which an input is stale rather than late. Default 3.
	// The workload holds from one round, or two intervals, on.
	StaleAfter int
	// Partitions is how many path steps share the spans. Default 1.
	Partitions int
	// Settle is how long after a change of the allocation reports are set
	// aside, besides the one that it falls into. Default Report, at most a
	// quarter of Round; negative: none.
	Settle time.Duration
	// Grace is how long after its end an interval waits for what is missing.
	// Default 500 ms, at most Report.
	Grace time.Duration
	// Skew is how far in our future a time may lie to be believed. Default
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

// Validate checks c, with zero values standing for the defaults. Its errors
// are trimtab.ErrInvalid.
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

// elsewhere reports whether the configuration gives the workload to another host
// than this one; "" is none.
func (w *Workload) elsewhere(host string) bool {
	return w.Host != "" && host != "" && w.Host != host
}

// bySpans reports whether spans tell load or performance.
func (w *Workload) bySpans() bool { return w.LoadFrom == FromSpans || w.PerformanceFrom == FromSpans }

// measured reports whether there should be a performance.
func (w *Workload) measured() bool { return w.PerformanceFrom == FromPrometheus || w.SLO.Latency > 0 }

// knowsEnough reports whether a declared demand is all that there is to go by,
// so that no input can be missing.
func (w *Workload) knowsEnough() bool {
	return !w.measured() && w.Fallback.Demand != nil && w.Fallback.Profile == nil && !w.Fallback.Proxy
}

// enough is the performance that a resource is not short for: all requests of
// a share, a quarter over any other target. At the target itself no bound
// would ever prove it.
func (w *Workload) enough(r *report.Report) float64 {
	if r.Requests > 0 && w.Target <= 1 {
		return 1
	}
	return 1.25 * w.Target
}

// ratio is the SLO's latency over that of its fraction of the requests: 1 where
// the SLO is just met, and more where there is room.
func (w *Workload) ratio(s *report.Spans) (float64, bool) {
	q, ok := s.Latency.Quantile(w.SLO.Fraction)
	if !ok || !(q > 0) {
		return 0, false
	}
	return w.SLO.Latency.Seconds() / q, true
}

// history returns an empty one of a resource.
func (c *Config) history(resource string) report.History {
	return report.NewHistory(resource, time.Duration(c.StaleAfter)*c.Round)
}

// maxAhead bounds how far a load is forecast.
const maxAhead = time.Hour

// horizon is the number of reports in a round.
func (c *Config) horizon() int { return c.reports(c.Round) }

// reports is the number of reports in a time.
func (c *Config) reports(d time.Duration) int { return int((d + c.Report - 1) / c.Report) }
