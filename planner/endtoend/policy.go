package endtoend

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// Policy divides the pool for the least end-to-end latency. Each workload's curve is the
// performance of the whole application over its own allocation, with all others unchanged; see
// the package comment. It implements [policy.Policy].
type Policy struct {
	// Optimism is the weight of the upper bound over the mean performance, in
	// [0, 1]. Default 0.15; negative: 0, the mean alone.
	Optimism float64
	// MoveCost is the cost of moving as many units as there are, as a share of the present
	// latency, >= 0; see [DefaultMoveCost].
	MoveCost float64
	// LoadWeight is the weight of the load's upper bound over its mean in the
	// load that is planned for, in (0, 1]. Default 1.
	LoadWeight float64
	// Trial is how far, as a fraction of the band, curves are tilted at random at first, so that
	// trades without evidence are tried, >= 0; it shrinks with the number of reports. Default
	// 0.2; negative: 0, no trials. See the package comment.
	Trial float64
}

var _ policy.Policy = Policy{}

// DefaultMoveCost is Policy.MoveCost unless the operator says otherwise.
const DefaultMoveCost = 0.01

const (
	hope = 0.15
	// slowest bounds latencies, in SLOs: what is slower is equally bad.
	slowest = 1e6
)

// Name returns "end-to-end".
func (Policy) Name() string { return "end-to-end" }

// Traits leaves Weighs unset: one latency is that of all.
func (o Policy) Traits() policy.Traits {
	t := policy.Traits{Caution: 1, Expect: o.expect, Scorer: o.scorer}
	if o.LoadWeight > 0 {
		t.Caution = math.Min(o.LoadWeight, 1)
	}
	return t
}

func (o Policy) optimism() float64 {
	switch {
	case o.Optimism == 0:
		return hope
	case !(o.Optimism > 0):
		return 0
	}
	return math.Min(o.Optimism, 1)
}

// expect is the performance that the policy counts on.
func (o Policy) expect(b trimtab.Band, _ int) float64 {
	return b.Mean + o.optimism()*(b.Upper-b.Mean)
}

// latency is SLO/performance, at most slowest.
func latency(slo, performance float64) float64 {
	if !(performance*slowest > slo) {
		return slowest
	}
	return slo / performance
}

// Solve returns the exact answer of [welfare.Own], or one with its gap, for
//
//	max Σ_j 1 − latency_j(a_j)/worst
//
// that is, the least Σ latency_j(a_j), where worst is the longest latency that any of them could
// cause.
func (o Policy) Solve(p *policy.Problem) (policy.Solution, error) {
	if err := p.Validate(); err != nil {
		return policy.Solution{}, err
	}
	sum, q, now := o.sum(p)
	sum.MoveCost = o.MoveCost * now / math.Max(1, float64(len(p.Workloads)))
	answer, err := sum.Solve(q)
	if err != nil {
		return answer, err
	}
	short := answer.Bound - answer.Value
	answer.Value = o.scorer(p)(answer.Units)
	answer.Bound = answer.Value + short
	return answer, nil
}

// sum returns the objective in the form of package welfare, the problem that it solves, and the
// present latency as a multiple of the worst.
func (o Policy) sum(p *policy.Problem) (welfare.Own, *policy.Problem, float64) {
	worst, now := 1e-9, 0.0
	for i := range p.Workloads {
		w := &p.Workloads[i]
		if w.Curve == nil {
			continue
		}
		worst = math.Max(worst, latency(w.SLO, o.expect(w.Curve.Eval(float64(w.Min)*p.Unit), w.Reports)))
		now = math.Max(now, latency(w.SLO, w.Curve.Eval(float64(w.Current)*p.Unit).Mean))
	}
	worst = math.Max(worst, now)
	q := *p
	q.Workloads = append([]policy.Workload(nil), p.Workloads...)
	o.near(&q)
	for i := range q.Workloads {
		if w := &q.Workloads[i]; w.Curve != nil {
			w.Curve = tilted(w, p.Unit, o.trial(w.Reports)*draw(w))
		}
		// Trades continue with any number of reports: decaying optimism is for curves that do not
		// change with what the others have.
		q.Workloads[i].Reports = 0
		slo := q.Workloads[i].SLO
		q.Workloads[i].Worth = func(performance float64) float64 {
			return math.Max(0, 1-latency(slo, performance)/worst)
		}
	}
	optimism := o.optimism()
	if optimism == 0 {
		optimism = -1
	}
	return welfare.Own{Title: o.Name(), Optimism: optimism}, &q, now / worst
}

