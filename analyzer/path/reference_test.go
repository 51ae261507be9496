package path

import (
	"fmt"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"pgregory.net/rapid"
)

// drawTrace draws one trace with distinct ids, times in even milliseconds, and
// any relations: trees, overlaps, cycles, self-parents, missing parents. Each
// span is a component of its own; the first letter is its workload.
func drawTrace(t *rapid.T) []sp {
	n := rapid.IntRange(1, 40).Draw(t, "n")
	spans := make([]sp, n)
	for i := range spans {
		start := rapid.IntRange(5, 100).Draw(t, "start") * 2
		spans[i] = sp{
			trace: 7, id: uint64(i + 1), parent: rapid.Uint64Range(0, uint64(n+1)).Draw(t, "parent"),
			service: fmt.Sprintf("%s%d", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "workload"), i),
			start:   float64(start), end: float64(start + 2*rapid.IntRange(-2, 60).Draw(t, "length")),
			kind: trimtab.SpanKind(rapid.IntRange(0, 5).Draw(t, "kind")),
		}
	}
	return spans
}

// twoWorkloads matches the services that drawTrace makes.
func twoWorkloads() Config {
	var a, b []string
	for i := range 64 {
		a = append(a, fmt.Sprintf("a%d", i))
		b = append(b, fmt.Sprintf("b%d", i))
	}
	return Config{Workloads: []Match{
		{Name: "a", Attributes: map[string][]string{"service.name": a}, Threshold: 50 * time.Millisecond},
		{Name: "b", Attributes: map[string][]string{"service.name": b}, Threshold: 50 * time.Millisecond},
	}}
}

// slowParent returns the parent of span i by the definition: the span that it
// names, unless that is itself, absent, or below it in a cycle.
func slowParent(spans []sp, i int) int {
	named := func(i int) int {
		for k := range spans {
			if spans[k].id == spans[i].parent && k != i {
				return k
			}
		}
		return -1
	}
	for k, steps := named(i), 0; k >= 0 && steps <= len(spans); k, steps = named(k), steps+1 {
		if k == i {
			return -1
		}
	}
	return named(i)
}

// slowSojourn counts the milliseconds of span i in which no child of it runs.
func slowSojourn(spans []sp, i int) int {
	in := map[int]bool{}
	for ms := int(spans[i].start); ms < int(spans[i].end); ms++ {
		in[ms] = true
	}
	length := int(spans[i].end - spans[i].start)
	for k, c := range spans {
		if slowParent(spans, k) != i || c.end < c.start {
			continue
		}
		from, to := int(c.start), int(c.end)
		sticksOut := from < int(spans[i].start) || to > int(spans[i].end)
		if sticksOut && c.kind == trimtab.SpanServer && spans[i].kind == trimtab.SpanClient && to-from <= length {
			shift := int(spans[i].start) + (length-(to-from))/2 - from
			from, to = from+shift, to+shift
		}
		for ms := from; ms < to; ms++ {
			delete(in, ms)
		}
	}
	return len(in)
}

// slowRequests counts the entry spans of a workload.
func slowRequests(spans []sp, workload byte) float64 {
	return float64(len(slowEntries(spans, workload)))
}

// slowEntries returns the entry spans of a workload.
func slowEntries(spans []sp, workload byte) (entries []int) {
	for i, s := range spans {
		if s.service[0] != workload {
			continue
		}
		up := slowParent(spans, i)
		local := s.kind == trimtab.SpanInternal || s.kind == trimtab.SpanClient || s.kind == trimtab.SpanProducer
		switch {
		case up >= 0 && spans[up].service[0] == workload, up < 0 && s.parent != 0 && local:
		default:
			entries = append(entries, i)
		}
	}
	return entries
}

func TestSojournsAndRequestsAreThoseOfTheDefinition(t *testing.T) {
	c := twoWorkloads()
	rapid.Check(t, func(rt *rapid.T) {
		spans := drawTrace(rt)
		got := run(t, newPath(t, c), frame(t, rapid.Permutation(spans).Draw(rt, "order")...))
		for _, w := range []byte("ab") {
			want := slowRequests(spans, w)
			s := got[string(w)]
			if s == nil {
				if want != 0 {
					rt.Fatalf("no sketch of %c, want %v requests", w, want)
				}
				continue
			}
			if s.Requests != want {
				rt.Fatalf("%v requests of %c, want %v", s.Requests, w, want)
			}
			for i, x := range spans {
				if x.service[0] != w {
					continue
				}
				h := s.Components[x.service].Sojourn
				want := float64(slowSojourn(spans, i))
				if x.end < x.start {
					want = -1
				}
				if m := meanMS(&h); m != want {
					rt.Fatalf("sojourn of span %d is %v ms, want %v", x.id, m, want)
				}
			}
		}
	})
}

// drawTree draws a proper tree: children inside their parents.
func drawTree(t *rapid.T, apart bool) []sp {
	spans := []sp{{trace: 1, id: 1, service: "a0", start: 2, end: 4002, kind: trimtab.SpanServer}}
	for i := 1; i < rapid.IntRange(1, 30).Draw(t, "n"); i++ {
		up := spans[rapid.IntRange(0, i-1).Draw(t, "up")]
		from := up.start
		if apart { // begin after the last child that is there
			for _, s := range spans {
				if s.parent == up.id {
					from = s.end
				}
			}
		}
		start := from + float64(rapid.IntRange(0, int(up.end-from)).Draw(t, "start"))
		end := start + float64(rapid.IntRange(0, int(up.end-start)).Draw(t, "length"))
		spans = append(spans, sp{trace: 1, id: uint64(i + 1), parent: up.id, service: fmt.Sprintf("a%d", i), start: start, end: end})
	}
	return spans
}

func TestSojournsOfATraceWithoutParallelWorkSumUpToItsDuration(t *testing.T) {
	c := twoWorkloads()
	rapid.Check(t, func(rt *rapid.T) {
		apart := rapid.Bool().Draw(rt, "apart")
		s := run(t, newPath(t, c), frame(t, drawTree(rt, apart)...))["a"]
		sum := 0.0
		for _, c := range s.Components {
			sum += meanMS(&c.Sojourn)
		}
		if sum < 4000 || apart && sum != 4000 {
			rt.Fatalf("sojourns sum up to %v ms, root takes 4000, parallel: %v", sum, !apart)
		}
	})
}
