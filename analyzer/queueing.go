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
	// maxUsed bounds the windows of use that are kept of one workload.
	maxUsed = 128
	// covered is the least part of a stretch of time that must have been
	// measured for a mean over it.
	covered = 0.7
	// remembered is the time over which the cost of a request is averaged: long
	// for its noise, short for a release that makes it dearer.
	remembered = report.Remembered
	// fewRequests is how many requests a cost must rest on.
	fewRequests = 24
	// silence is up to how long an interval without requests is no gap.
	silence = 5 * time.Second
	// recalled is how many windows of use tell the load.
	recalled = 24
	// levelled is over how many intervals arrivals are averaged.
	levelled = 5
)

// queueing is what is known of a workload as a queue: what a request costs,
// what waits, and the model that both serve.
type queueing struct {
	model *queue.Model // nil: it is not seen as a queue
	used  []used       // in order of time
	// early came before the use in its window, by what it is of.
	early [kinds]trimtab.Sample
	// open are stretches whose cost is not yet counted; until is the end of the
	// last one.
	open  []stretch
	until time.Time
	// work and requests are decayed sums, in core-seconds and requests.
	work, requests float64
	// begun has the requests that began in each interval up to number last; seen
	// is how many intervals in a row it is known for.
	begun []float64
	last  int64
	seen  int
	// waiting is how many requests wait, wait how long the median one of the last
	// interval did, 0: in time; latency is that of the SLO. Both in seconds.
	waiting, wait, latency float64
	// course is that of the load while nothing waits, up to the latest report, and
	// lately with what the use tells since.
	course, lately course
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
// must answer within the latency also when few requests come. By the model 1 to 1.2
// of them fit into the latency where 5% of the requests wait longer, at the
// utilisations at which a service is planned for.
func (q *queueing) headroom() float64 {
	if q.model == nil || q.latency <= 0 {
		return 0
	}
	return 1 / q.latency
}

// full reports whether the workload used nearly all that it had in some part of
// the time from from to to: what is answered then, and what waits from then on,
// tells of a queue and not of the allocation.
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

// comes enters interval number, in which so many requests per second were answered,
// and returns how many came: what the course of the load tells, and what arrive
// does, which goes by when they began, while they wait. late tells that most of them
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

// arrive enters when the requests of interval number began, and returns the
// rate at which they arrive, in requests per second, while they wait longer than
// the SLO allows, 0 otherwise, and whether most of them began in an earlier
// interval. While a queue grows, what is answered tells what the service can, and
// not what is asked of it. Of requests that wait W, those that began in the last
// W seconds are still to be answered, so that over n intervals of length T
//
//	λ_n = (those that began in them) / (n·T − W)
//
// A load that jumped shows in the last three intervals beyond their noise.
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
	// While a queue is worked off, what ended last waited least, and more was
	// answered of what began of late than the median wait tells.
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

// jumped is by how many standard errors a load must lie above the one before it
// to have jumped.
const jumped = 1.5

// rate returns the rate at which requests that wait so long arrived in the last
// intervals, and how many of them it rests on.
func (q *queueing) rate(intervals int, wait float64, interval time.Duration) (load, requests float64) {
	intervals = min(intervals, max(q.seen, 1))
	for _, v := range q.begun[len(q.begun)-intervals:] {
		requests += v
	}
	return requests / math.Max(float64(intervals)*interval.Seconds()-wait, 0.5*interval.Seconds()), requests
}

// useLoad returns the load that the use of the last seconds tells, where load
// comes as a rate over a longer window, seen: it is what the service is doing
// now. While its quota stops the service, its use tells only the least that is
// asked of it: the load is then no less than it was before.
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

// sinceReport returns the load of the last seconds: that of a report by spans, and
// for the time since then, while spans are still on their way, the use over the
// cost of a request. While its quota stops the service, the load is no less than it
// was.
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

// stopped reports whether the quota stopped the workload in a window.
func (q *queueing) stopped(u used, held *allocation) bool {
	if u.throttled < 0.5 {
		return false
	}
	f := held.during(u.from, u.to, 0)
	return f.Known && !f.Amount.Unlimited && u.cores >= 0.9*f.Mean
}

// follow keeps a forecast from staying behind a load that moves: its mean is no
// further from what was just measured than half the noise of that, and goes with a
// rise or a fall to the middle of the coming round. Its bound keeps its ratio to the
// mean.
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
		return // the slope of what is told by the use is mostly noise
	}
	// To the middle of the round; a load is told an interval or two late.
	ahead := (float64(c.horizon())/2 + 2) * c.Report.Seconds()
	goes := math.Max(1-furthest, math.Min(q.lately.in(ahead)/now, 1+furthest))
	l.Mean, l.Upper = l.Mean*goes, l.Upper*goes
}

// furthest bounds what the course of a load may change it by.
const furthest = 0.4

// pressed reports whether the quota stops a workload whose reports come seldom, as those
// by spans do that are collected for seconds, or its use tells another load than was told
// last: the next report would come too late.
func (w *workload) pressed(now time.Time) bool {
	r := &w.last
	if w.spec.LoadFrom == FromSpans && w.samples.arrival.wait() <= w.config.Report ||
		w.queueing.model == nil || r.Now == nil || r.Load == nil || now.Sub(w.told) < w.config.Report {
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
	w.told, r.Now = now, &load
	if f := w.held.during(now.Add(-w.config.Report), now, 0); f.Known && !f.Amount.Unlimited && f.Mean > 0 {
		r.Allocation = &f.Mean
	}
	return true
}

// news is by what part a load must have changed to be told before its time.
const news = 0.1

// inform joins what the learner knows with what the cost of a request tells.
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

// maxStopped is the longest stop that is counted.
const maxStopped = 30

// teach gives a report that taught the curve to the model too.
func (q *queueing) teach(o learn.Observation) {
	cost, ok := q.cost()
	if !ok || o.Performance > 1 {
		return
	}
	requests := o.Requests
	if requests == 0 {
		requests = 1
	}
	// Out of range numbers were refused by the learner.
	_ = q.model.Observe(o.Allocation, o.Load, cost, o.Performance, requests)
}
