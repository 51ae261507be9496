package rose

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/trimtab/trimtab/analyzer/fingerprint"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/planner/throttle"
)

// program is a recorded program that an LRA is like: its CPI alone, the deviation of
// that from window to window, and by how much its CPI rises beside SP on 8 cores.
type program struct {
	name           string
	cpi, deviation float64
	slower         float64
}

// victims are those of the recorded pairs (README of perf-counters-corun): the co-run's
// CPI over the solo one's, less 1.
func victims() []program {
	return []program{{"canneal", 4.28, 0.03, 0.799}, {"fluidanimate", 0.574, 0.03, 0.246}, {"freqmine", 0.554, 0.03, 0.089}, {"nn", 1.907, 0.008, 0.035}}
}

// fullBandwidth is what SP moves alone on 8 cores, in GB/s: the pressure at which the
// recorded pairs were slower by that much.
const fullBandwidth = 30.73

// The LRAs of 7.5: 20 MongoDB instances of 4 containers, 40 YCSB and 1,200 sysbench
// containers on 210 machines.
const mongos, ycsbs, sysbenches = 80, 40, 1200

// What an LRA container requests and uses, in cores. That sysbench requests one is the
// paper's. Between them they use 17% of the cluster: CPU use times makespan is the same
// in table 6 for RB-UP and ROSE-UP, and with that of the batch-only runs leaves 13 to 20%.
const (
	mongoCores, mongoUse = 1, 0.6
	ycsbCores, ycsbUse   = 1, 0.5
	sysbenchCores        = 1
	sysbenchUse          = 0.30
)

// busyMongo is how busy MongoDB keeps its cores alone. It is the one number here that is
// fitted to a result of the paper: that the p95 is 2.58 times as long under ROSE-UP.
const busyMongo = 0.58

// half of a core that both want is left to an LRA: LRAs and batch tasks weigh the same
// to the scheduler until somebody says otherwise, as in mode UP.
const half = 0.5

// lra is one long-running container.
type lra struct {
	name     string
	program  *program
	database bool
	cores    float64
	use      float64
	boundary float64
	rng      *rand.Rand
	recent   [fingerprint.Recent]bool
	n        int
	// now is its CPI over that alone.
	now float64
}

// samples are what LRAs felt over a run.
type samples map[*lra]*felt

// felt is a container's: a histogram of rates for the quantile of its latency.
type felt struct {
	rates  [256]uint32
	n      int
	share  float64
	slower float64
}

// placeLRAs puts the containers onto machines in turn, in random order.
func (p *play) placeLRAs(rng *rand.Rand) error {
	if !p.LRAs {
		return nil
	}
	victims, bounds := victims(), map[*program]float64{}
	for i := range victims {
		b, err := boundary(&victims[i])
		if err != nil {
			return err
		}
		bounds[&victims[i]] = b
	}
	order := rng.Perm(len(p.machines))
	at := 0
	place := func(count int, l lra) {
		for k := range scaled(count, p.Machines) {
			m := p.machines[order[at%len(order)]]
			at++
			one := l
			if l.database { // of the recorded programs those that feel memory bandwidth, in turn
				one.program = &victims[k%3]
			}
			one.name = fmt.Sprintf("%s-%d", l.name, k)
			one.boundary, one.now = bounds[one.program], 1
			one.rng = rand.New(rand.NewPCG(lab.Seed(p.run.Seed, 5, uint64(at))))
			m.lras = append(m.lras, one)
		}
	}
	place(mongos, lra{name: "mongodb", database: true, cores: mongoCores, use: mongoUse})
	place(ycsbs, lra{name: "ycsb", program: &victims[3], cores: ycsbCores, use: ycsbUse})
	place(sysbenches, lra{name: "sysbench", program: &victims[3], cores: sysbenchCores, use: sysbenchUse})
	for _, m := range p.machines {
		var requested []float64
		for i := range m.lras {
			requested = append(requested, m.lras[i].cores)
		}
		m.cores = throttle.Classify(int(p.Cores), requested, slackCores)
	}
	return nil
}

