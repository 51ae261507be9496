// Package merge adds up the parts of sketches: the entries of several sketches for the same
// component, call or request. The result does not depend on the order or grouping of the sketches.
// Histograms are added by package quantile.
package merge

import (
	"cmp"
	"slices"

	"github.com/trimtab/trimtab"
)

// Slowest returns the MaxExemplars slowest exemplars of both lists, the slowest first, at most one
// per trace; nil if both are empty. The result for several lists does not depend on their order or
// grouping. The arguments stay unchanged.
func Slowest(a, b []trimtab.Exemplar) []trimtab.Exemplar {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y trimtab.Exemplar) int {
		return cmp.Or(cmp.Compare(y.Latency, x.Latency), cmp.Compare(x.TraceID, y.TraceID), cmp.Compare(x.SpanID, y.SpanID))
	})
	var out []trimtab.Exemplar
	for _, e := range all {
		if len(out) == trimtab.MaxExemplars {
			break
		}
		if !slices.ContainsFunc(out, func(o trimtab.Exemplar) bool { return o.TraceID == e.TraceID }) {
			out = append(out, e)
		}
	}
	return out
}

// Servpods returns the sums of two lists, sorted. It keeps no reference to the arguments.
func Servpods(a, b []trimtab.ServpodSketch) []trimtab.ServpodSketch {
	all := sorted(a, b, (*trimtab.ServpodSketch).Compare)
	out := all[:0] // it writes behind the element it reads
	for _, s := range all {
		n := len(out)
		if n == 0 || out[n-1].Compare(&s) != 0 {
			s.Tail = slices.Clone(s.Tail)
			out = append(out, s)
			continue
		}
		o := &out[n-1]
		o.Peer = o.Peer && s.Peer
		o.N, o.Sum, o.Square = o.N+s.N, o.Sum+s.Sum, o.Square+s.Square
		o.Latency, o.LatencySquare, o.Cross = o.Latency+s.Latency, o.LatencySquare+s.LatencySquare, o.Cross+s.Cross
		o.Wait, o.Off, o.OffLatency, o.Slack = o.Wait+s.Wait, o.Off+s.Off, o.OffLatency+s.OffLatency, o.Slack+s.Slack
		o.Tail = mergeTails(o.Tail, s.Tail)
	}
	return out
}

// Calls returns the sums of two lists, sorted. It keeps no reference to the arguments.
func Calls(a, b []trimtab.CallSketch) []trimtab.CallSketch {
	all := sorted(a, b, (*trimtab.CallSketch).Compare)
	out := all[:0] // it writes behind the element it reads
	for _, c := range all {
		n := len(out)
		if n == 0 || out[n-1].Compare(&c) != 0 {
			c.Tail = slices.Clone(c.Tail)
			out = append(out, c)
			continue
		}
		o := &out[n-1]
		o.N, o.Own, o.Wait = o.N+c.N, o.Own+c.Own, o.Wait+c.Wait
		o.Tail = mergeTails(o.Tail, c.Tail)
	}
	return out
}

// sorted concatenates two lists and sorts them.
func sorted[T any](a, b []T, compare func(x, y *T) int) []T {
	all := slices.Concat(a, b)
	if len(all) < 2 {
		return all
	}
	slices.SortStableFunc(all, func(x, y T) int { return compare(&x, &y) })
	return all
}

// mergeTails adds b to a, and may modify a.
func mergeTails(a, b []trimtab.TailSum) []trimtab.TailSum {
	for _, t := range b {
		i, found := slices.BinarySearchFunc(a, t[0], func(x trimtab.TailSum, k float64) int { return cmp.Compare(x[0], k) })
		if !found {
			a = slices.Insert(a, i, t)
			continue
		}
		for k := 1; k < len(t); k++ {
			a[i][k] += t[k]
		}
	}
	return a
}
