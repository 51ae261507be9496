package path

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// shop is a workload of its own service; its spans come from instances.
func shop() Config {
	return Config{Discover: true, Workloads: []Match{{Name: "shop", Attributes: map[string][]string{"service.name": {"shop"}}}}}
}

// from is a span with the resource that sent it.
type from struct {
	sp
	attrs []trimtab.Attr
}

// on returns the attributes of an instance on a host.
func on(host, instance string) []trimtab.Attr {
	return []trimtab.Attr{{Key: "host.name", Value: host}, {Key: "service.instance.id", Value: instance}}
}

// request is one span of shop, by itself.
func request(trace int, attrs []trimtab.Attr) from {
	return from{sp{trace: uint64(trace + 1), id: 1, service: "shop", start: 0, end: 10}, attrs}
}

// framed packs spans with a resource each.
func framed(tb testing.TB, spans ...from) *trimtab.SpanFrame {
	tb.Helper()
	var w codec.FrameWriter
	for _, s := range spans {
		r, ok := w.AddResource(append([]trimtab.Attr{{Key: "service.name", Value: s.service}}, s.attrs...))
		out := trimtab.Span{Start: epoch + int64(s.start*1e6), End: epoch + int64(s.end*1e6), Kind: s.kind, Flags: s.flags, Adjusted: max(1, s.adjusted), Resource: r}
		binary.BigEndian.PutUint64(out.TraceID[8:], s.trace)
		binary.BigEndian.PutUint64(out.SpanID[:], s.id)
		binary.BigEndian.PutUint64(out.Parent[:], s.parent)
		if !ok || !w.Add(&out) {
			tb.Fatal("frame full")
		}
	}
	return w.Frame(0)
}

func TestASketchTellsHowManyRequestsEachInstanceServed(t *testing.T) {
	sampled := request(9, on("h1", "a"))
	sampled.adjusted, sampled.flags = 4, trimtab.FlagAdjusted
	call := from{sp{trace: 1, id: 2, parent: 1, service: "shop", start: 1, end: 2}, on("h2", "b")}
	got := run(t, newPath(t, shop()), framed(t, request(0, on("h1", "a")), call, request(1, on("h1", "a")), request(2, on("h1", "b")),
		request(3, on("h2", "a")), request(4, nil), sampled))["shop"]
	want := []trimtab.InstanceLoad{
		{Host: "h1", Names: []string{"a"}, Requests: 6}, {Host: "h1", Names: []string{"b"}, Requests: 1}, {Host: "h2", Names: []string{"a"}, Requests: 1}}
	if d := cmp.Diff(want, got.Instances); d != "" || got.Requests != 9 {
		t.Errorf("%v requests, %s", got.Requests, d)
	}
}