// scorer is the utility that is expected end to end: with latencies that
// add up, 1 / (now + Σ (latency_j(units_j) − now)) in SLOs, at most 1.
func (o Policy) scorer(p *policy.Problem) func(units []int) float64 {
	return func(units []int) float64 {
		now, total, known := 0.0, 0.0, false
		for i := range p.Workloads {
			w := &p.Workloads[i]
			if w.Curve == nil {
				continue
			}
			here := latency(w.SLO, o.expect(w.Curve.Eval(float64(w.Current)*p.Unit), w.Reports))
			if !known {
				now, known = here, true
			}
			total += latency(w.SLO, o.expect(w.Curve.Eval(float64(units[i])*p.Unit), w.Reports)) - here
		}
		if !known {
			return 0
		}
		return 1 / math.Max(1, now+total)
	}
}

// trialReports is the number of reports after which trials begin to shrink.
const trialReports = 60

// trial returns how far curves are tilted after so many reports: in proportion to 1/√reports once
// there are many.
func (o Policy) trial(reports int) float64 {
	t := o.Trial
	switch {
	case t == 0:
		t = 0.2
	case !(t > 0):
		return 0
	}
	return t * math.Sqrt(trialReports/(trialReports+float64(max(0, reports))))
}

// draw returns a number of the standard normal distribution that the workload
// and the number of its reports decide: the same problem has the same answer.
func draw(w *policy.Workload) float64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(w.Name))
	return rand.New(rand.NewPCG(h.Sum64(), uint64(w.Reports))).NormFloat64()
}

// tilted returns the curve of w tilted about its present allocation, by a fraction t of what the
// band leaves uncertain away from that: above it, performance is higher for t > 0, below it
// lower.
//
//	p(a) exp(±t √(h(a)² − h(now)²)),   h = ln(upper/mean)
func tilted(w *policy.Workload, unit, t float64) *trimtab.Curve {
	now := float64(w.Current) * unit
	open := func(b trimtab.Band) float64 {
		if !(b.Mean > 0) {
			return 0
		}
		return math.Log(b.Upper / b.Mean)
	}
	here := open(w.Curve.Eval(now))
	out := &trimtab.Curve{Load: w.Curve.Load, Level: w.Curve.Level, Knots: slices.Clone(w.Curve.Knots)}
	for i := range out.Knots {
		k := &out.Knots[i]
		h := open(k.Band)
		turn := t * math.Sqrt(math.Max(0, h*h-here*here))
		if k.Allocation < now {
			turn = -turn
		}
		f := math.Exp(turn)
		k.Lower, k.Mean, k.Upper = k.Lower*f, k.Mean*f, k.Upper*f
	}
	return out
}

// trusted is the fraction of its allocation that a workload keeps in a round: its curve is valid
// only while the others keep theirs.
const trusted = 0.75

// near keeps the answer near the present allocation: no workload gives more than a quarter of it,
// or one unit, unless capacity or the minimums of others require it.
func (o Policy) near(q *policy.Problem) {
	has, needs := 0, 0
	floors := make([]int, len(q.Workloads))
	for i, w := range q.Workloads {
		least := min(int(math.Ceil(trusted*float64(w.Current))), w.Current-1)
		floors[i] = max(w.Min, min(least, w.Max))
		has += w.Current
		needs += floors[i]
	}
	if has > q.Units || needs > q.Units {
		return
	}
	for i := range q.Workloads {
		q.Workloads[i].Min = floors[i]
	}
}
