package analyzer

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/queue"
)

const (
	// maxUsed bounds the windows of use that are kept of one workload.
	maxUsed = 128
	// covered is the least part of a stretch of time that must have been
	// measured for a mean over it.
	covered = 0.7
	// remembered is the time over which the cost of a request is averaged: long
	// for its noise, short for a release that makes it dearer.
	remembered = 30 * time.Second
	// fewRequests is how many requests a cost must rest on.
	fewRequests = 8
	// silence is up to how long an interval without requests is no gap.
	silence = 5 * time.Second
	// steepest is the fastest growth of a wait, in seconds a second, that is
	// believed of one interval.
	steepest = 0.8
	// steady is how many requests a load that is told by the use rests on.
	steady = 60
	// levelled is over how many intervals arrivals are averaged.
	levelled = 5
)

// queueing is what is known of a workload as a queue: what a request costs,
// what waits, and the model that both serve.
type queueing struct {
	model *queue.Model // nil: it is not seen as a queue
	used  []used       // in order of time
	// open are stretches whose cost is not yet counted; until is the end of the
	// last one.
	open  []stretch
	until time.Time
	// work and requests are decayed sums, in core-seconds and requests.
	work, requests float64
	// begun has the requests that began in each interval up to number last.
	begun []float64
	last  int64
	// waiting is how many requests wait; wait is the median latency of the last
	// interval and latency that of the SLO, in seconds.
	waiting, wait, latency float64
}

// used is the mean use over a window that ends at to.
type used struct {
	from, to time.Time
	cores    float64
}

// stretch is a time in which so many requests were answered.
type stretch struct {
	from, to time.Time
	requests float64
	// weight is how long it counts for, where stretches overlap.
	weight time.Duration
}

// newQueueing returns what is known before anything was seen.
func newQueueing(w *Workload) queueing {
	if !w.Queue || w.Learner == nil {
		return queueing{}
	}
	latency := w.SLO.Latency
	if latency == 0 {
		latency = w.Within
	}
	return queueing{model: queue.New(latency.Seconds()), latency: latency.Seconds()}
}

// headroom is how many requests per second count besides the load: a service
// must answer within the latency also when few requests come. 2.5 of them fit
// into the latency where the exponential tail of a queue is at 5%.
func (w *workload) headroom() float64 {
	if w.queueing.model == nil || w.queueing.latency <= 0 {
		return 0
	}
	return 2.5 / w.queueing.latency
}

// take enters a window of use.
func (q *queueing) take(s *trimtab.Sample) {
	if q.model == nil || !(s.Window > 0) {
		return
	}
	u := used{s.Time.Add(-s.Window.Duration()), s.Time, s.Value}
	i, found := slices.BinarySearchFunc(q.used, u, func(a, b used) int { return a.to.Compare(b.to) })
	if found {
		q.used[i].cores = math.Max(q.used[i].cores, u.cores)
		return
	}
	q.used = slices.Insert(q.used, i, u)
	if len(q.used) > maxUsed {
		q.used = slices.Delete(q.used, 0, 1)
	}
}

// use returns the mean use over [from, to); false when too little of it was
// measured.
func (q *queueing) use(from, to time.Time) (cores float64, ok bool) {
	sum, measured := 0.0, 0.0
	for _, u := range q.used {
		begin, end := u.from, u.to
		if begin.Before(from) {
			begin = from
		}
		if end.After(to) {
			end = to
		}
		if d := end.Sub(begin).Seconds(); d > 0 {
			sum, measured = sum+d*u.cores, measured+d
		}
	}
	if whole := to.Sub(from).Seconds(); !(measured >= covered*whole) || measured == 0 {
		return 0, false
	}
	return sum / measured, true
}

// uneven reports whether the use in [from, to) was not all alike: the mean of a
// quarter of that time is half as much again as that of another.
func (q *queueing) uneven(from, to time.Time) bool {
	if q.model == nil {
		return false
	}
	least, most, quarter := math.Inf(1), 0.0, to.Sub(from)/4
	for k := range time.Duration(4) {
		if cores, ok := q.use(from.Add(k*quarter), from.Add((k+1)*quarter)); ok {
			least, most = math.Min(least, cores), math.Max(most, cores)
		}
	}
	return most > 1.5*least
}

