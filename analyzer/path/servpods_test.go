package path

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// frontAndCart is a workload with an SLO; what it calls is discovered.
func frontAndCart() Config {
	return Config{Discover: true, Workloads: []Match{{Name: "shop", Attributes: map[string][]string{"service.name": {"front", "cart"}}, Threshold: 50 * ms}}}
}

func servpodsOf(s *trimtab.Sketch) string {
	var out []string
	for _, p := range s.Servpods {
		if p.Peer {
			p.Component = "peer " + p.Component
		}
		out = append(out, fmt.Sprintf("%s@%s n %v sum %.0f wait %.0f off %v cross %.0f tail %d", p.Component, p.Host, p.N, 1e3*p.Sum, 1e3*p.Wait, p.Off, 1e6*p.Cross, len(p.Tail)))
	}
	for _, c := range s.Calls {
		out = append(out, fmt.Sprintf("%s>%s n %v own %.0f wait %.0f", c.Caller, c.Component, c.N, 1e3*c.Own, 1e3*c.Wait))
	}
	return strings.Join(out, "; ")
}

func TestASketchTellsWhereTheTimeOfRequestsWentByComponentAndHost(t *testing.T) {
	const client, server = trimtab.SpanClient, trimtab.SpanServer
	spans := []sp{
		{trace: 1, id: 1, service: "front@a", start: 0, end: 100, kind: server}, {trace: 1, id: 2, parent: 1, service: "front@a", start: 10, end: 90, kind: client},
		{trace: 1, id: 3, parent: 2, service: "db@b", start: 60, end: 80, kind: server},
		{trace: 2, id: 1, service: "front@a", start: 0, end: 10, kind: server},
		{trace: 3, id: 1, service: "front@c", start: 0, end: 20, kind: server}, {trace: 3, id: 2, parent: 1, service: "front@c", start: 0, end: 20, kind: client},
		{trace: 3, id: 3, parent: 2, service: "cart@c", start: 0, end: 20, kind: server},
	}
	got := servpodsOf(run(t, newPath(t, frontAndCart()), frame(t, spans...))["shop"])
	want := "cart@c n 1 sum 20 wait 0 off 0 cross 400 tail 1; db@b n 1 sum 80 wait 60 off 0 cross 8000 tail 1; " +
		"front@a n 2 sum 30 wait 0 off 0 cross 2100 tail 2; front@c n 1 sum 0 wait 0 off 0 cross 0 tail 1; front>cart n 1 own 20 wait 0; front>db n 1 own 20 wait 60"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestWorkloadsWithoutAnSLOTellOfNoServpods(t *testing.T) {
	for name, s := range run(t, newPath(t, Config{Discover: true}), frame(t, sp{trace: 1, id: 1, service: "a", end: 10}, sp{trace: 1, id: 2, parent: 1, service: "b", end: 5})) {
		if len(s.Servpods)+len(s.Calls) > 0 {
			t.Errorf("%s: %s", name, servpodsOf(s))
		}
	}
}

// What its Servpods have on the critical path is the latency of all requests that
// are inside no other of their workload, and no span is counted in vain.
func TestTheTimesOfServpodsAddUpToTheLatencyOfRequests(t *testing.T) {
	c := twoWorkloads()
	rapid.Check(t, func(rt *rapid.T) {
		spans := drawTrace(rt)
		for i := range spans {
			spans[i].service += "@" + rapid.SampledFrom([]string{"h1", "h2"}).Draw(rt, "host")
			spans[i].peer = rapid.SampledFrom([]string{"", "db", "b"}).Draw(rt, "peer")
		}
		for w, s := range run(t, newPath(t, c), frame(t, spans...)) {
			want := 0.0
			for _, i := range slowEntries(spans, w[0]) {
				nested := false
				for k := slowWaiter(spans, i); k >= 0; k = slowWaiter(spans, k) {
					nested = nested || spans[k].service[0] == w[0] && slowInRequest(spans, k)
				}
				if d := spans[i].end - spans[i].start; !nested && d >= 0 {
					want += d
				}
			}
			got := 0.0
			for _, p := range s.Servpods {
				n := 0.0
				for _, c := range p.Tail {
					n += c[1]
					got += 1e3 * (c[2] + c[3])
				}
				if n != p.N || p.Sum*p.Sum > p.N*p.Square*(1+1e-6)+1e-9 {
					rt.Fatalf("%s: %+v: its tail has %v requests", w, p, n)
				}
			}
			if math.Abs(got-want) > 1e-4 {
				rt.Fatalf("%s: %v ms in Servpods, requests took %v ms: %s", w, got, want, servpodsOf(s))
			}
		}
	})
}

// Promise R19.
func TestBrokenTracesLeaveServpodsFiniteAndBounded(t *testing.T) {
	const n = 100_000
	broken := map[string]func(i int) sp{
		"a cycle":           func(i int) sp { return sp{id: uint64(i + 1), parent: uint64((i+1)%n + 1), service: "front", end: 10} },
		"parents of itself": func(i int) sp { return sp{id: uint64(i + 1), parent: uint64(i + 1), service: "front", end: 10} },
		"a chain between two workloads": func(i int) sp {
			return sp{id: uint64(i + 1), parent: uint64(i), service: []string{"front", "db"}[i%2], end: float64(n - i), kind: trimtab.SpanServer}
		},
		"a fan": func(i int) sp {
			return sp{id: uint64(i + 1), parent: min(1, uint64(i)), service: fmt.Sprint("s", i%5000), end: 10}
		},
		"negative times": func(i int) sp { return sp{id: uint64(i + 1), service: "front", start: 10, end: float64(-i)} },
		"future times":   func(i int) sp { return sp{id: uint64(i + 1), service: "front", start: 1e9, end: 1e9 + float64(i)} },
		"times for ever": func(i int) sp { return sp{id: uint64(i + 1), service: "front", start: -1e12, end: 8e12} },
	}
	c := frontAndCart()
	c.Workloads[0].Attributes["service.name"] = append(c.Workloads[0].Attributes["service.name"], "s0")
	c.MaxSpans = 1 << 20
	for name, make := range broken {
		t.Run(name, func(t *testing.T) {
			p := newPath(t, c)
			for from := 0; from < n; from += 2000 {
				var spans []sp
				for i := from; i < from+2000; i++ {
					s := make(i)
					s.trace = 9
					spans = append(spans, s)
				}
				p.Step(at(0), frame(t, spans...))
			}
			for _, v := range p.Flush(at(time.Minute)) {
				if err := v.Validate(); err != nil {
					t.Error(err)
				}
				if s := v.(*trimtab.Sketch); len(s.Servpods) > trimtab.MaxSketchServpods {
					t.Errorf("%d Servpods", len(s.Servpods))
				}
			}
		})
	}
}
