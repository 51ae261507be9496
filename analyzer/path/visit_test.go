package path

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// visitsOf returns the visits of the only request of spans, in order of name,
// times in ms.
func visitsOf(t testing.TB, spans ...sp) string {
	t.Helper()
	var out []string
	p := newPath(t, Config{Discover: true, Requests: func(r *Request) {
		for _, v := range r.Visits {
			s := fmt.Sprintf("%s>%s own %d wait %d", v.Caller, v.Component, v.Own.Milliseconds(), v.Wait.Milliseconds())
			if v.Own != v.OnPath || v.Wait != v.OnPathWait || v.Slack != 0 {
				s += fmt.Sprintf(" on path %d %d slack %d", v.OnPath.Milliseconds(), v.OnPathWait.Milliseconds(), v.Slack.Milliseconds())
			}
			out = append(out, s)
		}
	}})
	p.Step(at(0), frame(t, spans...))
	p.Flush(at(time.Second))
	slices.Sort(out)
	return strings.Join(out, "; ")
}

func TestTheTimeOfARequestGoesToTheComponentsThatItStaysIn(t *testing.T) {
	const client, server, internal, producer, consumer = trimtab.SpanClient, trimtab.SpanServer, trimtab.SpanInternal, trimtab.SpanProducer, trimtab.SpanConsumer
	for name, c := range map[string]struct {
		spans []sp
		want  string
	}{
		"what the callee does not fill of the caller's span is waiting for it": {[]sp{
			{id: 1, service: "a", start: 0, end: 100, kind: server}, {id: 2, parent: 1, service: "a", start: 10, end: 90, kind: client},
			{id: 3, parent: 2, service: "b", start: 60, end: 80, kind: server},
		}, ">a own 20 wait 0; a>b own 20 wait 60"},
		"client and server are told apart by process where kinds are missing": {[]sp{
			{id: 1, service: "a", start: 0, end: 100}, {id: 2, parent: 1, service: "a", start: 10, end: 90}, {id: 3, parent: 2, service: "b", start: 60, end: 80},
		}, ">a own 20 wait 0; a>b own 20 wait 60"},
		"without a span at the caller nothing is known to be waiting": {[]sp{
			{id: 1, service: "a", start: 0, end: 100}, {id: 3, parent: 1, service: "b", start: 60, end: 80},
		}, ">a own 80 wait 0; a>b own 20 wait 0"},
		"a kindless span with spans of its own below it is no client": {[]sp{
			{id: 1, service: "a", start: 0, end: 100}, {id: 2, parent: 1, service: "a", start: 10, end: 90},
			{id: 3, parent: 2, service: "b", start: 60, end: 80}, {id: 4, parent: 2, service: "a", start: 20, end: 30},
		}, ">a own 80 wait 0; a>b own 20 wait 0"},
		"an internal span is no client": {[]sp{
			{id: 1, service: "a", start: 0, end: 100, kind: server}, {id: 2, parent: 1, service: "a", start: 10, end: 90, kind: internal},
			{id: 3, parent: 2, service: "b", start: 60, end: 80, kind: server},
		}, ">a own 80 wait 0; a>b own 20 wait 0"},
		"a span beside a call in the same process is not counted twice": {[]sp{
			{id: 1, service: "a", start: 0, end: 100}, {id: 2, parent: 1, service: "a", start: 5, end: 100}, // a filter around the call, as gateways have
			{id: 3, parent: 1, service: "a", start: 10, end: 90}, {id: 4, parent: 3, service: "b", start: 20, end: 80},
		}, ">a own 20 wait 0; a>b own 60 wait 20"},
		"of parallel calls the one that ends last is on the path, back to where it began": {[]sp{
			{id: 1, service: "a", start: 0, end: 100}, {id: 2, parent: 1, service: "b", start: 10, end: 90}, {id: 3, parent: 1, service: "c", start: 20, end: 60},
		}, ">a own 20 wait 0; a>b own 80 wait 0; a>c own 40 wait 0 on path 0 0 slack 30"},
		"what was there before the last call began is on the path before it": {[]sp{
			{id: 1, service: "a", start: 0, end: 100}, {id: 2, parent: 1, service: "b", start: 80, end: 100}, {id: 3, parent: 1, service: "c", start: 0, end: 90},
		}, ">a own 0 wait 0; a>b own 20 wait 0; a>c own 90 wait 0 on path 80 0 slack 10"},
		"each try of a call is a visit": {[]sp{
			{id: 1, service: "a", start: 0, end: 100, kind: server},
			{id: 2, parent: 1, service: "a", start: 0, end: 40, kind: client}, {id: 3, parent: 2, service: "b", start: 0, end: 30, kind: server},
			{id: 4, parent: 1, service: "a", start: 50, end: 90, kind: client}, {id: 5, parent: 4, service: "b", start: 60, end: 90, kind: server},
		}, ">a own 20 wait 0; a>b own 30 wait 10; a>b own 30 wait 10"},
		"a retry below one client span leaves the gaps": {[]sp{
			{id: 1, service: "a", start: 0, end: 100, kind: client},
			{id: 3, parent: 1, service: "b", start: 10, end: 30, kind: server}, {id: 5, parent: 1, service: "b", start: 60, end: 90, kind: server},
		}, ">a own 0 wait 0; a>b own 20 wait 0; a>b own 30 wait 50"},
		"a message that is handled later is not part of the request": {[]sp{
			{id: 1, service: "a", start: 0, end: 100, kind: server}, {id: 2, parent: 1, service: "a", start: 90, end: 95, kind: producer},
			{id: 3, parent: 2, service: "b", start: 200, end: 204, kind: consumer},
		}, ">a own 100 wait 0"},
		"a consumer beside its producer is not part of the request either": {[]sp{
			{id: 1, service: "a", start: 0, end: 100, kind: server}, {id: 2, parent: 1, service: "a", start: 10, end: 90, kind: producer},
			{id: 3, parent: 2, service: "b", start: 20, end: 60, kind: consumer},
		}, ">a own 100 wait 0"},
		"what follows from a call is not part of the request": {[]sp{
			{id: 1, service: "a@1", start: 0, end: 100, kind: server}, {id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client},
			{id: 3, parent: 2, service: "b@2", start: 2000, end: 2015, kind: server, flags: trimtab.FlagFollowsFrom},
		}, ">a own 100 wait 0"},
		"what begins on the same host when its caller is over is not part of the request": {[]sp{
			{id: 1, service: "a@1", start: 0, end: 100, kind: server}, {id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client},
			{id: 3, parent: 2, service: "b@1", start: 95, end: 99, kind: server},
		}, ">a own 100 wait 0"},
		"nor is it on another host, if it takes longer than its caller saw": {[]sp{
			{id: 1, service: "a@1", start: 0, end: 100, kind: server}, {id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client},
			{id: 3, parent: 2, service: "b@2", start: 95, end: 195, kind: server},
		}, ">a own 100 wait 0"},
		"a child that outlives its parent is cut": {[]sp{
			{id: 1, service: "a", start: 0, end: 100, kind: server}, {id: 3, parent: 1, service: "b", start: 80, end: 300, kind: server},
			{id: 4, parent: 3, service: "c", start: 90, end: 250, kind: server},
		}, ">a own 80 wait 0; a>b own 10 wait 0; b>c own 10 wait 0"},
		"a callee with another clock takes as long as it says": {[]sp{
			{id: 1, service: "a@1", start: 0, end: 100, kind: server}, {id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client},
			{id: 3, parent: 2, service: "b@2", start: 5000, end: 5040, kind: server}, {id: 4, parent: 3, service: "c@2", start: 5010, end: 5020, kind: server},
		}, ">a own 20 wait 0; a>b own 30 wait 40; b>c own 10 wait 0"},
		"a service may call itself": {[]sp{
			{id: 1, service: "a", start: 0, end: 100, kind: server}, {id: 2, parent: 1, service: "b", start: 10, end: 90, kind: server},
			{id: 3, parent: 2, service: "a", start: 20, end: 50, kind: server},
		}, ">a own 20 wait 0; a>b own 50 wait 0; b>a own 30 wait 0"},
		"a span whose duration is unknown takes no time from others": {[]sp{
			{id: 1, service: "a", start: 0, end: 100, kind: server}, {id: 2, parent: 1, service: "b", start: 90, end: 10, kind: server},
		}, ">a own 100 wait 0"},
		"a call that no server answered is its caller's time": {[]sp{
			{id: 1, service: "a", start: 0, end: 100, kind: server}, {id: 2, parent: 1, service: "a", start: 10, end: 90, kind: client},
		}, ">a own 100 wait 0"},
	} {
		if got := visitsOf(t, c.spans...); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
		}
	}
}

