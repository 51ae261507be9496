package analyzer

import (
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/queue"
	"github.com/trimtab/trimtab/analyzer/report"
)

const (
	// maxUsed bounds the number of windows of use that are kept of one workload.
	maxUsed = 128
	// covered is the least fraction of a time that must have been measured for a mean over it.
	covered = 0.7
	// remembered is the time constant of the average cost of a request: long compared with its
	// noise, short enough to follow a release that makes requests more expensive.
	remembered = report.Remembered
	// fewRequests is the least number of requests for a cost.
	fewRequests = 24
	// silence is the longest time without requests that does not count as a gap.
	silence = 5 * time.Second
	// recalled is the number of latest windows of use from which the load is computed.
	recalled = 24
	// levelled is the number of intervals over which arrivals are averaged.
	levelled = 5
)

// queueing models a workload as a queue: the cost of a request, the backlog, and the model that
// uses both.
type queueing struct {
	model *queue.Model // nil: it is not modelled as a queue
	used  []used       // in order of time
	// early has samples that arrived before the use of the same window, by kind.
	early [kinds]trimtab.Sample
	// open are stretches whose cost was not counted yet; until is the end of the last one.
	open  []stretch
	until time.Time
	// work and requests are exponentially decaying sums, in core seconds and requests.
	work, requests float64
	// begun is the number of requests that began in each interval up to number last. seen is the
	// number of intervals in a row for which it is known.
	begun []float64
	last  int64
	seen  int
	// waiting is the number of waiting requests. wait is the median latency in the last interval,
	// 0: within the SLO. latency is the SLO's limit. Both in seconds.
	waiting, wait, latency float64
	// course follows the load while no requests wait, up to the latest report. lately continues it
	// with the load computed from the use since.
	course, lately course
}

// stretch is a time in which a number of requests were answered.
type stretch struct {
	from, to time.Time
	requests float64
	// weight is the time for which it counts: less than its length if stretches overlap.
	weight time.Duration
}

// newQueueing returns the initial state.
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

// headroom returns a rate, in requests per second, that is added to the load: a service must meet
// its latency limit even if few requests come. By the model, 1 to 1.2 requests fit into the limit
// at which 5% of the requests are late, at the utilizations at which services are planned.
func (q *queueing) headroom() float64 {
	if q.model == nil || q.latency <= 0 {
		return 0
	}
	return 1 / q.latency
}

// full reports whether the workload used nearly all of its allocation in some part of [from, to).
// Reports of that time, and after it, depend on the backlog and not only on the allocation.
func (q *queueing) full(from, to time.Time, held *allocation) bool {
	if q.model == nil {
		return false
	}
	const parts = 8
	part := to.Sub(from) / parts
	for k := range time.Duration(parts) {
		begin, end := from.Add(k*part), from.Add((k+1)*part)
		f := held.during(begin, end, 0)
		if cores, ok := q.use(begin, end); ok && f.Known && !f.Amount.Unlimited && cores >= 0.9*f.Mean && (!f.Shared || q.contended(begin, end) > 0) {
			return true
		}
	}
	return false
}

// answered records how many requests were answered in a time.
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
			break // its use was not measured yet
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

// cost returns the CPU time of a request, in core seconds.
func (q *queueing) cost() (seconds float64, ok bool) {
	if q.model == nil || q.requests < fewRequests || !(q.work > 0) {
		return 0, false
	}
	return q.work / q.requests, true
}

// comes adds interval number, in which the given rate of requests was answered. It returns the rate
// at which requests arrived, by the course of the load and by arrive. late: most answered requests
// began in an earlier interval.
func (q *queueing) comes(number int64, s *report.Spans, answered float64, interval time.Duration) (load float64, late bool) {
	since := time.Duration(number-q.last) * interval
	known := since > 0 && since <= silence
	load, late = q.arrive(number, s, answered, interval)
	each := s.Requests / math.Max(1, math.Min(s.Read, s.Requests))
	switch {
	case q.waiting > 0:
		q.course.start(load, load/interval.Seconds())
	case !known:
		q.course.start(answered, each*answered/interval.Seconds())
	default:
		q.course.see(answered*interval.Seconds()/since.Seconds(), since.Seconds(), each)
	}
	return math.Max(load, q.course.load()), late
}

