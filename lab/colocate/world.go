package colocate

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/trimtab/trimtab/lab"
	control "github.com/trimtab/trimtab/planner/colocate"
)

// PeriodSeconds is the length of a period: the controllers decide once in each.
const PeriodSeconds = 2.0

const period = time.Duration(PeriodSeconds * float64(time.Second))

// service is one of a run.
type service struct {
	*Service
	slo      float64
	visits   []float64
	stations []station
	backlog  []float64
	sampler  *sampler
	// hosts of the components, by number; of are those, each once.
	hosts, of []int
	pods      []pod
	rand      *rand.Rand
	// to are the sensitivities of the components, in the order of resources.
	to [][4]Sensitivity
	// load and p99 are those of the newest period, as they were measured.
	load, p99 float64
	tally     serviceTally
}

// pod is what is known of the components of a service on one host.
type pod struct {
	host                  int
	share                 float64
	loadLimit, slackLimit *float64
}

type serviceTally struct {
	periods, held int
	worst, load   float64
}

// world is a run. It is not safe for concurrent use.
type world struct {
	env      *Environment
	services []*service
	hosts    []*host
	oracle   *oracle
	now      time.Time
	shown    [][]control.Service
}

// newWorld returns one in which nothing runs yet, with the SLOs of the profiles.
func newWorld(e *Environment, known []Profile, seed uint64) *world {
	w := &world{env: e, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), shown: make([][]control.Service, len(e.Hosts))}
	at := map[string]int{}
	for k := range e.Hosts {
		at[e.Hosts[k].Name] = k
		w.hosts = append(w.hosts, newHost(e, k, seed))
	}
	for i := range e.Services {
		s := newService(&e.Services[i], at, seed, uint64(i))
		if known != nil {
			s.slo = known[i].SLO
			s.pods = known[i].pods(at)
		}
		w.services = append(w.services, s)
	}
	return w
}

func newService(of *Service, at map[string]int, seed, number uint64) *service {
	a, b := lab.Seed(seed, 0x6c6f6164, number)
	n := len(of.Components)
	s := &service{Service: of, slo: of.SLO, stations: make([]station, n), backlog: make([]float64, n),
		sampler: newSampler(of, seed, 0x70393939, number), rand: rand.New(rand.NewPCG(a, b))}
	seen := map[int]bool{}
	for i := range of.Components {
		c := &of.Components[i]
		h := at[c.Host]
		s.visits, s.hosts = append(s.visits, of.Call.visits(c.Name)), append(s.hosts, h)
		var to [4]Sensitivity
		for k, r := range resources() {
			to[k] = c.Sensitivity[r]
		}
		s.to = append(s.to, to)
		if !seen[h] {
			s.of, seen[h] = append(s.of, h), true
		}
	}
	return s
}

// slowed sets service time and pauses of a component under pressure.
func (s *station) slowed(c *Component, to *[4]Sensitivity, p *pressure) {
	grown, stall, paused := 1.0, 0.0, 0.0
	for i, x := range [...]float64{p.cpu, p.llc, p.membw, p.network} {
		if x == 0 {
			continue
		}
		to := &to[i]
		grown += to.Slowdown * x * x
		stall += to.Stall * x * x
		paused += to.Stall * x * x * to.Pause
	}
	s.mean, s.floor, s.pause = c.Mean*grown, c.Floor, 0
	if stall > 0 && paused > 0 {
		s.pause, s.logStall = paused/stall, math.Log(math.Min(1, stall))
	}
}

// serve plays a period of a service at a load, with the pressure on its hosts.
func (s *service) serve(load float64, hosts []*host) {
	rate := load * s.MaxLoad
	for i := range s.Components {
		c := &s.Components[i]
		st := &s.stations[i]
		var p pressure
		if hosts != nil {
			p = hosts[s.hosts[i]].press
		}
		st.slowed(c, &s.to[i], &p)
		s.backlog[i] = st.queue(rate*s.visits[i], c.CV, c.Servers, s.backlog[i])
	}
	s.p99 = s.sampler.p99(s.stations, samples(rate*PeriodSeconds))
	// What is counted in a period is a Poisson number of requests.
	expected := rate * PeriodSeconds
	s.load = math.Max(0, expected+math.Sqrt(expected)*s.rand.NormFloat64()) / PeriodSeconds / s.MaxLoad
}

func (s *service) noisy(load, noise float64) float64 {
	if noise == 0 {
		return load
	}
	return load * math.Exp(noise*s.rand.NormFloat64())
}

// play lets a period pass at a load.
func (w *world) play(load float64) {
	for i, s := range w.services {
		l := s.noisy(load, w.env.Load.Noise)
		if w.oracle != nil {
			w.oracle.place(w, s, l)
		}
		s.serve(l, w.hosts)
		s.tally.periods++
		s.tally.load += math.Min(l, 1)
		if s.p99 <= s.slo {
			s.tally.held++
		}
		if w.oracle != nil {
			w.oracle.learn(i, l, s.p99 <= s.slo)
		}
		s.tally.worst = math.Max(s.tally.worst, s.p99/s.slo)
	}
	for _, h := range w.hosts {
		cores, bandwidth := h.busy, h.moved
		for _, at := range h.components {
			s := w.services[at[0]]
			c := &s.Components[at[1]]
			cores += c.Cores * math.Min(1, s.stations[at[1]].busy)
			bandwidth += c.Bandwidth * s.load
		}
		h.tally.cpu += cores / h.Cores
		h.tally.membw += math.Min(1, bandwidth)
		h.run(PeriodSeconds)
	}
	w.now = w.now.Add(period)
}

// decide lets the policy of each host act on the period that just passed.
func (w *world) decide() {
	for k := range w.shown {
		w.shown[k] = w.shown[k][:0]
	}
	for _, s := range w.services {
		slack, load := (s.slo-s.p99)/s.slo, s.load
		for i := range s.pods {
			p := &s.pods[i]
			w.shown[p.host] = append(w.shown[p.host], control.Service{Workload: s.Name, Slack: &slack, Load: &load, Share: p.share, LoadLimit: p.loadLimit, SlackLimit: p.slackLimit})
		}
	}
	for k, h := range w.hosts {
		used := 0.0
		for _, at := range h.components {
			s := w.services[at[0]]
			used += s.Components[at[1]].Network * s.load
		}
		d := h.policy.Decide(h.observe(w.now, w.shown[k], used))
		h.apply(&d)
	}
}
