package path

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
)

// twoServices has workload a of the services a and a2, and b.
func twoServices() Config {
	return Config{Workloads: []Match{
		{Name: "a", Attributes: map[string][]string{"service.name": {"a", "a2"}}},
		{Name: "b", Attributes: map[string][]string{"service.name": {"b"}}},
	}}
}

func TestARequestIsWhatAServerOrConsumerSpanTells(t *testing.T) {
	const internal, server, client, producer, consumer = trimtab.SpanInternal, trimtab.SpanServer, trimtab.SpanClient, trimtab.SpanProducer, trimtab.SpanConsumer
	const receive, follows = trimtab.FlagReceive, trimtab.FlagFollowsFrom
	serve := sp{trace: 99, id: 1, service: "a", kind: server} // a serves requests: this is one
	for name, c := range map[string]struct {
		spans []sp
		want  float64 // requests of workload a
	}{
		"a server called by another workload":      {[]sp{{id: 1, service: "b", kind: client}, {id: 2, parent: 1, service: "a", kind: server}}, 1},
		"a consumer of another's message":          {[]sp{{id: 1, service: "b", kind: producer}, {id: 2, parent: 1, service: "a", kind: consumer}}, 1},
		"called by what is no workload":            {[]sp{{id: 1, service: "x"}, {id: 2, parent: 1, service: "a", kind: server}}, 1},
		"a server whose caller is missing":         {[]sp{{id: 2, parent: 1, service: "a", kind: server}}, 1},
		"there and back again":                     {[]sp{{id: 1, service: "a"}, {id: 2, parent: 1, service: "b"}, {id: 3, parent: 2, service: "a"}}, 2},
		"a server below a server is none":          {[]sp{{id: 1, service: "a", kind: server}, {id: 2, parent: 1, service: "a", kind: server}, {id: 3, parent: 2, service: "a2", kind: server}}, 1},
		"a fragment whose server is missing":       {[]sp{{id: 2, parent: 1, service: "a", kind: client}, {id: 3, parent: 1, service: "a", kind: internal}, {id: 4, parent: 2, service: "a2", kind: server}}, 0},
		"a message from its own producer":          {[]sp{serve, {trace: 99, id: 2, parent: 1, service: "a", kind: producer}, {trace: 99, id: 3, parent: 2, service: "a", kind: consumer}}, 2},
		"what follows from its own span":           {[]sp{serve, {trace: 99, id: 2, parent: 1, service: "a", kind: server, flags: follows}}, 2},
		"a job that follows from its own span":     {[]sp{serve, {trace: 99, id: 2, parent: 1, service: "a", kind: internal, flags: follows}}, 1},
		"a sidecar before and behind":              {[]sp{{id: 1, service: "a", kind: server}, {id: 2, parent: 1, service: "a", kind: server}, {id: 3, parent: 2, service: "a", kind: client}, {id: 4, parent: 3, service: "a", kind: client}}, 1},
		"a sidecar of another name":                {[]sp{{id: 1, service: "b", kind: server}, {id: 2, parent: 1, service: "b", kind: client}, {id: 3, parent: 2, service: "a", kind: client}}, 0},
		"a sidecar whose application sends no ids": {[]sp{serve, {id: 3, service: "a", kind: client}}, 1},
		"a poller, a message, a job, a root of no kind, of a service that serves": {[]sp{serve, {trace: 1, id: 1, service: "a", kind: client}, {trace: 2, id: 1, service: "a", kind: producer},
			{trace: 3, id: 1, service: "a", kind: internal}, {trace: 4, id: 1, service: "a"}}, 1},
		"the same of one that serves none":                       {[]sp{{trace: 1, id: 1, service: "a", kind: client}, {trace: 2, id: 1, service: "a", kind: producer}, {trace: 3, id: 1, service: "a", kind: internal}, {trace: 4, id: 1, service: "a"}}, 4},
		"the same of one whose neighbour in the workload serves": {[]sp{serve, {trace: 1, id: 1, service: "a2", kind: client}, {trace: 2, id: 1, service: "a2"}}, 3},
		"what a job of its own calls":                            {[]sp{{id: 1, service: "a", kind: internal}, {id: 2, parent: 1, service: "a", kind: client}, {id: 3, parent: 2, service: "a", kind: server}, {id: 4, parent: 1, service: "a", kind: server}}, 2},
		"below a span of no kind":                                {[]sp{{id: 1, service: "a"}, {id: 2, parent: 1, service: "a", kind: server}, {id: 3, parent: 2, service: "a2", kind: server}}, 1},
		"a service of no kinds called by another":                {[]sp{{id: 1, service: "b", kind: client}, {id: 2, parent: 1, service: "a"}, {trace: 1, id: 2, parent: 1, service: "a"}}, 2},
		"waiting for messages is none":                           {[]sp{{id: 1, service: "a", kind: consumer, flags: receive}}, 0},
		"each message that was waited for is one":                {[]sp{{id: 1, service: "a", kind: consumer, flags: receive}, {id: 2, parent: 1, service: "a", kind: consumer}, {id: 3, parent: 1, service: "a", kind: consumer}}, 2},
		"who waits for messages may process them in no kind":     {[]sp{{id: 1, service: "a", kind: consumer, flags: receive}, {trace: 1, id: 1, service: "a", kind: internal}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			for i := range c.spans {
				c.spans[i].start, c.spans[i].end = 1, 2
			}
			for _, order := range []string{"as written", "reversed"} {
				var frames []*trimtab.SpanFrame
				for i := range c.spans {
					frames = append(frames, frame(t, c.spans[i]))
				}
				if order == "reversed" {
					slices.Reverse(frames)
				}
				got := 0.0
				if s := run(t, newPath(t, twoServices()), frames...)["a"]; s != nil {
					got = s.Requests
				}
				if got != c.want {
					t.Errorf("%v requests, want %v, %s", got, c.want, order)
				}
			}
		})
	}
}

