package cilantro

import (
	"math"

	"github.com/trimtab/trimtab/lab"
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
	// at the end; without those of which no report came, so empty for a policy
	// that learns no curve.
	Coverage map[string]float64 `json:"coverage"`
	// Utility and Allocation are the means per workload that was there.
	Utility    map[string]float64 `json:"utility"`
	Allocation map[string]float64 `json:"allocation"`
	// Compute is the time of a decision, Learn that of a round's reports.
	Compute Times `json:"compute_ms"`
	Learn   Times `json:"learn_ms"`
	// ByRound is the course of the scores, for drawing.
	ByRound Course `json:"by_round"`
	// StdErr is the standard error over the seeds of each figure; empty for
	// one seed, which tells nothing of it.
	StdErr map[string]float64 `json:"stderr"`
}

// Times are quantiles over rounds and seeds, in milliseconds.
type Times struct {
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

func timesOf(v []float64) Times { return Times{lab.Quantile(v, 0.5), lab.Quantile(v, 0.99)} }

// Summarize sums up one policy's runs in e.
func Summarize(e *Environment, o *Outcome) Summary {
	s := Summary{Policy: o.Policy, StdErr: map[string]float64{}, Coverage: map[string]float64{}, Utility: map[string]float64{}, Allocation: map[string]float64{}}
	figure := func(name string, to *float64, of func(r *Run) float64) {
		v := make([]float64, len(o.Runs))
		for i, r := range o.Runs {
			v[i] = of(r)
		}
		stat := lab.StatOf(v)
		*to = stat.Mean
		if len(v) > 1 {
			s.StdErr[name] = stat.StdErr
		}
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
	figure("moved_units_per_round", &s.Moved, func(r *Run) float64 { return lab.Mean(r.Moved) })
	figure("moved_share_last_rounds", &s.MovedLate, func(r *Run) float64 {
		return lab.Mean(r.Moved[len(r.Moved)*2/3:]) / float64(e.Capacity)
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
	for i := range e.Jobs {
		for _, f := range []struct {
			to map[string]float64
			of func(r *Run) []float64
		}{
			{s.Utility, func(r *Run) []float64 { return r.Utility }},
			{s.Allocation, func(r *Run) []float64 { return r.Allocation }},
			{s.Coverage, func(r *Run) []float64 { return r.Coverage }},
		} {
			var known []float64
			for _, r := range o.Runs {
				if v := f.of(r); v != nil && !math.IsNaN(v[i]) {
					known = append(known, v[i])
				}
			}
			for _, v := range known {
				f.to[e.Jobs[i].Name] += v / float64(len(known))
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