// full reports whether the workload used nearly all that it had in some part of
// the time from from to to: what is answered then, and what waits from then on,
// tells of a queue and not of the allocation.
func (w *workload) full(from, to time.Time) bool {
	q := &w.queueing
	if q.model == nil {
		return false
	}
	const parts = 8
	part := to.Sub(from) / parts
	for k := range time.Duration(parts) {
		begin, end := from.Add(k*part), from.Add((k+1)*part)
		f := w.held.during(begin, end, 0)
		if cores, ok := q.use(begin, end); ok && f.known && !f.amount.Unlimited && cores >= 0.9*f.mean {
			return true
		}
	}
	return false
}

// latest returns the mean use in the last windows before t.
func (q *queueing) latest(t time.Time, over time.Duration) (cores float64, ok bool) {
	if len(q.used) == 0 {
		return 0, false
	}
	end := q.used[len(q.used)-1].to
	if t.Sub(end) > over {
		return 0, false
	}
	return q.use(end.Add(-over), end)
}

// answered notes that so many requests were answered from one time to another.
func (q *queueing) answered(from, to time.Time, requests float64, overlapping bool) {
	if q.model == nil {
		return
	}
	s := stretch{from, to, requests, to.Sub(from)}
	if gap := from.Sub(q.until); !q.until.IsZero() && (overlapping || gap > 0) && gap <= silence {
		if overlapping {
			s.weight = min(max(0, to.Sub(q.until)), s.weight)
		} else {
			s.from, s.weight = q.until, to.Sub(q.until)
		}
	}
	q.until = to
	if q.open = append(q.open, s); len(q.open) > 2*levelled {
		q.open = slices.Delete(q.open, 0, 1)
	}
	n := 0
	for _, s := range q.open {
		if len(q.used) > 0 && q.used[len(q.used)-1].to.Before(s.to) && to.Sub(s.to) < silence {
			break // its use is still to come
		}
		n++
		if cores, ok := q.use(s.from, s.to); ok {
			share := s.weight.Seconds() / s.to.Sub(s.from).Seconds()
			keep := math.Exp(-s.weight.Seconds() / remembered.Seconds())
			q.work = q.work*keep + cores*s.weight.Seconds()
			q.requests = q.requests*keep + s.requests*share
		}
	}
	q.open = slices.Delete(q.open, 0, n)
}

// cost returns the core-seconds of a request.
func (q *queueing) cost() (seconds float64, ok bool) {
	if q.model == nil || q.requests < fewRequests || !(q.work > 0) {
		return 0, false
	}
	return q.work / q.requests, true
}

// arrive enters when the requests of interval number began, and returns the
// rate at which they arrive, in requests per second, where that is more than
// what is answered, answered, and late, whether most of them began in an earlier
// interval. While a queue grows, what is answered tells what the service can,
// and not what is asked of it: of requests that wait W, answered at the rate μ,
//
//	λ = μ / (1 − dW/dt)
//
// since those that are answered in a second came in 1 − dW/dt seconds.
func (q *queueing) arrive(number int64, s *spans, answered float64, report time.Duration) (load float64, late bool) {
	if q.model == nil {
		return 0, false
	}
	shift := number - q.last
	if shift <= 0 || shift > trimtab.MaxBegun || q.begun == nil {
		q.begun = make([]float64, 2*trimtab.MaxBegun)
	} else {
		q.begun = append(q.begun[shift:], make([]float64, shift)...)
	}
	before, next := q.wait, shift == 1
	q.last, q.waiting = number, 0
	n := len(q.begun)
	for k, v := range s.begun {
		q.begun[n-1-k] += v
	}
	median, ok := s.latency.Quantile(0.5)
	if q.wait = median; !ok {
		return 0, false
	}
	if next && median > q.latency {
		load = answered / (1 - math.Min(math.Max(median-before, 0)/report.Seconds(), steepest))
	}
	lag := int(median / report.Seconds())
	if lag < 1 || lag >= trimtab.MaxBegun-levelled {
		if lag >= 1 || median > math.Max(q.latency, 0.5*report.Seconds()) {
			q.waiting = math.Max(load, answered) * median
		}
		return load, lag >= 1
	}
	// The requests of the last intervals are not yet answered.
	known, each := q.begun[n-1-lag-levelled:n-1-lag], 0.0
	for _, v := range known {
		each += v / float64(len(known))
	}
	load = math.Max(load, each/report.Seconds())
	for _, v := range q.begun[n-1-lag:] {
		q.waiting += math.Max(0, load*report.Seconds()-v)
	}
	return load, true
}

