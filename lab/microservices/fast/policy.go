package fast

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/lab/baseline/quota"
	"github.com/trimtab/trimtab/planner/local"
)

// Names of policies; all but weights and oracle are played with burst, too. Weights is the
// kernel alone: one quota of a host's capacity, none below, equal weights.
const (
	Weights    = "weights"
	Static     = "static"
	K8sCPU     = "k8s-cpu"
	K8sCPUFast = "k8s-cpu-fast"
	Captain    = "captain"
	Tower      = "autothrottle"
	Escra      = "escra"
	Rounds     = "rounds"
	Fast       = "fast"
	Oracle     = "oracle"
)

// PolicyNames are those that --policy takes.
func PolicyNames() []string {
	return []string{Weights, Static, K8sCPU, K8sCPUFast, Captain, Tower, Escra, Rounds, Fast, Oracle}
}

// knobs of each policy, the safest first; nil: it has none.
func knobs(name string) (out []float64) {
	switch name {
	case Static, Rounds:
		for k := 4.5; k > 1; k *= 0.94 {
			out = append(out, k)
		}
	case K8sCPU, K8sCPUFast:
		for k := 2; k <= 19; k++ {
			out = append(out, 0.05*float64(k))
		}
	case Captain:
		return quota.Rungs()
	}
	return out
}

// bursts reports whether quotas of a policy can have a burst.
func bursts(name string) bool { return name != Weights && name != Oracle }

// newPolicy makes one, with a knob.
func (x *Experiment) newPolicy(name string, knob float64, c *cluster, seed uint64) policy {
	switch name {
	case Static:
		return &static{times: knob}
	case K8sCPU:
		return newRuled(quota.K8sCPU(knob), c)
	case K8sCPUFast:
		return newRuled(quota.K8sCPUFast(knob), c)
	case Captain:
		return newRuled(&quota.Captain{Targets: []float64{knob}}, c)
	case Tower:
		return newTower(c, x.bandits[bandit{seed, c.burst}].Copy(source(seed, 2)))
	case Escra:
		return newRuled(&quota.Escra{Pool: c.capacity()}, c)
	case Rounds:
		return &rounds{times: knob}
	case Fast:
		return newFast(c, x.Now)
	case Weights:
		return kernel{}
	}
	return oracle{}
}

func (c *cluster) capacity() (sum float64) {
	for _, m := range c.machines {
		sum += m.capacity
	}
	return sum
}

// set gives a service a quota, with all the burst it may have.
func (c *cluster) set(g *cgroup, quota float64) {
	burst := 0.0
	if c.burst {
		burst = quota
	}
	g.set(quota, burst)
}

// kernel leaves groups without quotas: the scheduler shares what a host has by equal weights.
type kernel struct{}

func (kernel) step(c *cluster) {
	if c.at > 0 {
		return
	}
	for _, g := range c.groups {
		g.weight = 1
	}
}

// static gives a multiple of the mean use, of hindsight.
type static struct{ times float64 }

func (p *static) step(c *cluster) {
	if c.at == 0 {
		for _, g := range c.groups {
			c.set(g, p.times*g.app.mean[g.i])
		}
	}
}

// ruled is a published rule.
type ruled struct {
	rule   quota.Rule
	looks  []quota.Look
	quotas []float64
}

func newRuled(r quota.Rule, c *cluster) *ruled {
	return &ruled{r, make([]quota.Look, len(c.groups)), make([]float64, len(c.groups))}
}

func (p *ruled) step(c *cluster) {
	for i, g := range c.groups {
		p.looks[i] = g.look()
	}
	p.rule.Step(c.at, p.looks, p.quotas)
	for i, g := range c.groups {
		c.set(g, p.quotas[i])
	}
}

// oracle knows what comes in the next period.
type oracle struct{}

func (oracle) step(c *cluster) {
	for _, g := range c.groups {
		x := g.wait
		for t := c.at * steps; t < (c.at+1)*steps; t++ {
			x += float64(g.app.work[g.i][t])
		}
		g.set(math.Max(0.001, x/tickLen), 0)
	}
}

