//go:build integration

package console_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/console"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/loopback"
	"github.com/trimtab/trimtab/whatif"
)

// scene is a console over a real bus, and what publishes to it.
type scene struct {
	t       *testing.T
	ctx     context.Context
	bus     *natsbus.Bus
	view    *view.Model
	url     string
	address string
	handler http.Handler
	server  *http.Server
	mu      sync.Mutex
	waiting map[string]string // what is not ready
	missing map[string]bool   // workloads whose load is missing
	have    map[string]float64
	rand    *rand.Rand
}

const sceneRound = 5 * time.Second

// newScene serves a console for the given workloads.
func newScene(t *testing.T, c view.Config) *scene {
	t.Helper()
	s := &scene{t: t, ctx: t.Context(), waiting: map[string]string{}, missing: map[string]bool{}, have: map[string]float64{}, rand: rand.New(rand.NewPCG(1, 2))}
	var err error
	if s.bus, err = natsbus.Open(s.ctx, natsbus.Config{Dir: t.TempDir(), Source: "scene"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.bus.Close() })
	s.view = view.New(c)
	stop, err := s.view.Follow(s.ctx, s.bus)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	s.handler = console.Handler(s.view, console.Options{
		Bus: s.bus, Leader: func(context.Context, string) (string, uint64, error) { return "host-a:4711", 3, nil },
		Ready: s.notReady, Stages: s.stages, WhatIf: s.whatIf, Send: s.send,
	})
	s.serve(loopback.Address(t)) // once more after a cut
	t.Cleanup(s.cut)
	return s
}

// send carries out what is approved, as a planner would.
func (s *scene) send(ctx context.Context, c *trimtab.Command) error {
	return s.bus.Publish(ctx, &trimtab.Plan{Pool: "shop", Epoch: 3, Sequence: 900, Step: 1, Last: true, Time: time.Now(), Lease: 30, Objective: "njc", Capacity: 20,
		Cause: trimtab.Cause{Kind: codes.CauseApply, Ref: c.Plan, By: c.By}, Applies: c.Plan})
}

// whatIf divides the capacity in proportion to what workloads have, by their curves.
// The planner's own answer is tested where it is wired.
func (s *scene) whatIf(change whatif.Change, now time.Time) (*whatif.Answer, error) {
	a := &whatif.Answer{Time: now, Pool: "shop", Objective: "njc", Resource: "cpu", Change: change, CapacityBefore: 20, CapacityAfter: 20, Assumes: []string{}, Workloads: []whatif.Workload{}}
	if c, ok := change.Capacity["cpu"]; ok {
		a.CapacityAfter = c
	}
	if a.CapacityAfter < 6 {
		return nil, fmt.Errorf("answer what-if: the minimums need 6: %w", trimtab.ErrInfeasible)
	}
	estimates, _ := s.view.Newest(now)
	for _, e := range estimates {
		w := whatif.Workload{Workload: e.Workload, Share: true, Now: *e.Allocation, Effect: whatif.Stays}
		at := func(allocation float64) whatif.Outlook {
			b := e.Curve.Eval(allocation)
			return whatif.Outlook{Allocation: allocation, SLO: .95, Weight: 1, Performance: &b, Meets: whatif.ProspectOf(&b, .95)}
		}
		w.Before, w.After = at(*e.Allocation), at(*e.Allocation*a.CapacityAfter/20)
		if e.Hold != nil {
			w.Effect, w.Held, w.After = whatif.Holds, e.Hold.Text, w.Before
			a.Hold++
		} else if w.Moved() < 0 {
			w.Effect = whatif.Pays
			a.Pay++
		} else if w.Moved() > 0 {
			w.Effect = whatif.Gains
			a.Gain++
		}
		a.Workloads = append(a.Workloads, w)
	}
	return a, nil
}