func TestAComponentThatServedBeforeARestartStillServes(t *testing.T) {
	poll := sp{trace: 1, id: 1, service: "a", kind: trimtab.SpanClient, start: 1, end: 2}
	before := newPath(t, twoServices())
	run(t, before, frame(t, sp{trace: 2, id: 1, service: "a", kind: trimtab.SpanServer, start: 1, end: 2}))
	saved := before.Snapshot()[servingState]
	polled := func(saved []byte, wait time.Duration) (requests float64) {
		p := newPath(t, twoServices())
		if saved != nil {
			if err := p.Restore(servingState, saved); err != nil {
				t.Fatal(err)
			}
		}
		p.Step(at(0), frame(t, sp{trace: 3, id: 1, service: "b", kind: trimtab.SpanServer, start: 1, end: 2}))
		now := poll
		now.start, now.end = poll.start+float64(wait/ms), poll.end+float64(wait/ms)
		p.Step(at(wait), frame(t, now))
		for _, v := range p.Flush(at(wait + time.Minute)) {
			if s := v.(*trimtab.Sketch); s.Workload == "a" {
				requests += s.Requests
			}
		}
		return requests
	}
	if got := polled(nil, 0); got != 1 {
		t.Errorf("%v requests of a poller of which nothing is known, want 1", got)
	}
	if got := polled(saved, 0); got != 0 {
		t.Errorf("%v requests of a poller beside which a request was served before the restart, want 0", got)
	}
	if got := polled(saved, time.Hour); got != 1 {
		t.Errorf("%v requests of what served none for an hour, want 1: it may be another program", got)
	}
}

// The poller's traces are finished, and in open intervals, when the first request comes.
func TestOnceAServiceServesARequestItsOtherRootsAreTakenOutOfOpenIntervals(t *testing.T) {
	p := newPath(t, Config{Discover: true, Grace: 5 * time.Second})
	for i := range 3 {
		p.Step(at(time.Duration(i)*time.Second), frame(t, sp{trace: uint64(i), id: 1, service: "a", start: 1e3 * float64(i), end: 1e3*float64(i) + 900, kind: trimtab.SpanClient}))
	}
	p.Step(at(4*time.Second), frame(t, sp{trace: 9, id: 1, service: "a", start: 2500, end: 2600, kind: trimtab.SpanServer}))
	out := p.Step(at(time.Hour), nil)
	if len(out) != 1 || out[0].(*trimtab.Sketch).Requests != 1 || meanMS(&out[0].(*trimtab.Sketch).Latency) != 100 {
		t.Errorf("got %s, want one request of 100 ms", text(t, out))
	}
}