// arrive records when the requests of interval number began. While they wait longer than the SLO
// allows, it returns their arrival rate in requests per second, else 0; late: most of them began in
// an earlier interval. While a queue grows, the rate of answers is the capacity of the service, not
// its load. If requests wait W, those that began in the last W seconds were not answered yet, so
// that over n intervals of length T
//
//	λ_n = (those that began in them) / (n·T − W)
//
// A jump of the load shows first in the last three intervals: their rate is used if it exceeds the
// other by more than noise.
func (q *queueing) arrive(number int64, s *report.Spans, answered float64, interval time.Duration) (load float64, late bool) {
	if q.model == nil {
		return 0, false
	}
	shift := number - q.last
	if shift <= 0 || shift > trimtab.MaxBegun || q.begun == nil {
		q.begun, q.seen = make([]float64, 2*trimtab.MaxBegun), 0
	} else {
		q.begun = append(q.begun[shift:], make([]float64, shift)...)
	}
	q.last, q.waiting = number, 0
	q.seen = min(q.seen+1, len(q.begun))
	n := len(q.begun)
	for k, v := range s.Begun {
		q.begun[n-1-k] += v
	}
	wait, ok := s.Latency.Quantile(0.5)
	lag := int(wait / interval.Seconds())
	if !ok || wait <= q.latency && lag < 1 {
		q.wait = 0
		return 0, false
	}
	// While a backlog shrinks, the latest answers waited less than the median. Fewer of the latest
	// requests are then unanswered than the median implies.
	least := wait
	if wait < q.wait {
		least, _ = s.Latency.Quantile(0.2)
	}
	q.wait = wait
	if load = answered; lag < trimtab.MaxBegun-levelled {
		load, _ = q.rate(lag+levelled, least, interval)
		if late, requests := q.rate(lag+3, least, interval); late > load*(1+jumped/math.Sqrt(math.Max(requests, 1))) {
			load = late
		}
	}
	if load = math.Max(load, answered*(1-report.Small)); lag >= 1 || wait > 0.5*interval.Seconds() {
		q.waiting = load * least
	}
	return load, lag >= 1
}

// jumped is the number of standard errors above the earlier load from which on a load counts as
// having jumped.
const jumped = 1.5

// rate returns the arrival rate of requests that wait for the given time, over the last intervals,
// and the number of requests that it is based on.
func (q *queueing) rate(intervals int, wait float64, interval time.Duration) (load, requests float64) {
	intervals = min(intervals, max(q.seen, 1))
	for _, v := range q.begun[len(q.begun)-intervals:] {
		requests += v
	}
	return requests / math.Max(float64(intervals)*interval.Seconds()-wait, 0.5*interval.Seconds()), requests
}

// useLoad returns the current load, computed from the use of the last seconds, if the measured load
// (seen) is a rate over a longer window. While the quota throttles the service, its use is only a
// lower bound of its demand; the load then counts as no less than before.
func (q *queueing) useLoad(at time.Time, seen float64, held *allocation) float64 {
	cost, ok := q.cost()
	c := &q.lately
	c.runs = c.runs[:0]
	if n := len(q.used); !ok || n == 0 || at.Sub(q.used[n-1].to) > silence {
		return seen
	}
	load, stopped := seen, 0
	for _, u := range q.used[max(len(q.used)-recalled, 0):] {
		now := u.cores / cost
		if !q.stopped(u, held) {
			stopped = 0
		} else if now, stopped = math.Max(now, load), stopped+1; stopped > 2 {
			load, c.runs = now, c.runs[:0]
			continue
		}
		c.see(now, u.to.Sub(u.from).Seconds(), 1)
		load = c.load()
	}
	return load
}

// sinceReport returns the current load: the load of a report from spans, continued by the use
// divided by the cost of a request for the time whose spans have not arrived yet. While the quota
// throttles the service, the load counts as no less than before.
func (q *queueing) sinceReport(r *report.Report, held *allocation) float64 {
	q.lately.runs = append(q.lately.runs[:0], q.course.runs...)
	cost, ok := q.cost()
	if !ok || !(*r.Load > 0) || len(q.lately.runs) == 0 {
		return *r.Load
	}
	for _, u := range q.used {
		begin := u.from
		if begin.Before(r.At) {
			begin = r.At
		}
		d := u.to.Sub(begin).Seconds()
		if d <= 0 {
			continue
		}
		load := u.cores / cost
		if q.stopped(u, held) {
			load = math.Max(load, *r.Load)
		}
		q.lately.see(load, d, 1)
	}
	return q.lately.load()
}