func (s *scene) serve(address string) {
	s.t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		s.t.Fatal(err)
	}
	s.server = &http.Server{Handler: s.handler, ReadHeaderTimeout: time.Minute}
	s.address = l.Addr().String()
	s.url = "http://" + s.address
	go s.server.Serve(l)
}

// cut ends the server and every connection; mend starts it again.
func (s *scene) cut() { s.server.Close() }

func (s *scene) notReady() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := map[string]string{}
	for k, v := range s.waiting {
		out[k] = v
	}
	return out
}

func (s *scene) stages() []view.StageState {
	bad := s.notReady()
	var out []view.StageState
	for _, name := range []string{"collector", "analyzer", "planner", "actuator"} {
		stage := view.StageState{Name: name, Ready: bad[name] == "", Reason: bad[name]}
		if !stage.Ready {
			stage.Since = time.Now().Add(-95 * time.Second)
		}
		out = append(out, stage)
	}
	return out
}

// publish sends values, and fails the test when one is refused.
func (s *scene) publish(values ...trimtab.Value) {
	s.t.Helper()
	for _, v := range values {
		if err := s.bus.Publish(s.ctx, v); err != nil {
			s.t.Fatalf("publish %s %s: %v", v.Kind(), v.Key(), err)
		}
	}
}

// seen waits until cond holds of the view.
func (s *scene) seen(what string, cond func() bool) {
	s.t.Helper()
	for deadline := time.After(90 * time.Second); ; {
		changed := s.view.Changed()
		if cond() {
			return
		}
		select {
		case <-changed:
		case <-deadline:
			s.t.Fatalf("the view did not see %s", what)
		}
	}
}

// service is one workload of a scene: how much load it has, and how much of
// the resource each request needs.
type service struct {
	name        string
	class       trimtab.Class
	mode        trimtab.Mode
	slo         float64
	load, need  float64
	has, wanted float64
}

// shop is a pool as people have them.
func shop() []service {
	const critical, batch = trimtab.LatencyCritical, trimtab.BestEffort
	return []service{
		{"checkout", critical, trimtab.Act, .95, 310, .0105, 2.4, 3.7},
		{"search", critical, trimtab.Act, .9, 820, .0062, 2.8, 5.0},
		{"cart", critical, trimtab.Act, .95, 240, .004, 1.4, 1.2},
		{"payments", critical, trimtab.Recommend, .99, 95, .008, 1.2, 1.2},
		{"recommender", critical, trimtab.Act, .8, 410, .0055, 2.6, 2.2},
		{"thumbnails", batch, trimtab.Act, .5, 60, .02, 1.6, 1.1},
		{"nightly-report", batch, trimtab.Recommend, .5, 4, .2, .9, .8},
		{"mail", batch, trimtab.Off, 0, 12, .01, .4, .4},
	}
}

func shopConfig(services []service) view.Config {
	c := view.Config{Pool: "shop", Resource: "cpu", Capacity: 20, Objective: "njc", Round: 4 * sceneRound}
	for _, s := range services {
		w := view.Workload{Name: s.name, Class: s.class, Mode: s.mode, Share: true}
		if s.slo > 0 {
			w.SLO, w.Target = fmt.Sprintf("%.0f%% under 200ms", 100*s.slo), s.slo
			w.Utility = func(p float64) float64 { return min(1, p/s.slo) }
		}
		c.Workloads = append(c.Workloads, w)
	}
	return c
}

// performanceAt is the truth of the scene: how much of the load is in time.
func (s *service) performanceAt(a, load float64) float64 {
	return 1 - math.Exp(-math.Pow(a/(load*s.need), 2.2)*3)
}

func (s *service) demand(load float64) float64 {
	return load * s.need * math.Pow(-math.Log(1-max(.5, s.slo))/3, 1/2.2)
}

