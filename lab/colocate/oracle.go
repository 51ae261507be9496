package colocate

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	control "github.com/trimtab/trimtab/planner/colocate"
)

// Oracle is the policy that knows the sensitivities and the load to come. It gives
// and takes at once, never kills, and looks for the most best-effort work with the
// modelled p99 within the SLO. Its search is greedy, so that more may be possible.
const Oracle = "oracle"

const (
	// steps is into how many parts the oracle cuts each resource of a host.
	steps = 10
	// oracleJobs run on each host.
	oracleJobs = 10
	// oracleSamples are the requests of which it takes the p99.
	oracleSamples = 512
)

// cut is what jobs of a host may have: so many parts of cores, ways and bandwidth.
type cut [3]int

// oracle keeps for each service and load what it found.
type oracle struct {
	services []oracleService
}

type oracleService struct {
	sampler  *sampler
	source   *rand.PCG
	stations []station
	// found is, by load in percent, the cut of each host of the service.
	found map[int][]cut
	// limit is the p99 allowed, by load level. trim lowers it, by tenth of the load,
	// where the draws of the model turn out too kind.
	limit   func(load float64) float64
	trim    [11]float64
	turn, n int
}

// The trim follows the periods: 1 in 400 may miss the SLO.
const trimDown, trimUp = 0.95, 1 + 0.05/400

func newOracle(w *world, known []Profile) *oracle {
	o := &oracle{}
	for i, s := range w.services {
		x := oracleService{sampler: newSampler(s.Service, 0x6f7261, uint64(i)), source: rand.NewPCG(1, 2),
			stations: make([]station, len(s.Components)), found: map[int][]cut{}}
		x.sampler.rand = rand.New(x.source)
		uncertain, slo := known[i].uncertain, s.slo
		x.begin(1)
		x.n = oracleSamples
		for k := range s.to {
			for _, t := range s.to[k] {
				if t.Stall > 0 {
					x.n = 4 * oracleSamples
					x.begin(0.6) // pauses make the p99 of 512 requests uncertain
				}
			}
		}
		x.limit = func(load float64) float64 {
			return slo / uncertain[min(levels-1, max(0, int(math.Ceil(load*levels))-1))]
		}
		o.services = append(o.services, x)
	}
	for _, h := range w.hosts {
		h.hold()
	}
	return o
}

// hold lets the oracle's number of jobs run.
func (h *host) hold() {
	running := 0
	for _, j := range h.jobs {
		if j.state == control.Running {
			running++
		}
	}
	for running < oracleJobs {
		for _, j := range h.jobs {
			if j.state == control.Waiting && running < oracleJobs {
				j.state, j.network = control.Running, math.Inf(1)
				running++
			}
		}
		h.fill()
	}
}

// deal gives the jobs of a host what the cut leaves them: cores and bandwidth to
// those that gain the most from a core, ways to those that lose the most without.
func (h *host) deal(c cut) {
	h.hold()
	cores := math.Floor(h.capacity["cores"] * float64(c[0]) / steps)
	ways := math.Floor(h.capacity["llc"] * float64(c[1]) / steps)
	band := h.capacity["membw"] / 100 * float64(c[2]) / steps
	running := make([]*job, 0, len(h.jobs))
	for _, j := range h.jobs {
		if j.state == control.Running {
			running = append(running, j)
		}
	}
	slices.SortStableFunc(running, func(a, b *job) int { return cmp.Compare(h.alone(a.kind), h.alone(b.kind)) })
	for n, j := range running {
		left := float64(len(running) - n - 1) // each has a core
		j.cores = math.Max(0, math.Min(cores-left, cores))
		if j.kind.Bandwidth > 0 {
			j.cores = math.Min(j.cores, math.Max(1, math.Floor(band*h.Cores/j.kind.Bandwidth)))
		}
		if n == len(running)-1 {
			j.cores = cores
		}
		j.cores = math.Max(0, math.Min(j.cores, cores))
		j.membw = 100 * math.Min(band, j.cores*j.kind.Bandwidth/h.Cores)
		cores, band = cores-j.cores, band-j.membw/100
		j.ways = 0
	}
	h.ways(running, ways)
	h.weigh()
}

