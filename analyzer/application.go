package analyzer

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn/kernel"
	"github.com/trimtab/trimtab/analyzer/learn/sojourn"
	"github.com/trimtab/trimtab/analyzer/report"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/quantity"
)

// application is a set of workloads that together serve the requests of one of them, Config.Entry.
// One signal, the entry's performance, is learned over the allocations of all.
type application struct {
	config *Config
	entry  *workload
	// members are in order of name; parts has what the spans of each show.
	members []*workload
	parts   []part
	vector  *kernel.Vector
	// latest has the latest contributions of the components that serve the entry's requests, nil if
	// there are none.
	latest *colocation.Contributions
	// rate is the entry's request rate in the latest report, in requests per second.
	rate float64
	// fresh: there was a report since the last estimates. moving counts the reports in a row that
	// were ignored because an allocation changed. aside is why the latest report was ignored.
	fresh         bool
	moving        int
	aside         string
	publishedAt   time.Time
	publishedHold *trimtab.Held
}

// part is what the spans of one member show; without spans it is the zero part.
type part struct {
	curve sojourn.Curve
	// rate is the rate of its visits, per second.
	rate float64
	// components are the components that send its spans, sorted by name.
	components []string
}

const (
	// jointShare is the weight of the kernel that treats all allocations jointly, not per
	// component.
	jointShare = 0.3
	// pointsKept is the number of reports that the learner keeps.
	pointsKept = 128
	// length is the length scale of the kernel, in ln(allocation/load).
	length = 2
	// ceiling limits ln(latency / lowest latency): beyond that, latencies are not told apart.
	// Otherwise the queues of a cold start would dominate everything else that is learned.
	ceiling = 1
	// gridKnots is the number of points at which a curve is evaluated.
	gridKnots = 40
)

func newApplication(c *Config, all []*workload) (*application, error) {
	p := &application{config: c}
	for _, w := range all {
		if w.spec.Name == c.Entry {
			p.entry = w
			w.app = p
		}
		if w.spec.Resource != "" && w.spec.Max > 0 {
			p.members = append(p.members, w)
			w.app, w.member = p, len(p.members)
		}
	}
	return p, p.begin()
}

// begin forgets everything that was learned.
func (p *application) begin() (err error) {
	p.parts, p.rate, p.latest = make([]part, len(p.members)), 0, nil
	p.vector, err = kernel.New(kernel.Config{Dimensions: len(p.members), Level: p.config.Level, Points: pointsKept, Joint: jointShare,
		Length: length, JointLength: length, Wander: 0.2, Ceiling: ceiling})
	return err
}

// target is the performance asked for. For latency from spans it is 1: performance is then the
// latency limit of the SLO divided by the measured latency at the SLO's fraction.
func (p *application) target() float64 {
	if p.entry.spec.PerformanceFrom == FromSpans {
		return 1
	}
	return p.entry.spec.Target
}

// observe learns from a closed interval of one of the workloads: from a member its sojourn times, from
// the entry the performance that all allocations gave.
func (p *application) observe(w *workload, r *report.Report, s *report.Spans, c *counts) {
	if w.member > 0 && s.Visits > 0 && s.Sojourn > 0 && r.Aside == "" && r.Allocation != nil {
		v := &p.parts[w.member-1]
		if v.curve.Observe(sojourn.Report{Allocation: *r.Allocation, Rate: s.Load, Mean: 1000 * s.Sojourn / s.Visits}) == nil {
			v.rate = s.Load
		}
	}
	if w.member > 0 && len(s.Components) > 0 {
		p.parts[w.member-1].components = s.Components
	}
	if w != p.entry {
		return
	}
	p.fresh = true
	if w.tail.latest != nil {
		p.latest = w.tail.latest
	}
	if r.Load != nil {
		p.rate = *r.Load
	}
	if p.aside = p.learn(r); p.aside != "" {
		c.aside(p.aside)
	} else {
		c.learned++
	}
}

// learn gives a report of the entry to the learner, or returns why not.
func (p *application) learn(r *report.Report) (aside string) {
	switch {
	case r.Performance == nil || !(*r.Performance > 0):
		return "no_performance"
	case r.Load == nil || !(*r.Load > 0):
		return "no_load"
	}
	x, transient, ok := p.where(r.At.Add(-p.config.Report), r.At, *r.Load)
	switch {
	case !ok:
		return "no_allocation"
	case transient:
		if p.moving++; p.moving <= patience {
			return "transient"
		}
	default:
		p.moving = 0
	}
	if p.vector.Observe(x, math.Log(p.target() / *r.Performance)) != nil {
		return "refused"
	}
	return ""
}

// where returns ln(allocation/load) of all members over a time, and whether any allocation changed
// in it. ok is false if one of them is unknown.
func (p *application) where(from, to time.Time, load float64) (x []float64, transient, ok bool) {
	for _, w := range p.members {
		f := w.held.during(from, to, p.config.Settle)
		a := f.Mean
		if f.Amount.Unlimited {
			a = w.held.most()
		} else if !f.Transient {
			a = f.Amount.Value
		}
		if !f.Known || !(a > 0) {
			return nil, false, false
		}
		transient = transient || f.Transient
		x = append(x, math.Log(a/load))
	}
	return x, transient, true
}