// goal is what a round of 30 s knows of a service: what a request costs, and the highest
// second of the last round.
func goal(g *cgroup, at int) float64 {
	s := at / ticks
	rate := slices.Max(g.app.Load.Rate[max(0, s-roundSeconds):max(1, s)])
	return g.app.perRequest[g.i] * rate
}

const roundSeconds = 30

// rounds has no fast loop.
type rounds struct{ times float64 }

func (p *rounds) step(c *cluster) {
	if c.at%(roundSeconds*ticks) == 0 {
		for _, g := range c.groups {
			c.set(g, p.times*goal(g, c.at))
		}
	}
}

// The envelope that rounds give: multiples of the target, and the budget of stalls in a
// period, which follows what was late.
const (
	floorOf, ceilingOf       = 0.3, 6.0
	firstBudget              = 0.04
	leastBudget, mostBudget  = 0.01, 0.05
	budgetFalls, budgetRises = 0.7, 1.05
	budgetLate, budgetTimely = 0.01, 0.005
	shareLate                = 0.006
	leaseSeconds             = 90
)

// fast is the loop of planner/local on each host, with rounds that give envelopes.
type fast struct {
	hosts   []*local.Host
	groups  [][]*cgroup
	budget  map[*App]float64
	looks   []local.Look
	found   []float64
	watch   lab.Watch
	ticks   int
	longest time.Duration
	spent   time.Duration
	// times is what targets are of the goal; frozen: quotas are fixed at them.
	times  float64
	frozen bool
}

func newFast(c *cluster, watch lab.Watch) *fast {
	p := &fast{budget: map[*App]float64{}, watch: watch, times: 1}
	for _, m := range c.machines {
		p.hosts = append(p.hosts, local.New())
		p.groups = append(p.groups, m.groups)
		p.looks = append(p.looks, local.Look{Groups: make([]local.Reading, len(m.groups))})
	}
	for _, a := range c.apps {
		p.budget[a] = firstBudget
	}
	return p
}

// plan is a round: targets, and the budget.
func (p *fast) plan(c *cluster) {
	for _, a := range c.apps {
		if c.at == 0 {
			continue
		}
		late := a.late((c.at-roundSeconds*ticks)*steps, c.at*steps)
		b := p.budget[a]
		switch {
		case late > budgetLate:
			b *= budgetFalls
		case late < budgetTimely:
			b *= budgetRises
		}
		p.budget[a] = math.Min(mostBudget, math.Max(leastBudget, b))
	}
	for h, groups := range p.groups {
		plan := local.Plan{Capacity: c.machines[h].capacity, Until: time.Duration(c.at)*local.Tick + leaseSeconds*time.Second}
		sum := 0.0
		for _, g := range groups {
			sum += p.times * goal(g, c.at)
		}
		fits := math.Min(1, plan.Capacity/math.Max(sum, 1e-9)*(1-1e-9))
		for k, g := range groups {
			t := p.times * goal(g, c.at) * fits
			e := trimtab.Envelope{Floor: floorOf * t, Target: t, Ceiling: math.Min(ceilingOf*t, math.Max(t, plan.Capacity)),
				Budget: trimtab.Seconds(p.budget[g.app]), Late: shareLate, Lend: true, Borrow: true}
			switch {
			case p.frozen:
				e.Floor, e.Ceiling, e.Lend, e.Borrow = t, t, false, false
			case c.burst:
				e.Burst = e.Ceiling
			}
			plan.Groups = append(plan.Groups, local.Group{Name: fmt.Sprint(k), Envelope: e})
		}
		plan.Lendable = math.Max(0, plan.Capacity-sum*fits)
		if err := p.hosts[h].SetPlan(&plan); err != nil {
			panic(err) // a mistake of this package
		}
	}
	if c.at == 0 {
		for _, g := range c.groups {
			c.set(g, p.times*goal(g, 0))
		}
	}
}

