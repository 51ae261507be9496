package fast

import (
	"math"

	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/lab/baseline/quota"
)

// cgroup is one service: CFS bandwidth and a FIFO of work.
type cgroup struct {
	app  *App
	i    int
	host int
	// phase is the step of a tick at which its period begins.
	phase int

	quota, burst float64 // cores
	runtime      float64 // core-seconds
	weight       float64
	wait         float64 // core-seconds
	head         int     // the oldest step whose work waits
	left         float64 // of it

	used, stalled   float64 // counters
	standing        float64 // of a stall that goes on
	stopped         bool    // in this period
	throttled       int     // counter
	usedBefore      float64
	throttledBefore int
	writes          int
	extra           float64 // core-seconds that writes refilled
}

// refill is the kernel's, at a period and at every write.
func (c *cgroup) refill() {
	q := c.quota * tickLen
	c.runtime = math.Min(math.Max(0, c.runtime)+q, q+math.Min(c.burst, c.quota)*tickLen)
	c.stalled, c.standing = c.stalled+c.standing, 0
}

// set writes a quota.
func (c *cgroup) set(quota, burst float64) {
	if math.Abs(quota-c.quota) < 1e-5 && math.Abs(burst-c.burst) < 1e-5 {
		return
	}
	if math.IsInf(c.quota, 1) || c.writes == 0 {
		c.runtime = 0
	}
	c.quota, c.burst = quota, burst
	c.writes++
	before := math.Max(0, c.runtime)
	c.refill()
	c.extra += math.Max(0, c.runtime-before)
}

// take adds the work of step t.
func (c *cgroup) take(t int) {
	if (t+c.phase)%steps == 0 {
		c.stopped = false
		if !math.IsInf(c.quota, 1) {
			c.refill()
		}
	}
	x := float64(c.app.work[c.i][t])
	if c.wait <= 0 || c.head >= t {
		c.wait = math.Max(0, c.wait)
		c.head, c.left = t, x+c.wait
	}
	c.wait += x
}

// demand is what it can use in a step, in core-seconds.
func (c *cgroup) demand(most float64) float64 {
	x := math.Min(c.wait, most)
	if !math.IsInf(c.quota, 1) {
		x = math.Min(x, c.runtime)
	}
	return x
}

// serve takes s core-seconds of work off the queue in step t.
func (c *cgroup) serve(t int, s float64) {
	c.runtime -= s
	c.used += s
	c.wait -= s
	if c.wait < 1e-9 {
		c.done(t, t)
		c.wait = 0
		return
	}
	for s > 0 && c.head <= t {
		if c.left > s {
			c.left -= s
			break
		}
		s -= c.left
		c.delay(c.head, t)
		if c.head++; c.head <= t {
			c.left = float64(c.app.work[c.i][c.head])
		}
	}
	if c.runtime <= 1e-9 && !math.IsInf(c.quota, 1) {
		c.standing += stepLen
		if !c.stopped {
			c.stopped = true
			c.throttled++
		}
	}
}

// done tells that all work up to step last was done in step t.
func (c *cgroup) done(last, t int) {
	for ; c.head <= last; c.head++ {
		c.delay(c.head, t)
	}
	c.left = 0
}

func (c *cgroup) delay(of, t int) {
	if t > of {
		c.app.delays[c.i][of] = uint16(min(t-of, longest))
	}
}

// look is what the last tick showed.
func (c *cgroup) look() quota.Look {
	l := quota.Look{Used: (c.used - c.usedBefore) / tickLen, Throttled: c.throttled - c.throttledBefore}
	c.usedBefore, c.throttledBefore = c.used, c.throttled
	return l
}

// machine is one host: CPUs, and a parent group that holds the capacity.
type machine struct {
	cpus, capacity float64
	runtime        float64
	groups         []*cgroup
	second         float64   // used in the last second
	recent         []float64 // per tick
	worst          float64   // highest use of a second over the capacity
	tick           float64
	// wants, weights and given are the scratch of share.
	wants, weights, given []float64
}

// step lets 20 ms pass.
func (m *machine) step(t int) {
	if t%steps == 0 {
		m.account(t / steps)
		m.runtime = m.capacity * tickLen
	}
	most := m.cpus * stepLen
	sum := 0.0
	for _, g := range m.groups {
		g.take(t)
		sum += g.demand(most)
	}
	can := math.Min(most, m.runtime)
	if sum <= can {
		for _, g := range m.groups {
			if g.wait > 0 {
				g.serve(t, g.demand(most))
			}
		}
		m.runtime -= sum
		m.tick += sum
		return
	}
	m.share(t, can, most)
}

// share gives what there is by weight.
func (m *machine) share(t int, can, most float64) {
	if m.wants == nil {
		m.wants, m.weights, m.given = make([]float64, len(m.groups)), make([]float64, len(m.groups)), make([]float64, len(m.groups))
	}
	for i, g := range m.groups {
		m.wants[i], m.weights[i] = g.demand(most), g.weight
	}
	given := lab.Share(can, m.wants, m.weights, m.given)
	for i, g := range m.groups {
		if g.wait > 0 {
			g.serve(t, m.given[i])
		}
	}
	m.runtime -= given
	m.tick += given
}

// account follows the use of each second, which slides by ticks.
func (m *machine) account(tick int) {
	if len(m.recent) < ticks {
		m.recent = append(m.recent, m.tick)
	} else {
		m.second -= m.recent[tick%ticks]
		m.recent[tick%ticks] = m.tick
	}
	m.second += m.tick
	m.tick = 0
	m.worst = math.Max(m.worst, m.second/m.capacity)
}
