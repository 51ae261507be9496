package fast

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/trimtab/trimtab/lab"
)

// hosts of the cluster, with so many CPUs each, or as many as their part of the pool.
const hosts, hostCPUs = 4, 40.0

// cluster is what a policy moves quotas in.
type cluster struct {
	apps     []*App
	groups   []*cgroup // of all applications, in order
	machines []*machine
	at       int // tick
	burst    bool
}

// newCluster places services, largest first, where the least is.
func newCluster(apps []*App, pool float64, burst bool, seed uint64) *cluster {
	c := &cluster{apps: apps, burst: burst}
	for range hosts {
		c.machines = append(c.machines, &machine{cpus: math.Max(hostCPUs, pool/hosts), capacity: pool / hosts})
	}
	a1, b1 := lab.Seed(seed, 0x7068617365)
	r := rand.New(rand.NewPCG(a1, b1))
	for _, a := range apps {
		a.forget()
		for i := range count {
			g := &cgroup{app: a, i: i, phase: r.IntN(steps), quota: math.Inf(1), weight: math.Max(a.mean[i], 1e-6)}
			c.groups = append(c.groups, g)
		}
	}
	order := slices.Clone(c.groups)
	slices.SortStableFunc(order, func(a, b *cgroup) int { return cmp.Compare(b.weight, a.weight) })
	load := [hosts]float64{}
	for _, g := range order {
		for h := range load {
			if load[h] < load[g.host] {
				g.host = h
			}
		}
		load[g.host] += g.weight
	}
	for _, g := range c.groups {
		c.machines[g.host].groups = append(c.machines[g.host].groups, g)
	}
	return c
}

// policy moves quotas before each tick.
type policy interface{ step(c *cluster) }

// Result is what came of one run.
type Result struct {
	// Quotas is the mean sum of quotas over the CPU used, Highest its 99.9% quantile.
	// Refilled is what writes refilled in the middle of periods, over the same: CPU time
	// that a sum of quotas does not show. Cores is both.
	Cores, Quotas, Refilled, Highest float64
	// Late is the share of requests over the SLO, the worst of all applications; P99 in ms.
	Late, P99 float64
	// MinutesOver counts those with more than 1% late, of Minutes.
	MinutesOver, Minutes int
	// Writes per second and service.
	Writes float64
	// Over counts ticks and hosts with a sum of quotas over the capacity; Second is the
	// highest use of a host in any second over its capacity.
	Over   int
	Second float64
	// Back are the recoveries after each onset, in s, sorted.
	Back []float64
}

// Holds reports whether the SLO was kept.
func (r *Result) Holds() bool { return r.Late <= lateGoal }

// play runs a policy; nil where stop said so.
func (c *cluster) play(p policy, stop func() bool) *Result {
	seconds := len(c.apps[0].Load.Rate)
	from := warm(seconds) * ticks
	total := make([]float64, 0, seconds*ticks)
	out, used, writes, refilled := &Result{}, 0.0, 0.0, 0.0
	for _, a := range c.apps {
		used += a.Used
	}
	for c.at = range seconds * ticks {
		if c.at%1000 == 0 && stop != nil && stop() {
			return nil
		}
		if c.at == from {
			for _, m := range c.machines {
				m.worst = 0
			}
			for _, g := range c.groups {
				writes, refilled = writes-float64(g.writes), refilled-g.extra
			}
		}
		p.step(c)
		sum := 0.0
		for _, m := range c.machines {
			host := 0.0
			for _, g := range m.groups {
				host += g.quota
			}
			sum += host
			if c.at >= from && host > m.capacity*(1+1e-6) {
				out.Over++
			}
		}
		if c.at >= from {
			total = append(total, sum)
		}
		for t := c.at * steps; t < (c.at+1)*steps; t++ {
			for _, m := range c.machines {
				m.step(t)
			}
		}
	}
	c.finish()
	for _, g := range c.groups {
		writes, refilled = writes+float64(g.writes), refilled+g.extra
	}
	for _, m := range c.machines {
		out.Second = math.Max(out.Second, m.worst)
	}
	out.Refilled = refilled / used / float64(seconds-from/ticks)
	out.Writes = writes / float64(len(c.groups)) / float64(seconds-from/ticks)
	out.Quotas, out.Highest = lab.Mean(total)/used, lab.Quantile(total, 0.999)/used
	out.Cores = out.Quotas + out.Refilled
	for _, a := range c.apps {
		out.judge(a, from*steps)
	}
	return out
}

// finish counts who still waits as late.
func (c *cluster) finish() {
	for _, g := range c.groups {
		if g.wait > 0 {
			n := len(g.app.n)
			g.done(n-1, n-1+slackSteps+1)
		}
	}
}

// judge adds what the users of one application saw.
func (r *Result) judge(a *App, from int) {
	const minute = 60 * ticks * steps
	r.Late = math.Max(r.Late, a.late(from, len(a.n)))
	r.P99 = math.Max(r.P99, a.p99(from, len(a.n)))
	for m := from; m < len(a.n); m += minute {
		r.Minutes++
		if a.late(m, m+minute) > lateGoal {
			r.MinutesOver++
		}
	}
	if a.Load.Steps {
		r.Back = append(r.Back, a.recoveries()...)
	}
}
