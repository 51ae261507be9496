package view

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/quantity"
)

// The past of a workload is kept at a resolution that falls with its age: a
// level holds so many points, and four that leave it become one, their mean,
// of the next. With a report a second six levels reach back three days.
const (
	levels, merged = 6, 4
	// levelPoints is the largest number of points of one level of one workload; allLevelPoints that
	// of all workloads together, 36 MiB.
	levelPoints, allLevelPoints = 180, 130_000
	allObservations             = 500_000
)

// columns of a point.
const (
	colAllocation = iota
	colLoad
	colUpper
	colPerformance
	colUtility
	colUsed
	colP50
	colP95
	colP99
	numColumns
)

// point is one report, or the mean of several. NaN is missing.
type point struct {
	at   int64    // milliseconds since 1970
	many int16    // how many reports, at most maxMany
	met  metShare // the share of these reports that met the SLO
	v    [numColumns]float32
	// refused is how many requests per second gates refused, by the index of their class in the
	// series; nil: none, or no gate reports any.
	refused *refusals
}

// maxMany is the largest number of reports that a point can stand for.
const maxMany = math.MaxInt16

// metShare is a part of allMet in steps of 1/10000, so that a point stays small.
type metShare int16

const allMet, metUnknown metShare = 10_000, -1

// series is the past of one workload.
type series struct {
	levels [levels][]point
	// before are points from before this process began, taken from decisions.
	before []point
	// seen are the newest reports with allocation and performance.
	seen []point
	// classes are those of which requests were refused, in the order in which they came.
	classes []string
}

// room returns how many of total belong to one of n workloads, at most most.
func room(total, most, n int) int { return min(max(total/max(n, 1), 16), most) }

// add takes a report; n is how many workloads there are.
func (h *series) add(p point, n int) {
	h.levels[0] = past(h.levels[0])
	if last := h.levels[0]; len(last) > 0 && p.at <= last[len(last)-1].at {
		return // a repeated or a late one
	}
	keep := room(allLevelPoints, levelPoints, n)
	for i := range h.levels {
		l := h.levels[i]
		if n := len(l); n == cap(l) && 2*n > keep+merged && n < keep+merged {
			l = append(make([]point, 0, keep+merged), l...) // and no further
		}
		l = append(l, p)
		h.levels[i] = l
		if len(l) < keep+merged {
			break
		}
		p = mean(l[:merged])
		h.levels[i] = slices.Delete(l, 0, merged)
		if len(l) > 2*(keep+merged) {
			// There are more workloads than there were.
			h.levels[i] = slices.Clone(h.levels[i][len(h.levels[i])-keep:])
		}
	}
}

// observe keeps a report that a learner could use.
func (h *series) observe(p point, n int) {
	if isMissing(p.v[colAllocation]) || isMissing(p.v[colPerformance]) {
		return
	}
	h.seen = past(h.seen)
	if k := len(h.seen); k > 0 && p.at <= h.seen[k-1].at {
		return
	}
	h.seen = append(h.seen, p)
	if over := len(h.seen) - room(allObservations, MaxObservations, n); over > 0 {
		h.seen = slices.Delete(h.seen, 0, over)
	}
}

// recall takes a point of the time before this process.
func (h *series) recall(p point, n int) {
	h.before = past(h.before)
	if k := len(h.before); k > 0 && p.at <= h.before[k-1].at {
		return
	}
	h.before = append(h.before, p)
	if keep := 2 * room(allLevelPoints, levelPoints, n); len(h.before) > keep {
		h.before = thin(h.before, keep/2)
	}
}

func isMissing(v float32) bool { return v != v }

// starved reports whether a point is of a time in which nothing was measured of a workload that
// starved: it met its SLO in none of it.
func (p *point) starved() bool { return isMissing(p.v[colPerformance]) && p.met == 0 }