func TestInstancesOfAServiceAreProcessesOfTheirOwn(t *testing.T) {
	c := Config{Requests: func(*Request) {}}
	for want, attrs := range map[string][]trimtab.Attr{
		"\x00pod-1": {{Key: "host.name", Value: "h"}, {Key: "k8s.pod.name", Value: "pod-1"}},
		"\x00h":     {{Key: "hostname", Value: "h"}},
		"":          {{Key: "service.version", Value: "3"}},
	} {
		if got := c.processOf(attrs); got != want {
			t.Errorf("%v: process %q, want %q", attrs, got, want)
		}
	}
	if got := (&Config{}).processOf([]trimtab.Attr{{Key: "ip", Value: "x"}}); got != "" {
		t.Errorf("process %q where nobody asks", got)
	}
}

func TestWhatAFragmentLacksARootIsARequestOnlyWhereNoRootCame(t *testing.T) {
	requests := func(spans ...sp) (n int) {
		p := newPath(t, Config{Discover: true, Requests: func(*Request) { n++ }})
		p.Step(at(0), frame(t, spans...))
		p.Flush(at(time.Second))
		return n
	}
	orphan := sp{id: 7, parent: 9, service: "b", start: 1, end: 2, kind: trimtab.SpanServer}
	if n := requests(orphan, sp{id: 1, service: "a", start: 0, end: 3}); n != 1 {
		t.Errorf("%d requests of a root and an orphan", n)
	}
	if n := requests(orphan); n != 1 {
		t.Errorf("%d requests of an orphan server alone", n)
	}
	if n := requests(sp{id: 7, parent: 9, service: "b", start: 1, end: 2, kind: trimtab.SpanClient}); n != 0 {
		t.Errorf("%d requests of a client whose server is missing", n)
	}
}

