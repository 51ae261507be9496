package cilantro

import (
	"math"

	"github.com/trimtab/trimtab/sim"
)

// Summary is one policy's figures, means over the seeds.
type Summary struct {
	Policy string `json:"policy"`
	Score
	// Moved is the units moved in a round, on average; MovedLate over the
	// last third of the run, as a share of the capacity.
	Moved     float64 `json:"moved_units_per_round"`
	MovedLate float64 `json:"moved_share_last_rounds"`
	// Last is the score over the last third: 60 of 180 rounds.
	Last Score `json:"last_rounds"`
	// Coverage is, per workload, the share of the true curve inside the band
	// at the end; empty for a policy that learns no curve.
	Coverage map[string]float64 `json:"coverage"`
	// Utility and Allocation are the means per workload.
	Utility    map[string]float64 `json:"utility"`
	Allocation map[string]float64 `json:"allocation"`
	// Compute is the time of a decision, Learn that of a round's reports.
	Compute Times `json:"compute_ms"`
	Learn   Times `json:"learn_ms"`
	// ByRound is the course of the scores, for drawing.
	ByRound Course `json:"by_round"`
	// StdErr is the standard error over the seeds of each figure; 0 for one.
	StdErr map[string]float64 `json:"stderr"`
}

// Times are quantiles over rounds and seeds, in milliseconds.
type Times struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

func timesOf(v []float64) Times { return Times{sim.Quantile(v, 0.5), sim.Quantile(v, 0.99)} }

// Summarize sums up one policy's runs in e.
func Summarize(e *Environment, o *Outcome) Summary {
	s := Summary{Policy: o.Policy, StdErr: map[string]float64{}, Coverage: map[string]float64{}, Utility: map[string]float64{}, Allocation: map[string]float64{}}
	figure := func(name string, to *float64, of func(r *Run) float64) {
		v := make([]float64, len(o.Runs))
		for i, r := range o.Runs {
			v[i] = of(r)
		}
		stat := sim.StatOf(v)
		*to, s.StdErr[name] = stat.Mean, stat.StdErr
	}
	for prefix, f := range map[string]struct {
		to *Score
		of func(r *Run) *Score
	}{"": {&s.Score, func(r *Run) *Score { return &r.All }}, "last_rounds.": {&s.Last, func(r *Run) *Score { return &r.Late }}} {
		figure(prefix+"social", &f.to.Social, func(r *Run) float64 { return f.of(r).Social })
		figure(prefix+"egalitarian", &f.to.Egalitarian, func(r *Run) float64 { return f.of(r).Egalitarian })
		figure(prefix+"njc", &f.to.NJC, func(r *Run) float64 { return f.of(r).NJC })
		figure(prefix+"useful", &f.to.Useful, func(r *Run) float64 { return f.of(r).Useful })
	}
	figure("moved_units_per_round", &s.Moved, func(r *Run) float64 { return sim.Mean(r.Moved) })
	figure("moved_share_last_rounds", &s.MovedLate, func(r *Run) float64 {
		return sim.Mean(r.Moved[len(r.Moved)*2/3:]) / float64(e.Capacity)
	})
	s.perJob(e, o)
	var decide, learn []float64
	for _, r := range o.Runs {
		decide, learn = append(decide, r.Decide...), append(learn, r.Learn...)
	}
	s.ByRound = Course{o.course(func(s Score) float64 { return s.Social }), o.course(func(s Score) float64 { return s.Egalitarian }),
		o.course(func(s Score) float64 { return s.NJC }), o.course(func(s Score) float64 { return s.Useful })}
	s.Compute, s.Learn = timesOf(decide), timesOf(learn)
	return s
}

func (s *Summary) perJob(e *Environment, o *Outcome) {
	n := float64(len(o.Runs))
	for i := range e.Jobs {
		name := e.Jobs[i].Name
		for _, r := range o.Runs {
			s.Utility[name] += r.Utility[i] / n
			s.Allocation[name] += r.Allocation[i] / n
			if r.Coverage != nil {
				s.Coverage[name] += r.Coverage[i] / n
			}
		}
	}
}

// Course is the mean over the seeds of each score in each round.
type Course struct {
	Social      []float64 `json:"social"`
	Egalitarian []float64 `json:"egalitarian"`
	NJC         []float64 `json:"njc"`
	Useful      []float64 `json:"useful"`
}

// course is the mean over the seeds of one score in each round, to 1e-4.
func (o *Outcome) course(of func(Score) float64) []float64 {
	if len(o.Runs) == 0 {
		return nil
	}
	out := make([]float64, len(o.Runs[0].Rounds))
	for i := range out {
		for _, r := range o.Runs {
			out[i] += of(r.Rounds[i]) / float64(len(o.Runs))
		}
		out[i] = math.Round(out[i]*1e4) / 1e4
	}
	return out
}
