package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// maxIncidents bounds those that a report lists, the longest first.
const maxIncidents = 100

// Report compares, since a time, what workloads had with what their baselines would have given:
//
//	SLO minutes   Σ Δt [p_t >= SLO]                    measured
//	by curve      Σ Δt [f(a_t / (l_t + h)) >= SLO]     of what it had, a_t
//	baseline      Σ Δt [f(a_0 / (l_t + h)) >= SLO]     of the limit from before, a_0
//
// with f, its lower and its upper bound, of the newest curve. A report stands for the
// time since the one before, but no longer than a stale one would; what is older is
// kept as means over several reports.
func (v *Model) Report(since, now time.Time) Report {
	v.mu.Lock()
	names := sortedKeys(v.workloads.all)
	r := Report{Pool: v.config.Pool, Resource: v.config.Resource, Objective: v.config.Objective, To: now, Workloads: []WorthOf{}, Incidents: []Incident{}, Missing: []string{}}
	v.mu.Unlock()
	if oldest := now.Add(-maxAge); since.Before(oldest) {
		since = oldest
	}
	r.From = since
	var gaps gaps
	for _, name := range names {
		v.reportOn(&r, name, &gaps) // one workload after the other, so that other users of the view need not wait for all
	}
	slices.SortStableFunc(r.Incidents, func(a, b Incident) int { return cmp.Compare(b.To.Sub(b.From), a.To.Sub(a.From)) })
	r.Omitted = max(0, len(r.Incidents)-maxIncidents)
	r.Incidents = r.Incidents[:len(r.Incidents)-r.Omitted]
	r.Missing = gaps.texts(r.Resource, since, now)
	v.mu.Lock()
	defer v.mu.Unlock()
	r.Moves, r.Verdicts = v.book.tally.since(since)
	if p := v.plans.newest.Value; p != nil {
		r.Exceeds = v.fleet.exceeds(p, &v.config, now)
	}
	return r
}

// reportOn adds one workload to a report.
func (v *Model) reportOn(r *Report, name string, gaps *gaps) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.workloads.all[name]
	if s == nil || !s.declared || s.Mode == trimtab.Off {
		return
	}
	w := WorthOf{Workload: name, Mode: s.Mode, SLO: s.SLO, Decisions: s.decidedSince(r.From)}
	spans := s.spans(r.From, v.config.Round)
	w.Worth = s.worth(spans, v.config.Resource, r.To, gaps)
	var known time.Time
	if w.Requests, known = s.requests(spans); known.Sub(r.From) > r.To.Sub(r.From)/10 {
		gaps.refused = append(gaps.refused, name+" "+Age(trimtab.SecondsOf(r.To.Sub(known))))
	}
	w.HeldBy, w.Advised = s.besides(spans, v.config.Resource, r.To)
	w.Budget = s.budgetOver(spans, r.To)
	w.Money = s.money(v.config.Resource, r.To)
	if s.estimate.Value != nil {
		w.Memory = memoryWorth(s.estimate.Value.Memory)
	}
	r.Total.add(&w.Worth)
	r.Workloads = append(r.Workloads, w)
	r.Incidents = append(r.Incidents, s.incidents(spans, r.To, v.config.Round)...)
	if s.Target > 0 || !s.MemoryAlone {
		gaps.coverage(name, w.Minutes, r.To.Sub(r.From).Minutes())
	}
}

// stretch is one point, with the time for which it stands.
type stretch struct {
	point
	time.Duration
}

func (s *stretch) began() time.Time { return s.ended().Add(-s.Duration) }

func (s *stretch) ended() time.Time { return time.UnixMilli(s.at).UTC() }

