package calc

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
	"github.com/trimtab/trimtab/lab/bintree"
	"github.com/trimtab/trimtab/lab/published"
	"github.com/trimtab/trimtab/lab/ridge"
)

// learnInput is what was observed and what is asked.
type learnInput struct {
	Learner      string        `json:"learner"`
	Level        float64       `json:"level"`
	Observations []observation `json:"observations"`
	Query        []query       `json:"query"`
	// MaxAllocation bounds all allocations; null or absent: no bound.
	MaxAllocation *float64 `json:"max_allocation,omitempty"`
}

// observation is one report. Time is in seconds, not going back. At most one
// of Sigma and Requests is given; both are > 0.
type observation struct {
	Time        float64  `json:"time"`
	Allocation  float64  `json:"allocation"`
	Load        float64  `json:"load"`
	Performance float64  `json:"performance"`
	Sigma       *float64 `json:"sigma,omitempty"`
	Requests    *float64 `json:"requests,omitempty"`
}

type query struct {
	Allocation float64 `json:"allocation"`
	Load       float64 `json:"load"`
}

// learnt has one entry in each list for each query.
type learnt struct {
	Learner  string    `json:"learner"`
	Estimate []float64 `json:"estimate"`
	Lower    []float64 `json:"lower"`
	Upper    []float64 `json:"upper"`
	// Reports is how many observations the learner still holds, Changes how
	// often it found that the curve had changed and forgot what was before.
	Reports int `json:"reports"`
	Changes int `json:"changes"`
	// Falls: somewhere more resource made the performance worse.
	Falls bool `json:"falls"`
}