// Nothing but its requests tells a workload with pollers from one without.
func TestWhatAServiceStartsItselfAddsNothingToItsRequests(t *testing.T) {
	c := frontAndCart()
	requests := []sp{{trace: 1, id: 1, service: "front", start: 0, end: 60, kind: trimtab.SpanServer, flags: trimtab.FlagError}, {trace: 2, id: 1, service: "front", start: 0, end: 20, kind: trimtab.SpanServer}}
	poll := sp{trace: 3, id: 1, service: "front", start: 0, end: 900, kind: trimtab.SpanClient}
	want, got := run(t, newPath(t, c), frame(t, requests...))["shop"], run(t, newPath(t, c), frame(t, append(requests, poll)...))["shop"]
	got.Spans, got.Components = want.Spans, want.Components
	if text(t, got) != text(t, want) {
		t.Errorf("got  %s\nwant %s", text(t, got), text(t, want))
	}
}

func TestRequestsOfAComponentThatSetsNoKindsAddUpWithThoseOfOthersToTheBit(t *testing.T) {
	c := frontAndCart()
	rapid.Check(t, func(rt *rapid.T) {
		var kinds, none []sp
		for i := range rapid.IntRange(1, 30).Draw(rt, "requests") {
			start := float64(rapid.IntRange(0, 400).Draw(rt, "start"))
			s := sp{trace: uint64(i + 1), id: 1, start: start, end: start + float64(rapid.IntRange(0, 500).Draw(rt, "length")), kind: trimtab.SpanServer,
				service: rapid.SampledFrom([]string{"front@x", "front@y", "cart@x"}).Draw(rt, "service"),
				flags:   rapid.SampledFrom([]uint8{0, trimtab.FlagError}).Draw(rt, "flags"), adjusted: rapid.Float32Range(1, 9).Draw(rt, "adjusted")}
			call := sp{trace: s.trace, id: 2, parent: 1, service: "db", start: s.start, end: s.end, kind: trimtab.SpanServer}
			kinds = append(kinds, s, call)
			if s.service == "cart@x" {
				s.kind = trimtab.SpanUnspecified
			}
			none = append(none, s, call)
		}
		want, got := run(t, newPath(t, c), frame(t, kinds...)), run(t, newPath(t, c), frame(t, none...))
		if s := got["shop"]; s != nil {
			s.Unserved = 0 // all that tells them apart
		}
		if text(t, got) != text(t, want) {
			rt.Fatalf("got  %s\nwant %s", text(t, got), text(t, want))
		}
	})
}

func TestATraceTellsItsOutermostRequests(t *testing.T) {
	const internal, server, client, producer, consumer = trimtab.SpanInternal, trimtab.SpanServer, trimtab.SpanClient, trimtab.SpanProducer, trimtab.SpanConsumer
	for name, c := range map[string]struct {
		spans []sp
		want  string
	}{
		"a poll beside requests": {[]sp{{trace: 1, id: 1, service: "a", end: 30_000, kind: client}, {trace: 2, id: 1, service: "a", end: 50, kind: server}}, "[a 50]"},
		"a poll alone":           {[]sp{{trace: 1, id: 1, service: "a", end: 30_000, kind: client}}, "[a 30000]"},
		"what a job calls": {[]sp{{trace: 1, id: 1, service: "a", end: 30_000, kind: internal}, {trace: 1, id: 2, parent: 1, service: "b", end: 20, kind: server}, {trace: 1, id: 3, parent: 1, service: "b", end: 30, kind: server},
			{trace: 2, id: 1, service: "a", end: 50, kind: server}}, "[a 50 b 20 b 30]"},
		"a message's consumer is no part of it": {[]sp{{trace: 1, id: 1, service: "a", end: 50, kind: server}, {trace: 1, id: 2, parent: 1, service: "a", end: 9, kind: producer},
			{trace: 1, id: 3, parent: 2, service: "b", start: 100, end: 400, kind: consumer}, {trace: 1, id: 4, parent: 3, service: "c", start: 100, end: 300, kind: server}}, "[a 50]"},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			p := newPath(t, Config{Discover: true, Requests: func(r *Request) {
				got = append(got, fmt.Sprint(r.Visits[0].Component, " ", r.Latency().Milliseconds()))
			}})
			p.Step(at(0), frame(t, c.spans...))
			p.Flush(at(time.Second))
			slices.Sort(got)
			if fmt.Sprint(got) != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}