func (h *host) ways(running []*job, ways float64) {
	slices.SortStableFunc(running, func(a, b *job) int {
		return cmp.Compare(b.cores*b.kind.Gain/h.alone(b.kind), a.cores*a.kind.Gain/h.alone(a.kind))
	})
	for _, j := range running {
		if j.cores > 0 && j.kind.Gain > 0 {
			j.ways = ways
			return
		}
	}
}

// p99 is that of the model at a load, with the same draws each time.
func (o *oracleService) p99(s *service, load float64, hosts []*host) float64 {
	rate := load * s.MaxLoad
	for i := range s.Components {
		st := &o.stations[i]
		st.slowed(&s.Components[i], &s.to[i], &hosts[s.hosts[i]].press)
		behind := st.queue(rate*s.visits[i], s.Components[i].CV, s.Components[i].Servers, s.backlog[i])
		if behind > 0 {
			return math.Inf(1)
		}
	}
	o.source.Seed(1, 2)
	return o.sampler.p99(o.stations, o.n)
}

// place sets what the jobs beside a service have in the coming period.
func (o *oracle) place(w *world, s *service, load float64) {
	number := slices.Index(w.services, s)
	x := &o.services[number]
	bucket := int(math.Ceil(100 * load))
	cuts := x.found[bucket]
	if cuts == nil {
		for range s.of {
			cuts = append(cuts, cut{steps, steps, steps})
		}
		x.found[bucket] = cuts
	}
	for i, h := range s.of {
		w.hosts[h].deal(cuts[i])
	}
	limit := x.limit(load) * x.trim[tenth(load)]
	if x.p99(s, load, w.hosts) <= limit {
		x.raise(w, s, load, cuts, limit)
		return
	}
	for x.lower(w, s, load, cuts) && x.p99(s, load, w.hosts) > limit {
	}
}

// begin sets all trims.
func (o *oracleService) begin(v float64) {
	for k := range o.trim {
		o.trim[k] = v
	}
}

func tenth(load float64) int { return int(min(max(10*load, 0), 10)) }

// learn takes in how the period went.
func (o *oracle) learn(number int, load float64, held bool) {
	t := &o.services[number].trim[tenth(load)]
	if held {
		*t = math.Min(1, *t*trimUp)
	} else {
		*t *= trimDown
	}
}

// raise tries one part more of one resource, another each time.
func (o *oracleService) raise(w *world, s *service, load float64, cuts []cut, limit float64) {
	o.turn++
	i, r := o.turn/3%len(cuts), o.turn%3
	if cuts[i][r] == steps {
		return
	}
	h := w.hosts[s.of[i]]
	speed := h.speed
	cuts[i][r]++
	h.deal(cuts[i])
	if o.p99(s, load, w.hosts) > limit || h.speed < speed {
		cuts[i][r]--
		h.deal(cuts[i])
	}
}

// lower takes the part whose loss of work is the least for what it brings.
func (o *oracleService) lower(w *world, s *service, load float64, cuts []cut) bool {
	before := o.p99(s, load, w.hosts)
	best, bestWorth := -1, math.Inf(-1)
	for i, k := range s.of {
		h := w.hosts[k]
		for r := range 3 {
			if cuts[i][r] == 0 {
				continue
			}
			speed := h.speed
			cuts[i][r]--
			h.deal(cuts[i])
			gain := math.Log(math.Min(before, 1e9)) - math.Log(math.Min(o.p99(s, load, w.hosts), 1e9))
			if worth := gain / math.Max(speed-h.speed, 1e-6); worth > bestWorth {
				best, bestWorth = 3*i+r, worth
			}
			cuts[i][r]++
			h.deal(cuts[i])
		}
	}
	if best < 0 {
		return false
	}
	cuts[best/3][best%3]--
	w.hosts[s.of[best/3]].deal(cuts[best/3])
	return true
}