// useLoad returns the load that the use of the last seconds tells, where load
// comes as a rate over a longer window: it is what the service is doing now. It
// is no less than seen while the quota stops the service.
func (w *workload) useLoad(at time.Time, seen float64) float64 {
	q := &w.queueing
	cost, ok := q.cost()
	over := time.Duration(steady / math.Max(seen, 1e-9) * float64(time.Second))
	cores, measured := q.latest(at, min(max(over, 3*time.Second, w.config.Report), 10*time.Second))
	if !ok || !measured {
		return seen
	}
	load := cores / cost
	if w.stopped(at, cores) {
		return math.Max(load, seen)
	}
	return load
}

// stopped reports whether the quota stops the workload, which uses so many cores.
func (w *workload) stopped(at time.Time, cores float64) bool {
	if t := w.recentSample(trimtab.Throttled, at); t == nil || t.Value < 0.5 {
		return false
	}
	f := w.held.during(at.Add(-time.Second), at, 0)
	return f.known && !f.amount.Unlimited && cores >= 0.9*f.amount.Value
}

// follow keeps a forecast from staying behind a load that jumped: its mean is no
// further from what was just measured than twice the noise of that, and its bound
// keeps its ratio to the mean.
func (w *workload) follow(l *trimtab.LoadForecast) {
	if w.queueing.model == nil || w.last.now == nil || !(l.Mean > 0) {
		return
	}
	noise := 1 / math.Sqrt(math.Max(math.Min(enough, 5*l.Now), 1))
	mean := math.Min(math.Max(l.Mean, l.Now*(1-noise)), l.Now*(1+noise))
	if mean > 0 {
		l.Mean, l.Upper = mean, math.Max(mean*l.Upper/l.Mean, l.Now)
	}
}

// pressed reports whether the quota stops a workload whose reports come seldom:
// that is news, and a report of it would come too late.
func (w *workload) pressed(now time.Time) bool {
	if w.LoadFrom == FromSpans || w.queueing.model == nil || w.last.at.IsZero() || now.Sub(w.told) < w.config.Report {
		return false
	}
	cores, ok := w.queueing.latest(now, 2*time.Second)
	if !ok || !w.stopped(now, cores) {
		return false
	}
	w.told = now
	return true
}

// inform joins what the learner knows with what the cost of a request tells.
func (w *workload) inform(e *trimtab.Estimate) {
	q := &w.queueing
	cost, ok := q.cost()
	if !ok {
		return
	}
	e.Cost = &cost
	if w.last.load != nil && w.LoadFrom == FromSpans {
		backlog := q.waiting * cost
		e.Backlog = &backlog
	}
	if e.Load != nil && e.Load.Upper > 0 {
		e.Curve = q.model.Inform(e.Curve, e.Load.Upper, cost, w.config.Level, w.Min, w.Max)
		if e.Curve != nil {
			e.Curve.Headroom = w.headroom()
		}
	}
}

// teachModel gives a report that taught the curve to the model too.
func (w *workload) teachModel(o *learn.Observation) {
	cost, ok := w.queueing.cost()
	if !ok || o.Performance > 1 {
		return
	}
	requests := o.Requests
	if requests == 0 {
		requests = 1
	}
	// Out of range numbers were refused by the learner.
	_ = w.queueing.model.Observe(o.Allocation, o.Load, cost, o.Performance, requests)
}

// sumBegun adds up when the requests of partial sketches began.
func sumBegun(to, begun []float64, requests float64) []float64 {
	if len(begun) == 0 {
		begun = []float64{requests}
	}
	for k, v := range begun {
		if k == len(to) {
			to = append(to, 0)
		}
		to[k] += v
	}
	return to
}
