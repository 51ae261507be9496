package services

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/sim/cluster"
)

// Result is what one policy delivered.
type Result struct {
	Policy string
	// InTime and Requests are per service, in order of the scenario.
	InTime, Requests []float64
	// Windows has, per service, the share in time of each window of 5 s; NaN
	// without a request.
	Windows [][]float64
	// Shares has, per service, the quota in each second.
	Shares [][]float64
	// Moves counts the changes of each quota.
	Moves   []int
	Welfare Welfare
	// Plans are all plans in order; nil for a rule.
	Plans []*trimtab.Plan
}

// Over is the share of all requests that were in time.
func (r *Result) Over() float64 {
	in, all := 0.0, 0.0
	for i := range r.InTime {
		in, all = in+r.InTime[i], all+r.Requests[i]
	}
	return in / all
}

// Share is the share in time of service i.
func (r *Result) Share(i int) float64 { return r.InTime[i] / r.Requests[i] }

// controller sets the amounts once a second.
type controller interface {
	// shares tells that amounts are weights below one quota of the pool's size. Otherwise each
	// is a quota.
	shares() bool
	// second is called at the end of every second with what the services did.
	second(t float64, qs []*queue, done [][]answer)
}

// window is the length of a window of Result.Windows, in seconds.
const window = 5

// arrivals draws the requests of all services.
func arrivals(s *Scenario, seed uint64) (out [][]Request) {
	for i := range s.Services {
		out = append(out, draw(&s.Services[i], float64(s.Seconds), seed*1000+uint64(i)))
	}
	return out
}

// play runs a scenario under a controller.
func play(s *Scenario, coming [][]Request, c controller) *Result {
	n := len(s.Services)
	r := &Result{InTime: make([]float64, n), Requests: make([]float64, n), Windows: make([][]float64, n), Shares: make([][]float64, n), Moves: make([]int, n)}
	qs, seen, above := make([]*queue, n), make([]int, n), newAbove(s)
	in, all := make([][]float64, n), make([][]float64, n)
	for i := range s.Services {
		qs[i] = &queue{Service: &s.Services[i], coming: coming[i], quota: s.Pool / float64(n)}
		in[i], all[i] = make([]float64, s.Seconds/window+1), make([]float64, s.Seconds/window+1)
	}
	for second := range s.Seconds {
		for k := range int(1 / step) {
			t := float64(second) + float64(k)*step
			if c.shares() {
				above.advance(qs, t, k%steps)
				continue
			}
			for _, q := range qs {
				q.advance(t, k%steps)
			}
		}
		done := make([][]answer, n)
		for i, q := range qs {
			done[i] = q.done[seen[i]:]
			seen[i] = len(q.done)
			for _, a := range done[i] {
				w := int(a.at) / window
				all[i][w]++
				r.Requests[i]++
				if a.end-a.at <= q.Latency {
					in[i][w]++
					r.InTime[i]++
				}
			}
			r.Shares[i] = append(r.Shares[i], q.quota)
		}
		before := make([]float64, n)
		for i, q := range qs {
			before[i] = q.quota
		}
		c.second(float64(second+1), qs, done)
		for i, q := range qs {
			if math.Abs(q.quota-before[i]) > 1e-9 {
				r.Moves[i]++
			}
		}
	}
	for i, q := range qs {
		for _, w := range q.waiting { // never answered
			all[i][int(w.at)/window]++
			r.Requests[i]++
		}
		for w := range all[i] {
			r.Windows[i] = append(r.Windows[i], in[i][w]/all[i][w])
		}
	}
	return r
}

// equal leaves every service its equal share: as a quota, or, where kernel is set, as a weight
// below one quota for all, which is what the kernel does alone.
type equal struct{ kernel bool }

func (e equal) shares() bool                       { return e.kernel }
func (equal) second(float64, []*queue, [][]answer) {}

// proportional is the reference: it knows the costs, and shares the pool in
// proportion to the load of the last 5 s times the cost.
type proportional struct {
	pool float64
	seen [][]float64 // arrivals of each second, per service
}

func (*proportional) shares() bool { return false }

func (p *proportional) second(t float64, qs []*queue, done [][]answer) {
	if p.seen == nil {
		p.seen = make([][]float64, len(qs))
	}
	need, total := make([]float64, len(qs)), 0.0
	for i, q := range qs {
		n := 0.0
		for _, a := range q.done {
			if a.at > t-5 {
				n++
			}
		}
		for _, w := range q.waiting {
			if w.at > t-5 {
				n++
			}
		}
		cost := q.Cost
		if q.Dearer != nil {
			cost *= q.Dearer(t)
		}
		need[i] = max(n/5*cost, 0.05*p.pool)
		total += need[i]
	}
	for i, q := range qs {
		q.quota = p.pool * need[i] / total
	}
}

// Rules are the names that [Rule] plays: the kernel alone, equal quotas, quotas in proportion to
// load and cost, and the oracle of each objective.
func Rules() []string {
	out := []string{"weights", "equal", "proportional"}
	for _, name := range Objectives() {
		out = append(out, oracle+name)
	}
	return out
}