// estimate is what the analyzer would say of s at t, the n-th round.
func (s *scene) estimate(w *service, t time.Time, n int) *trimtab.Estimate {
	load := w.load * (1 + .25*math.Sin(float64(n)/17+w.load) + .05*s.rand.NormFloat64())
	a := s.have[w.name]
	p := min(1, max(0, w.performanceAt(a, load)+.02*s.rand.NormFloat64()))
	e := &trimtab.Estimate{Workload: w.name, Time: t, Performance: &p, Allocation: &a, Reports: n, Model: "bintree/1",
		Load: &trimtab.LoadForecast{Now: load, Mean: load * 1.03, Upper: load * 1.22, Level: .9, Model: "arma(1,1)"},
		Inputs: []trimtab.Input{{Name: "load", Value: load, Age: .8, Source: "spans"}, {Name: "performance", Value: p, Age: .8, Source: "spans"},
			{Name: "allocation", Value: a, Age: .3, Source: "cgroup"}, {Name: "throttled", Value: .04, Age: 1.4, Source: "prometheus"}}}
	curve := &trimtab.Curve{Load: load * 1.22, Level: .9}
	for i := range 25 {
		x := .2 + 6*float64(i)/24
		mean := w.performanceAt(x, load*1.22)
		wide := .02 + .05*math.Abs(x-a)/(1+.2*float64(n%40))
		curve.Knots = append(curve.Knots, trimtab.Knot{Allocation: x, Band: trimtab.Band{Lower: max(0, mean-wide), Mean: mean, Upper: min(1, mean+wide)}})
	}
	e.Curve = curve
	if w.name == "search" {
		// It was given less than it needs.
		p = min(p, .72+.02*s.rand.Float64())
		e.Refused = map[string]float64{"low": 40, "normal": 3}
	}
	// A share of 99% within 200 ms is a p99 of 200 ms.
	e.Latency = map[string]trimtab.Seconds{"p50": trimtab.Seconds(.05 * (2 - p)), "p99": trimtab.Seconds(.2 * (1 + 3*(.99-p)))}
	if s.missing[w.name] {
		e.Hold = &trimtab.Held{Code: codes.HeldMissing, Text: "no load from spans for 3 rounds"}
		e.Load = nil
		e.Inputs[0] = trimtab.Input{Name: "load", Source: "spans", Missing: "no spans arrive", Age: 34}
	}
	return e
}

