package calc

import (
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/learn/bintree"
	"github.com/trimtab/trimtab/analyzer/learn/gp"
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
//	in:  {"learner": "default"|"gp"|"bintree", "level": 0.9, "observations": […], "query": […], "max_allocation" (optional)}
//	out: {"learner", "estimate", "lower", "upper", "reports", "changes", "falls"}
//
// See package learn for what they mean. Errors name the row of the
// observation or query at fault.
func Learn(r io.Reader) (any, error) {
	var in learnInput
	if err := Decode(r, &in); err != nil {
		return nil, err
	}
	l, err := LearnerOf(in.Learner, in.Level)
	if err != nil {
		return nil, err
	}
	if err := in.check(); err != nil {
		return nil, err
	}
	for i := range in.Observations {
		o := &in.Observations[i]
		if err := l.Observe(o.observation()); err != nil {
			return nil, trimtab.Invalidf("observation %d: %v", i, err)
		}
	}
	out := learnt{Learner: l.Name(), Reports: l.Reports()}
	out.Estimate, out.Lower, out.Upper = make([]float64, len(in.Query)), make([]float64, len(in.Query)), make([]float64, len(in.Query))
	for i, q := range in.Query {
		b := l.Predict(q.Allocation, q.Load)
		out.Estimate[i], out.Lower[i], out.Upper[i] = b.Mean, b.Lower, b.Upper
	}
	if c, ok := l.(interface{ Changes() int }); ok {
		out.Changes = c.Changes()
	}
	if f, ok := l.(learn.Falling); ok {
		out.Falls = f.Falls()
	}
	return out, nil
}

// Learners returns the names that LearnerOf takes.
func Learners() []string { return []string{"default", "gp", "bintree"} }

// LearnerOf returns a new learner by name, with bounds at the given level in
// (0, 1). Errors are trimtab.ErrInvalid.
func LearnerOf(name string, level float64) (learn.Learner, error) {
	switch name {
	case "default", "gp":
		return gp.New(level)
	case "bintree":
		return bintree.New(level)
	}
	return nil, trimtab.Invalidf("learner %.40q: want one of %s", name, strings.Join(Learners(), ", "))
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
			return trimtab.Invalidf("observation %d: %v", i, err)
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
