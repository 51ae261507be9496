package rose

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab/lab"
)

// Figures are what a run came to.
type Figures struct {
	// CPU and Disk are means over the cluster and the run, as shares.
	CPU  float64 `json:"cpu"`
	Disk float64 `json:"disk"`
	// Speculative is how many speculative tasks run at once in the cluster, the mean.
	Speculative float64 `json:"co_running"`
	// The medians are over machines and rounds; memory in GB.
	MedianLoad        float64 `json:"median_load"`
	MedianMemory      float64 `json:"median_memory_gb"`
	MedianDisk        float64 `json:"median_disk"`
	MedianSpeculative float64 `json:"median_co_running"`
	// Makespan in seconds, and the quantiles 0, .25, .5, .75 and 1 of jobs' completion.
	Makespan   float64    `json:"makespan_s"`
	Completion [5]float64 `json:"jct_s"`
	// Offered tasks were sent to a machine, of which Rejected at once by a full queue;
	// Started speculative tasks ran, Succeeded as such, and Evicted were killed. Upgraded
	// became regular where they ran, Kept kept a slot elsewhere. Rescheduled waited for
	// too long in a queue; Overtaken got their regular resource before they started.
	Offered     float64 `json:"offered"`
	Rejected    float64 `json:"rejected"`
	Started     float64 `json:"started"`
	Succeeded   float64 `json:"succeeded"`
	Evicted     float64 `json:"evicted"`
	Upgraded    float64 `json:"upgraded"`
	Kept        float64 `json:"kept"`
	Rescheduled float64 `json:"rescheduled"`
	Overtaken   float64 `json:"overtaken"`
	Regular     float64 `json:"regular"`
	// Waited is how long started tasks waited, the mean in seconds; Frozen the seconds
	// for which tasks were throttled.
	Waited float64 `json:"waited_s"`
	Frozen float64 `json:"frozen_s"`
	// LRA is nil where there is none.
	LRA *Felt `json:"lra,omitempty"`
}

// Felt is what LRAs felt, as multiples of running alone.
type Felt struct {
	// P95 has quantiles 0, .25, .5, .75 and 1 over containers of MongoDB, EPS those over
	// containers of sysbench.
	P95 [5]float64 `json:"p95"`
	EPS [5]float64 `json:"eps"`
	// Throughput is that of MongoDB, the median; CPI the mean of all MongoDB containers.
	Throughput float64 `json:"throughput"`
	CPI        float64 `json:"cpi"`
}

// History is how a run went, each round of the aggregator.
type History struct {
	// CPU and Disk are the cluster's.
	CPU, Disk, Speculative []float64
	// By machine and round.
	Spec, Load, Memory, DiskOf [][]float64
	// Completion of each job, P95 and EPS of each container, sorted.
	Completion, P95, EPS []float64
}

// note keeps what the figures over time show.
func (p *play) note() {
	n := len(p.machines)
	spec, load, memory, disk := make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	cpu := 0.0
	for i, m := range p.machines {
		spec[i], load[i], memory[i], disk[i] = m.now.speculative, m.load1, m.now.memory, m.last(diskDim)
		cpu += m.last(cpuDim) / p.Cores / float64(n)
	}
	h := p.course
	h.CPU, h.Disk, h.Speculative = append(h.CPU, cpu), append(h.Disk, lab.Mean(disk)), append(h.Speculative, lab.Mean(spec)*float64(n))
	h.Spec, h.Load, h.Memory, h.DiskOf = append(h.Spec, spec), append(h.Load, load), append(h.Memory, memory), append(h.DiskOf, disk)
}

// finish sums up.
func (p *play) finish() {
	f, n := &p.out, float64(len(p.machines))
	for _, j := range p.jobs {
		f.Makespan = max(f.Makespan, j.ended)
		p.course.Completion = append(p.course.Completion, j.ended)
	}
	if p.left > 0 {
		f.Makespan = p.now
	}
	for _, m := range p.machines {
		m.advance(f.Makespan)
		f.CPU += m.total.cpu / p.Cores / n / f.Makespan
		f.Disk += m.total.disk / n / f.Makespan
		f.Speculative += m.total.speculative / f.Makespan
	}
	h := p.course
	f.MedianLoad, f.MedianMemory = median(h.Load), median(h.Memory)
	f.MedianDisk, f.MedianSpeculative = median(h.DiskOf), lab.Quantile(h.Speculative, 0.5)
	if f.Started > 0 {
		f.Waited /= f.Started
	}
	f.Completion = quantiles(h.Completion)
	p.felt()
}

func (p *play) felt() {
	var slow, p95, eps, through []float64
	for _, m := range p.machines { // in order: sums of floats depend on it
		for i := range m.lras {
			l := &m.lras[i]
			f := p.sample[l]
			switch {
			case f == nil || f.n == 0:
			case l.database:
				p95 = append(p95, f.p95())
				through, slow = append(through, f.share/float64(f.n)), append(slow, f.slower/float64(f.n))
			case l.cores == sysbenchCores && l.use == sysbenchUse:
				eps = append(eps, f.share/float64(f.n))
			}
		}
	}
	if len(p95) == 0 {
		return
	}
	slices.Sort(p95)
	slices.Sort(eps)
	p.course.P95, p.course.EPS = p95, eps
	p.out.LRA = &Felt{P95: quantiles(p95), EPS: quantiles(eps), Throughput: lab.Quantile(through, 0.5), CPI: lab.Mean(slow)}
}

func median(rounds [][]float64) float64 { return lab.Quantile(slices.Concat(rounds...), 0.5) }

func quantiles(v []float64) (q [5]float64) {
	for i := range q {
		q[i] = lab.Quantile(v, float64(i)/4)
	}
	return q
}

// numbers are the fields that a mean of runs is taken of.
func (f *Figures) numbers() []*float64 {
	all := []*float64{&f.CPU, &f.Disk, &f.Speculative, &f.MedianLoad, &f.MedianMemory, &f.MedianDisk, &f.MedianSpeculative, &f.Makespan, &f.Offered, &f.Rejected,
		&f.Started, &f.Succeeded, &f.Evicted, &f.Upgraded, &f.Kept, &f.Rescheduled, &f.Overtaken, &f.Regular, &f.Waited, &f.Frozen}
	for i := range f.Completion {
		all = append(all, &f.Completion[i])
	}
	if f.LRA != nil {
		all = append(all, &f.LRA.Throughput, &f.LRA.CPI)
		for i := range f.LRA.P95 {
			all = append(all, &f.LRA.P95[i], &f.LRA.EPS[i])
		}
	}
	return all
}

// Mean returns the mean of runs of one kind.
func Mean(runs []Figures) (out Figures) {
	if len(runs) > 0 && runs[0].LRA != nil {
		out.LRA = &Felt{}
	}
	to := out.numbers()
	for i := range runs {
		for k, v := range runs[i].numbers() {
			*to[k] += *v / float64(len(runs))
		}
	}
	return out
}

// Spread returns the standard error of the makespan; NaN of one run.
func Spread(runs []Figures) float64 {
	if len(runs) < 2 {
		return math.NaN()
	}
	var v []float64
	for i := range runs {
		v = append(v, runs[i].Makespan)
	}
	return lab.StatOf(v).StdErr
}
