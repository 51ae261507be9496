package view

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// Shed says how many requests to a workload its gates refuse, by the newest report, why, and how much
// of the resource the workload would need to refuse none.
//
//	share = refused / load
//	serve = allocation / cost of a request            at full use
//	work  = load × cost of a request
//	needs = least a with performance(a, load) >= SLO  by the curve's mean, and by its bounds
type Shed struct {
	// Rate is how many requests per second are refused; Share is their part of the load.
	Rate    float64     `json:"refused_per_second"`
	Share   *float64    `json:"share_of_load,omitempty"`
	Classes []ShedClass `json:"classes"`
	// Since is the time of the first report with a refused request that came no more than a few
	// rounds after another one.
	Since time.Time `json:"since,omitzero"`
	// Limit is how many requests trimtab allows in service at once, over all gates of the workload,
	// PerSecond how many it lets them admit, and LimitWhy and PerSecondWhy what these are derived from.
	// Nil: trimtab sets none, and the gate's own rule decides. ByClass has the rates of single classes.
	Limit        *float64    `json:"limit,omitempty"`
	LimitWhy     string      `json:"limit_why,omitempty"`
	PerSecond    *float64    `json:"admitted_per_second,omitempty"`
	PerSecondWhy string      `json:"admitted_why,omitempty"`
	ByClass      []ShedClass `json:"admitted_by_class,omitempty"`
	// The limit follows from these four: requests per second, the allocation of the pool's resource,
	// how much of it times seconds a request takes, and the 95th percentile of the latency of answered
	// requests. Nil: not known.
	Load       *float64         `json:"load,omitempty"`
	Allocation *float64         `json:"allocation,omitempty"`
	Cost       *float64         `json:"cost,omitempty"`
	Time       *trimtab.Seconds `json:"p95_s,omitempty"`
	// Needs is the allocation that would meet the SLO; nil: Unknown says why that is not known.
	Needs   *ShedNeeds `json:"needs,omitempty"`
	Unknown string     `json:"needs_unknown,omitempty"`
	// Work is the least allocation that can do the arriving work, fully used; nil: not known.
	Work     *float64 `json:"work,omitempty"`
	Resource string   `json:"resource"`
}

// ShedClass is how many requests of one class are refused per second.
type ShedClass struct {
	Class string  `json:"class"`
	Rate  float64 `json:"refused_per_second"`
}

// ShedNeeds is an allocation at which a curve expects the SLO to be met under the present load.
type ShedNeeds struct {
	// Amount is by the curve's mean, Least by its upper and Most by its lower bound, at the confidence
	// Level. A nil Most is beyond the largest allocation of the curve.
	Amount float64  `json:"amount"`
	Least  float64  `json:"least"`
	Most   *float64 `json:"most,omitempty"`
	Level  float64  `json:"level"`
	// Instances is how many instances of the present size have Amount together; 0: the workload has
	// only one, as far as is known.
	Instances int `json:"instances,omitempty"`
	// Has says that the workload has Amount already.
	Has bool `json:"has_it,omitempty"`
}

// shed describes the requests of a workload that are refused now; nil: none are, or nothing is known.
func (m *moment) shed(s *state) *Shed {
	e := s.estimate.Value
	if e == nil || m.silent(s) || e.LoadMissing() {
		return nil
	}
	rate := e.Shed()
	if !(rate > 0) {
		return nil
	}
	out := &Shed{Rate: rate, Classes: shedClasses(e.Refused), Since: printable(s.since.shed), Allocation: e.Allocation, Cost: e.Cost, Resource: m.resource}
	if e.Load != nil && e.Load.Now > 0 {
		share := min(1, rate/e.Load.Now)
		out.Load, out.Share = &e.Load.Now, &share
		if e.Cost != nil && e.Load.Now**e.Cost <= math.MaxFloat64 {
			work := e.Load.Now * *e.Cost
			out.Work = &work
		}
	}
	if t, ok := e.Latency["p95"]; ok {
		out.Time = &t
	}
	out.Limit, out.LimitWhy, _ = m.limited(s, trimtab.Concurrency)
	out.PerSecond, out.PerSecondWhy, out.ByClass = m.limited(s, trimtab.Rate)
	out.Needs, out.Unknown = s.spares(e, m.main(s).instances)
	return out
}

// shedClasses lists classes of requests with their rates, the highest first.
func shedClasses(byClass map[string]float64) (out []ShedClass) {
	for _, class := range slices.Sorted(maps.Keys(byClass)) {
		if v := byClass[class]; v > 0 {
			out = append(out, ShedClass{class, v})
		}
	}
	slices.SortStableFunc(out, func(a, b ShedClass) int { return cmp.Compare(b.Rate, a.Rate) })
	return out
}

// limited returns the limit of a resource of requests that trimtab has set for all of them, and its
// reason, and those of single classes.
func (m *moment) limited(s *state, resource string) (limit *float64, why string, byClass []ShedClass) {
	sum, classes := 0.0, map[string]float64{}
	for h, k := range s.knobs(resource) {
		now := k.InForce()
		if rankOf(h, k, m.now) != serves || now.Unlimited {
			continue
		}
		if class, ok := strings.CutPrefix(k.Instance, "class="); ok {
			classes[class] += now.Value
			continue
		}
		sum += now.Value
	}
	if d := s.newestOn[resource]; d != nil && sum > 0 && d.Action.Instance == "" {
		why = d.Action.Why.Summary
	}
	if sum > 0 {
		limit = &sum
	}
	return limit, why, shedClasses(classes)
}