// spans returns the points since a time, each with the time since the one before, as far as it is
// covered by reports: gaps do not count.
func (s *state) spans(since time.Time, round time.Duration) []stretch {
	points := s.series.since(since)
	out := make([]stretch, 0, len(points))
	before := since.UnixMilli()
	patience := Patience(round).Milliseconds()
	for _, p := range points {
		lasts := min(p.at-before, int64(max(p.many, 1))*patience)
		before = p.at
		if lasts > 0 {
			out = append(out, stretch{p, time.Duration(lasts) * time.Millisecond})
		}
	}
	return out
}

// worth sums up what a workload had, and what it would have had with its baseline.
func (s *state) worth(spans []stretch, resource string, now time.Time, gaps *gaps) (w Worth) {
	var curve *trimtab.Curve
	if s.estimate.Value != nil {
		curve = s.estimate.Value.Curve
	}
	base := s.main(resource, now)
	switch {
	case s.MemoryAlone:
		curve = nil // nothing of the pool's resource is planned
	case curve == nil || len(curve.Knots) == 0:
		curve = nil
		gaps.curves = append(gaps.curves, s.Name)
	case base.readable == 0:
		curve = nil
		gaps.knobs = append(gaps.knobs, s.Name)
	case base.baseline.Unlimited:
		curve = nil
		gaps.unlimited = append(gaps.unlimited, s.Name)
	default:
		w.Compared = &Comparison{}
	}
	defer func() {
		if w.Starved > 0 {
			gaps.starved = append(gaps.starved, fmt.Sprintf("%s %s", s.Name, Age(trimtab.Seconds(60*w.Starved))))
		}
	}()
	for i := range spans {
		p := &spans[i]
		minutes, a, load := p.Minutes(), float64(p.v[colAllocation]), float64(p.v[colLoad])
		if p.starved() {
			w.Starved += minutes
		}
		if p.met != metUnknown {
			w.Minutes, w.SLOMinutes = w.Minutes+minutes, w.SLOMinutes+minutes*float64(p.met)/float64(allMet)
		}
		if math.IsNaN(a) {
			continue
		}
		w.Hours, w.KnownHours = w.Hours+a*minutes/60, w.KnownHours+minutes/60
		if curve == nil || math.IsNaN(load) || !(s.Target > 0) {
			continue
		}
		c := w.Compared
		c.Minutes += minutes
		c.Had.add(curve, a, load, s.Target, minutes)
		c.Baseline.add(curve, base.baseline.Value, load, s.Target, minutes)
	}
	if c := w.Compared; c != nil {
		c.Gain = gained(&c.Had, &c.Baseline)
	}
	return w
}

// add counts minutes at an allocation under a load.
func (b *ByCurve) add(c *trimtab.Curve, allocation, load, slo, minutes float64) {
	scale, _ := c.Scale(load)
	at := c.Eval(allocation / scale)
	b.Hours += allocation * minutes / 60
	for _, x := range []struct {
		to *float64
		p  float64
	}{{&b.SLOMinutes.Lower, at.Lower}, {&b.SLOMinutes.Mean, at.Mean}, {&b.SLOMinutes.Upper, at.Upper}} {
		if x.p >= slo {
			*x.to += minutes
		}
	}
}

// gained is how many SLO minutes more an allocation gives than another: one curve is
// true for both, so bounds are compared with the same bound.
func gained(of, than *ByCurve) trimtab.Band {
	had, base := of.SLOMinutes, than.SLOMinutes
	low, mean, high := had.Lower-base.Lower, had.Mean-base.Mean, had.Upper-base.Upper
	return trimtab.Band{Lower: min(low, mean, high), Mean: mean, Upper: max(low, mean, high)}
}