// plan moves each workload a step towards what it wants.
func (s *scene) plan(services []service, sequence uint64, t time.Time) (*trimtab.Plan, *trimtab.Outcome) {
	value := .93
	p := &trimtab.Plan{Pool: "shop", Epoch: 3, Sequence: sequence, Step: 1, Last: true, Time: t, Lease: 30, Cause: trimtab.Cause{Kind: codes.CauseTick}, Objective: "njc", Capacity: 20, Value: &value}
	p.Audit = &trimtab.Audit{Now: trimtab.Fairness{Slack: .03, Least: .91}, Target: &trimtab.Fairness{Least: .97},
		Resources: []trimtab.AuditedResource{{Resource: "cpu", Capacity: 20, Used: 14.9, Demanded: 17.2, Binds: 3}, {Resource: "memory", Capacity: 64 << 30, Used: 22 << 30, Demanded: 25 << 30}}}
	if sequence%7 == 0 {
		p.Cause = trimtab.Cause{Kind: codes.CauseAlert, Text: "alert CheckoutSlow (checkout)"}
	}
	o := &trimtab.Outcome{Pool: "shop", Host: "host-a", Epoch: 3, Sequence: sequence, Step: 1, Time: t.Add(40 * time.Millisecond), Took: .031}
	for i := range services {
		w := &services[i]
		judge(p.Audit, w, s.have[w.name])
		if w.mode == trimtab.Off || s.missing[w.name] {
			if w.mode != trimtab.Off {
				p.Held = map[string]trimtab.Held{w.name: {Code: codes.HeldMissing, Text: "no load from spans for 3 rounds"}}
			}
			continue
		}
		now := s.have[w.name]
		next := now + max(-.1, min(.2, w.wanted*(1+.12*math.Sin(float64(sequence)/3))-now))
		if math.Abs(next-now) < .02 {
			continue
		}
		next = math.Round(next*100) / 100
		binding := trimtab.Binding{Kind: codes.BindingNone}
		if math.Abs(next-now) > .09 {
			binding.Kind = codes.BindingStep
		}
		p0 := w.performanceAt(now, w.load*(1+.25*math.Sin(4*float64(sequence)/17+w.load)))
		demand, target, utility := w.demand(w.load*1.22), w.wanted, .97
		verb := "raise"
		if next < now {
			verb = "lower"
		}
		p.Actions = append(p.Actions, trimtab.Action{KnobID: trimtab.KnobID{Pool: p.Pool, Host: "host-a", Workload: w.name, Resource: "cpu"}, Expect: trimtab.Units(now), Set: trimtab.Units(next), Mode: w.mode,
			Why: trimtab.Reason{Summary: fmt.Sprintf("%s: %s from %.2f to %.2f cores: the least that keeps everybody's guarantee and meets the SLO at the forecast load", w.name, verb, now, next),
				Model: "bintree/1", Bounds: &trimtab.Band{Lower: .88, Mean: .93, Upper: .97}, Utility: &utility, Target: &target, Demand: &demand, Binding: binding,
				Inputs:       []trimtab.Input{{Name: "load", Value: w.load, Age: .8, Source: "spans"}, {Name: "performance", Value: p0, Age: .8, Source: "spans"}, {Name: "usage", Missing: "no answer from Prometheus", Source: "prometheus"}},
				Alternatives: []trimtab.Alternative{{Set: now, Objective: .89, Why: "stay: the SLO would be missed at the forecast load"}, {Set: next + .4, Objective: .91, Why: "more: it would come from search"}}}})
		status := trimtab.Written
		if w.mode == trimtab.Recommend {
			status = trimtab.Recommended
		} else {
			s.have[w.name] = next
		}
		o.Results = append(o.Results, trimtab.Result{KnobID: trimtab.KnobID{Pool: o.Pool, Host: o.Host, Workload: w.name, Resource: "cpu"}, Status: status, Found: trimtab.Units(next), Known: true})
	}
	return p, o
}

// judge adds a workload to an audit.
func judge(audit *trimtab.Audit, w *service, has float64) {
	a := trimtab.AuditedWorkload{Workload: w.name, Entitlement: 1. / 8, Share: has / 16, Dominant: "cpu"}
	if w.mode != trimtab.Off {
		satisfied := min(1, has/w.demand(w.load*1.22))
		a.Satisfaction = &satisfied
		if satisfied < .99 {
			a.Binding, a.Shortfall, a.Envy, a.Envies = "cpu", (1-satisfied)/2, .04, "search"
			audit.Now.Short, audit.Now.Shortfall, audit.Now.Envious, audit.Now.Envy = 1, a.Shortfall, 1, .04
		}
	}
	if len(audit.Workloads) == trimtab.MaxAudited {
		audit.Omitted++
		return
	}
	audit.Workloads = append(audit.Workloads, a)
}

func (s *scene) holding(services []service, t time.Time, epoch, sequence uint64) *trimtab.Holding {
	h := &trimtab.Holding{Pool: "shop", Host: "host-a", Time: t, Epoch: epoch, Sequence: sequence, LeaseLeft: 28, Capacity: map[string]float64{"cpu": 18, "memory": 64 << 30}}
	for _, w := range services {
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: h.Pool, Host: h.Host, Workload: w.name, Resource: "cpu"}, Knob: "cgroup v2 shop.slice/" + w.name + ".service",
			Now: trimtab.Units(s.have[w.name]), Since: t.Add(-time.Minute), Baseline: trimtab.Units(w.has), Min: .2, Max: 8})
	}
	return h
}