// stopped reports whether the quota throttled the workload in a window.
func (q *queueing) stopped(u used, held *allocation) bool {
	if u.throttled < 0.5 {
		return false
	}
	f := held.during(u.from, u.to, 0)
	return f.Known && !f.Amount.Unlimited && u.cores >= 0.9*f.Mean
}

// follow keeps a forecast from lagging behind a moving load. It limits the distance of the mean
// from the load just measured to half of that load's noise, and extrapolates a rise or fall to the
// middle of the coming round. The ratio of upper bound to mean stays.
func (q *queueing) follow(l *trimtab.LoadForecast, last *report.Report, c *Config) {
	if q.model == nil || last.Now == nil || !(l.Mean > 0) {
		return
	}
	noise := 0.5 / math.Sqrt(math.Max(math.Min(enough, 5*l.Now), 1))
	mean := math.Min(math.Max(l.Mean, l.Now*(1-noise)), l.Now*(1+noise))
	if !(mean > 0) {
		return
	}
	l.Mean, l.Upper = mean, math.Max(mean*l.Upper/l.Mean, l.Now)
	now := q.lately.load()
	if last.LoadFrom != FromSpans || !(now > 0) {
		return // without spans the slope is mostly noise
	}
	// To the middle of the round; the measured load is one or two intervals old.
	ahead := (float64(c.horizon())/2 + 2) * c.Report.Seconds()
	goes := math.Max(1-furthest, math.Min(q.lately.in(ahead)/now, 1+furthest))
	l.Mean, l.Upper = l.Mean*goes, l.Upper*goes
}

// furthest limits the relative change of the load by extrapolation.
const furthest = 0.4

// pressed reports whether an estimate is to be sent before the next report, for a workload whose
// reports come late or seldom: the quota throttles it, or its use implies another load than the
// last estimate said.
func (w *workload) pressed(now time.Time) bool {
	r := &w.last
	if w.spec.LoadFrom == FromSpans && w.samples.arrival.wait() <= w.config.Report ||
		w.queueing.model == nil || r.Now == nil || r.Load == nil || now.Sub(w.publishedAt) < w.config.Report {
		return false
	}
	q := &w.queueing
	load := 0.0
	if w.spec.LoadFrom == FromSpans {
		load = q.sinceReport(r, &w.held)
	} else {
		load = q.useLoad(now, *r.Load, &w.held)
	}
	if n := len(q.used); math.Abs(load-*r.Now) <= news**r.Now && (n == 0 || !q.stopped(q.used[n-1], &w.held)) {
		return false
	}
	w.publishedAt, r.Now = now, &load
	if f := w.held.during(now.Add(-w.config.Report), now, 0); f.Known && !f.Amount.Unlimited && f.Mean > 0 {
		r.Allocation = &f.Mean
	}
	return true
}

// news is the relative change of the load from which on an early estimate is sent.
const news = 0.1

// inform combines the learned curve with the queue's model, and adds cost and backlog to the
// estimate.
func (w *workload) inform(e *trimtab.Estimate) {
	q := &w.queueing
	cost, ok := q.cost()
	if !ok {
		return
	}
	e.Cost = &cost
	if w.last.Load != nil && w.spec.LoadFrom == FromSpans {
		backlog := q.waiting * cost
		e.Backlog = &backlog
	} else {
		for k := len(q.used) - 1; k >= 0 && e.Stopped < maxStopped && q.stopped(q.used[k], &w.held); k-- {
			e.Stopped += trimtab.SecondsOf(q.used[k].to.Sub(q.used[k].from))
		}
	}
	if e.Load != nil && e.Load.Upper > 0 {
		e.Curve = q.model.Inform(e.Curve, e.Load.Upper, cost, w.config.Level, w.spec.Min, w.upTo(e.Load))
		if e.Curve != nil {
			e.Curve.Headroom = q.headroom()
		}
	}
}

// maxStopped is the longest throttled time that is counted, in seconds.
const maxStopped = 30

// teach gives a report that the curve learned from to the queue's model as well.
func (q *queueing) teach(o learn.Observation) {
	cost, ok := q.cost()
	if !ok || o.Performance > 1 {
		return
	}
	requests := o.Requests
	if requests == 0 {
		requests = 1
	}
	// the learner has already refused numbers out of range
	_ = q.model.Observe(o.Allocation, o.Load, cost, o.Performance, requests)
}
