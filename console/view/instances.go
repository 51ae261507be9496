package view

import (
	"iter"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
)

// knobs are the knobs of a resource with their hosts, in order of host and
// instance.
func (s *state) knobs(resource string) iter.Seq2[*host, *trimtab.KnobState] {
	return func(yield func(*host, *trimtab.KnobState) bool) {
		for _, h := range s.hosts {
			its := h.of(s.Name)
			for i := range its {
				if its[i].Resource == resource && !yield(h, &its[i]) {
					return
				}
			}
		}
	}
}

// resources are those that the workload has knobs of, in order.
func (s *state) resources() []string {
	var out []string
	for _, h := range s.hosts {
		for i, its := 0, h.of(s.Name); i < len(its); i++ {
			if at, known := slices.BinarySearch(out, its[i].Resource); !known && len(out) < s.room() {
				out = slices.Insert(out, at, its[i].Resource)
			}
		}
	}
	return out
}

// held is what a workload has of one resource, over its instances. The slowest
// of them sets the tail, so n instances that serve alike give as much as
//
//	effective = n · min_i a_i
//
// of one. As for the planner, an instance whose knob cannot be used, or whose host
// is gone, serves nothing where there are others.
type held struct {
	resource string
	// knob is the one of an only instance, or else the first.
	knob *trimtab.KnobState
	// instances counts those that serve, on so many hosts; readable those of them
	// whose amount is known.
	instances, hosts, readable int
	// effective and total are of what is in force, set and baseline effective too.
	effective, total, set, baseline trimtab.Amount
	pending                         bool
	// least is the one that binds.
	least *trimtab.KnobState
	rank  int
}

// The ranks of instances: only those of the first that there are count.
const (
	serves = iota
	unheard
	unusable
)

func (h *host) rank(k *trimtab.KnobState, now time.Time) int {
	switch {
	case k.Problem != "":
		return unusable
	case h.gone(now):
		return unheard
	}
	return serves
}

// held returns what the workload has of a resource at now.
func (s *state) held(resource string, now time.Time) held {
	out := held{resource: resource, rank: unusable}
	for h, k := range s.knobs(resource) {
		out.rank = min(out.rank, h.rank(k, now))
	}
	least, set, base := trimtab.Unlimited(), trimtab.Unlimited(), trimtab.Unlimited()
	var last *host
	for h, k := range s.knobs(resource) {
		if h.rank(k, now) != out.rank {
			continue
		}
		out.instances++
		if h != last {
			out.hosts, last = out.hosts+1, h
		}
		if out.knob == nil {
			out.knob = k
		}
		if !readable(k) {
			continue
		}
		out.readable++
		a := k.InForce()
		if out.least == nil || a.Less(least) {
			least, out.least = a, k
		}
		set, base = lesser(set, k.Now), lesser(base, k.Baseline)
		out.total = sum(out.total, a)
		out.pending = out.pending || k.Effective != nil
	}
	n := float64(out.instances)
	out.total.Value = round9(out.total.Value)
	out.effective, out.set, out.baseline = times(least, n), times(set, n), times(base, n)
	return out
}

// readable reports whether it is known what a knob gives: one that could never
// be read has not 0.
func readable(k *trimtab.KnobState) bool { return !k.Since.IsZero() || k.Problem == "" }

func lesser(a, b trimtab.Amount) trimtab.Amount {
	if b.Less(a) {
		return b
	}
	return a
}

func times(a trimtab.Amount, n float64) trimtab.Amount {
	if a.Unlimited || n == 1 {
		return a
	}
	return trimtab.Units(round9(min(a.Value*n, math.MaxFloat64)))
}

// round9 drops what arithmetic leaves behind a billionth: it is no news.
func round9(v float64) float64 {
	if v >= 1e6 {
		return v
	}
	return math.Round(v*1e9) / 1e9
}

// sum adds amounts; what is not finite any more is the largest number.
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

// several reports whether there is more than one instance.
func (d *held) several() bool { return d.instances > 1 }

// main is what it has of the pool's resource, or else of any that there is.
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
func (v *Model) instances(s *state, now time.Time) (out []Knob, omitted int) {
	least := map[trimtab.KnobID]bool{}
	for _, r := range s.resources() {
		if d := s.held(r, now); d.several() && d.least != nil && !d.effective.Unlimited {
			least[d.least.KnobID] = true
		}
	}
	for _, h := range s.hosts {
		its := slices.Clone(h.of(s.Name))
		slices.SortStableFunc(its, byInstance)
		for i := range its {
			if len(out) == MaxKnobs {
				omitted++
				continue
			}
			out = append(out, h.knob(&its[i], least[its[i].KnobID], now))
		}
	}
	return out, omitted
}

// knob is one knob as it is shown.
func (h *host) knob(k *trimtab.KnobState, least bool, now time.Time) Knob {
	out := Knob{KnobState: *k, Least: least}
	if h.silent(now) {
		out.Silent = Age(trimtab.SecondsOf(now.Sub(h.heard)))
	}
	return out
}
