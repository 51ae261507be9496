package analyzer

import (
	"errors"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/learn"
	"github.com/trimtab/trimtab/analyzer/report"
)

// curves has what was learned of the performance of a workload as a function of its resources.
type curves struct {
	config  *Config
	spec    *Workload
	learner learn.Learner // nil: no curve
	proxy   learn.Learner // learner of Fallback.Proxy; nil: none
	fixed   fixed
	axes    []*axis // further resources
	changes int     // changes of the learner that were counted already
	// versions are the versions of the workload that the curve was learned from.
	versions versions
	// taught is the time of the performance that the curve was last taught.
	taught time.Time
	// disturbed counts the reports in a row that were ignored because further resources changed.
	disturbed int
}

// begin creates new learners.
func (k *curves) begin() {
	if k.spec.Learner != nil && k.spec.Max > 0 && k.spec.measured() {
		k.learner = k.spec.Learner()
	}
	k.axes, k.fixed = nil, fixed{}
	if k.learner != nil {
		for _, a := range k.spec.Others {
			k.axes = append(k.axes, &axis{Axis: a, learner: k.spec.Learner(), held: k.config.history(a.Resource)})
		}
	}
	if k.spec.Learner != nil && k.spec.Max > 0 && k.spec.Fallback.Proxy {
		k.proxy = k.spec.Learner()
	}
}

// leastFresh is the fraction of its requests with which a report counts if all of them were known
// before: next to nothing.
const leastFresh = 1e-3

// freshOf returns how many requests of r were in no earlier report. Two reports over a window W
// that are Δ apart share all but
//
//	n = N · min(1, Δ / W)
//
// of their N requests. With N for each, a learner would count every request W/Δ times, and be too
// certain.
func (k *curves) freshOf(r *report.Report) float64 {
	if r.Window <= 0 || k.taught.IsZero() || r.Requests == 0 {
		return r.Requests
	}
	return max(leastFresh, r.Requests*min(1, r.PerfAt.Sub(k.taught).Seconds()/r.Window.Seconds()))
}

// teach gives r to the learner, or sets r.Aside to why not. spare: the first resource is idle.
func (k *curves) teach(r *report.Report, held *allocation, q *queueing, spare bool, c *counts) {
	if k.learner == nil {
		return
	}
	switch {
	case r.Performance == nil:
		r.Aside = "no_performance"
	case r.Load == nil || *r.Load <= 0:
		r.Aside = "no_load"
	case r.Allocation == nil || *r.Allocation <= 0:
		r.Aside = "no_allocation"
	}
	if r.Aside == "" {
		r.Aside = k.learn(r, held, q, spare, c)
	}
	if r.Aside != "" {
		c.aside(r.Aside)
		return
	}
	c.learned++
	if n := k.learner.Changes(); n > k.changes {
		c.changes += uint64(n - k.changes)
		k.changes = n
	}
}

// learn gives a complete report to the learners, or returns why not.
func (k *curves) learn(r *report.Report, held *allocation, q *queueing, spare bool, c *counts) (aside string) {
	performance, ok := k.teachFurther(r, held, spare, c)
	if !ok {
		return "other_short"
	}
	o := learn.Observation{Time: r.At, Allocation: *r.Allocation, Load: *r.Load + q.headroom(),
		Performance: performance, Requests: r.Fresh, Sigma: r.Sigma}
	if k.fixed.teach(r, o, k.spec.Learner) {
		return "fixed_quota"
	}
	if k.learner.Observe(o) != nil {
		return "refused"
	}
	k.taught = r.PerfAt
	o.Load = *r.Load
	if len(r.Refused) == 0 { // a queue before which a gate refuses requests is another one
		q.teach(o)
	}
	return ""
}

