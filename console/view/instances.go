package view

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/newest"
)

// knobs are the knobs of a resource with their hosts, in order of host and
// instance.
func (s *state) knobs(resource string) iter.Seq2[*newest.Host, *trimtab.KnobState] {
	return func(yield func(*newest.Host, *trimtab.KnobState) bool) {
		for _, h := range s.hosts() {
			its := h.Of(s.Name)
			for i := range its {
				if its[i].Resource == resource && !yield(h, &its[i]) {
					return
				}
			}
		}
	}
}

// resources returns the resources for which the workload has knobs, in order.
func (s *state) resources() []string {
	var out []string
	for _, h := range s.hosts() {
		for i, its := 0, h.Of(s.Name); i < len(its); i++ {
			if at, known := slices.BinarySearch(out, its[i].Resource); !known && len(out) < s.room() {
				out = slices.Insert(out, at, its[i].Resource)
			}
		}
	}
	return out
}

// held is what a workload has of one resource, over its instances. The slowest
// instance sets the tail latency, so instances with shares f_i of the load give as much as
// a single one with the allocation
//
//	effective = min_i a_i / f_i,  Σ f_i = 1     f_i by the estimate, 1/n without
//
// As for the planner, an instance whose knob cannot be used, or whose host
// is gone, serves nothing if there are others.
type held struct {
	resource string
	// knob is the one of an only instance, or else the first.
	knob *trimtab.KnobState
	// instances counts those that serve, on hosts hosts; readable counts those of them whose amount
	// is known.
	instances, hosts, readable int
	// effective and total are computed from the values in force; set and baseline are effective
	// amounts, too.
	effective, total, set, baseline trimtab.Amount
	pending                         bool
	// least is the one that binds.
	least *trimtab.KnobState
	rank  int
}

// The ranks of instances: only those of the best existing rank count.
const (
	serves = iota
	unreported
	unusable
)

func rankOf(h *newest.Host, k *trimtab.KnobState, now time.Time) int {
	switch {
	case k.Problem != "":
		return unusable
	case h.Gone(now):
		return unreported
	}
	return serves
}

// held returns the workload's allocation of a resource at now.
func (s *state) held(resource string, now time.Time) held {
	out := held{resource: resource, rank: unusable}
	for h, k := range s.knobs(resource) {
		out.rank = min(out.rank, rankOf(h, k, now))
	}
	var last *newest.Host
	for h, k := range s.knobs(resource) {
		if rankOf(h, k, now) != out.rank {
			continue
		}
		out.instances++
		if h != last {
			out.hosts, last = out.hosts+1, h
		}
		if out.knob == nil {
			out.knob = k
		}
	}
	loads := s.loads(&out, now)
	least := trimtab.Unlimited()
	out.effective, out.set, out.baseline = least, least, least
	var set, baseline trimtab.Amount
	for h, k := range s.knobs(resource) {
		if rankOf(h, k, now) != out.rank || !readable(k) {
			continue
		}
		out.readable++
		a := k.InForce()
		out.total = sum(out.total, a)
		out.pending = out.pending || k.Effective != nil
		of := loads.of(k)
		if a := of.gives(a); out.least == nil || a.Less(least) {
			least, out.least = a, k
		}
		if s.MemoryAlone {
			set, baseline = sum(set, k.Now), sum(baseline, k.Baseline)
		}
		out.set, out.baseline = lesser(out.set, of.gives(k.Now)), lesser(out.baseline, of.gives(k.Baseline))
	}
	out.effective = least
	if s.MemoryAlone && out.readable > 0 { // its instances serve alike whatever the limit of each is
		out.effective, out.set, out.baseline, out.least = out.total, set, baseline, nil
	}
	out.total.Value = round9(out.total.Value)
	return out
}

// loads are the shares of the load of a workload's n instances. An instance that the estimate does
// not have gets 1/n; the others divide the rest in the ratio of the estimate.
type loads struct {
	reported []trimtab.LoadShare
	n        float64 // instances
	// factor for the reported shares; 0: none was reported
	scale float64
}

func (s *state) loads(d *held, now time.Time) loads {
	out := loads{n: float64(d.instances)}
	if d.instances < 2 || s.estimate.Value == nil || len(s.estimate.Value.Shares) == 0 {
		return out
	}
	out.reported = s.estimate.Value.Shares
	known, sum := 0.0, 0.0
	for h, k := range s.knobs(d.resource) {
		if rankOf(h, k, now) != d.rank {
			continue
		}
		if f, ok := out.find(k); ok {
			known, sum = known+1, sum+f
		}
	}
	if sum > 0 {
		out.scale = known / out.n / sum
	}
	return out
}

