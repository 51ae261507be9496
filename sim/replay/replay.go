package replay

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/quantity"
	"github.com/trimtab/trimtab/sim/cluster"
)

// Figures are the result of one way to allocate, for one workload.
type Figures struct {
	// SLOMinutes is the time in which the SLO was met, out of Minutes with a report. Low and High
	// are the same at the bounds of the curve.
	SLOMinutes, Low, High, Minutes float64
	// Hours is the integral of the allocation over time, in the pool's resource times hours.
	Hours float64
}

// Line is one workload of a result.
type Line struct {
	Workload string
	// Measured is as recorded. Recorded has the same allocations, on the curve learnt in hindsight.
	// Replayed has the allocations of the policy, on that curve.
	Measured, Recorded, Replayed Figures
}

// Result is the result of a replay.
type Result struct {
	From, To time.Time
	// Rounds is the number of rounds that the policy planned; Moved is half of the sum of all
	// changes of allocations.
	Rounds int
	Moved  float64
	Lines  []Line
}

// maxIntervals is the longest replay: a year of reports every ten seconds.
const maxIntervals = 1 << 22

// Run replays the history with the policy of c. All workloads of c that reported take part, in mode
// act. A non-nil stop is called in each interval; once it returns true, Run returns the result up
// to that time. Run returns an error that is trimtab.ErrInvalid for a history without a report that
// has load, performance and allocation.
func (h *History) Run(c planner.Config, stop func(played float64) bool) (*Result, error) {
	p := &player{history: h, report: h.config.Report, round: c.Round}
	if p.report <= 0 || p.round < p.report {
		return nil, trimtab.Invalidf("replay: report %v, round %v: want 0 < report <= round", p.report, p.round)
	}
	if err := p.addPlanner(c); err != nil {
		return nil, err
	}
	if n := p.to.Sub(p.from) / p.report; n > maxIntervals {
		return nil, trimtab.Invalidf("replay: %v in reports of %v: %d of them, limit %d", p.to.Sub(p.from), p.report, n, maxIntervals)
	}
	loop, err := cluster.New(p.loopConfig(c))
	if err != nil {
		return nil, err
	}
	return p.play(loop, stop), nil
}

// player is the state of one run.
type player struct {
	history       *History
	report, round time.Duration
	from, to      time.Time
	quiet         time.Duration // time without a report
	planners      []*poolPlanner
	planned       []planner.WorkloadConfig
}

// poolPlanner is the state of one workload in a run.
type poolPlanner struct {
	*workload
	name string
	slo  float64
	held float64
	next int // index of the first report that was not played yet
	line Line
}

// addPlanner selects the workloads that take part, and determines the period and their first allocations.
func (p *player) addPlanner(c planner.Config) error {
	for _, config := range c.Workloads {
		w := p.history.workloads[config.Name]
		if w == nil || config.Mode == trimtab.Off {
			continue
		}
		first := w.first()
		if first == nil {
			continue
		}
		config.Mode = trimtab.Act
		p.planned = append(p.planned, config)
		p.planners = append(p.planners, &poolPlanner{workload: w, name: config.Name, slo: config.SLO,
			held: math.Max(*first.allocation, config.Min), line: Line{Workload: config.Name}})
		last := w.reports[len(w.reports)-1].at
		if p.from.IsZero() || first.at.Before(p.from) {
			p.from = first.at
		}
		if last.After(p.to) {
			p.to = last
		}
	}
	if len(p.planners) == 0 {
		return trimtab.Invalidf("replay: no workload with a report of load, performance and allocation")
	}
	return nil
}

// first returns the first complete report; nil: there is none.
func (w *workload) first() *report {
	for i := range w.reports {
		if r := &w.reports[i]; r.load != nil && r.performance != nil && r.allocation != nil && *r.allocation > 0 {
			return r
		}
	}
	return nil
}

func (p *player) loopConfig(c planner.Config) cluster.Config {
	out := cluster.Config{Start: p.from.Add(-p.report), Analyzer: p.history.config, Planner: c, Held: map[string]float64{}}
	out.Planner.Workloads = p.planned
	out.Analyzer.Workloads = nil
	for i := range p.history.config.Workloads {
		w := p.history.config.Workloads[i]
		s := p.at(w.Name)
		if s == nil {
			continue
		}
		// Recorded values are fed in as samples, and learnt again.
		w.LoadFrom, w.PerformanceFrom = analyzer.FromPrometheus, analyzer.FromPrometheus
		w.Learner = p.history.learners[w.Name]
		out.Analyzer.Workloads = append(out.Analyzer.Workloads, w)
		out.Held[w.Name] = s.held
	}
	return out
}