// calls is the call graph of the first service, of which the tail grew in one
// component.
func (s *scene) calls(services []service, t time.Time) *colocation.Contributions {
	tail := .31
	c := &colocation.Contributions{Workload: services[0].name, Time: t, Window: 10, Load: 300, MaxLoad: 420, SLO: .2, Quantile: .99, Tail: &tail, Requests: 3000, Levels: 5,
		Growth: &colocation.TailGrowth{Changed: true, Quantile: .99, Before: .12, After: tail, Since: t.Add(-time.Minute), Parts: []colocation.GrowthPart{{Component: "inventory", Host: "host-b.rack-7.example", Share: .91, Before: .011, After: .14}}}}
	for i, name := range []string{"cart", "checkout", "currency", "inventory", "payments-of-a-provider-with-a-long-name", "postgres", "redis"} {
		c.Servpods = append(c.Servpods, colocation.Servpod{Component: name, Host: "host-b.rack-7.example", Sojourn: .004 * float64(i+1), Weight: .1, Correlation: .5, Variation: .2, Contribution: []float64{.01, .02, .003, .16, .03, .05, .001}[i]})
	}
	for _, x := range [][2]string{{"cart", "redis"}, {"checkout", "cart"}, {"checkout", "currency"}, {"checkout", "inventory"}, {"checkout", "payments-of-a-provider-with-a-long-name"}, {"inventory", "postgres"}, {"postgres", "inventory"}} {
		c.Calls = append(c.Calls, colocation.Call{From: x[0], To: x[1], Rate: 300})
	}
	return c
}

// beside is what a second host holds: two more instances of the first service
// there is, one of which cannot be read.
func (s *scene) beside(services []service, t time.Time) *trimtab.Holding {
	h := &trimtab.Holding{Pool: "shop", Host: "host-b.rack-7.example", Time: t, LeaseLeft: 28, Capacity: map[string]float64{"cpu": 4}}
	w := services[4]
	for n, problem := range []string{"", "read cpu.max of shop.slice/" + w.name + "@2.service: no such file or directory"} {
		h.Targets = append(h.Targets, trimtab.KnobState{KnobID: trimtab.KnobID{Pool: h.Pool, Host: h.Host, Workload: w.name, Instance: fmt.Sprint(n + 1), Resource: "cpu"},
			Knob: fmt.Sprintf("cgroup v2 shop.slice/%s@%d.service", w.name, n+1), Now: trimtab.Units(1.2), Since: t.Add(-time.Minute), Baseline: trimtab.Units(1), Min: .2, Max: 3, Problem: problem})
	}
	return h
}

// play lets the shop run for so many rounds that end now.
func (s *scene) play(services []service, rounds int) {
	s.t.Helper()
	for i := range services {
		s.have[services[i].name] = services[i].has
	}
	start := time.Now().Add(-time.Duration(rounds) * sceneRound)
	for n := 1; n <= rounds; n++ {
		if n == rounds-6 {
			s.missing["payments"] = true
		}
		s.step(services, start.Add(time.Duration(n)*sceneRound), n)
	}
}

// step is one round: estimates, what is held, and in every fourth a plan. It
// waits until the view has the round, for the bus keeps only the latest.
func (s *scene) step(services []service, t time.Time, n int) {
	s.t.Helper()
	for i := range services {
		s.publish(s.estimate(&services[i], t, n))
	}
	if n%4 == 0 {
		p, o := s.plan(services, uint64(n/4), t.Add(200*time.Millisecond))
		s.publish(p, o)
	}
	s.publish(s.calls(services, t), s.beside(services, t.Add(time.Second)), s.holding(services, t.Add(time.Second), 3, uint64(n/4)))
	last := services[len(services)-1].name
	s.seen("the round", func() bool {
		h, ok := s.view.History(last, t.Add(-time.Millisecond), time.Now())
		return ok && len(h.Time) > 0
	})
}