// Learn teaches a learner all observations in order and asks it for the band
// at each query:
//
//	in:  {"learner": "default"|"gp"|"bintree"|"kernel"|"bintree-published", "level": 0.9, "observations": […], "query": […], "max_allocation" (optional)}
//	out: {"learner", "estimate", "lower", "upper", "reports", "changes", "falls"}
//
// where performance is a fraction of requests, no bound is above 1.
//
// See package learn for what they mean. The published tree, which is there for
// comparison, needs constants of the curve beforehand, and gets them from the
// observations: see constants. Errors name the row of the
// observation or query at fault.
func Learn(r io.Reader) (any, error) {
	var in learnInput
	if err := Decode(r, &in); err != nil {
		return nil, err
	}
	if !slices.Contains(Learners(), in.Learner) {
		return nil, unknownLearner(in.Learner)
	}
	if !(in.Level > 0 && in.Level < 1) {
		return nil, trimtab.Invalidf("level %v: want a number in (0, 1)", in.Level)
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	l, err := in.learner()
	if err != nil {
		return nil, err
	}
	for i := range in.Observations {
		o := &in.Observations[i]
		if err := l.Observe(o.observation()); err != nil {
			return nil, fmt.Errorf("observation %d: %w", i, err)
		}
	}
	out := learnt{Learner: l.Name(), Reports: l.Reports(), Changes: l.Changes(), Falls: l.Falls()}
	out.Estimate, out.Lower, out.Upper = make([]float64, len(in.Query)), make([]float64, len(in.Query)), make([]float64, len(in.Query))
	fractions := in.fractions()
	for i, q := range in.Query {
		b := l.Predict(q.Allocation, q.Load)
		if fractions {
			b = trimtab.Band{Lower: min(b.Lower, 1), Mean: min(b.Mean, 1), Upper: min(b.Upper, 1)}
		}
		out.Estimate[i], out.Lower[i], out.Upper[i] = b.Mean, b.Lower, b.Upper
	}
	return out, nil
}

// fractions reports whether performance is a fraction of requests, even where
// some observations do not say of how many: one does, and none is above 1.
func (in *learnInput) fractions() bool {
	some := slices.ContainsFunc(in.Observations, func(o observation) bool { return o.Requests != nil })
	return some && !slices.ContainsFunc(in.Observations, func(o observation) bool { return o.Performance > 1 })
}

// Learners returns the names that Learn takes.
func Learners() []string { return []string{"default", "gp", "bintree", "kernel", publishedTree} }

// publishedTree names the tree with the bounds that the paper's code computes.
const publishedTree = "bintree-published"

func unknownLearner(name string) error {
	return trimtab.Invalidf("learner %.40q: want one of %s", name, strings.Join(Learners(), ", "))
}

// learner returns a new one of the name asked for.
func (in *learnInput) learner() (learn.Learner, error) {
	switch in.Learner {
	case "default", "gp":
		return gp.New(in.Level)
	case "bintree":
		return bintree.New(in.Level)
	case "kernel":
		return ridge.New(in.Level)
	case publishedTree:
		return published.New(in.constants())
	}
	return nil, unknownLearner(in.Learner)
}

// slices of the range of a/l that the slope is read from.
const slopeSlices = 10

// constants are what the published tree is told of the curve beforehand, and
// what nobody gave: the highest a/l asked for or reported, the highest
// performance, at least 1, and as Lipschitz constant the steepest slope between
// the means of neighbouring tenths of that range.
func (in *learnInput) constants() published.Config {
	c := published.Config{Top: 1}
	for _, q := range in.Query {
		c.Width = math.Max(c.Width, q.Allocation/q.Load)
	}
	for i := range in.Observations {
		o := &in.Observations[i]
		c.Width, c.Top = math.Max(c.Width, o.Allocation/o.Load), math.Max(c.Top, o.Performance)
	}
	c.Width = math.Min(c.Width, 1e15)
	var sum, n [slopeSlices]float64
	for i := range in.Observations {
		o := &in.Observations[i]
		k := min(int(slopeSlices*(o.Allocation/o.Load/c.Width)), slopeSlices-1)
		sum[k], n[k] = sum[k]+o.Performance, n[k]+1
	}
	before := -1
	for k := range sum {
		if n[k] == 0 {
			continue
		}
		if before >= 0 {
			rise := math.Abs(sum[k]/n[k] - sum[before]/n[before])
			c.Lipschitz = math.Max(c.Lipschitz, rise/(c.Width*float64(k-before)/slopeSlices))
		}
		before = k
	}
	if !(c.Lipschitz > 0) {
		c.Lipschitz = c.Top / c.Width // one place says nothing of a slope
	}
	c.Lipschitz = math.Min(c.Lipschitz, 1e15)
	return c
}

func (o *observation) observation() learn.Observation {
	out := learn.Observation{Allocation: o.Allocation, Load: o.Load, Performance: o.Performance,
		Time: time.Unix(0, 0).Add(time.Duration(o.Time * float64(time.Second)))}
	if o.Sigma != nil {
		out.Sigma = *o.Sigma
	}
	if o.Requests != nil {
		out.Requests = *o.Requests
	}
	return out
}

// maxTime is the latest time in seconds: beyond it there is no nanosecond.
const maxTime = 9e9

func (in *learnInput) check() error {
	most := math.Inf(1)
	if in.MaxAllocation != nil {
		if most = *in.MaxAllocation; !(most > 0) {
			return trimtab.Invalidf("max_allocation %v: want > 0", most)
		}
	}
	if len(in.Observations) == 0 {
		return trimtab.Invalidf("observations: empty: there is nothing to learn from")
	}
	for i := range in.Observations {
		o := &in.Observations[i]
		if err := o.check(most); err != nil {
			return fmt.Errorf("observation %d: %w", i, err)
		}
		if i > 0 && o.Time < in.Observations[i-1].Time {
			return trimtab.Invalidf("observation %d: time goes back from %v to %v", i, in.Observations[i-1].Time, o.Time)
		}
	}
	if i := slices.IndexFunc(in.Query, func(q query) bool { return !(q.Allocation >= 0 && q.Allocation <= most && q.Load > 0) }); i >= 0 {
		return trimtab.Invalidf("query %d: allocation %v, load %v: want 0 <= allocation <= %v, load > 0", i, in.Query[i].Allocation, in.Query[i].Load, most)
	}
	return nil
}

func (o *observation) check(most float64) error {
	switch {
	case !(math.Abs(o.Time) <= maxTime):
		return trimtab.Invalidf("time %v: want at most %g seconds", o.Time, maxTime)
	case !(o.Allocation > 0 && o.Allocation <= most):
		return trimtab.Invalidf("allocation %v: want more than 0, at most %v", o.Allocation, most)
	case !(o.Load > 0):
		return trimtab.Invalidf("load %v: want > 0", o.Load)
	case !(o.Performance >= 0):
		return trimtab.Invalidf("performance %v: want >= 0", o.Performance)
	case o.Sigma != nil && !(*o.Sigma > 0):
		return trimtab.Invalidf("sigma %v: want > 0", *o.Sigma)
	case o.Requests != nil && !(*o.Requests > 0):
		return trimtab.Invalidf("requests %v: want > 0", *o.Requests)
	case o.Sigma != nil && o.Requests != nil:
		return trimtab.Invalidf("both sigma and requests: want one or none")
	}
	return nil
}
