package path

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

func TestACallOfWhatSendsNoSpansIsAVisitOfThePeer(t *testing.T) {
	const client, server, internal, producer, consumer = trimtab.SpanClient, trimtab.SpanServer, trimtab.SpanInternal, trimtab.SpanProducer, trimtab.SpanConsumer
	root := sp{id: 1, service: "a@1", start: 0, end: 100, kind: server}
	for name, c := range map[string]struct {
		spans []sp
		want  string
	}{
		"a database": {[]sp{
			{id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client, peer: "db"},
		}, ">a own 20 wait 0; a>db own 80 wait 0"},
		"each call is a visit, and what runs beside the one that ends last is not on the path": {[]sp{
			{id: 2, parent: 1, service: "a@1", start: 10, end: 30, kind: client, peer: "db"}, {id: 3, parent: 1, service: "a@1", start: 40, end: 60, kind: client, peer: "db"},
			{id: 4, parent: 1, service: "a@1", start: 40, end: 50, kind: client, peer: "cache"},
		}, ">a own 60 wait 0; a>cache own 10 wait 0 on path 0 0 slack 10; a>db own 20 wait 0; a>db own 20 wait 0"},
		"below spans of its own": {[]sp{
			{id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: internal}, {id: 3, parent: 2, service: "a@1", start: 20, end: 80, kind: client, peer: "db"},
		}, ">a own 40 wait 0; a>db own 60 wait 0"},
		"with spans of its own below, such as of connecting": {[]sp{
			{id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client, peer: "s3"}, {id: 3, parent: 2, service: "a@1", start: 20, end: 80, kind: client, peer: "10.0.0.7:8080"},
			{id: 4, parent: 3, service: "a@1", start: 20, end: 40, kind: internal},
		}, ">a own 20 wait 0; a>s3 own 80 wait 0"},
		"called by what is called": {[]sp{
			{id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client, peer: "b:80"}, {id: 3, parent: 2, service: "b@2", start: 20, end: 80, kind: server},
			{id: 4, parent: 3, service: "b@2", start: 30, end: 70, kind: client, peer: "db"},
		}, ">a own 20 wait 0; a>b own 20 wait 20; b>db own 40 wait 0"},
		"a callee that sends spans is named by them": {[]sp{
			{id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client, peer: "b:80"}, {id: 3, parent: 2, service: "b@2", start: 20, end: 80, kind: server},
		}, ">a own 20 wait 0; a>b own 60 wait 20"},
		"also where its spans lie below others of the caller": {[]sp{
			{id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client, peer: "b:80"}, {id: 3, parent: 2, service: "a@1", start: 10, end: 90, kind: internal},
			{id: 4, parent: 3, service: "b@2", start: 20, end: 80, kind: server},
		}, ">a own 40 wait 0; a>b own 60 wait 0"},
		"also where the callee has another clock": {[]sp{
			{id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client, peer: "b:80"}, {id: 3, parent: 2, service: "b@2", start: 5000, end: 5060, kind: server},
		}, ">a own 20 wait 0; a>b own 60 wait 20"},
		"also where nobody waited for it": {[]sp{
			{id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client, peer: "b:80"},
			{id: 3, parent: 2, service: "b@2", start: 2000, end: 2015, kind: server, flags: trimtab.FlagFollowsFrom},
		}, ">a own 100 wait 0"},
		"also where its duration is unknown": {[]sp{
			{id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client, peer: "b:80"}, {id: 3, parent: 2, service: "b@2", start: 80, end: 20, kind: server},
		}, ">a own 100 wait 0"},
		"the time of sending a message is the broker's, not its consumer's": {[]sp{
			{id: 2, parent: 1, service: "a@1", start: 10, end: 50, kind: producer, peer: "kafka orders"}, {id: 3, parent: 2, service: "b@2", start: 20, end: 90, kind: consumer},
		}, ">a own 60 wait 0; a>kafka orders own 40 wait 0"},
		"also where a client span sends it": {[]sp{
			{id: 2, parent: 1, service: "a@1", start: 10, end: 50, kind: client, peer: "sqs orders"}, {id: 3, parent: 2, service: "b@2", start: 60, end: 90, kind: consumer},
		}, ">a own 60 wait 0; a>sqs orders own 40 wait 0"},
		"only a call has a peer": {[]sp{
			{id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: internal, peer: "db"},
		}, ">a own 100 wait 0"},
		"a call without a name is its caller's time": {[]sp{
			{id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client},
		}, ">a own 100 wait 0"},
		"of a span that came twice the one that names a peer counts": {[]sp{
			{id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client}, {id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client, peer: "db"},
			{id: 2, parent: 1, service: "a@1", start: 10, end: 90, kind: client},
		}, ">a own 20 wait 0; a>db own 80 wait 0"},
	} {
		for range 2 {
			if got := visitsOf(t, append([]sp{root}, c.spans...)...); got != c.want {
				t.Errorf("%s:\n got %s\nwant %s", name, got, c.want)
			}
			slices.Reverse(c.spans)
		}
	}
}