// teachProxy gives the value of the proxy to the learner that stands in. It skips the same reports
// as the curve.
func (k *curves) teachProxy(r *report.Report, s *trimtab.Sample, c *counts) {
	if k.proxy == nil || s == nil || r.Load == nil || *r.Load <= 0 || r.Allocation == nil || *r.Allocation <= 0 || r.Aside == "transient" {
		return
	}
	err := k.proxy.Observe(learn.Observation{Time: r.At, Allocation: *r.Allocation, Load: *r.Load,
		Performance: s.Value, Requests: s.Requests, Sigma: s.Sigma})
	if err != nil {
		c.refused++
	}
}

// revise widens the curves if a report comes from a new version of the workload: it is unknown how
// the release changed them. It returns whether there is a new version.
func (k *curves) revise(v *interval, end time.Time) bool {
	var running []string
	for _, s := range v.sketches {
		running = append(running, s.Versions...)
	}
	slices.Sort(running)
	if !k.versions.observe(end, slices.Compact(running), calm*k.config.Round) {
		return false
	}
	learners := []learn.Learner{k.learner, k.proxy, k.fixed.learner}
	for i := range k.axes {
		learners = append(learners, k.axes[i].learner)
	}
	for _, l := range learners {
		if l != nil {
			l.Revise()
		}
	}
	return true
}

const (
	// maxKnown is the number of versions of one workload that are remembered.
	maxKnown = 64
	// calm is the least number of rounds between two new versions that are taken into account: a
	// site that gives every start a new version must not keep the curve from being learned.
	calm = 10
)

// versions has the versions of a workload that its curve was learned from.
type versions struct {
	known   []string // the oldest first
	revised time.Time
}

// observe records the versions that run at now, and reports whether one is new. The first ones ever
// observed are not new: the curve is learned from them.
func (v *versions) observe(now time.Time, running []string, gap time.Duration) bool {
	first, fresh := len(v.known) == 0, false
	for _, name := range running[:min(len(running), maxKnown)] {
		if slices.Contains(v.known, name) {
			continue
		}
		if len(v.known) >= maxKnown {
			v.known = slices.Delete(v.known, 0, 1)
		}
		v.known = append(v.known, name)
		fresh = true
	}
	if first || !fresh || !v.revised.IsZero() && now.Sub(v.revised) < gap {
		return false
	}
	v.revised = now
	return true
}

// restore restores the versions from a snapshot, if they are valid.
func (v *versions) restore(known []string) {
	if len(known) <= maxKnown {
		v.known = slices.Clone(known)
	}
}

// save stores what was learned in s.
func (k *curves) save(s *saved) (err error) {
	s.Versions = k.versions.known
	if k.learner != nil {
		s.Learner = k.learner.Name()
		if s.Curve, err = k.learner.Snapshot(); err == nil {
			s.Fixed, err = k.fixed.save()
		}
	}
	if k.proxy != nil && err == nil {
		s.Learner = k.proxy.Name()
		s.Proxy, err = k.proxy.Snapshot()
	}
	if len(k.axes) > 0 {
		s.Others = map[string]savedAxis{}
	}
	for _, a := range k.axes {
		b, failed := a.learner.Snapshot()
		err = errors.Join(err, failed)
		s.Others[a.Resource] = savedAxis{a.learner.Name(), b, a.Max}
	}
	return err
}

// load restores what save stored, as far as it comes from the same learners over the same ranges.
func (k *curves) load(s *saved) (err error) {
	k.versions.restore(s.Versions)
	if k.learner != nil && s.Learner == k.learner.Name() {
		if err = k.learner.Restore(s.Curve); err == nil {
			k.changes = k.learner.Changes()
			err = k.fixed.load(s.Fixed, k.spec.Learner)
		}
	}
	if k.proxy != nil && s.Learner == k.proxy.Name() && len(s.Proxy) > 0 && err == nil {
		err = k.proxy.Restore(s.Proxy)
	}
	for _, a := range k.axes {
		if x, ok := s.Others[a.Resource]; ok && x.Learner == a.learner.Name() && x.Max == a.Max && err == nil {
			err = a.learner.Restore(x.Curve)
		}
	}
	return err
}