// Rule plays a rule of thumb of [Rules].
func Rule(s *Scenario, name string, seed uint64) (*Result, error) {
	var c controller
	switch name {
	case "weights":
		c = equal{kernel: true}
	case "equal":
		c = equal{}
	case "proportional":
		c = &proportional{pool: s.Pool}
	default:
		if !strings.HasPrefix(name, oracle) {
			return nil, trimtab.Invalidf("run %s: no such rule", name)
		}
	}
	coming := arrivals(s, seed)
	if of, ok := strings.CutPrefix(name, oracle); ok {
		weights, err := Oracle(s, coming, of)
		if err != nil {
			return nil, err
		}
		c = told(weights)
	}
	r := play(s, coming, c)
	r.Policy, r.Welfare = name, Judge(utilities(s, r.Windows), Entitled(s, coming))
	return r, nil
}

// Loop plays a scenario under the closed loop of production, over quotas, or over weights below
// one quota where the configuration says that knobs are shared. Spans tells that
// load and performance come from spans; otherwise they are rates over a range of
// 20 s, scraped every 5 s and read every second, as by PromQL, and alerts tell of missed SLOs.
func Loop(s *Scenario, name string, config cluster.Config, spans bool, seed uint64) (*Result, error) {
	loop, err := cluster.New(config)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", name, err)
	}
	n := len(s.Services)
	c := &closed{scenario: s, loop: loop, shared: config.Shared, start: config.Start, spans: spans, sent: make([]*trimtab.Sketch, n),
		used: make([]float64, n), periods: make([]int, n), throttled: make([]int, n)}
	for i := range s.Services {
		v := &s.Services[i]
		c.scraped = append(c.scraped, &scraped{phase: (4 - 2*i + scrapeEvery) % scrapeEvery, name: v.Name, target: v.Fraction})
	}
	coming := arrivals(s, seed)
	r := play(s, coming, c)
	r.Policy, r.Plans, r.Welfare = name, c.plans, Judge(utilities(s, r.Windows), Entitled(s, coming))
	return r, nil
}

// closed is the loop of production as a controller.
type closed struct {
	scenario *Scenario
	shared   bool
	loop     *cluster.Loop
	start    time.Time
	spans    bool
	// scraped is what Prometheus knows, per service.
	scraped []*scraped
	// sent is the sketch that is on its way, per service.
	sent               []*trimtab.Sketch
	used               []float64
	periods, throttled []int
	plans              []*trimtab.Plan
}

func (c *closed) at(t float64) time.Time {
	return c.start.Add(time.Duration(t * float64(time.Second)))
}

func (c *closed) shares() bool { return c.shared }

func (c *closed) second(t float64, qs []*queue, done [][]answer) {
	now := c.at(t)
	for i, q := range qs {
		fault := None
		if c.scenario.Fault != nil {
			fault = c.scenario.Fault(i, t)
		}
		c.usage(t, i, q, fault == NoCounters || fault == Nothing)
		seen, told := done[i], fault != NoRequests && fault != Nothing
		if fault == Half {
			seen = everySecond(seen)
		}
		if c.spans {
			// Senders collect spans for a second, and an interval waits for them.
			late := c.sent[i]
			if c.sent[i] = nil; told {
				c.sent[i] = sketchOf(q.Service, c.at(t-1), now, seen)
			}
			if late != nil {
				c.loop.Take(now, late)
			}
			continue
		}
		p := c.scraped[i]
		if p.count(seen, q.Latency); told {
			p.scrape(t)
			p.rule(c.loop, c, t)
		}
		if told {
			p.query(c.loop, c, t)
		}
	}
	now = now.Add(550 * time.Millisecond) // the grace of an interval is over
	c.loop.Tick(now)
	c.loop.Round(now)
	c.plans = append(c.plans, c.loop.Plans()...)
	for _, q := range qs {
		q.quota, q.capped = c.loop.Held(q.Name), 0
		if k := c.loop.Knobs(q.Name); len(k) > 0 && k[0].Capped {
			q.capped = q.quota
		}
	}
}

// everySecond returns every second answer.
func everySecond(in []answer) (out []answer) {
	for k := 0; k < len(in); k += 2 {
		out = append(out, in[k])
	}
	return out
}

// usage tells what the counters of the group say, unless they cannot be read.
func (c *closed) usage(t float64, i int, q *queue, silent bool) {
	if silent {
		c.used[i], c.periods[i], c.throttled[i] = q.used, q.periods, q.throttled
		return
	}
	for _, v := range []*trimtab.Sample{
		{Quantity: trimtab.Usage, Value: q.used - c.used[i]},
		{Quantity: trimtab.Throttled, Value: float64(q.throttled-c.throttled[i]) / float64(q.periods-c.periods[i])},
	} {
		v.Workload, v.Source, v.Time, v.Window = q.Name, "cgroup", c.at(t), 1
		c.loop.Take(c.at(t), v)
	}
	c.used[i], c.periods[i], c.throttled[i] = q.used, q.periods, q.throttled
}

// sketchOf is what the path step makes of the spans of one second; nil without
// any.
func sketchOf(s *Service, from, to time.Time, done []answer) *trimtab.Sketch {
	if len(done) == 0 {
		return nil
	}
	out := &trimtab.Sketch{Workload: s.Name, From: from, To: to, Threshold: trimtab.Seconds(s.Latency)}
	for _, a := range done {
		out.Requests++
		out.Spans++
		out.Latency.Add(a.end-a.at, 1)
		if a.end-a.at <= s.Latency {
			out.Under++
		}
		k := int(math.Floor(a.end-1e-9)) - int(a.at)
		for len(out.Begun) <= min(max(k, 0), trimtab.MaxBegun-1) {
			out.Begun = append(out.Begun, 0)
		}
		out.Begun[min(max(k, 0), trimtab.MaxBegun-1)]++
	}
	return out
}