// spares returns the allocation at which the curve expects the SLO to be met under the present load, or
// why that is not known.
func (s *state) spares(e *trimtab.Estimate, instances int) (*ShedNeeds, string) {
	switch {
	case !(s.Target > 0):
		return nil, "it has no SLO"
	case e.Curve == nil || len(e.Curve.Knots) == 0:
		return nil, "no curve was learnt yet"
	case e.Load == nil:
		return nil, "its load is not known"
	}
	scale, _ := e.Curve.Scale(e.Load.Now)
	least := func(bound func(trimtab.Band) float64) *float64 {
		if v := e.Curve.Least(scale, s.Target, bound); v >= 0 && v <= math.MaxFloat64 {
			return &v
		}
		return nil
	}
	mean := least(func(b trimtab.Band) float64 { return b.Mean })
	if mean == nil {
		last := e.Curve.Knots[len(e.Curve.Knots)-1].Allocation * scale
		return nil, fmt.Sprintf("its curve, which goes up to %s, does not reach the SLO under this load", Number(last))
	}
	n := &ShedNeeds{Amount: *mean, Least: *mean, Most: least(func(b trimtab.Band) float64 { return b.Lower }), Level: e.Curve.Level}
	if v := least(func(b trimtab.Band) float64 { return b.Upper }); v != nil {
		n.Least = *v
	}
	if a := e.Allocation; a != nil && *a > 0 {
		n.Has = *a >= *mean
		if count := math.Ceil(*mean / *a * float64(instances)); instances > 1 && count < 1e6 {
			n.Instances = int(count)
		}
	}
	return n, ""
}

// Text says in a line what is shed: how much, of which class, and since when.
func (x *Shed) Text(now time.Time) string {
	text := "sheds " + x.amount()
	if !x.Since.IsZero() {
		text += ", since " + clockOf(x.Since, now)
	}
	return text
}

// amount says how much is shed, and of which classes.
func (x *Shed) amount() string {
	text := Number(x.Rate) + " requests/s"
	if x.Share != nil {
		text += ", " + small(*x.Share) + " of the load"
	}
	return text + " (" + x.classes() + ")"
}

// classes says how many requests of each class are refused, the largest number first.
func (x *Shed) classes() string {
	var out []string
	for i, c := range x.Classes {
		if i == maxNotes {
			out = append(out, fmt.Sprintf("%d more", len(x.Classes)-i))
			break
		}
		out = append(out, c.Class+" "+Number(c.Rate))
	}
	return strings.Join(out, ", ")
}

// small prints a share; one that is not 0 never prints as 0.
func small(v float64) string {
	if v > 0 && v < 0.01 {
		return "under 1%"
	}
	return Percent(v)
}

// Lines returns pairs of a name and a text: what is shed, why, by which limit, and what would end it.
func (x *Shed) Lines(now time.Time) [][2]string {
	return [][2]string{{"sheds", strings.TrimPrefix(x.Text(now), "sheds ")}, {"why", x.Serves()}, {"limit of its gates", x.Limited()}, {"to shed none", x.ToShedNone()}}
}

// Serves says how many requests arrive, and how many of them the allocation can answer.
func (x *Shed) Serves() string {
	comes := "unknown how many requests come"
	if x.Load != nil {
		comes = Number(*x.Load) + " requests/s come"
	}
	if x.Allocation == nil || x.Cost == nil || !(*x.Cost > 0) {
		lacks := "its allocation is not known"
		if x.Allocation != nil {
			lacks = "the cost of a request is not known"
		}
		return comes + "; how many it can answer is unknown, since " + lacks
	}
	text := fmt.Sprintf("%s; %s answer at most %s/s, at %s a request", comes, Sized(*x.Allocation, x.Resource), Number(*x.Allocation / *x.Cost), costOf(*x.Cost, x.Resource))
	if x.Time != nil {
		text += ", 95% of them within " + Latency(map[string]trimtab.Seconds{"": *x.Time}, "")
	}
	return text
}

// costOf prints what a request costs.
func costOf(cost float64, resource string) string {
	if resource == trimtab.CPU {
		return Latency(map[string]trimtab.Seconds{"": trimtab.Seconds(cost)}, "") + " of CPU time"
	}
	return Number(cost) + " " + Unit(resource) + " times seconds"
}

// Limited says what limits the requests in service, and those admitted per second.
func (x *Shed) Limited() string {
	var out []string
	add := func(limit *float64, what, why string) {
		if limit == nil {
			return
		}
		if what = "at most " + Number(*limit) + what; why != "" {
			what += ": " + why
		}
		out = append(out, what)
	}
	add(x.Limit, " in service", x.LimitWhy)
	add(x.PerSecond, " requests/s", x.PerSecondWhy)
	for _, c := range x.ByClass {
		add(&c.Rate, " requests/s of class "+c.Class, "")
	}
	if out == nil {
		return "trimtab sets none; the gate's own rule keeps as many in service as keep the service busy"
	}
	return strings.Join(out, "; ")
}

// ToShedNone says how much of the resource the workload would need to shed nothing.
func (x *Shed) ToShedNone() string {
	n := x.Needs
	if n == nil {
		text := "not known: " + x.Unknown
		if x.Work != nil {
			text += "; at least " + Sized(*x.Work, x.Resource) + ", the work that comes"
		}
		return text
	}
	most := "more than its curve knows"
	if n.Most != nil {
		most = Number(*n.Most)
	}
	text := fmt.Sprintf("%s (%s to %s, %s band of its curve)", Sized(n.Amount, x.Resource), Number(n.Least), most, Percent(n.Level))
	if n.Instances > 0 {
		text += ", or " + Count(n.Instances, "instance") + " of the present size"
	}
	switch {
	case n.Has:
		text += ", which it has: what is shed came in bursts, or while the service stood still, or the limit is too low"
	case x.Allocation != nil:
		text += "; it has " + Number(*x.Allocation)
	}
	return text
}