// slowly follows one instant of a request down: in each visit to the call that
// runs then and ends last, or to the visit itself when none runs.
func slowly(spans []sp, i, ms int, from, to int) string {
	best, start, end := -1, 0, 0
	for k, c := range spans {
		if slowWaiter(spans, k) != i || c.end < c.start {
			continue
		}
		s, e := max(int(c.start), from), min(int(c.end), to)
		if ms < s || ms >= e {
			continue
		}
		if best < 0 || c.end > spans[best].end || c.end == spans[best].end && (c.start < spans[best].start || c.start == spans[best].start && c.id < spans[best].id) {
			best, start, end = k, s, e
		}
	}
	if best < 0 {
		return spans[i].service
	}
	return slowly(spans, best, ms, start, end)
}

func TestEveryInstantOfARequestBelongsToOneComponent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := drawTrace(t) // each span is a component of its own
		for i := range spans {
			spans[i].kind = trimtab.SpanInternal
		}
		spans[0].parent, spans[0].flags, spans[0].end = 0, 0, max(spans[0].end, spans[0].start)
		got := map[string]time.Duration{}
		requests := 0
		p, err := New(Config{Discover: true, Requests: func(r *Request) {
			if r.Start != epoch+int64(spans[0].start*1e6) || r.End != epoch+int64(spans[0].end*1e6) {
				return // another root
			}
			requests++
			for _, v := range r.Visits {
				got[v.Component] += v.OnPath + v.OnPathWait
				if v.OnPath < 0 || v.OnPath > v.Own || v.OnPathWait < 0 || v.OnPathWait > v.Wait || v.Slack < 0 {
					t.Fatalf("visit %+v", v)
				}
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		var tb testing.TB = &testing.T{}
		p.Step(at(0), frame(tb, spans...))
		p.Flush(at(time.Second))
		if requests != 1 {
			t.Skip("two roots of the same times")
		}
		want := map[string]time.Duration{}
		for m := int(spans[0].start); m < int(spans[0].end); m++ {
			want[slowly(spans, 0, m, int(spans[0].start), int(spans[0].end))] += time.Millisecond
		}
		for name, d := range got {
			if d != want[name] {
				t.Fatalf("%s: %v, want %v", name, d, want[name])
			}
			delete(want, name)
		}
		if len(want) > 0 {
			t.Fatalf("missing: %v", want)
		}
	})
}

func TestAnyTraceIsTakenApartWithoutLosingTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := drawTrace(t)
		for i := range spans {
			spans[i].service = rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "service")
			spans[i].peer = rapid.SampledFrom([]string{"", "db", "b"}).Draw(t, "peer")
		}
		p, err := New(Config{Discover: true, Requests: func(r *Request) {
			sum := time.Duration(0)
			for _, v := range r.Visits {
				sum += v.OnPath + v.OnPathWait
			}
			if sum != r.Latency() {
				t.Fatalf("visits add up to %v of %v: %+v", sum, r.Latency(), r.Visits)
			}
		}})
		if err != nil {
			t.Fatal(err)
		}
		var tb testing.TB = &testing.T{}
		p.Step(at(0), frame(tb, spans...))
		p.Flush(at(time.Second))
	})
}

func TestALongAndADeepTraceAreTakenApartInTime(t *testing.T) {
	const n = 100_000
	for name, parent := range map[string]func(i int) uint64{
		"deep": func(i int) uint64 { return uint64(i) },
		"wide": func(i int) uint64 { return uint64(min(i, 1)) },
	} {
		spans := make([]sp, n)
		for i := range spans {
			spans[i] = sp{id: uint64(i + 1), parent: parent(i), service: string(rune('a' + i%2)), start: float64(i) / 1000, end: 1000 - float64(i)/1000}
		}
		visits := 0
		p := newPath(t, Config{Discover: true, Requests: func(r *Request) { visits += len(r.Visits) }})
		for chunk := range slices.Chunk(spans, 10_000) {
			p.Step(at(0), frame(t, chunk...))
		}
		p.Flush(at(time.Second))
		if visits < n/2 {
			t.Errorf("%s: %d visits", name, visits)
		}
	}
}