// hold returns why no member may be lowered: load or performance of the entry is missing. nil:
// neither is.
func (p *application) hold(now time.Time) *trimtab.Held {
	w := p.entry
	why := w.missingInput(now, quantity.Load)
	if why == nil {
		why = w.missingInput(now, quantity.Performance)
	}
	if why != nil {
		why.Text = w.spec.Name + ": " + why.Text
	}
	return why
}

// tick returns the estimates of all members if there is a new report, or the reason to hold has
// changed.
func (p *application) tick(now time.Time) []trimtab.Value {
	hold := p.hold(now)
	if !p.fresh && (hold == nil || alike(hold, p.publishedHold) && now.Sub(p.publishedAt) < p.config.Round) {
		return nil
	}
	p.fresh, p.publishedAt, p.publishedHold = false, now, hold
	load := p.entry.forecastLoad()
	var x []float64
	if load != nil && load.Upper > 0 && p.vector.Reports() > 0 {
		x, _, _ = p.where(now.Add(-1), now, load.Upper)
		// no error is possible: the shares are > 0
		_ = p.vector.Expect(p.expected, p.shares(x))
	}
	out := make([]trimtab.Value, 0, len(p.members))
	for i, w := range p.members {
		e := p.estimate(now, w, hold)
		e.Load = load
		if x != nil {
			e.Curve = p.section(i, x, load.Upper)
		}
		if err := e.Validate(); err != nil {
			e = invalid(e, err)
		}
		out = append(out, e)
	}
	return out
}

// estimate returns the estimate of one member without its curve. Performance and load are those of
// the entry.
func (p *application) estimate(now time.Time, w *workload, hold *trimtab.Held) *trimtab.Estimate {
	e := &trimtab.Estimate{Workload: w.spec.Name, Time: now, Hold: hold, Performance: p.entry.last.Performance, Allocation: w.last.Allocation,
		Latency: w.last.Latency, Reports: p.vector.Reports(), Model: p.vector.Name(), Exemplars: w.last.Slowest}
	if p.parts[w.member-1].curve.Reports() > 0 {
		e.Model += " with sojourn/1"
	}
	e.Inputs = p.entry.inputs(now)
	for i := range e.Inputs {
		e.Inputs[i].Name = p.entry.spec.Name + " " + e.Inputs[i].Name
	}
	if p.aside != "" {
		e.Inputs = append(e.Inputs, trimtab.Input{Name: "report", Age: age(now, p.entry.last.At), Missing: "not learnt from: " + p.aside})
	}
	a := trimtab.Input{Name: "allocation", Source: "actuator"}
	if f := w.held.during(now.Add(-1), now, 0); f.Known && !f.Amount.Unlimited {
		v := f.Amount.Value
		e.Allocation = &v
		a.Value, a.Age = v, age(now, w.held.Latest())
	} else if a.Missing = "unlimited"; !f.Known {
		a.Missing = "none known"
		if hold == nil {
			e.Hold = &trimtab.Held{Code: codes.HeldAbsent, Text: "no allocation of it is known", Input: "allocation", Source: "actuator"}
		}
	}
	e.Inputs = append(e.Inputs, a)
	return e
}

// section returns the entry's performance as a function of the allocation of one member, with all
// others unchanged, at the given load. It is made monotone around the current allocation: more does
// not make it slower, less not faster.
func (p *application) section(i int, x []float64, load float64) *trimtab.Curve {
	w := p.members[i]
	c := &trimtab.Curve{Load: load, Level: p.config.Level}
	grid, here := grid(w.spec.Min, w.held.most(), math.Exp(x[i])*load)
	at := make([]float64, len(grid))
	for j, a := range grid {
		at[j] = math.Log(a / load)
	}
	target := p.target()
	performance := func(y float64) float64 { return target * math.Exp(math.Min(-y, 60)) }
	bands := p.vector.Section(x, i, at)
	for j := here + 1; j < len(bands); j++ {
		bands[j] = lowered(bands[j], bands[j-1].Mean)
	}
	for j := here - 1; j >= 0; j-- {
		bands[j] = raised(bands[j], bands[j+1].Mean)
	}
	for j, b := range bands {
		c.Knots = append(c.Knots, trimtab.Knot{Allocation: grid[j],
			Band: trimtab.Band{Lower: performance(b.Upper), Mean: performance(b.Mean), Upper: performance(b.Lower)}})
	}
	return c
}

// lowered and raised limit the mean of a band to at most most, or at least least, and widen the
// band as needed.
func lowered(b trimtab.Band, most float64) trimtab.Band {
	b.Mean = math.Min(b.Mean, most)
	b.Lower = math.Min(b.Lower, b.Mean)
	return b
}

func raised(b trimtab.Band, least float64) trimtab.Band {
	b.Mean = math.Max(b.Mean, least)
	b.Upper = math.Max(b.Upper, b.Mean)
	return b
}

// grid returns allocations from least to most with equal ratios, and the current one, now, at index
// here.
func grid(least, most, now float64) (out []float64, here int) {
	low := math.Max(least, most/1000)
	ratio := math.Log(most / low)
	out = make([]float64, gridKnots, gridKnots+1)
	for i := range out {
		out[i] = low * math.Exp(ratio*float64(i)/(gridKnots-1))
	}
	out[gridKnots-1] = most
	here, found := slices.BinarySearch(out, now)
	if !found {
		out = slices.Insert(out, here, now)
	}
	return out, here
}
