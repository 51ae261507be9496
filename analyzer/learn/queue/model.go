package queue

import (
	"math"
	"slices"

	"github.com/trimtab/trimtab"
)

const (
	// Constants in the formula of the package comment: decay is k, bursts is b if the SLO has a
	// latency, alone is b otherwise. Chosen by measurements of nginx, redis and PostgreSQL at loads of
	// 8 to 29 requests of 10 ms a second and utilisations of 0.5 to 0.9, and by `trimtab-lab sim
	// services`.
	decay, bursts, alone = 2.5, 0.02, 0.1
	// period is that of a quota, in seconds, as Linux has it.
	period = 0.1
	// cheapest is the least fraction of the measured cost that a request is assumed to take. By
	// `trimtab-lab sim services`: with 1, the rates of Prometheus, which lag, cost egalitarian 3
	// points on peaks; with 0.35, 5 on steps, and njc 1.
	cheapest = 0.9
)

// InTime returns p(a, λ): the share of requests in time at allocation a in
// cores, load in requests per second and cost in core-seconds a request, for
// the latency D of the SLO in seconds; 0 for an unknown latency. All are finite,
// a, load >= 0 and cost > 0.
func InTime(a, load, cost, latency float64) float64 { return atFactor(a, load, cost, latency, 1) }

// atFactor is InTime of a service that is h times as bad as the model. A worse one costs h c. A
// better one waits less, but no service does more work than its CPU allows: its cost is only
// lower by the possible error of the measured cost.
func atFactor(a, load, cost, latency, h float64) float64 {
	dearer := math.Max(h, cheapest)
	cost, h = dearer*cost, h/dearer
	if a <= load*cost || a <= 0 {
		return 0
	}
	rho := load * cost / a
	if latency <= 0 {
		return 1 - math.Exp(-(1-rho)/(h*alone))
	}
	left := latency - h*stopped(a, cost)
	if left <= 0 {
		return 0
	}
	return (1 - rho*math.Exp(-decay/h*(a/cost-load)*left)) * (1 - math.Exp(-(1-rho)/(h*bursts)))
}

// stopped returns how long a quota delays a request without competition: it runs at the full
// speed of a core as long as the quota of a period lasts.
func stopped(a, cost float64) float64 { return math.Max(0, cost/a-math.Max(cost, period)) }

const (
	// Points is the size of the grid over h; low and high are its ends.
	Points    = 41
	low, high = 0.35, 4.0
	// spread is the standard deviation of ln h beforehand.
	spread = 0.25
	// together is how many requests in a row share a fate: so many count as one.
	together = 4
	// most bounds the requests that one report counts as: more of them are not
	// more independent.
	most = 25
	// memory is how many reports are remembered: each counts e times less than the one that came
	// so many after it.
	memory = 300
)

// Model is the model of one service; make one with [New].
type Model struct {
	// Latency is the SLO's, in seconds; 0: unknown.
	latency float64
	// logs is the log likelihood of each h, relative to the greatest.
	logs [Points]float64
	// weight is exp(logs) times the prior, normalised.
	weight  [Points]float64
	reports int
	// grid has every h: the powers were half of what a prediction cost.
	grid [Points]float64
}

// New returns a model that has seen nothing.
func New(latency float64) *Model {
	m := &Model{latency: latency}
	for i := range m.grid {
		m.grid[i] = factor(i)
	}
	m.normalise()
	return m
}

// factor returns the i-th h of the grid.
func factor(i int) float64 { return low * math.Pow(high/low, float64(i)/(Points-1)) }

// Reports returns how many reports were seen.
func (m *Model) Reports() int { return m.reports }

// Observe reads a report: the share in time of so many requests at an allocation, a load and a
// cost. It refuses numbers out of range with trimtab.ErrInvalid.
func (m *Model) Observe(allocation, load, cost, inTime, requests float64) error {
	for _, v := range []float64{allocation, load, cost, requests} {
		if !(v > 0) || math.IsInf(v, 0) {
			return trimtab.Invalidf("observe queue: allocation %v, load %v, cost %v, requests %v: want finite numbers > 0", allocation, load, cost, requests)
		}
	}
	if !(inTime >= 0 && inTime <= 1) {
		return trimtab.Invalidf("observe queue: %v in time: want a number in [0, 1]", inTime)
	}
	n := math.Min(requests, most) / together
	for i := range m.logs {
		// Nothing is certain: a hundredth of the requests has another fate.
		p := 0.01 + 0.98*atFactor(allocation, load, cost, m.latency, m.grid[i])
		m.logs[i] = m.logs[i]*(1-1.0/memory) + n*(inTime*math.Log(p)+(1-inTime)*math.Log1p(-p))
	}
	m.reports++
	m.normalise()
	return nil
}

// Forget keeps the past only as a guess, since another version runs.
func (m *Model) Forget() {
	for i := range m.logs {
		m.logs[i] *= 0.1
	}
	m.normalise()
}

// State is what a model has learnt, as data.
type State struct {
	// Logs are the log likelihoods of the grid of h, relative to the greatest.
	Logs    []float64 `json:"logs"`
	Reports int       `json:"reports"`
}

// State returns what was learnt.
func (m *Model) State() State { return State{slices.Clone(m.logs[:]), m.reports} }

// Restore restores what State returned. For anything else the error is trimtab.ErrInvalid, and
// nothing changes.
func (m *Model) Restore(s State) error {
	if len(s.Logs) != Points || s.Reports < 0 {
		return trimtab.Invalidf("restore queue: %d likelihoods of %d reports, want %d of at least 0", len(s.Logs), s.Reports, Points)
	}
	for _, v := range s.Logs {
		if !(v <= 0) || math.IsInf(v, 0) {
			return trimtab.Invalidf("restore queue: log likelihood %v: want a finite number <= 0", v)
		}
	}
	copy(m.logs[:], s.Logs)
	m.reports = s.Reports
	m.normalise()
	return nil
}

func (m *Model) normalise() {
	top := math.Inf(-1)
	for i := range m.logs {
		x := math.Log(m.grid[i]) / spread
		m.weight[i] = m.logs[i] - x*x/2
		top = math.Max(top, m.weight[i])
	}
	sum := 0.0
	for i := range m.weight {
		m.weight[i] = math.Exp(m.weight[i] - top)
		sum += m.weight[i]
	}
	greatest := math.Inf(-1)
	for i := range m.weight {
		m.weight[i] /= sum
		greatest = math.Max(greatest, m.logs[i])
	}
	for i := range m.logs {
		m.logs[i] -= greatest
	}
}

// Predict returns the mean of the mixture at an allocation, and its band at the
// given level in (0, 1).
func (m *Model) Predict(allocation, load, cost, level float64) trimtab.Band {
	var b trimtab.Band
	// p falls with h, so that quantiles of p are those of h, mirrored.
	tail, below := (1-level)/2, 0.0
	b.Upper, b.Lower = -1, -1
	for i := range m.weight {
		w := m.weight[i]
		if w < 1e-6 {
			below += w
			continue
		}
		p := atFactor(allocation, load, cost, m.latency, m.grid[i])
		b.Mean += w * p
		below += w
		if b.Upper < 0 && below >= tail {
			b.Upper = p
		}
		if below <= 1-tail || b.Lower < 0 {
			b.Lower = p
		}
	}
	// The model knows nothing of other resources, pauses and the network.
	b.Lower = math.Max(0, math.Min(b.Lower, b.Mean)-unknown)
	b.Upper = math.Min(1, math.Max(b.Upper, b.Mean)+unknown)
	return b
}

// unknown is the least relative uncertainty of the model for a service.
const unknown = 0.05
