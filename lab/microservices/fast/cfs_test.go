package fast

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// alone is one group on a host of 40 CPUs with work per step.
func alone(work []float32) (*cgroup, *machine) {
	a := &App{Load: &Load{Rate: make([]float64, len(work)/(ticks*steps)+1)}, n: make([]float32, len(work))}
	a.work[0], a.delays[0] = work, make([]uint16, len(work))
	g := &cgroup{app: a, quota: math.Inf(1), weight: 1}
	return g, &machine{cpus: 40, capacity: 40, groups: []*cgroup{g}}
}

// busy is work that never ends.
func busy(n int) []float32 {
	w := make([]float32, n)
	w[0] = 1e6
	return w
}

func TestAWriteRefillsThePeriodAsMeasured(t *testing.T) {
	// Quota .10 core, busy loop, 10 s: no write .103, 1 write/s .110, 10/s .202 cores.
	for _, c := range []struct {
		every int // steps; 0: never
		want  float64
	}{{0, 0.1}, {50, 0.11}, {5, 0.2}} {
		g, m := alone(busy(500))
		g.phase = 2
		g.set(0.1, 0)
		for t := range 500 {
			if c.every > 0 && t%c.every == 0 && t > 0 {
				g.set(0.1, 1e-4*float64(g.writes%2)) // burst rewritten
			}
			m.step(t)
		}
		if got := g.used / 10; math.Abs(got-c.want) > 0.004 {
			t.Errorf("a write every %d steps: %.3f cores, measured %.3f", c.every, got, c.want)
		}
	}
}

func TestAParentThatIsNeverWrittenBoundsItsChildrenAndHidesTheirThrottling(t *testing.T) {
	g, m := alone(busy(500))
	m.capacity = 0.12
	g.set(0.1, 0)
	before := 0
	for t := range 500 {
		g.set(0.1, 1e-4*float64(t%2)) // 50 writes/s
		m.step(t)
		before = g.throttled
	}
	if got := g.used / 10; math.Abs(got-0.12) > 0.002 {
		t.Errorf("%.3f cores under a parent of .12", got)
	}
	if before > 100 {
		t.Errorf("%d throttled periods", before)
	}
}

func TestWhatWasNotUsedIsSavedUpToTheBurst(t *testing.T) {
	work := make([]float32, 100)
	work[50] = 0.5 // after ten idle periods
	for burst, want := range map[float64]float64{0: 0.1, 1: 0.2, 0.5: 0.15} {
		g, m := alone(work)
		g.set(1, burst)
		for t := range 52 {
			m.step(t)
		}
		if math.Abs(g.used-want) > 1e-9 {
			t.Errorf("burst %v: %v core-seconds at once, want %v", burst, g.used, want)
		}
	}
}

func TestAStallIsCountedWhenItEnds(t *testing.T) {
	g, m := alone(busy(20))
	g.set(0.4, 0) // 40 ms of CPU time, at once on 40 CPUs
	for t := range 5 {
		m.step(t)
	}
	if g.stalled != 0 || g.throttled != 1 {
		t.Errorf("in the stall: %v s, %d periods", g.stalled, g.throttled)
	}
	if m.step(5); math.Abs(g.stalled-0.1) > 1e-9 {
		t.Errorf("after it: %v s", g.stalled)
	}
}

// slow is the FIFO with one entry per piece of work.
func TestDelaysAreThoseOfAQueueOfPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		work := make([]float32, 200)
		for i := range work {
			if r.Float64() < 0.6 {
				work[i] = float32(r.ExpFloat64() * 0.02)
			}
		}
		g, m := alone(work)
		g.phase = r.IntN(steps)
		type piece struct {
			at   int
			left float64
		}
		var queue []piece
		want := make([]int, len(work))
		for s := range work {
			if s%7 == 0 {
				g.set(0.3+2*r.Float64(), r.Float64())
			}
			queue = append(queue, piece{s, float64(work[s])})
			before := g.used
			m.step(s)
			served := g.used - before + 1e-9
			for len(queue) > 0 && queue[0].left <= served {
				served -= queue[0].left
				want[queue[0].at] = s - queue[0].at
				queue = queue[1:]
			}
			if len(queue) > 0 {
				queue[0].left -= served - 1e-9
			}
		}
		waits := 0.0
		for _, p := range queue {
			waits += p.left
		}
		if math.Abs(waits-g.wait) > 1e-4 {
			t.Fatalf("%v core-seconds wait, want %v", g.wait, waits)
		}
		for s := range work {
			if got := int(g.app.delays[0][s]); work[s] > 1e-4 && (got-want[s] > 1 || want[s]-got > 1) {
				t.Fatalf("step %d: waited %d steps, want %d", s, got, want[s])
			}
		}
	})
}

func TestCPUsThatDoNotSufficeAreSharedByWeight(t *testing.T) {
	a, m := alone(busy(50))
	b, _ := alone(busy(50))
	c, _ := alone(make([]float32, 50))
	b.weight = 3
	m.groups, m.capacity = []*cgroup{a, b, c}, 8
	for t := range 50 {
		m.step(t)
	}
	if math.Abs(a.used-2) > 0.01 || math.Abs(b.used-6) > 0.01 || c.used != 0 {
		t.Errorf("used %v, %v, %v", a.used, b.used, c.used)
	}
	if m.account(10); math.Abs(m.worst-1) > 1e-6 {
		t.Errorf("highest second %v", m.worst)
	}
}
