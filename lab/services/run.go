package services

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
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
	// Shares has, per service, the quota in each second, of all its instances.
	Shares [][]float64
	// Moves counts the changes of the quotas of each.
	Moves   []int
	Welfare Welfare
	// Plans are all plans in order; nil for a rule.
	Plans []*trimtab.Plan
	// curves are those that were learnt, per service: see [Scenario.Cover].
	curves [][]learnt
	// used has, per service, the work done by the end of each second in core-seconds, and open how
	// many requests were unanswered then.
	used, open [][]float64
	// shares tells that Shares are weights below one quota.
	shares bool
	// answers are those of each service, in no order.
	answers [][]answer
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
	// second is called at the end of every second with what the instances did.
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

// play runs a scenario under a controller, with a front of that name before each service; "": none.
func play(s *Scenario, coming [][]Request, c controller, before string) (*Result, error) {
	n := len(s.Services)
	r := &Result{InTime: make([]float64, n), Requests: make([]float64, n), Shares: make([][]float64, n), Moves: make([]int, n),
		used: make([][]float64, n), open: make([][]float64, n), answers: make([][]answer, n)}
	at := begin(s, coming)
	if err := at.stand(before); err != nil {
		return nil, err
	}
	seen := make([]int, len(at.queues))
	for second := range s.Seconds {
		for k := range int(1 / step) {
			at.advance(c.shares(), float64(second)+float64(k)*step, k%steps)
		}
		done, before := make([][]answer, len(at.queues)), make([]float64, len(at.queues))
		for k, q := range at.queues {
			i := q.Place.Service
			done[k] = q.done[seen[k]:]
			seen[k] = len(q.done)
			for _, a := range done[k] {
				r.Requests[i]++
				if a.met(q.Latency) {
					r.InTime[i]++
				}
			}
			if before[k] = q.quota; len(r.Shares[i]) <= second {
				r.Shares[i], r.used[i], r.open[i] = append(r.Shares[i], 0), append(r.used[i], 0), append(r.open[i], 0)
			}
			r.Shares[i][second] += q.quota
			r.used[i][second] += q.used
			r.open[i][second] += float64(q.unanswered())
		}
		c.second(float64(second+1), at.queues, done)
		for k, q := range at.queues {
			if math.Abs(q.quota-before[k]) > 1e-9 {
				r.Moves[q.Place.Service]++
			}
		}
	}
	for _, q := range at.queues {
		i := q.Place.Service
		r.Requests[i] += float64(q.unanswered())
		r.answers[i] = append(r.answers[i], q.done...)
	}
	r.Windows = at.windows(s)
	return r, nil
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
		need[i] = max(n/5*q.costAt(t), 0.05*p.pool)
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

// split returns what a policy is without its front, and the name of that.
func split(policy string) (name, before string) {
	name, before, _ = strings.Cut(policy, "+")
	return name, before
}

// IsRule tells whether [Rule] plays a policy.
func IsRule(policy string) bool {
	name, _ := split(policy)
	return slices.Contains(Rules(), name)
}

// Rule plays a rule of thumb of [Rules], with +FRONT behind a front of [Fronts].
func Rule(s *Scenario, policy string, seed uint64) (*Result, error) {
	var c controller
	name, before := split(policy)
	switch name {
	case "weights":
		c = equal{kernel: true}
	case "equal":
		c = equal{}
	case "proportional":
		if s.Places != nil {
			return nil, trimtab.Invalidf("run %s: it knows one host", name)
		}
		c = &proportional{pool: s.Pool}
	default:
		if !strings.HasPrefix(name, oracle) || before != "" {
			return nil, trimtab.Invalidf("run %s: no such rule", policy)
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
	r, err := play(s, coming, c, before)
	if err != nil {
		return nil, err
	}
	r.Policy, r.Welfare = policy, Judge(utilities(s, r.Windows), Entitled(s, coming))
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
	n := len(s.All())
	c := &closed{scenario: s, loop: loop, shared: config.Shared, start: config.Start, spans: spans, sent: make([][]*trimtab.Sketch, len(s.Services)), curves: make([][]learnt, len(s.Services)),
		used: make([]float64, n), periods: make([]int, n), throttled: make([]int, n)}
	for i := range s.Services {
		v := &s.Services[i]
		c.scraped = append(c.scraped, &scraped{phase: (4 - 2*i + scrapeEvery) % scrapeEvery, name: v.Name, target: v.Fraction})
	}
	coming := arrivals(s, seed)
	_, before := split(name)
	r, err := play(s, coming, c, before)
	if err != nil {
		return nil, err
	}
	r.shares = c.shares()
	r.Policy, r.Plans, r.curves, r.Welfare = name, c.plans, c.curves, Judge(utilities(s, r.Windows), Entitled(s, coming))
	return r, nil
}

// late is how many seconds an interval waits for senders that collect spans for 5 s, as those of
// OpenTelemetry do by default.
const late = 6

// closed is the loop of production as a controller.
type closed struct {
	scenario *Scenario
	shared   bool
	loop     *cluster.Loop
	start    time.Time
	spans    bool
	// scraped is what Prometheus knows, per service.
	scraped []*scraped
	// sent are the sketches that are on their way, per service, the oldest first; nil: a second
	// of which nothing was told.
	sent               [][]*trimtab.Sketch
	used               []float64
	periods, throttled []int
	plans              []*trimtab.Plan
	curves             [][]learnt
}

func (c *closed) at(t float64) time.Time {
	return c.start.Add(time.Duration(t * float64(time.Second)))
}

func (c *closed) shares() bool { return c.shared }

func (c *closed) second(t float64, qs []*queue, done [][]answer) {
	now := c.at(t)
	all := make([][]answer, len(c.scenario.Services))
	served := make([][]trimtab.InstanceLoad, len(all))
	for k, q := range qs {
		i := q.Place.Service
		c.usage(t, k, q, c.fault(i, t) == NoCounters || c.fault(i, t) == Nothing)
		all[i] = append(all[i], done[k]...)
		if n := len(done[k]); n > 0 && c.scenario.Places != nil {
			served[i] = append(served[i], trimtab.InstanceLoad{Host: q.host(), Requests: float64(n)})
		}
	}
	for i := range all {
		v, fault := &c.scenario.Services[i], c.fault(i, t)
		seen, told := all[i], fault != NoRequests && fault != Nothing
		if fault == Half {
			seen = everySecond(seen)
		}
		if c.spans {
			var sketch *trimtab.Sketch
			if told {
				sketch = sketchOf(v, c.at(t-1), now, seen)
			}
			if sketch != nil {
				sketch.Wait = late
			}
			if sketch != nil && fault != Half {
				sketch.Instances = served[i]
			}
			if c.sent[i] = append(c.sent[i], sketch); len(c.sent[i]) > late {
				if c.sent[i][0] != nil {
					c.loop.Observe(now, c.sent[i][0])
				}
				c.sent[i] = c.sent[i][1:]
			}
			continue
		}
		p := c.scraped[i]
		if p.count(seen, v.Latency); told {
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
	c.look(t)
	c.plans = append(c.plans, c.loop.Plans()...)
	for _, q := range qs {
		for _, k := range c.loop.Knobs(q.Name) {
			if k.Host != q.host() && c.scenario.Places != nil {
				continue
			}
			if q.quota, q.capped = k.Now.Value, 0; k.Capped {
				q.capped = q.quota
			}
		}
		if q.front != nil {
			q.front.bound(t, c.loop.Limit(q.Name))
		}
	}
}

// fault is what of service i fails in the second that ends at t.
func (c *closed) fault(i int, t float64) Fault {
	if c.scenario.Fault == nil {
		return None
	}
	return c.scenario.Fault(i, t)
}

// host is what the host of an instance is called.
func (q *queue) host() string { return HostName(q.Host) }

// HostName is what the k-th host is called.
func HostName(k int) string { return fmt.Sprint("host-", k+1) }

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
		{Quantity: quantity.Usage, Value: q.used - c.used[i]},
		{Quantity: quantity.Throttled, Value: float64(q.throttled-c.throttled[i]) / float64(q.periods-c.periods[i])},
	} {
		v.Workload, v.Source, v.Time, v.Window = q.Name, "cgroup", c.at(t), 1
		if c.scenario.Places != nil {
			v.Host = q.host()
		}
		c.loop.Observe(c.at(t), v)
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
		if a.refused {
			if out.Refused == nil {
				out.Refused = map[string]float64{}
			}
			out.Refused[Classes()[a.class]]++
		} else {
			out.Latency.Add(a.end-a.at, 1)
		}
		if a.met(s.Latency) {
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