func (l *loads) find(k *trimtab.KnobState) (float64, bool) {
	at, ok := slices.BinarySearchFunc(l.reported, trimtab.LoadShare{Host: k.Host, Instance: k.Instance}, trimtab.LoadShare.Compare)
	if !ok {
		return 0, false
	}
	return l.reported[at].Share, true
}

// inverse is 1/f of an instance.
type inverse float64

func (l *loads) of(k *trimtab.KnobState) inverse {
	if f, ok := l.find(k); ok && l.scale > 0 {
		return inverse(1 / (f * l.scale))
	}
	return inverse(l.n)
}

// gives returns the effective allocation of a workload with the amount a here, a/f.
func (f inverse) gives(a trimtab.Amount) trimtab.Amount {
	if a.Unlimited || f == 1 {
		return a
	}
	return trimtab.Units(round9(min(a.Value*float64(f), math.MaxFloat64)))
}

// readable reports whether the amount of a knob is known: one that was never read does not count as
// 0.
func readable(k *trimtab.KnobState) bool { return !k.Since.IsZero() || k.Problem == "" }

func lesser(a, b trimtab.Amount) trimtab.Amount {
	if b.Less(a) {
		return b
	}
	return a
}

// round9 rounds to a billionth, so that rounding errors do not count as changes.
func round9(v float64) float64 {
	if v >= 1e6 {
		return v
	}
	return math.Round(v*1e9) / 1e9
}

// sum adds amounts; an overflow gives the largest number.
func sum(a, b trimtab.Amount) trimtab.Amount {
	if a.Unlimited || b.Unlimited {
		return trimtab.Unlimited()
	}
	return trimtab.Units(min(a.Value+b.Value, math.MaxFloat64))
}

// problem says why no instance can be used; "": some can.
func (d *held) problem() string {
	if d.knob == nil {
		return ""
	}
	return d.knob.Problem
}

// where names the knob, or says how many there are.
func (d *held) where() string {
	switch d.instances {
	case 0:
		return ""
	case 1:
		return d.knob.Knob
	}
	return Spread(d.instances, d.hosts)
}

// Spread says how many instances a workload has on how many hosts.
func Spread(instances, hosts int) string {
	if hosts == 1 {
		return Count(instances, "instance") + " on a host"
	}
	return Count(instances, "instance") + " on " + Count(hosts, "host")
}

// amounts returns what is in force, of several instances in all, and what is pending; nil: unknown, or none.
func (d *held) amounts() (effective, total, pending *trimtab.Amount) {
	if d.readable > 0 {
		effective = &d.effective
		if d.several() && d.least != nil {
			total = &d.total
		}
		if d.pending {
			pending = &d.set
		}
	}
	return effective, total, pending
}

// several reports whether there is more than one instance.
func (d *held) several() bool { return d.instances > 1 }

// main returns the allocation of the pool's resource, or else of any resource that the workload
// has.
func (s *state) main(resource string, now time.Time) held {
	if d := s.held(resource, now); d.instances > 0 {
		return d
	}
	for _, r := range s.resources() {
		return s.held(r, now)
	}
	return held{}
}

// instances lists the knobs of a workload, in order of host, instance and
// resource, as many as are shown.
func (s *state) instances(now time.Time) (out []Knob, omitted int) {
	least, told := map[trimtab.KnobID]bool{}, loads{}
	if s.estimate.Value != nil {
		told.reported = s.estimate.Value.Shares
	}
	for _, r := range s.resources() {
		if d := s.held(r, now); d.several() && d.least != nil && !d.effective.Unlimited {
			least[d.least.KnobID] = true
		}
	}
	for _, h := range s.hosts() {
		its := slices.Clone(h.Of(s.Name))
		slices.SortStableFunc(its, byInstance)
		for i := range its {
			if len(out) == MaxKnobs {
				omitted++
				continue
			}
			k := shownKnob(h, &its[i], least[its[i].KnobID], now)
			k.Bound = s.bound(k.Resource, h.Name)
			if f, ok := told.find(&its[i]); ok {
				k.Share = &f
			}
			out = append(out, k)
		}
	}
	return out, omitted
}

// knob converts a knob for display.
func shownKnob(h *newest.Host, k *trimtab.KnobState, least bool, now time.Time) Knob {
	out := Knob{KnobState: *k, Least: least}
	if h.Silent(now) {
		out.Silent = Age(trimtab.SecondsOf(now.Sub(h.ReportedAt())))
	}
	return out
}