// mean merges points, at the time of the last.
func mean(points []point) point {
	out := point{at: points[len(points)-1].at}
	measured := slices.ContainsFunc(points, func(p point) bool { return !isMissing(p.v[colPerformance]) })
	for c := range numColumns {
		sum, n := 0.0, 0.0
		for _, p := range points {
			if v := p.v[c]; c == colPerformance && p.starved() && measured {
				n += float64(p.many)
			} else if !isMissing(v) {
				sum, n = sum+float64(v)*float64(p.many), n+float64(p.many)
			}
		}
		out.v[c] = float32(sum / n) // 0/0 is missing
	}
	out.many, out.met = 0, metUnknown
	met, n := 0.0, 0.0
	for _, p := range points {
		out.many = int16(min(int32(out.many)+int32(p.many), maxMany))
		if p.met != metUnknown {
			met, n = met+float64(p.met)*float64(p.many), n+float64(p.many)
		}
	}
	if n > 0 {
		out.met = metShare(math.Round(met / n))
	}
	out.refused = meanRefused(points)
	return out
}

// thin merges adjacent points until at most most are left.
func thin(points []point, most int) []point {
	k := (len(points) + most - 1) / most
	if k <= 1 {
		return points
	}
	out := make([]point, 0, most)
	for chunk := range slices.Chunk(points, k) {
		out = append(out, mean(chunk))
	}
	return out
}

// since returns all points from a time on, oldest first.
func (h *series) since(t time.Time) []point {
	var out []point
	for i := levels - 1; i >= 0; i-- {
		out = append(out, h.levels[i]...)
	}
	if len(out) > 0 {
		first := out[0].at
		out = slices.Concat(h.before[:upTo(h.before, first)], out)
	} else {
		out = slices.Clone(h.before)
	}
	return out[upTo(out, t.UnixMilli()):]
}

// upTo returns how many points are from before a time.
func upTo(points []point, at int64) int {
	n, _ := slices.BinarySearchFunc(points, at, func(p point, at int64) int { return int(p.at - at) })
	return n
}

// report is the point of an estimate.
func (s *state) report(e *trimtab.Estimate) point {
	p := point{at: e.Time.UnixMilli(), many: 1, met: metUnknown}
	for c := range p.v {
		p.v[c] = none()
	}
	set := func(column int, v *float64) {
		if v != nil {
			p.v[column] = single(*v)
		}
	}
	set(colAllocation, e.Allocation)
	if e.Hold == nil || e.Hold.Code != codes.HeldStale { // a stale performance is of an earlier time
		set(colPerformance, e.Performance)
	}
	if e.Load != nil && (e.Hold == nil || e.Hold.Input != "load") { // a stale load is of an earlier time
		set(colLoad, &e.Load.Now)
		set(colUpper, &e.Load.Upper)
	}
	if in := input(e.Inputs, string(quantity.Usage)); in != nil {
		set(colUsed, &in.Value)
	}
	for name, column := range map[string]int{"p50": colP50, "p95": colP95, "p99": colP99} {
		if l, ok := e.Latency[name]; ok {
			p.v[column] = single(float64(l))
		}
	}
	if s.Utility != nil && e.Performance != nil {
		u := s.Utility(*e.Performance)
		set(colUtility, &u)
	}
	p.refused = s.series.refusals(e.Refused)
	if s.Target > 0 && !isMissing(p.v[colPerformance]) {
		p.met = 0
		if *e.Performance >= s.Target {
			p.met = allMet
		}
	}
	if s.Target > 0 && e.Starved > 0 && isMissing(p.v[colPerformance]) {
		p.met = 0 // not measured, and starved
		if e.Load != nil {
			set(colLoad, &e.Load.Now) // the load measured before
		}
	}
	return p
}

// recalled is the point of a decision. One of several instances may leave others
// as they are: what all have is an input then.
func (s *state) recalled(p *trimtab.Plan, a *trimtab.Action, several bool) point {
	e := trimtab.Estimate{Time: p.Time, Inputs: a.Why.Inputs}
	if in := input(a.Why.Inputs, "allocation"); several && in != nil {
		e.Allocation = &in.Value
	} else if !several && !a.Expect.Unlimited {
		e.Allocation = &a.Expect.Value
	}
	if in := input(a.Why.Inputs, "performance"); in != nil {
		e.Performance = &in.Value
	}
	out := s.report(&e)
	if in := input(a.Why.Inputs, "load"); in != nil {
		out.v[colLoad] = single(in.Value)
	}
	return out
}