func (p *fast) step(c *cluster) {
	if c.at%(roundSeconds*ticks) == 0 {
		p.plan(c)
	}
	for h, groups := range p.groups {
		l := &p.looks[h]
		l.At = time.Duration(c.at) * local.Tick
		for k, g := range groups {
			l.Groups[k] = local.Reading{State: local.Fresh, Used: g.used, Stalled: g.stalled, Set: g.quota}
		}
		begin := p.watch()
		d := p.hosts[h].Tick(l)
		p.carry(groups, d.Shrinks)
		p.found = p.found[:0]
		for _, g := range groups {
			p.found = append(p.found, g.quota)
		}
		p.carry(groups, p.hosts[h].Grow(p.found))
		took := p.watch() - begin
		p.spent += took
		p.longest = max(p.longest, took)
		p.ticks++
	}
}

func (p *fast) carry(groups []*cgroup, writes []local.Write) {
	for _, w := range writes {
		groups[w.Group].set(w.Set, w.Burst)
	}
}

// tower is Autothrottle: captains, and targets for two groups of services every minute.
type tower struct {
	captain *quota.Captain
	ruled   *ruled
	tower   *quota.Tower
	busy    []bool
	gave    float64
	explore float64
	uniform bool
}

// newTower is a tower that knows nothing; services are told apart by their mean use.
func newTower(c *cluster, t *quota.Tower) *tower {
	p := &tower{captain: &quota.Captain{Targets: make([]float64, len(c.groups))}, tower: t, busy: twoMeans(c.groups)}
	p.ruled = newRuled(p.captain, c)
	return p
}

const (
	bucketRate = 200                        // requests/s, for hotel reservation
	dropped    = 180 * quota.TicksPerSecond // ticks at the start of a run that teach nothing
)

func source(seed, stream uint64) *rand.Rand {
	a, b := lab.Seed(seed, 0x746f776572, stream)
	return rand.New(rand.NewPCG(a, b))
}

// newBandit is a Tower for an experiment.
func newBandit(seed uint64) *quota.Tower {
	return &quota.Tower{SLO: slo, Bucket: bucketRate, Rand: source(seed, 1)}
}

func (p *tower) step(c *cluster) {
	const minute = quota.TowerTicks
	if c.at%minute == 0 {
		rate := 0.0
		if c.at > 0 {
			a := c.apps[0]
			for _, r := range a.Load.Rate[c.at/ticks-60 : c.at/ticks] {
				rate += r / 60
			}
			// Of uniform pairs one minute is to settle, and the next counts.
			if c.at >= dropped && (!p.uniform || c.at/minute%2 == 0) {
				p.tower.Learn(rate, a.p99((c.at-minute)*steps, c.at*steps), p.gave/minute)
			}
		} else {
			rate = c.apps[0].Load.Rate[0]
		}
		p.gave = 0
		if !p.uniform || c.at/minute%2 == 0 {
			p.choose(rate)
		}
	}
	p.ruled.step(c)
	for _, q := range p.ruled.quotas {
		p.gave += q
	}
}

func (p *tower) choose(rate float64) {
	var busy, others float64
	if p.uniform {
		busy, others = p.tower.Uniform()
	} else {
		busy, others = p.tower.Choose(rate, p.explore)
	}
	for i, b := range p.busy {
		p.captain.Targets[i] = others
		if b {
			p.captain.Targets[i] = busy
		}
	}
}

// twoMeans tells the busy services from the others by their mean use.
func twoMeans(groups []*cgroup) []bool {
	low, high := math.Inf(1), 0.0
	for _, g := range groups {
		low, high = math.Min(low, g.app.mean[g.i]), math.Max(high, g.app.mean[g.i])
	}
	out := make([]bool, len(groups))
	for range 50 {
		sums, n := [2]float64{}, [2]float64{}
		for i, g := range groups {
			m := g.app.mean[g.i]
			k := 0
			if out[i] = high-m < m-low; out[i] {
				k = 1
			}
			sums[k] += m
			n[k]++
		}
		low, high = sums[0]/math.Max(1, n[0]), sums[1]/math.Max(1, n[1])
	}
	return out
}
