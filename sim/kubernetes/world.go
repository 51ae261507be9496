package kubernetes

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/replicas"
)

const (
	// tick is the simulation step, look the interval of decisions, both in seconds.
	tick, look = 5, 15
	day        = 86400
	// spread is the standard deviation of variation that is faster than the recorded load: 4%,
	// correlated over about a minute.
	spread = 0.04
)

// pod is one instance.
type pod struct {
	size, asked float64
	// left is the rest of its start time, in s; pending says that it has no capacity yet.
	left, age float64
	pending   bool
	// lives is how long the pod has been simulated, in s; before is its age at the beginning.
	lives, before float64
	// was is what it asked for at the last look.
	was float64
}

func (p *pod) ready() bool { return !p.pending && p.left <= 0 }

// truth is the true behavior of a service, which no policy sees.
type truth struct {
	// load returns the requests per second at a second; false: unknown.
	load func(second float64) (float64, bool)
	// perform returns the performance in n pods of a cores under a load with a backlog, with bounds
	// if it was learnt.
	perform func(n int, a, rate, backlog float64) trimtab.Band
	// spread is the standard deviation of the load around the recorded one.
	spread float64
	// queues says that requests that are not served wait.
	queues bool
	// shares says that performance is the share of requests in time.
	shares bool
}

// place is the state of a service in a world.
type place struct {
	*Service
	truth
	// request is the size of a pod that nothing resizes; sizes and counts are trimtab's bounds.
	request     float64
	sizes       replicas.Size
	counts      replicas.Count
	rng         *rand.Rand
	pods        []pod
	drift, rate float64
	backlog     float64
	// Sums since the last report: requests, those in time, cores used, cores allocated.
	requests, inTime, used, had float64
	ticks                       int
	// started has the durations of starts that ended since the last report, in s.
	started []float64
	// Sums of the current minute: its requests, and those in time by the lower bound, the mean and
	// the upper bound.
	minute     float64
	minuteGood [3]float64
	minuteHeld float64
	score      Score
}

// Score is the result of one service in one run.
type Score struct {
	Service string  `json:"service"`
	Missed  float64 `json:"missed_minutes"`
	// CoreHours is the sum of the requests of all pods over time; UsedHours what they used of it, and
	// NeededHours the least that met the SLO in as many pods, each minute. NeedUnknown is how many
	// minutes that leaves out because nothing within the bounds meets it.
	CoreHours   float64 `json:"core_hours"`
	UsedHours   float64 `json:"used_core_hours"`
	NeededHours float64 `json:"needed_core_hours"`
	NeedUnknown float64 `json:"minutes_of_unknown_need,omitempty"`
	// Served is the least share of requests in time in any hour.
	Served float64 `json:"least_hour"`
	// Needed is the least ratio in any hour of its allocation to what its SLO needs.
	Needed float64 `json:"least_share_of_need"`
	// Minutes is the number of scored minutes. LeastMissed and MostMissed are how many of them are
	// missed at the upper and at the lower bound of the performance.
	Minutes     float64 `json:"minutes,omitempty"`
	LeastMissed float64 `json:"missed_minutes_least,omitempty"`
	MostMissed  float64 `json:"missed_minutes_most,omitempty"`
	// Scaled counts the decisions that changed the number of pods, Resized the pods whose size was
	// changed, each time; PodDays is how long pods existed. Quiet has those of an hour whose recorded
	// load stayed within a quarter, QuietHours how many those are.
	Scaled     float64 `json:"replica_changes"`
	Resized    float64 `json:"resizes"`
	PodDays    float64 `json:"pod_days"`
	Quiet      float64 `json:"resizes_in_quiet_hours"`
	QuietHours float64 `json:"quiet_hours"`
	// Advice is how long after the beginning, learning included, the policy first had advice, in s;
	// nil: never.
	Advice *float64 `json:"first_advice_s,omitempty"`
	// Course has the mean of the allocated cores for each minute; only in a replay.
	Course []float64 `json:"-"`
	hour   [2]float64
	need   [2]float64
	// calm has the least and the highest recorded load of the hour, and resized its resizes.
	calm    [2]float64
	resized float64
}

// report has the measurements between two decisions.
type report struct {
	rate, inTime, requests float64
	// used and had are mean cores; ready is the number of ready pods at its end.
	used, had float64
	ready     int
	started   []float64
	backlog   float64
}

// world is the state of a run.
type world struct {
	places []*place
	pool   float64
	second int
	// begins is the time of second 0.
	begins time.Time
	// from is the second from which the run is scored.
	from int
}

