package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
)

// FastView sums up how fast loops moved the CPU quotas of one workload, over all its
// instances.
type FastView struct {
	trimtab.Fast
	// Instances counts the instances whose quotas fast loops move.
	Instances int `json:"instances"`
	// Fixed is the performance that the target would give with a fixed quota; nil: unknown.
	Fixed *trimtab.Band `json:"fixed,omitempty"`
	// Stalls is the share of the time of all instances in which a quota throttled them, since their
	// agents started; nil: there is no envelope yet.
	Stalls *float64 `json:"stalls,omitempty"`
}

// fast sums the hosts' reports of a workload's moving quotas; nil: none moves.
func (s *state) fast() *FastView {
	out := &FastView{Fast: trimtab.Fast{From: map[string]float64{}}}
	seconds := 0.0
	for _, h := range s.hosts() {
		for _, k := range h.Of(s.Name) {
			f := k.Fast
			if f == nil {
				continue
			}
			out.Instances++
			out.add(f)
			if f.Set > 0 && f.Envelope.Target > 0 {
				seconds += (f.Granted + f.Lent - f.Borrowed) / f.Envelope.Target
			}
		}
	}
	if out.Instances == 0 {
		return nil
	}
	if seconds > 0 {
		share := min(1, out.Stalled/seconds)
		out.Stalls = &share
	}
	return out
}

// add adds the state of one knob.
func (v *FastView) add(f *trimtab.Fast) {
	e, of := &v.Envelope, &f.Envelope
	e.Floor, e.Target, e.Ceiling, e.Burst = e.Floor+of.Floor, e.Target+of.Target, e.Ceiling+of.Ceiling, e.Burst+of.Burst
	e.Budget, e.Late, e.Lend, e.Borrow = of.Budget, of.Late, e.Lend || of.Lend, e.Borrow || of.Borrow
	v.Set, v.Low, v.High, v.Demand = v.Set+f.Set, v.Low+f.Low, v.High+f.High, v.Demand+f.Demand
	v.Granted, v.Lent, v.Borrowed, v.Stalled = v.Granted+f.Granted, v.Lent+f.Lent, v.Borrowed+f.Borrowed, v.Stalled+f.Stalled
	v.Writes += f.Writes
	for name, x := range f.From {
		v.From[name] += x
	}
	if f.Ask != nil {
		v.Ask = f.Ask
	}
	v.Off = cmp.Or(v.Off, f.Off)
}

// String says it to a person.
func (v *FastView) String() string {
	if v.Off != "" {
		return "not moved between rounds: " + v.Off
	}
	var b strings.Builder
	fmt.Fprintf(&b, "rests at %.3g cores, set to %.3g, in the last seconds from %.3g to %.3g (allowed: %.3g to %.3g)",
		v.Envelope.Target, v.Set, v.Low, v.High, v.Envelope.Least(), v.Envelope.Most())
	if v.Stalls != nil {
		fmt.Fprintf(&b, "; stalled %.2g%% of the time", 100**v.Stalls)
	}
	if v.Borrowed > 0 {
		fmt.Fprintf(&b, "; borrowed %.3g core-seconds%s", v.Borrowed, lenders(v.From))
	}
	if v.Lent > 0 {
		fmt.Fprintf(&b, "; lent %.3g core-seconds", v.Lent)
	}
	if v.Fixed != nil {
		fmt.Fprintf(&b, "; with a fixed quota performance would be %.3g to %.3g", v.Fixed.Lower, v.Fixed.Upper)
	}
	return b.String()
}

// lenders names up to three workloads from which most was borrowed.
func lenders(from map[string]float64) string {
	names := slices.SortedFunc(maps.Keys(from), func(a, b string) int { return cmp.Or(cmp.Compare(from[b], from[a]), cmp.Compare(a, b)) })
	var parts []string
	for _, name := range names[:min(3, len(names))] {
		parts = append(parts, fmt.Sprintf("%.3g from %s", from[name], name))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}