// add adds another workload.
func (w *Worth) add(o *Worth) {
	w.Minutes, w.SLOMinutes, w.Hours, w.KnownHours = w.Minutes+o.Minutes, w.SLOMinutes+o.SLOMinutes, w.Hours+o.Hours, w.KnownHours+o.KnownHours
	w.Starved += o.Starved
	if o.Requests != nil {
		if w.Requests == nil {
			w.Requests = &Requests{Refused: map[string]float64{}}
		}
		w.Requests.add(o.Requests)
	}
	if o.Compared == nil {
		return
	}
	if w.Compared == nil {
		w.Compared = &Comparison{}
	}
	c := w.Compared
	c.Minutes += o.Compared.Minutes
	for _, x := range [][2]*ByCurve{{&c.Had, &o.Compared.Had}, {&c.Baseline, &o.Compared.Baseline}} {
		x[0].Hours += x[1].Hours
		x[0].SLOMinutes = sumBands(x[0].SLOMinutes, x[1].SLOMinutes)
	}
	c.Gain = sumBands(c.Gain, o.Compared.Gain)
}

func sumBands(a, b trimtab.Band) trimtab.Band {
	return trimtab.Band{Lower: a.Lower + b.Lower, Mean: a.Mean + b.Mean, Upper: a.Upper + b.Upper}
}

// decidedSince counts the decisions since a time, without reading any.
func (s *decisionLog) decidedSince(t time.Time) (n int) {
	for i := range s.chunks {
		c := s.chunks[i].seconds
		n += len(c) - sort.Search(len(c), func(i int) bool { return int64(c[i]) >= t.Unix() })
	}
	return n + len(s.decisions) - sort.Search(len(s.decisions), func(i int) bool { return !s.decisions[i].Time.Before(t) })
}

// incidents are the times in which at least half of the reports missed the SLO, for a
// round or longer.
func (s *state) incidents(spans []stretch, now time.Time, round time.Duration) (out []Incident) {
	var open *Incident
	end := func() {
		if open != nil && open.To.Sub(open.From) >= round {
			out = append(out, *open)
		}
		open = nil
	}
	for i := range spans {
		p := &spans[i]
		missed, performance := p.met != metUnknown && p.met <= allMet/2, float64(p.v[colPerformance])
		if p.starved() {
			performance = 0
		}
		if !missed || open != nil && p.began().Sub(open.To) > time.Second {
			end()
		}
		if !missed {
			continue
		}
		if open == nil {
			open = &Incident{Workload: s.Name, From: p.began(), Worst: performance, Share: s.Share}
		}
		open.To, open.Worst = p.ended(), min(open.Worst, performance)
	}
	if open != nil {
		open.Ongoing = now.Sub(open.To) <= Patience(round)
	}
	end()
	return out
}

// gaps collects what a report cannot compute.
type gaps struct{ curves, knobs, unlimited, short, starved, refused []string }

// coverage records a workload of which less than nine tenths of the time is known.
func (l *gaps) coverage(name string, minutes, all float64) {
	if minutes < 0.9*all {
		l.short = append(l.short, fmt.Sprintf("%s %s", name, Age(trimtab.Seconds(60*minutes))))
	}
}

func (l *gaps) texts(resource string, since, now time.Time) []string {
	out := []string{}
	some := func(format string, of []string) {
		if n := len(of); n > 0 {
			const most = 5
			text := strings.Join(of[:min(n, most)], ", ")
			if n > most {
				text += fmt.Sprintf(" and %d more", n-most)
			}
			out = append(out, fmt.Sprintf(format, text))
		}
	}
	some("Of "+Age(trimtab.SecondsOf(now.Sub(since)))+", performance is known for less: %s.", l.short)
	some("Of "+Age(trimtab.SecondsOf(now.Sub(since)))+", refused requests are known for less: %s.", l.refused)
	some("Not measured and starved, which counts as missed: %s.", l.starved)
	some("No curve was learnt yet, so nothing is compared with the baseline: %s.", l.curves)
	some("No limit was reported, so nothing is compared with the baseline: %s.", l.knobs)
	some("Had no limit before trimtab, so there is no baseline in "+Unit(resource)+" to compare with: %s.", l.unlimited)
	return append(out, "The newest curve stands for the whole period, and the newest baseline too.")
}