// start adds n pods that serve already.
func (p *place) start(n int) {
	for range n {
		p.pods = append(p.pods, pod{size: p.request, asked: p.request, was: p.request, before: 3600})
	}
}

// Service is one service.
type Service struct {
	Name string `json:"name"`
	// Cost is the work of a request, in core-seconds; Latency and Fraction are the SLO; Variation
	// is κ.
	Cost      float64 `json:"cost_s"`
	Latency   float64 `json:"latency_s"`
	Fraction  float64 `json:"fraction"`
	Variation float64 `json:"kappa"`
	// Startup is the mean start time of a pod, in s.
	Startup float64 `json:"startup_s"`
}

// byFormula returns the share of requests in time by the formula of the package.
func (s *Service) byFormula(n int, a, rate, backlog float64) trimtab.Band {
	v := 1 - s.late(n, a, rate, backlog)
	return trimtab.Band{Lower: v, Mean: v, Upper: v}
}

// used returns the sum of the cores of all pods.
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

// play simulates one tick.
func (w *world) play() {
	free := w.pool - w.used()
	for k := range w.places { // starts with another service each time
		p := w.places[(k+w.second/tick)%len(w.places)]
		for i := range p.pods {
			if q := &p.pods[i]; q.pending && q.asked <= free {
				q.pending = false
				free -= q.asked
			}
		}
	}
	for _, p := range w.places {
		p.play(w.second, w.second >= w.from)
	}
	w.second += tick
}

// play simulates one tick of the service; count says that it is scored.
func (p *place) play(second int, count bool) {
	p.age()
	rate, known := p.load(float64(second))
	if known {
		if p.spread > 0 {
			p.drift = 0.92*p.drift + math.Sqrt(1-0.92*0.92)*p.spread*p.rng.NormFloat64()
		}
		p.rate = rate * math.Exp(p.drift)
	}
	n, least, held := p.serving()
	capacity := float64(n) * least / p.Cost
	got := p.perform(n, least, p.rate, p.backlog)
	served := math.Min(capacity*tick, p.backlog+p.rate*tick)
	if p.queues {
		// A client gives up after a minute.
		p.backlog = math.Min(math.Max(0, p.backlog+(p.rate-capacity)*tick), capacity*60)
	}
	arrived := p.rate * tick
	p.requests, p.inTime = p.requests+arrived, p.inTime+arrived*got.Mean
	p.used += served * p.Cost / tick
	p.had += float64(n) * least
	p.ticks++
	p.minute, p.minuteHeld = p.minute+arrived, p.minuteHeld+held*tick/60
	for i, v := range []float64{got.Lower, got.Mean, got.Upper} {
		p.minuteGood[i] += arrived * v
	}
	if count && known {
		p.score.UsedHours += served * p.Cost / 3600
		p.score.calms(rate)
		p.tally(second, held, arrived, arrived*got.Mean)
		if (second+tick)%60 == 0 {
			p.needs(n, float64(n)*least)
		}
	}
	if (second+tick)%3600 == 0 {
		p.score.endHour()
	}
	if (second+tick)%60 == 0 {
		p.minute, p.minuteGood, p.minuteHeld = 0, [3]float64{}, 0
	}
}

// age advances the age and the start of all pods.
func (p *place) age() {
	for i := range p.pods {
		q := &p.pods[i]
		q.size = q.asked
		q.lives += tick
		if q.pending || q.left > 0 {
			q.age += tick
		}
		if !q.pending && q.left > 0 {
			if q.left -= tick; q.left <= 0 {
				p.started = append(p.started, q.age)
			}
		}
	}
}

// serving returns how many pods serve, the size of the smallest, and the sum of the cores of all
// pods.
func (p *place) serving() (n int, least, held float64) {
	least = math.Inf(1)
	for i := range p.pods {
		q := &p.pods[i]
		if !q.pending {
			held += q.size
		}
		if q.ready() {
			n++
			least = math.Min(least, q.size)
		}
	}
	if n == 0 {
		least = 0
	}
	return n, least, held
}

