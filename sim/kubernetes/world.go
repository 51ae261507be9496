package kubernetes

import (
	"math"
	"math/rand/v2"
	"time"
)

const (
	// tick and look are in seconds.
	tick, look = 5, 15
	day        = 86400
	// cores of a pod of hpa and keda, and what trimtab may make of one.
	podCores             = 1.0
	leastCores, maxCores = 0.1, 2.0
	maxPods              = 60
)

// pod is one instance.
type pod struct {
	size, asked float64
	// left is what its start still takes, s; pending: it has no room yet.
	left, age float64
	pending   bool
}

func (p *pod) ready() bool { return !p.pending && p.left <= 0 }

// place is a service in the world.
type place struct {
	*Service
	rng         *rand.Rand
	trace       []float64
	pods        []pod
	drift, rate float64
	backlog     float64
	// Of the look that runs: requests, those in time, cores used and had, ticks.
	requests, inTime, used, had float64
	ticks                       int
	// starts that ended since the last look, s.
	started []float64
	// Of the minute that runs.
	minute, minuteGood float64
	score              Score
}

// Score is what came of one service in one run.
type Score struct {
	Service   string  `json:"service"`
	Missed    float64 `json:"missed_minutes"`
	CoreHours float64 `json:"core_hours"`
	// Served is the least share of requests in time in any hour.
	Served float64 `json:"least_hour"`
	hour   [2]float64
}

// report is what was seen of a look.
type report struct {
	rate, inTime, requests float64
	// used and had are mean cores; ready pods at its end.
	used, had float64
	ready     int
	started   []float64
	backlog   float64
}

// world is all of a run.
type world struct {
	places []*place
	pool   float64
	second int
}

func newWorld(trace []float64, pool float64, seed uint64) *world {
	w := &world{pool: pool}
	all := Services()
	for i := range all {
		s := &all[i]
		p := &place{Service: s, rng: rand.New(rand.NewPCG(seed, uint64(i))), trace: trace, score: Score{Service: s.Name, Served: 1}}
		for range max(2, int(s.Cores)) {
			p.pods = append(p.pods, pod{size: podCores, asked: podCores})
		}
		w.places = append(w.places, p)
	}
	return w
}

// at is the recorded load at a second of the two days, between its values in line.
func (p *place) at(second float64) float64 {
	n := float64(len(p.trace))
	x := math.Mod(second/(2*day)*n+n-p.Shift*3600/(2*day)*n, n)
	i := int(x)
	a, b := p.trace[i%len(p.trace)], p.trace[(i+1)%len(p.trace)]
	return a + (b-a)*(x-float64(i))
}

// used is what all pods hold.
func (w *world) used() float64 {
	sum := 0.0
	for _, p := range w.places {
		for i := range p.pods {
			if !p.pods[i].pending {
				sum += math.Max(p.pods[i].size, p.pods[i].asked)
			}
		}
	}
	return sum
}

// play is one tick.
func (w *world) play() {
	free := w.pool - w.used()
	for k := range w.places { // another one first each time
		p := w.places[(k+w.second/tick)%len(w.places)]
		for i := range p.pods {
			if q := &p.pods[i]; q.pending && q.asked <= free {
				q.pending = false
				free -= q.asked
			}
		}
	}
	for _, p := range w.places {
		p.play(w.second)
	}
	w.second += tick
}

func (p *place) play(second int) {
	for i := range p.pods {
		q := &p.pods[i]
		q.size = q.asked
		if q.pending || q.left > 0 {
			q.age += tick
		}
		if !q.pending && q.left > 0 {
			if q.left -= tick; q.left <= 0 {
				p.started = append(p.started, q.age)
			}
		}
	}
	// What varies faster than was recorded: 4% with a memory of about a minute.
	p.drift = 0.92*p.drift + math.Sqrt(1-0.92*0.92)*0.04*p.rng.NormFloat64()
	p.rate = p.Cores / p.Cost * p.at(float64(second)) * math.Exp(p.drift)
	n, sum, least := 0, 0.0, math.Inf(1)
	held := 0.0
	for i := range p.pods {
		q := &p.pods[i]
		if !q.pending {
			held += q.size
		}
		if q.ready() {
			n++
			sum += q.size
			least = math.Min(least, q.size)
		}
	}
	if n == 0 {
		least = 0
	}
	capacity := float64(n) * least / p.Cost
	late := p.late(n, least, p.rate, p.backlog)
	served := math.Min(capacity*tick, p.backlog+p.rate*tick)
	// Who waits for longer than a minute has gone away.
	p.backlog = math.Min(math.Max(0, p.backlog+(p.rate-capacity)*tick), capacity*60)
	arrived := p.rate * tick
	good := arrived * (1 - late)
	p.requests, p.inTime = p.requests+arrived, p.inTime+good
	p.used += served * p.Cost / tick
	p.had += float64(n) * least
	p.ticks++
	p.minute, p.minuteGood = p.minute+arrived, p.minuteGood+good
	if second >= day {
		p.tally(second, held, arrived, good)
	}
	if (second+tick)%60 == 0 {
		p.minute, p.minuteGood = 0, 0
	}
}

// tally scores a tick.
func (p *place) tally(second int, held, arrived, good float64) {
	s := &p.score
	s.CoreHours += held * tick / 3600
	s.hour[0], s.hour[1] = s.hour[0]+arrived, s.hour[1]+good
	if (second+tick)%60 == 0 && p.minuteGood < p.Fraction*p.minute {
		s.Missed++
	}
	if (second+tick)%3600 == 0 {
		s.Served = math.Min(s.Served, s.hour[1]/s.hour[0])
		s.hour = [2]float64{}
	}
}

// seen ends a look.
func (p *place) seen() report {
	r := report{rate: p.requests / (float64(p.ticks) * tick), requests: p.requests, used: p.used / float64(p.ticks), had: p.had / float64(p.ticks), started: p.started, backlog: p.backlog}
	// What is counted are whole requests.
	share := p.inTime / p.requests
	noise := math.Sqrt(share*(1-share)/p.requests) * p.rng.NormFloat64()
	r.inTime = math.Min(1, math.Max(0, share+noise))
	for i := range p.pods {
		if p.pods[i].ready() {
			r.ready++
		}
	}
	p.requests, p.inTime, p.used, p.had, p.ticks, p.started = 0, 0, 0, 0, 0, nil
	return r
}

// scale sets the number: the youngest and those that do not serve yet go first.
func (p *place) scale(n int, size float64) {
	for len(p.pods) > n {
		worst := 0
		for i := range p.pods {
			if p.pods[i].left+order(&p.pods[i]) >= p.pods[worst].left+order(&p.pods[worst]) {
				worst = i
			}
		}
		p.pods = append(p.pods[:worst], p.pods[worst+1:]...)
	}
	for len(p.pods) < n {
		takes := p.Startup * math.Exp(0.15*p.rng.NormFloat64())
		p.pods = append(p.pods, pod{size: size, asked: size, left: takes, pending: true})
	}
}

func order(p *pod) float64 {
	if p.pending {
		return 1e6
	}
	return 0
}

func now(second int) time.Time {
	return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(second) * time.Second)
}
