package path

import (
	"fmt"
	"slices"
	"strings"
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
			kind:  trimtab.SpanKind(rapid.IntRange(0, 5).Draw(t, "kind")),
			flags: rapid.SampledFrom([]uint8{0, 0, 0, trimtab.FlagFollowsFrom, trimtab.FlagReceive}).Draw(t, "flags"),
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

// slowCall reports whether span c could be a call by up whose times are of another clock.
func slowCall(c, up sp) bool {
	_, host, named := strings.Cut(c.service, "@")
	_, hostUp, _ := strings.Cut(up.service, "@")
	if !named {
		host, hostUp = "h", "h" // see frame
	}
	kinds := c.kind == trimtab.SpanServer && up.kind == trimtab.SpanClient || c.service != up.service && c.kind != trimtab.SpanConsumer && up.kind != trimtab.SpanProducer
	return kinds && c.end-c.start <= up.end-up.start && (host == "" || host != hostUp)
}

// componentOf returns the component of a span without its host.
func componentOf(s sp) string {
	component, _, _ := strings.Cut(s.service, "@")
	return component
}

// slowWaiter returns the parent of span i, or -1 where that did not wait for it.
func slowWaiter(spans []sp, i int) int {
	k := slowParent(spans, i)
	if k < 0 {
		return -1
	}
	c, up := spans[i], spans[k]
	known := c.end >= c.start && up.end >= up.start
	switch {
	case c.flags&trimtab.FlagFollowsFrom != 0,
		c.kind == trimtab.SpanConsumer && (up.kind == trimtab.SpanProducer || componentOf(c) != componentOf(up)),
		known && c.start > up.end && !slowCall(c, up):
		return -1
	}
	return k
}

// slowSojourn counts the milliseconds of span i in which no child of it runs.
func slowSojourn(spans []sp, i int) int {
	in := map[int]bool{}
	for ms := int(spans[i].start); ms < int(spans[i].end); ms++ {
		in[ms] = true
	}
	length := int(spans[i].end - spans[i].start)
	for k, c := range spans {
		if slowWaiter(spans, k) != i || c.end < c.start {
			continue
		}
		from, to := int(c.start), int(c.end)
		sticksOut := from < int(spans[i].start) || to > int(spans[i].end)
		if sticksOut && c.kind == trimtab.SpanServer && spans[i].kind == trimtab.SpanClient && slowCall(c, spans[i]) {
			shift := int(spans[i].start) + (length-(to-from))/2 - from
			from, to = from+shift, to+shift
		}
		for ms := from; ms < to; ms++ {
			delete(in, ms)
		}
	}
	return len(in)
}

// slowRequests counts the requests of a workload.
func slowRequests(spans []sp, workload byte) float64 {
	return float64(len(slowEntries(spans, workload)))
}

// slowEntries returns the requests of a workload.
func slowEntries(spans []sp, workload byte) (entries []int) {
	for i, s := range spans {
		if s.service[0] == workload && slowEntry(spans, i) {
			entries = append(entries, i)
		}
	}
	return entries
}

// slowServes reports whether a span tells of a request that was served.
func slowServes(s sp) bool {
	return s.kind == trimtab.SpanServer || s.kind == trimtab.SpanConsumer && s.flags&trimtab.FlagReceive == 0
}

// slowEntry reports whether span i is a request: one that was served, within no other of
// its workload, or the first span in it of a component that never serves any.
func slowEntry(spans []sp, i int) bool {
	s, up := spans[i], slowParent(spans, i)
	local := func(k int) bool { return k >= 0 && spans[k].service[0] == s.service[0] }
	if slowServes(s) {
		k := slowWaiter(spans, i)
		return !local(k) || !slowInRequest(spans, k)
	}
	switch {
	case local(up), s.flags&trimtab.FlagReceive != 0, up < 0 && s.parent != 0 && s.kind != 0,
		up >= 0 && (s.kind == trimtab.SpanClient || s.kind == trimtab.SpanProducer):
		return false
	}
	return !slices.ContainsFunc(spans, func(x sp) bool { return slowServes(x) && componentOf(x) == componentOf(s) })
}

// slowInRequest reports whether span i is a request of its workload, or lies in one by spans
// of the workload alone. A fragment whose server is missing does.
func slowInRequest(spans []sp, i int) bool {
	for k := i; k >= 0 && spans[k].service[0] == spans[i].service[0]; k = slowWaiter(spans, k) {
		fragment := slowParent(spans, k) < 0 && spans[k].parent != 0 && spans[k].kind != 0 && spans[k].flags&trimtab.FlagReceive == 0
		if fragment || slowServes(spans[k]) || slowEntry(spans, k) {
			return true
		}
	}
	return false
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
