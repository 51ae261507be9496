package path

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/merge"
	"pgregory.net/rapid"
)

// drawTraces draws several traces of one window, over shared services, with
// faults, sampling and errors.
func drawTraces(t *rapid.T) []sp {
	var all []sp
	for trace := range rapid.IntRange(1, 8).Draw(t, "traces") {
		for _, s := range drawTrace(t) {
			s.trace = uint64(trace + 1)
			s.flags = uint8(rapid.IntRange(0, 15).Draw(t, "flags"))
			s.adjusted = rapid.Float32Range(1, 100).Draw(t, "adjusted")
			s.service = s.service[:1] + rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "component")
			all = append(all, s)
		}
	}
	return all
}

// steps plays spans in frames of the given size over 200 ms and returns the
// sketches' wire form.
func steps(tb testing.TB, c Config, spans []sp, size int) string {
	p := newPath(tb, c)
	n := 0
	for chunk := range slices.Chunk(spans, size) {
		p.Step(at(time.Duration(n*200/len(spans))*ms), frame(tb, chunk...))
		n += len(chunk)
	}
	var out []trimtab.Value
	for d := 200 * ms; d < 10*time.Second; d += 100 * ms {
		out = append(out, p.Step(at(d), nil)...)
	}
	balanced(tb, p)
	return text(tb, out)
}

func TestDuplicatesAndOrderOfArrivalChangeNoBit(t *testing.T) {
	c := twoWorkloads()
	c.Timeout, c.Grace = time.Second, 3*time.Second
	rapid.Check(t, func(rt *rapid.T) {
		spans := drawTraces(rt)
		want := steps(t, c, spans, len(spans))
		again := append(slices.Clone(spans), rapid.SliceOf(rapid.SampledFrom(spans)).Draw(rt, "again")...)
		rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)).Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		if got := steps(t, c, again, rapid.IntRange(1, len(again)).Draw(rt, "frame")); got != want {
			rt.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}

func TestOfDifferentSpansWithOneIDTheSameOneIsKeptInAnyOrder(t *testing.T) {
	c := twoWorkloads()
	rapid.Check(t, func(rt *rapid.T) {
		spans := drawTraces(rt)
		for i := range spans {
			spans[i].id = 1 + spans[i].id%4
		}
		if len(spans) == 0 {
			return
		}
		want := steps(t, c, spans, len(spans))
		rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1)).Shuffle(len(spans), func(i, j int) { spans[i], spans[j] = spans[j], spans[i] })
		if got := steps(t, c, spans, len(spans)); got != want {
			rt.Fatalf("got  %s\nwant %s", got, want)
		}
	})
}

// merged adds b to a as a reader of partial sketches does.
func merged(a, b *trimtab.Sketch) {
	a.Requests += b.Requests
	a.Spans += b.Spans
	a.Sampled = a.Sampled || b.Sampled
	a.Latency.Merge(&b.Latency)
	a.Under += b.Under
	a.Adjusted += b.Adjusted
	a.Unserved += b.Unserved
	a.Errors += b.Errors
	a.Exemplars = merge.Slowest(a.Exemplars, b.Exemplars)
	for name, c := range b.Components {
		if a.Components[name] == nil {
			a.Components[name] = new(trimtab.Component)
		}
		a.Components[name].Spans += c.Spans
		a.Components[name].Sojourn.Merge(&c.Sojourn)
	}
	a.Servpods, a.Calls = merge.Servpods(a.Servpods, b.Servpods), merge.Calls(a.Calls, b.Calls)
	for _, y := range b.Instances {
		i, found := slices.BinarySearchFunc(a.Instances, y, trimtab.InstanceLoad.Compare)
		if found {
			a.Instances[i].Requests += y.Requests
		} else {
			a.Instances = slices.Insert(a.Instances, i, y)
		}
	}
	for name, n := range b.Flagged {
		if a.Flagged == nil {
			a.Flagged = map[string]uint64{}
		}
		a.Flagged[name] += n
	}
}

func TestPartialSketchesMergeToTheSketchOfAllInAnySplitAndOrder(t *testing.T) {
	c := twoWorkloads()
	rapid.Check(t, func(rt *rapid.T) {
		spans := drawTraces(rt)
		// Every trace has a request that each component served, so that no partial
		// sketch is left out for having none, nor takes a component for one that
		// serves none.
		for trace := spans[len(spans)-1].trace; trace > 0; trace-- {
			for i, service := range []string{"a1", "a2", "a3", "b1", "b2", "b3"} {
				spans = append(spans, sp{trace: trace, id: uint64(100 + i), service: service, start: 2, end: 4, kind: trimtab.SpanServer})
			}
		}
		want := run(t, newPath(t, c), frame(t, spans...))
		parts := rapid.IntRange(1, 4).Draw(rt, "parts")
		split := make([][]sp, parts)
		for _, s := range spans {
			k := int(s.trace*2654435761>>3) % parts
			split[k] = append(split[k], s)
		}
		got := map[string]*trimtab.Sketch{}
		for _, k := range rapid.Permutation([]int{0, 1, 2, 3}[:parts]).Draw(rt, "order") {
			for w, s := range run(t, newPath(t, c), frame(t, split[k]...)) {
				if got[w] == nil {
					got[w] = s
				} else {
					merged(got[w], s)
				}
			}
		}
		if text(t, got) != text(t, want) {
			rt.Fatalf("got  %s\nwant %s", text(t, got), text(t, want))
		}
	})
}

func TestSketchesComeInOrderOfTimeAndWorkload(t *testing.T) {
	p := newPath(t, Config{Discover: true, Partition: 3})
	var spans []sp
	for i, service := range []string{"c", "a", "b", "a", "c"} {
		spans = append(spans, sp{trace: uint64(i + 1), id: 1, service: service, start: 0, end: float64(1800 - 400*i)})
	}
	p.Step(at(0), frame(t, spans...))
	var got []string
	for _, v := range p.Step(at(time.Hour), nil) {
		s := v.(*trimtab.Sketch)
		if s.Partition != 3 {
			t.Errorf("partition %d, want 3", s.Partition)
		}
		got = append(got, s.Workload+s.From.Format("/05"))
	}
	if want := []string{"a/00", "c/00", "a/01", "b/01", "c/01"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