func (p *player) at(name string) *poolPlanner {
	for _, s := range p.planners {
		if s.name == name {
			return s
		}
	}
	return nil
}

// play plays the recording interval by interval.
func (p *player) play(loop *cluster.Loop, stop func(played float64) bool) *Result {
	out := &Result{From: p.from.Add(-p.report), To: p.to}
	last := out.From
	whole := max(p.to.Sub(p.from), p.report).Seconds()
	for now := p.from; !now.After(p.to); now = p.after(now) {
		if stop != nil && stop(now.Sub(p.from).Seconds()/whole) {
			out.To = last // only whole rounds were played
			break
		}
		for _, s := range p.planners {
			s.play(now, p.report, loop)
		}
		loop.Tick(now)
		if now.Sub(last) >= p.round {
			last = now
			out.Rounds++
			out.Moved += p.decide(now, loop)
		}
	}
	for _, s := range p.planners {
		out.Lines = append(out.Lines, s.line)
	}
	return out
}

// gap is the number of rounds without any report that are played, so that the planner holds
// workloads; the rest of a longer gap is skipped.
const gap = 10

// after returns the end of the next interval to play.
func (p *player) after(now time.Time) time.Time {
	next := now.Add(p.report)
	var first time.Time
	for _, s := range p.planners {
		if s.next < len(s.reports) {
			if at := s.reports[s.next].at; first.IsZero() || at.Before(first) {
				first = at
			}
		}
	}
	if quiet := first.Sub(next); quiet > 0 && p.quiet >= gap*p.round {
		return next.Add(quiet.Truncate(p.report))
	} else if quiet > 0 {
		p.quiet += p.report
	} else {
		p.quiet = 0
	}
	return next
}

// decide runs a round, and returns the amount that it moved.
func (p *player) decide(now time.Time, loop *cluster.Loop) float64 {
	loop.Round(now)
	moved := 0.0
	for _, s := range p.planners {
		had := s.held
		s.held = loop.Held(s.name)
		moved += math.Abs(s.held-had) / 2
	}
	return moved
}

// play passes the loop the report of the workload for the interval that ends at now, if the
// recording has one.
func (s *poolPlanner) play(now time.Time, interval time.Duration, loop *cluster.Loop) {
	for s.next < len(s.reports) && !s.reports[s.next].at.After(now.Add(-interval)) {
		s.next++ // two reports closer together than an interval
	}
	if s.next == len(s.reports) || s.reports[s.next].at.After(now) {
		return
	}
	r := &s.reports[s.next]
	s.next++
	if r.load == nil || r.performance == nil {
		return
	}
	dt := interval.Minutes()
	if r.allocation != nil {
		count(&s.line.Measured, dt, *r.allocation, trimtab.Band{Lower: *r.performance, Mean: *r.performance, Upper: *r.performance}, s.slo)
		count(&s.line.Recorded, dt, *r.allocation, s.hindsight.Predict(*r.allocation, *r.load), s.slo)
	}
	b := s.hindsight.Predict(s.held, *r.load)
	count(&s.line.Replayed, dt, s.held, b, s.slo)
	sample := trimtab.Sample{Workload: s.name, Quantity: quantity.Load, Source: "recording", Time: now, Window: trimtab.SecondsOf(interval), Value: *r.load}
	loop.Sample(now, &sample)
	performance := sample
	performance.Quantity, performance.Value = quantity.Performance, b.Mean
	if s.counted {
		performance.Requests = math.Round(*r.load * interval.Seconds())
	}
	loop.Sample(now, &performance)
}

// count adds dt minutes at an allocation to f.
func count(f *Figures, dt, allocation float64, b trimtab.Band, slo float64) {
	f.Minutes += dt
	f.Hours += allocation * dt / 60
	for _, v := range []struct {
		minutes     *float64
		performance float64
	}{{&f.Low, b.Lower}, {&f.SLOMinutes, b.Mean}, {&f.High, b.Upper}} {
		if v.performance >= slo {
			*v.minutes += dt
		}
	}
}
