package sizing

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/workingset"
	"github.com/trimtab/trimtab/planner/sizing"
	"github.com/trimtab/trimtab/planner/usage"
	"github.com/trimtab/trimtab/quantity"
	"github.com/trimtab/trimtab/sim/autoscale"
)

// Rule sets a limit from the readings before.
type Rule interface {
	// Take adds a reading, and Limit returns the limit for what comes after it; 0: none yet.
	Take(at time.Time, use float64)
	Limit() float64
	// Overrun says that the use met the limit: the kernel kills, or the CPU is throttled.
	Overrun(at time.Time, limit float64)
}

// The names of rules.
const (
	Trimtab = "trimtab"
	VPA     = "vpa"
	DPA     = "dpa"
	EKS     = "eks"
	AsIs    = "limit"
	Thumb   = "thumb"
	highest = "autopilot"
	most98  = "autopilot98"
)

// Rules are the names of the rules for a resource, in the order of the table.
func Rules(resource string) []string {
	if resource == trimtab.CPU {
		return []string{Trimtab, VPA, EKS, DPA, AsIs, Thumb}
	}
	return []string{Trimtab, VPA, DPA, AsIs, Thumb, highest, most98}
}

// New returns a rule for a series by its name; nil: the resource has none of that name.
func New(resource, name string, s *Series, margin float64) Rule {
	cpu := resource == trimtab.CPU
	switch {
	case !slices.Contains(Rules(resource), name):
		return nil
	case name == AsIs:
		return asIs(s.Limit)
	case name == Thumb:
		return &thumb{}
	case name == VPA:
		return &vpa{VPA: autoscale.NewVPA(), cpu: cpu}
	case name == EKS:
		return percentile{autoscale.NewEKS()}
	case name == DPA && cpu:
		return percentile{autoscale.NewDPA()}
	case name == DPA:
		return &peak{}
	case cpu:
		return &used{}
	case name == Trimtab:
		return &ours{bounds: sizing.Bounds{Min: 1, Max: 1 << 60, Margin: margin}}
	case name == most98:
		return &autopilot{quantile: 0.98}
	}
	return &autopilot{}
}

// ours is the learner and the sizing of production, for memory.
type ours struct {
	learner workingset.Learner
	bounds  sizing.Bounds
	limit   float64
	kills   float64
	killed  *time.Time
}

func (o *ours) Take(at time.Time, use float64) {
	o.learner.Take(at, use)
	n, ok := o.learner.Need(at)
	if !ok {
		return
	}
	has := trimtab.Units(o.limit)
	if o.limit == 0 {
		has = trimtab.Amount{Unlimited: true}
	}
	o.limit = o.bounds.Of(at, time.Time{}, &quantity.MemoryNeed{Use: use, Need: n.Limit, Unlearnt: n.Why, Kills: o.kills, Killed: o.killed}, has).Limit
}

func (o *ours) Limit() float64 { return o.limit }

func (o *ours) Overrun(at time.Time, limit float64) {
	o.kills, o.killed = o.kills+1, &at
	o.learner.Killed(at, limit)
}

// used is what production advises for the CPU of a workload without a limit that meets its SLO.
type used struct {
	usage.Use
	at time.Time
}

func (u *used) Take(at time.Time, use float64) {
	u.at = at
	met := 1.0
	u.Observe(at, &trimtab.Estimate{Time: at, Performance: &met, Load: &trimtab.LoadForecast{Now: 1}, Inputs: []trimtab.Input{{Name: string(quantity.Usage), Value: use}}})
}

func (u *used) Limit() float64 {
	met, day := 1.0, u.Day(u.at)
	if !day.Advises(1, &met) {
		return 0
	}
	return day.Limit(1)
}

func (u *used) Overrun(time.Time, float64) {}

// asIs is the limit that was recorded.
type asIs float64

func (a asIs) Take(time.Time, float64) {}

func (a asIs) Limit() float64 { return float64(a) }

func (a asIs) Overrun(time.Time, float64) {}

// slot is the peak of 5 minutes, or a result at their end.
type slot struct {
	number int64
	value  float64
}

const (
	slotTime = 5 * time.Minute
	halfLife = 48 * time.Hour
	// safe is the margin of Autopilot.
	safe = 1.15
	// thumbMargin, thumbQuantile and thumbWindow are the rule of thumb.
	thumbMargin, thumbQuantile, thumbWindow = 1.2, 0.99, 8 * 24 * time.Hour
)

// peaks are the peaks of intervals of 5 minutes, oldest first.
type peaks []slot