// need returns the least allocation, in n pods, that meets the SLO now; false: none within the bounds.
func (p *place) need(n int) (float64, bool) {
	n = max(n, 1)
	lo, hi := 0.0, float64(p.counts.Max)*p.sizes.Max
	if p.perform(n, hi/float64(n), p.rate, 0).Mean < p.Fraction {
		return 0, false
	}
	for range 20 {
		mid := (lo + hi) / 2
		if p.perform(n, mid/float64(n), p.rate, 0).Mean >= p.Fraction {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi, true
}

// needs adds what n pods need for a minute, and the part of it that the service had.
func (p *place) needs(n int, had float64) {
	s := &p.score
	need, ok := p.need(n)
	if !ok {
		s.NeedUnknown++
		return
	}
	s.NeededHours += need / 60
	if p.queues {
		s.need[0], s.need[1] = s.need[0]+need, s.need[1]+math.Min(need, had)
	}
}

// calms adds a recorded load to the range of the hour.
func (s *Score) calms(load float64) {
	if s.calm[1] == 0 {
		s.calm[0] = load
	}
	s.calm = [2]float64{math.Min(s.calm[0], load), math.Max(s.calm[1], load)}
}

// quiet is the largest ratio of the loads of a quiet hour.
const quiet = 1.25

// looked counts the pods whose size a decision has changed.
func (p *place) looked(count bool) {
	for i := range p.pods {
		if q := &p.pods[i]; q.asked != q.was {
			q.was = q.asked
			if count {
				p.score.Resized++
				p.score.resized++
			}
		}
	}
}

// advised says that the policy has advice at a second.
func (p *place) advised(second int) {
	if p.score.Advice == nil {
		at := float64(second)
		p.score.Advice = &at
	}
}

// tally adds a tick to the score.
func (p *place) tally(second int, held, arrived, good float64) {
	s := &p.score
	s.CoreHours += held * tick / 3600
	s.PodDays += float64(len(p.pods)) * tick / day
	s.hour[0], s.hour[1] = s.hour[0]+arrived, s.hour[1]+good
	if (second+tick)%60 != 0 {
		return
	}
	s.Minutes++
	for i, to := range []*float64{&s.MostMissed, &s.Missed, &s.LeastMissed} {
		if p.minuteGood[i] < p.Fraction*p.minute {
			*to++
		}
	}
	s.Course = append(s.Course, p.minuteHeld)
}

// endHour ends an hour, if a part of it was scored.
func (s *Score) endHour() {
	if s.hour[0] > 0 {
		s.Served = math.Min(s.Served, s.hour[1]/s.hour[0])
	}
	if s.need[0] > 0 {
		s.Needed = math.Min(s.Needed, s.need[1]/s.need[0])
	}
	if s.hour[0] > 0 && s.calm[1] <= quiet*s.calm[0] {
		s.QuietHours++
		s.Quiet += s.resized
	}
	s.hour, s.need, s.calm, s.resized = [2]float64{}, [2]float64{}, [2]float64{}, 0
}

// seen returns the report since the last decision, and resets the sums.
func (p *place) seen() report {
	r := report{rate: p.requests / (float64(p.ticks) * tick), requests: p.requests, used: p.used / float64(p.ticks), had: p.had / float64(p.ticks), started: p.started, backlog: p.backlog}
	// Rounded to whole requests, as a counter would have them.
	if p.requests > 0 {
		r.inTime = p.inTime / p.requests
	}
	if share := r.inTime; p.shares && p.requests > 0 {
		noise := math.Sqrt(share*(1-share)/p.requests) * p.rng.NormFloat64()
		r.inTime = math.Min(1, math.Max(0, share+noise))
	}
	for i := range p.pods {
		if p.pods[i].ready() {
			r.ready++
		}
	}
	p.requests, p.inTime, p.used, p.had, p.ticks, p.started = 0, 0, 0, 0, 0, nil
	return r
}

// scale sets the number of pods. It removes pods that do not serve yet and the youngest first.
func (p *place) scale(n int, size float64, count bool) {
	if count && n != len(p.pods) {
		p.score.Scaled++
	}
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
		p.pods = append(p.pods, pod{size: size, asked: size, was: size, left: p.takes(), pending: true})
	}
}

// takes draws the duration of the next start, in s.
func (p *place) takes() float64 { return p.Startup * math.Exp(0.15*p.rng.NormFloat64()) }

// scored reports whether the present time is scored.
func (w *world) scored() bool { return w.second >= w.from }

// clock returns the simulated time.
func (w *world) clock() time.Time { return w.begins.Add(time.Duration(w.second) * time.Second) }

func order(p *pod) float64 {
	if p.pending {
		return 1e6
	}
	return 0
}

func now(second int) time.Time {
	return time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(second) * time.Second)
}

// late returns the share of requests that are late in n pods of a cores under that load.
func (s *Service) late(n int, a, rate, backlog float64) float64 {
	if n == 0 || a <= 0 {
		return 1
	}
	total := float64(n) * a / s.Cost
	rho := rate / total
	if rho >= 1 || backlog > total*s.Latency {
		return 1
	}
	wait := backlog / total // new requests wait this long for the backlog
	return math.Min(1, rho*math.Exp(-s.Variation*(a/s.Cost-rate/float64(n))*(s.Latency-wait)))
}