func TestARequestThatIsACallIsAllOfThePeer(t *testing.T) {
	if got := visitsOf(t, sp{id: 1, service: "a", start: 0, end: 100, kind: trimtab.SpanClient, peer: "db"}); got != ">a own 0 wait 0; a>db own 100 wait 0" {
		t.Error(got)
	}
}

func TestASketchTellsWhatThePeersOfAWorkloadTake(t *testing.T) {
	const client, server = trimtab.SpanClient, trimtab.SpanServer
	spans := []sp{
		{trace: 1, id: 1, service: "front@a", start: 0, end: 100, kind: server}, {trace: 1, id: 2, parent: 1, service: "front@a", start: 10, end: 90, kind: client, peer: "db"},
		{trace: 2, id: 1, service: "front@b", start: 0, end: 20, kind: server}, {trace: 2, id: 2, parent: 1, service: "front@b", start: 10, end: 20, kind: client, peer: "db"},
		{trace: 2, id: 3, parent: 1, service: "front@b", start: 0, end: 10, kind: client, peer: "cart"}, {trace: 2, id: 4, parent: 3, service: "cart@b", start: 2, end: 8, kind: server},
	}
	sketches := run(t, newPath(t, frontAndCart()), frame(t, spans...))
	got := servpodsOf(sketches["shop"])
	want := "cart@b n 1 sum 10 wait 4 off 0 cross 200 tail 1; peer db@ n 2 sum 90 wait 0 off 0 cross 8200 tail 2; " +
		"front@a n 1 sum 20 wait 0 off 0 cross 2000 tail 1; front@b n 1 sum 0 wait 0 off 0 cross 0 tail 1; front>cart n 1 own 6 wait 4; front>db n 2 own 90 wait 0"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if c := sketches["shop"].Components; len(c) != 2 || sketches["db"] != nil {
		t.Errorf("a peer is a component of the workload, or a workload: %v", c)
	}
}

// peersFrame is n requests of a service, each of which calls a peer of its own.
func peersFrame(t *testing.T, service string, first, n int, start float64) *trimtab.SpanFrame {
	t.Helper()
	var spans []sp
	for i := range n {
		trace := uint64(first + i + 1)
		spans = append(spans, sp{trace: trace, id: 1, service: service, start: start, end: start + 100, kind: trimtab.SpanServer},
			sp{trace: trace, id: 2, parent: 1, service: service, start: start + 10, end: start + 90, kind: trimtab.SpanClient, peer: fmt.Sprint("peer-", first+i)})
	}
	return frame(t, spans...)
}