// take adds a reading, drops peaks that are older than a time, and reports whether an interval ended.
func (p *peaks) take(at time.Time, use float64, window time.Duration) (ended bool) {
	now, n := at.UnixNano()/int64(slotTime), len(*p)
	if n > 0 && (*p)[n-1].number == now {
		(*p)[n-1].value = math.Max((*p)[n-1].value, use)
		return false
	}
	*p = append(p.since(now, window), slot{now, use})
	return n > 0
}

func (p *peaks) since(now int64, window time.Duration) peaks {
	all := *p
	for len(all) > 0 && now-all[0].number > int64(window/slotTime) {
		all = all[1:]
	}
	return all
}

// thumb is a rule of thumb that people use.
type thumb struct {
	peaks
	set   time.Time
	limit float64
}

func (t *thumb) Take(at time.Time, use float64) {
	t.take(at, use, thumbWindow)
	if at.Sub(t.set) < time.Hour {
		return
	}
	values := make([]float64, len(t.peaks))
	for i := range t.peaks {
		values[i] = t.peaks[i].value
	}
	slices.Sort(values)
	t.set, t.limit = at, thumbMargin*values[int(math.Ceil(thumbQuantile*float64(len(values))))-1]
}

func (t *thumb) Limit() float64 { return t.limit }

func (t *thumb) Overrun(time.Time, float64) {}

// autopilot is a moving window recommender of Autopilot.
type autopilot struct {
	quantile float64 // 0: the maximum
	peaks
	results peaks
}

func (a *autopilot) Take(at time.Time, use float64) {
	window := halfLife
	if a.quantile > 0 {
		window = 8 * halfLife
	}
	before := a.peaks
	if a.take(at, use, window) { // an interval has ended: what do all of them ask for?
		now := at.UnixNano() / int64(slotTime)
		a.results = append(a.results.since(now, time.Hour), slot{now, recommend(before, now, a.quantile)})
	}
}

// recommend returns a limit of the peaks: of the highest, or of a quantile with decaying weights.
func recommend(all peaks, now int64, quantile float64) float64 {
	if quantile == 0 {
		return safe * slices.MaxFunc(all, func(a, b slot) int { return int(math.Copysign(1, a.value-b.value)) }).value
	}
	h := autoscale.NewHistogram(1e7, 1e12)
	for _, p := range all {
		h.Add(time.Time{}.Add(time.Hour), p.value, math.Exp2(-float64(now-p.number)*float64(slotTime)/float64(halfLife)))
	}
	return safe * h.Quantile(quantile)
}

func (a *autopilot) Limit() float64 {
	most := 0.0
	for _, r := range a.results {
		most = math.Max(most, r.value)
	}
	return most
}

// Overrun: the paper names no rule beside the peak itself.
func (a *autopilot) Overrun(time.Time, float64) {}

// vpa is the recommender of a VerticalPodAutoscaler. Request and limit are its target.
type vpa struct {
	*autoscale.VPA
	cpu bool
}

func (v *vpa) Take(at time.Time, use float64) {
	if v.cpu {
		v.CPU(at, use)
		return
	}
	v.CPU(at, 1) // without samples of CPU it recommends nothing
	v.Memory(at, use)
}

func (v *vpa) Limit() float64 {
	cpu, memory, ok := v.Recommend()
	switch {
	case !ok:
		return 0
	case v.cpu:
		return cpu.Target
	}
	return memory.Target
}

func (v *vpa) Overrun(at time.Time, limit float64) {
	if !v.cpu {
		v.OOM(at, limit)
	}
}

// percentile is a rule of EKS or Datadog. The request and the limit are what it recommends.
type percentile struct{ *autoscale.Percentile }

func (p percentile) Take(at time.Time, use float64) { p.Observe(at, use) }

func (p percentile) Limit() float64 {
	limit, _ := p.Recommend()
	return limit
}

func (p percentile) Overrun(time.Time, float64) {}

// peak is Datadog's rule for memory of a container whose request is its limit: the peak of 8 days and
// 5%; after a kill the limit is 20% higher.
type peak struct {
	peaks
	bumped float64
}

func (p *peak) Take(at time.Time, use float64) { p.take(at, use, thumbWindow) }

func (p *peak) Limit() float64 {
	most := p.bumped
	for i := range p.peaks {
		most = math.Max(most, 1.05*p.peaks[i].value)
	}
	return most
}

func (p *peak) Overrun(_ time.Time, limit float64) { p.bumped = 1.2 * limit }