// boundary is what analyzer/fingerprint learns of a program alone in 5 minutes, as a
// multiple of its CPI.
func boundary(v *program) (float64, error) {
	rng := rand.New(rand.NewPCG(lab.Seed(6, math.Float64bits(v.cpi))))
	w := fingerprint.New()
	out := 0.0
	for i := range 600 {
		at := epoch().Add(time.Duration(i+1) * fingerprint.Window)
		s := fingerprint.Sample{Length: fingerprint.Window, CPI: fingerprint.Counted(v.cpi * math.Exp(v.deviation*rng.NormFloat64())),
			MPKI: fingerprint.Counted(1), References: fingerprint.Counted(10)}
		j, ok, err := w.Observe(at, s, true)
		if err != nil {
			return 0, fmt.Errorf("learn %s: %w", v.name, err)
		}
		if ok && j.CPI.Boundary > 0 {
			out = j.CPI.Boundary / v.cpi
		}
	}
	return out, nil
}

// lraCores is what LRAs use of the machine.
func (m *machine) lraCores() (sum float64) {
	for i := range m.lras {
		sum += m.lras[i].use
	}
	return sum
}

// suffer is what the LRAs felt in the last tick:
//
//	CPI    = CPI alone · (1 + sensitivity · min(1, bandwidth of batch tasks / SP's))
//	share  = 1 − ½ · share of the cores they run on that batch tasks use
//	speed  = share / (CPI / CPI alone)
//
// In mode UP they run on all cores, in RP on those of the first class.
func (m *machine) suffer(all *samples) {
	if len(m.lras) == 0 || m.at <= 0 {
		return
	}
	pressure := min(1, m.sum.bandwidth/m.world.Tick/fullBandwidth)
	cores := m.world.Cores
	if m.rp {
		cores = float64(max(m.cores.First, 1))
	}
	share := 1 - half*min(1, m.sum.shared/m.world.Tick/cores)
	for i := range m.lras {
		l := &m.lras[i]
		l.now = 1 + l.program.slower*pressure
		f := (*all)[l]
		if f == nil {
			f = &felt{}
			(*all)[l] = f
		}
		speed := share / l.now
		f.n++
		f.share += speed
		f.slower += l.now
		if l.database {
			f.rates[rateBin(speed-busyMongo)]++
		}
	}
}

// rateBin and rateOf divide the rates at which a database drains, of service rates alone.
func rateBin(rate float64) int { return int(min(max(rate*512, 1), 255)) }
func rateOf(bin int) float64   { return (float64(bin) + 0.5) / 512 }

// p95 is the quantile of the latency, as a multiple of that alone. A database is a queue
// M/M/1 of which the time in it is exponential with rate μ − λ; over a run it is the
// mixture of those of its seconds:
//
//	Σ_s exp(−(μ_s − λ) t) / n = 5%
func (f *felt) p95() float64 {
	low, high := 0.0, 1e6
	for range 60 {
		t := (low + high) / 2
		over := 0.0
		for b, n := range f.rates {
			if n > 0 {
				over += float64(n) * math.Exp(-rateOf(b)*t)
			}
		}
		if over/float64(f.n) > 0.05 {
			low = t
		} else {
			high = t
		}
	}
	return low / (math.Log(20) / rateOf(rateBin(1-busyMongo)))
}

// hear gives the agent the CPI of its LRAs: two windows a second, of which the analyzer
// calls an anomaly what is over the boundary in three of five.
func (m *machine) hear(o *throttle.Observation) {
	o.LRAs = o.LRAs[:0]
	if !m.rp {
		return
	}
	news := m.at >= m.heard+1-1e-9
	if news {
		m.heard = m.at
	}
	for i := range m.lras {
		l := &m.lras[i]
		in := throttle.LRA{Workload: l.name, Cores: l.cores}
		for k := range 2 {
			if !news {
				break
			}
			value := l.program.cpi * l.now * math.Exp(l.program.deviation*l.rng.NormFloat64())
			over := value > l.boundary*l.program.cpi
			l.recent[l.n%fingerprint.Recent] = over
			l.n++
			count := 0
			for _, was := range l.recent {
				if was {
					count++
				}
			}
			in.Samples = append(in.Samples, throttle.Sample{Signal: "cpi", Time: o.Time.Add(time.Duration(k-1) * fingerprint.Window), Length: fingerprint.Window,
				Value: value, Boundary: l.boundary * l.program.cpi, Anomaly: over && count >= fingerprint.Needed})
		}
		o.LRAs = append(o.LRAs, in)
	}
}

// counters are what the machine as a whole shows: the CPI of its LRAs over that alone,
// and the misses of its batch tasks.
func (m *machine) counters() (cpi, mpki float64) {
	if len(m.lras) == 0 {
		return math.NaN(), math.NaN()
	}
	for i := range m.lras {
		cpi += m.lras[i].now * m.lras[i].program.cpi / float64(len(m.lras))
	}
	return cpi, m.now.misses / max(m.now.batch, 1)
}