func TestAHundredThousandPeersOfOneSenderAreBoundedAndCountedAndChangeNoOther(t *testing.T) {
	c := frontAndCart()
	named := map[string]int{}
	c.Requests = func(r *Request) {
		for _, v := range r.Visits {
			if v.Peer {
				named[v.Caller]++
			}
		}
	}
	p := newPath(t, c)
	const n = 100_000
	for i := 0; i < n; i += codec.MaxPeers {
		p.Step(at(0), peersFrame(t, "hostile", i, codec.MaxPeers, 0))
	}
	got := run(t, p, peersFrame(t, "front", n*2, 5, 0))
	if named["hostile"] != maxPeersOf || named["front"] != 5 {
		t.Errorf("peers told: %v, want %d and 5", named, maxPeersOf)
	}
	if refused := count(p, "trimtab_path_refused_names_total", "peer"); refused < n-maxPeersOf {
		t.Errorf("%v refused", refused)
	}
	if len(p.places.calls.pairs) > 2*maxPeersOf || len(p.places.places) > 2*maxPeersOf {
		t.Errorf("%d pairs, %d places", len(p.places.calls.pairs), len(p.places.places))
	}
	if s := got["shop"]; s.Requests != 5 || meanMS(&s.Latency) != 100 || !strings.Contains(servpodsOf(s), "peer peer-200000@ n 1 sum 80") {
		t.Errorf("%v requests, %s", s.Requests, servpodsOf(s))
	}
}

func TestPeersOfManySendersAreBounded(t *testing.T) {
	p := newPath(t, Config{Discover: true, MaxWorkloads: 1 << 15, MaxComponents: 1 << 15})
	for i := 0; i < 20_000; i += codec.MaxPeers {
		p.Step(at(0), peersFrame(t, fmt.Sprint("service-", i), i, codec.MaxPeers, 0))
	}
	if n := len(p.places.calls.byName); n != maxPeers || count(p, "trimtab_path_refused_names_total", "peer") < 20_000-maxPeers {
		t.Errorf("%d peers", n)
	}
	balanced(t, p)
}

func TestPeersThatAreCalledNoLongerMakeRoom(t *testing.T) {
	p := newPath(t, Config{Discover: true})
	for i := 0; i < maxPeersOf; i += 4 {
		p.Step(at(0), peersFrame(t, "shop", i, 4, 0))
	}
	later := p.places.idle() + int64(time.Minute)
	p.Step(at(time.Duration(later)), peersFrame(t, "shop", 1000, 4, float64(later)/1e6))
	if n := count(p, "trimtab_path_refused_names_total", "peer"); n != 0 || len(p.places.calls.byName) != 4 || len(p.places.calls.byPair) != 4 {
		t.Errorf("%v refused, %d peers, %d pairs", n, len(p.places.calls.byName), len(p.places.calls.byPair))
	}
}

func TestPeersThatAFrameNamesWrongAreNobody(t *testing.T) {
	var w codec.FrameWriter
	shop, _ := w.AddResource([]trimtab.Attr{{Key: "service.name", Value: "shop"}})
	w.AddPeer(999, []byte("of a resource that is not there"))
	w.AddPeer(1, []byte("of a peer"))
	w.AddPeer(shop, []byte("db"))
	for i, peer := range []uint8{1, 2, codec.MaxPeers} {
		w.Add(&trimtab.Span{TraceID: [16]byte{1}, SpanID: [8]byte{7: byte(i + 1)}, Start: epoch, End: epoch + 1e6, Adjusted: 1, Resource: shop, Kind: trimtab.SpanClient, Peer: peer})
		w.Add(&trimtab.Span{TraceID: [16]byte{1}, SpanID: [8]byte{7: byte(i + 10)}, Start: epoch, End: epoch + 1e6, Adjusted: 1, Resource: 1, Kind: trimtab.SpanClient, Peer: peer})
	}
	got := map[string]int{}
	p := newPath(t, Config{Discover: true, Requests: func(r *Request) {
		for _, v := range r.Visits {
			got[v.Caller+">"+v.Component]++
		}
	}})
	p.Step(at(0), w.Frame(0))
	p.Flush(at(time.Second))
	if len(got) != 3 || got[">shop"] != 3 || got[">unknown"] != 3 || got["shop>db"] != 1 {
		t.Errorf("%v", got)
	}
	balanced(t, p)
}
