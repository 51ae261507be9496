package admission

import (
	"container/heap"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// gate is what stands before the simulated service: the controller, no limit, or a published rule.
type gate interface {
	arrive(now time.Duration, r *request)
	done(now time.Duration, r *request)
	tick(now time.Duration)
}

// request is one simulated request.
type request struct {
	Ticket
	class              int
	came, needs, began time.Duration
	answered           time.Duration
	shed, gone         bool
	shedAt             time.Duration
}

// world is a service of some processors, in continuous time. Requests that are let in are served
// first come, first served, or share the processors.
type world struct {
	now, within time.Duration
	processors  int
	sharing     bool
	gate        gate
	random      *rand.Rand

	serving, queue []*request
	all            []*request
	events         events
	// stalls counts the reasons for which the service makes no progress now.
	stalls int
}

type event struct {
	at time.Duration
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = (*e)[:last]
	return x
}

func (w *world) at(t time.Duration, do func()) { heap.Push(&w.events, event{t, do}) }

// let lets a request into the service.
func (w *world) let(r *request) {
	w.queue = append(w.queue, r)
	w.fill()
}

func (w *world) fill() {
	for len(w.queue) > 0 && (w.sharing || len(w.serving) < w.processors) {
		r := w.queue[0]
		w.queue = w.queue[1:]
		r.began = w.now
		w.serving = append(w.serving, r)
	}
}

// speed is the share of a processor that each request in service has.
func (w *world) speed() float64 {
	if w.stalls > 0 {
		return 0
	}
	if !w.sharing || len(w.serving) <= w.processors {
		return 1
	}
	return float64(w.processors) / float64(len(w.serving))
}

// run plays until the end.
func (w *world) run(end time.Duration) {
	for w.now < end {
		next, first := end, -1
		for i, r := range w.serving {
			if w.stalls > 0 {
				break
			}
			if t := w.now + time.Duration(float64(r.needs)/w.speed()) + 1; t < next {
				next, first = t, i
			}
		}
		if len(w.events) > 0 && w.events[0].at <= next {
			next, first = w.events[0].at, -1
		}
		worked := time.Duration(float64(next-w.now) * w.speed())
		for _, r := range w.serving {
			r.needs = max(0, r.needs-worked)
		}
		w.now = next
		switch {
		case first >= 0:
			r := w.serving[first]
			w.serving = slices.Delete(w.serving, first, first+1)
			if !r.gone {
				r.answered = w.now
			}
			w.gate.done(w.now, r)
			w.fill()
		case len(w.events) > 0 && w.events[0].at <= w.now:
			heap.Pop(&w.events).(event).do()
		}
	}
}

// phase is a load, relative to the capacity, until a time.
type phase struct {
	until time.Duration
	load  float64
}

// setting is one experiment.
type setting struct {
	processors int
	mean       time.Duration
	constant   bool
	sharing    bool
	within     time.Duration
	phases     []phase
	// important is the share of requests of the first class.
	important float64
	// dearer multiplies what requests need, from a time on.
	dearer     float64
	dearerFrom time.Duration
	// drift is how many times dearer the dearest requests are than the cheapest, over 20 s.
	drift float64
	// stalls are the ways in which the service makes no progress for a while.
	stalls []stall
}

// stall stops a service for a time between least and most, after a time of every on average;
// regular stalls come each time after the same time, as those of a CPU quota do.
type stall struct {
	every, least, most time.Duration
	regular            bool
}

func (w *world) stall(s stall, random *rand.Rand) {
	gap := s.every
	if !s.regular {
		gap = time.Duration((0.5 + random.Float64()) * float64(s.every))
	}
	w.at(w.now+gap, func() {
		w.stalls++
		w.at(w.now+s.least+time.Duration(random.Float64()*float64(s.most-s.least)), func() {
			w.stalls--
			w.stall(s, random)
		})
	})
}

func (s setting) capacity() float64 { return float64(s.processors) / s.mean.Seconds() }

// play runs an experiment and returns all its requests.
func (s setting) play(make func(w *world) gate, seed uint64) *world {
	w := &world{within: s.within, processors: s.processors, sharing: s.sharing, random: rand.New(rand.NewPCG(seed, 1))}
	w.gate = make(w)
	end := s.phases[len(s.phases)-1].until
	var arrive func()
	arrive = func() {
		r := &request{came: w.now, needs: s.mean}
		if !s.constant {
			r.needs = time.Duration(w.random.ExpFloat64() * float64(s.mean))
		}
		if s.dearer > 0 && w.now >= s.dearerFrom {
			r.needs = time.Duration(float64(r.needs) * s.dearer)
		}
		if s.drift > 0 {
			r.needs = time.Duration(float64(r.needs) * math.Pow(s.drift, math.Sin(2*math.Pi*w.now.Seconds()/20)/2))
		}
		if w.random.Float64() >= s.important {
			r.class = 1
		}
		w.all = append(w.all, r)
		w.at(w.now+2*s.within, func() { r.gone = true }) // the client gives up; the service works on
		w.gate.arrive(w.now, r)
		w.next(s, arrive)
	}
	w.next(s, arrive)
	for i, stall := range s.stalls {
		w.stall(stall, rand.New(rand.NewPCG(seed, uint64(2+i))))
	}
	for t := 100 * time.Millisecond; t < end; t += 100 * time.Millisecond {
		w.at(t, func() { w.gate.tick(w.now) })
	}
	w.run(end)
	return w
}

// next schedules the next arrival.
func (w *world) next(s setting, arrive func()) {
	for _, p := range s.phases {
		if w.now < p.until {
			w.at(w.now+time.Duration(w.random.ExpFloat64()/(p.load*s.capacity())*float64(time.Second)), arrive)
			return
		}
	}
}

// score is what came of the requests that came in a span of time.
type score struct {
	// late is the share that was neither shed nor answered in time.
	goodput, shed, late, p99 float64
	firstShed, lastShed      time.Duration
}

func (w *world) score(from, to time.Duration, capacity float64, class int) (s score) {
	var good, shed, n int
	var took []time.Duration
	for _, r := range w.all {
		if r.came < from || r.came >= to || class >= 0 && r.class != class {
			continue
		}
		n++
		switch {
		case r.shed:
			shed++
			if s.firstShed == 0 {
				s.firstShed = r.shedAt - from
			}
			s.lastShed = max(s.lastShed, r.shedAt-from)
		case r.answered > 0:
			took = append(took, r.answered-r.came)
			if r.answered-r.came <= w.within {
				good++
			}
		}
	}
	s.shed = float64(shed) / float64(max(n, 1))
	s.late = float64(n-shed-good) / float64(max(n, 1))
	s.goodput = float64(good) / (capacity * (to - from).Seconds())
	if len(took) > 0 {
		slices.Sort(took)
		s.p99 = took[len(took)*99/100].Seconds() / w.within.Seconds()
	}
	return s
}

// ours is the controller.
type ours struct {
	c *Controller
	w *world
}

func newOurs(s Settings) func(*world) gate {
	return func(w *world) gate {
		s.Within, s.Classes = w.within, 2
		return &ours{New(s), w}
	}
}

func (o *ours) arrive(now time.Duration, r *request) {
	refuse := func() { r.shed, r.shedAt = true, o.w.now }
	r.Class = r.class
	r.Decide = func(v Verdict) {
		if v == Refused {
			refuse()
		} else {
			o.w.let(r)
		}
	}
	switch o.c.Arrive(now, &r.Ticket) {
	case Admitted:
		o.w.let(r)
	case Refused:
		refuse()
	case Waiting:
		o.w.at(r.Deadline(), func() {
			if o.c.Expire(o.w.now, &r.Ticket) {
				refuse()
			}
		})
	}
}

func (o *ours) done(now time.Duration, r *request) { o.c.Done(now, &r.Ticket, Answered) }
func (o *ours) tick(now time.Duration)             { o.c.Tick(now) }

// open lets everybody in.
type open struct{ w *world }

func (o open) arrive(_ time.Duration, r *request) { o.w.let(r) }
func (open) done(time.Duration, *request)         {}
func (open) tick(time.Duration)                   {}

// gradient2 is the limiter of Netflix's concurrency-limits, by its published constants: a long
// average of latencies over 600 samples, tolerance 1.5, 4 requests of headroom, smoothing 0.2,
// limits 20 to 200 at first 20. It has no queue: over the limit is refused.
type gradient2 struct {
	w           *world
	limit, long float64
	samples     int
	inFlight    int
}

func (g *gradient2) arrive(now time.Duration, r *request) {
	if g.inFlight >= int(g.limit) {
		r.shed, r.shedAt = true, now
		return
	}
	g.inFlight++
	g.w.let(r)
}

func (g *gradient2) done(now time.Duration, r *request) {
	inFlight := float64(g.inFlight)
	g.inFlight--
	short := (now - r.came).Seconds()
	if g.samples++; g.samples <= 10 {
		g.long += (short - g.long) / float64(g.samples)
	} else {
		g.long += (short - g.long) * 2 / 601
	}
	if g.long/short > 2 {
		g.long *= 0.95
	}
	if inFlight < g.limit/2 {
		return
	}
	gradient := max(0.5, min(1, 1.5*g.long/short))
	g.limit = min(max(g.limit*0.8+0.2*(g.limit*gradient+4), 20), 200)
}
func (*gradient2) tick(time.Duration) {}