// single is v with fewer digits; missing where it is too large for that.
func single(v float64) float32 {
	if out := float32(v); !math.IsInf(float64(out), 0) {
		return out
	}
	return none()
}

// past drops the newest points while they are of a clock that was ahead.
func past(points []point) []point {
	n := len(points)
	for n > 0 && ahead(time.UnixMilli(points[n-1].at)) {
		n--
	}
	return points[:n]
}

func none() float32 { return float32(math.NaN()) }

// History is a workload's course over time, in columns of one length:
// GET /api/v1/workloads/{name}/history?since=. since is a time (RFC 3339), or
// how long ago (15m); left out, all that is kept. The server thins it to at
// most [MaxHistory] points. Null is missing.
type History struct {
	Workload string `json:"workload"`
	Resource string `json:"resource"`
	Share    bool   `json:"performance_is_share"`
	// Every is the distance of points that stand for more than one report, in
	// seconds; 0: each point is one report.
	Every trimtab.Seconds `json:"every_s"`
	// Time is in seconds since 1970, as chart libraries expect.
	Time        []float64  `json:"time"`
	Allocation  []*float64 `json:"allocation"`
	Load        []*float64 `json:"load"`
	LoadUpper   []*float64 `json:"load_upper"`
	Performance []*float64 `json:"performance"`
	Utility     []*float64 `json:"utility"`
	// Used is the use of the allocation, in the same unit.
	Used []*float64 `json:"used"`
	// P50, P95 and P99 are latencies in seconds.
	P50 []*float64 `json:"p50_s"`
	P95 []*float64 `json:"p95_s"`
	P99 []*float64 `json:"p99_s"`
	// Refused is how many requests per second gates refused since this process began, by class.
	// A class of which none were refused in the time that is kept is left out.
	Refused map[string][]*float64 `json:"refused_per_second,omitempty"`
}

// History returns the history of a workload since a time. ok is false for an unknown workload.
func (v *Model) History(workload string, since, now time.Time) (out History, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.workloads.all[workload]
	if s == nil {
		return out, false
	}
	if oldest := now.Add(-maxAge); since.Before(oldest) {
		since = oldest
	}
	points := thin(s.series.since(since), MaxHistory)
	out = History{Workload: workload, Resource: v.config.Resource, Share: s.Share, Time: make([]float64, len(points))}
	columns := []*[]*float64{&out.Allocation, &out.Load, &out.LoadUpper, &out.Performance, &out.Utility, &out.Used, &out.P50, &out.P95, &out.P99}
	for _, c := range columns {
		*c = make([]*float64, len(points))
	}
	for i, p := range points {
		out.Time[i] = float64(p.at) / 1000
		for c, column := range columns {
			(*column)[i] = number(p.v[c])
		}
		if i > 0 && p.many > 1 {
			out.Every = max(out.Every, trimtab.Seconds(float64(p.at-points[i-1].at)/1000))
		}
	}
	out.Refused = s.series.refusedBy(points)
	return out, true
}

// number is a column's value with the digits that it has, nil when missing.
func number(v float32) *float64 {
	if isMissing(v) || math.IsInf(float64(v), 0) {
		return nil
	}
	// Seven digits are all that is kept: 0.1 must not print as 0.10000000149.
	out := float64(v)
	if out != 0 {
		scale := math.Pow(10, 6-math.Floor(math.Log10(math.Abs(out))))
		if r := math.Round(out*scale) / scale; !math.IsNaN(r) && !math.IsInf(r, 0) {
			out = r
		}
	}
	return &out
}

// observations returns the newest, oldest first.
func (s *state) observations(most int) []Observation {
	seen := s.series.seen
	seen = seen[max(0, len(seen)-most):]
	var out []Observation
	for _, p := range seen {
		out = append(out, Observation{Time: printable(time.UnixMilli(p.at).UTC()), Allocation: *number(p.v[colAllocation]), Load: number(p.v[colLoad]), Performance: *number(p.v[colPerformance])})
	}
	return out
}