func TestAnInstanceGoesByWhatItsResourceSaysOfHostAndCopy(t *testing.T) {
	type attrs map[string]string
	for what, c := range map[string]struct {
		attrs attrs
		want  *trimtab.InstanceLoad
	}{
		"host and instance":           {attrs{"host.name": "h", "service.instance.id": "1"}, &trimtab.InstanceLoad{Host: "h", Names: []string{"1"}}},
		"the host alone":              {attrs{"host.name": "h"}, &trimtab.InstanceLoad{Host: "h"}},
		"the instance alone":          {attrs{"service.instance.id": "1"}, &trimtab.InstanceLoad{Names: []string{"1"}}},
		"a pod has its node for host": {attrs{"host.name": "pod", "k8s.node.name": "h", "k8s.pod.name": "pod"}, &trimtab.InstanceLoad{Host: "h", Names: []string{"pod"}}},
		"a client of Jaeger":          {attrs{"hostname": "h"}, &trimtab.InstanceLoad{Host: "h"}},
		"every name that it has":      {attrs{"host.name": "h", "container.id": "c0", "k8s.pod.name": "p", "service.instance.id": "1"}, &trimtab.InstanceLoad{Host: "h", Names: []string{"1", "p", "c0"}}},
		"two names that are one":      {attrs{"host.name": "h", "k8s.pod.name": "p", "service.instance.id": "p"}, &trimtab.InstanceLoad{Host: "h", Names: []string{"p"}}},
		"nothing":                     {attrs{"host.arch": "amd64"}, nil},
		"empty names":                 {attrs{"host.name": "", "service.instance.id": ""}, nil},
		"names that are too long":     {attrs{"host.name": strings.Repeat("h", 254), "service.instance.id": strings.Repeat("i", 254)}, nil},
		"names that are no text":      {attrs{"host.name": "h\xff", "service.instance.id": "\xfe"}, nil},
	} {
		t.Run(what, func(t *testing.T) {
			var in []trimtab.Attr
			for k, v := range c.attrs {
				in = append(in, trimtab.Attr{Key: k, Value: v})
			}
			var want []trimtab.InstanceLoad
			if c.want != nil {
				c.want.Requests = 1
				want = append(want, *c.want)
			}
			if d := cmp.Diff(want, run(t, newPath(t, shop()), framed(t, request(0, in)))["shop"].Instances); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestOfADiscoveredWorkloadNoInstancesAreKept(t *testing.T) {
	s := request(0, on("h", "1"))
	s.service = "other"
	if got := run(t, newPath(t, shop()), framed(t, s))["other"]; got.Requests != 1 || got.Instances != nil {
		t.Errorf("got %s", text(t, got))
	}
}

func TestAMillionInstancesCostBoundedMemoryAndAreCounted(t *testing.T) {
	p := newPath(t, shop())
	const frames, each = 1000, 1000
	long := strings.Repeat("x", 200)
	for i := range frames {
		var w codec.FrameWriter
		for k := range each {
			attrs := append(on("h", fmt.Sprint(i*each+k)), trimtab.Attr{Key: "service.name", Value: "shop"})
			if i%2 == 1 {
				attrs[1].Value += long
			}
			w.AddResource(attrs)
		}
		w.Add(&trimtab.Span{TraceID: [16]byte{1, byte(i), byte(i >> 8)}, SpanID: [8]byte{1}, Adjusted: 1, Start: epoch, End: epoch + 1, Resource: uint16(i)})
		p.Step(at(0), w.Frame(0))
	}
	if n := count(p, "trimtab_path_refused_names_total", "instance"); n < frames*each-trimtab.MaxShares {
		t.Errorf("%v refused", n)
	}
	got := run(t, p)["shop"]
	if len(got.Instances) > trimtab.MaxShares || got.Requests != frames || len(text(t, got)) > 1<<20 {
		t.Errorf("%d instances, %v requests in %d bytes", len(got.Instances), got.Requests, len(text(t, got)))
	}
	if x := &p.places.workloads[0].instances; len(x.byKey) > trimtab.MaxShares || x.bytes > maxInstanceBytes || p.places.instanceBytes != x.bytes {
		t.Errorf("%d kept, %d of %d bytes", len(x.byKey), x.bytes, p.places.instanceBytes)
	}
}

func TestLongNamesOfInstancesLeaveASketchSmall(t *testing.T) {
	p := newPath(t, shop())
	var spans []from
	for i := range trimtab.MaxShares {
		spans = append(spans, request(i, on("h", fmt.Sprint(i, strings.Repeat("<", 240)))))
	}
	got := run(t, p, framed(t, spans...))["shop"]
	if n := len(text(t, got)); n > 1<<20 || len(got.Instances) < 100 || len(got.Instances) == trimtab.MaxShares || got.Requests != trimtab.MaxShares {
		t.Errorf("%d instances, %v requests in %d bytes", len(got.Instances), got.Requests, n)
	}
}

func TestOfOneSpanFromTwoInstancesTheSameOneCountsInAnyOrder(t *testing.T) {
	a, b := request(0, on("h", "a")), request(0, on("h", "b"))
	for _, both := range [][]from{{a, b}, {b, a}} {
		want := []trimtab.InstanceLoad{{Host: "h", Names: []string{"a"}, Requests: 1}}
		if d := cmp.Diff(want, run(t, newPath(t, shop()), framed(t, both...))["shop"].Instances); d != "" {
			t.Error(d)
		}
	}
}

func TestInstancesThatAreNoLongerSeenMakeRoomForNewOnes(t *testing.T) {
	p := newPath(t, shop())
	named := func(when time.Duration, first, n int) (names []string) {
		var spans []from
		for i := range n {
			s := request(int(when)+i, on("h", fmt.Sprint(first+i)))
			s.start, s.end = float64(when/ms), float64(when/ms)
			spans = append(spans, s)
		}
		p.Step(at(when), framed(t, spans...))
		for _, v := range p.Step(at(when+10*time.Second), nil) {
			for _, x := range v.(*trimtab.Sketch).Instances {
				names = append(names, x.Names...)
			}
		}
		slices.Sort(names)
		return names
	}
	if got := named(time.Hour, 0, trimtab.MaxShares); len(got) != trimtab.MaxShares {
		t.Fatalf("%d named", len(got))
	}
	if got := named(time.Hour+5*time.Minute, 5000, 2); got != nil {
		t.Errorf("%v found room among those of five minutes ago", got)
	}
	named(time.Hour+6*time.Minute, 7, 1)
	if got := named(time.Hour+13*time.Minute, 5000, 2); !slices.Equal(got, []string{"5000", "5001"}) {
		t.Errorf("%v are named", got)
	}
	if got := named(time.Hour+14*time.Minute, 7, 1); !slices.Equal(got, []string{"7"}) {
		t.Errorf("%v is named, which was seen lately", got)
	}
}

// spread gives each span a sender among few, some of which are not named.
func spread(t *rapid.T, spans []sp) (out []from) {
	for _, s := range spans {
		s.service = map[byte]string{'a': "shop", 'b': "next"}[s.service[0]]
		sent := on(rapid.SampledFrom([]string{"h1", "h2"}).Draw(t, "host"), rapid.SampledFrom([]string{"1", "2"}).Draw(t, "instance"))
		out = append(out, from{s, sent[:rapid.IntRange(0, 2).Draw(t, "names")]})
	}
	return out
}

func TestTheRequestsOfInstancesAreTheSameInAnyOrderSplitAndFrames(t *testing.T) {
	c := shop()
	c.Workloads = append(c.Workloads, Match{Name: "next", Attributes: map[string][]string{"service.name": {"next"}}})
	rapid.Check(t, func(rt *rapid.T) {
		drawn := drawTraces(rt)
		if rapid.Bool().Draw(rt, "ids collide") {
			for i := range drawn {
				drawn[i].id = 1 + drawn[i].id%4
			}
		}
		spans := spread(rt, drawn)
		// Each part sees that both services serve requests, of no named instance.
		serve := framed(t, from{sp{trace: 1 << 40, id: 1, service: "shop", kind: trimtab.SpanServer}, nil},
			from{sp{trace: 1 << 40, id: 2, service: "next", kind: trimtab.SpanServer}, nil})
		want := served(run(t, newPath(t, c), serve, framed(t, spans...)))
		again := rapid.Permutation(append(slices.Clone(spans), spans[:len(spans)/2]...)).Draw(rt, "order")
		split := make([][]from, rapid.IntRange(1, 4).Draw(rt, "parts"))
		for _, s := range again {
			k := int(s.trace*2654435761>>3) % len(split)
			split[k] = append(split[k], s)
		}
		got := map[string]float64{}
		for _, part := range split {
			frames := []*trimtab.SpanFrame{serve}
			for chunk := range slices.Chunk(part, rapid.IntRange(1, 50).Draw(rt, "frame")) {
				frames = append(frames, framed(t, chunk...))
			}
			for k, n := range served(run(t, newPath(t, c), frames...)) {
				got[k] += n
			}
		}
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatal(d)
		}
	})
}

func TestTheRequestsOfAnInstanceAreTheEntrySpansThatNameIt(t *testing.T) {
	c := shop()
	c.Workloads = append(c.Workloads, Match{Name: "next", Attributes: map[string][]string{"service.name": {"next"}}})
	rapid.Check(t, func(rt *rapid.T) {
		drawn := drawTrace(rt)
		spans := spread(rt, drawn)
		want := map[string]float64{}
		for i, s := range spans {
			drawn[i].service = drawn[i].service[:1] + "0@"
			if len(s.attrs) > 0 {
				drawn[i].service += s.attrs[0].Value
			}
		}
		for _, w := range []byte("ab") {
			for _, i := range slowEntries(drawn, w) {
				if names := spans[i].attrs; len(names) > 0 {
					var instance []string
					for _, a := range names[1:] {
						instance = append(instance, a.Value)
					}
					want[fmt.Sprintf("%s %q %q", spans[i].service, names[0].Value, instance)]++
				}
			}
		}
		if d := cmp.Diff(want, served(run(t, newPath(t, c), framed(t, spans...)))); d != "" {
			rt.Fatal(d)
		}
	})
}

// served flattens what sketches say of instances.
func served(all map[string]*trimtab.Sketch) map[string]float64 {
	out := map[string]float64{}
	for w, s := range all {
		for _, x := range s.Instances {
			out[fmt.Sprintf("%s %q %q", w, x.Host, x.Names)] += x.Requests
		}
	}
	return out
}

func TestAWorkloadThatComesBackWithMoreNamesThanAreKeptStaysItself(t *testing.T) {
	p := newPath(t, shop())
	for i := range trimtab.MaxShares {
		p.Step(at(0), framed(t, request(i, on("h1", fmt.Sprint("run-", i)))))
	}
	// An hour later there is room again, once what was idle is let go of.
	later := at(time.Hour)
	then := func(r from) from {
		r.start, r.end = r.start+3.6e6, r.end+3.6e6
		return r
	}
	p.Step(later, framed(t, then(request(5000, on("h1", "run-again")))))
	other := then(request(5001, on("h2", "x")))
	other.service = "other"
	p.Step(later, framed(t, other))
	p.Step(later, framed(t, then(request(5002, on("h1", "run-again")))))
	shops := 0.0
	for _, v := range append(p.Step(later.Add(time.Hour), nil), p.Step(later.Add(2*time.Hour), nil)...) {
		if s := v.(*trimtab.Sketch); s.Workload == "shop" {
			shops += s.Requests
		}
	}
	if shops != 2 {
		t.Errorf("shop served %v requests after it came back, want 2", shops)
	}
}
