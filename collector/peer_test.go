package collector

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// peerOf takes keys and values in turn.
func peerOf(attrs ...string) *Peer {
	p := &Peer{}
	for i := 0; i+1 < len(attrs); i += 2 {
		p.Observe([]byte(attrs[i]), []byte(attrs[i+1]))
	}
	return p
}

func TestAPeerIsNamedByTheMostTellingOfItsAttributes(t *testing.T) {
	for _, c := range []struct {
		want  string
		attrs []string
	}{
		{"", nil},
		{"", []string{"http.method", "GET", "http.url", "/relative", "server.port", "80"}},
		{"payments", []string{"server.address", "10.0.0.1", "db.system", "mysql", "peer.service", "payments"}},
		{"new", []string{"service.peer.name", "new", "peer.service", "old"}},
		{"new", []string{"peer.service", "old", "service.peer.name", " new "}},

		{"postgresql orders-db", []string{"db.system.name", "postgresql", "db.namespace", "orders", "server.address", "orders-db", "server.port", "5432"}},
		{"postgresql orders-db", []string{"db.system", "postgresql", "db.name", "orders", "net.peer.name", "orders-db", "net.peer.ip", "10.0.0.7"}},
		{"mysql orders", []string{"db.system", "mysql", "db.name", "orders", "net.peer.ip", "10.0.0.7"}},
		{"redis 10.0.0.7", []string{"db.system", "redis", "network.peer.address", "10.0.0.7", "network.peer.port", "6379"}},
		{"redis", []string{"db.system", "redis"}},
		{"mysql db.example.com", []string{"db.type", "mysql", "peer.address", "mysql://root:secret@db.example.com:3306/orders"}},

		{"kafka orders", []string{"messaging.system", "kafka", "messaging.destination.name", "orders", "server.address", "broker-1"}},
		{"kafka orders", []string{"messaging.system", "kafka", "messaging.destination", "orders"}},
		{"rabbitmq /customers/{id}", []string{"messaging.system", "rabbitmq", "messaging.destination.name", "/customers/7", "messaging.destination.template", "/customers/{id}"}},
		{"rabbitmq mq", []string{"messaging.system", "rabbitmq", "messaging.destination.name", "amq.gen-8d1f", "messaging.destination.temporary", "true", "server.address", "mq"}},
		{"rabbitmq", []string{"messaging.system", "rabbitmq"}},
		{"orders", []string{"message_bus.destination", "orders"}},

		{"api.example.com", []string{"server.address", "api.example.com", "server.port", "443", "url.full", "https://api.example.com/v1"}},
		{"stock:8080", []string{"net.peer.name", "stock", "net.peer.port", "8080", "rpc.system", "grpc", "rpc.service", "shop.Stock"}},
		{"stock:8080", []string{"http.host", "stock:8080"}},
		{"api.example.com", []string{"http.url", "https://user:secret@api.example.com:443/v1/charge?key=secret"}},
		{"api.example.com:8443", []string{"url.full", "https://api.example.com:8443"}},
		{"[::1]:9000", []string{"server.address", "::1", "server.port", "9000"}},
		{"[2001:db8::7]:9000", []string{"url.full", "http://[2001:db8::7]:9000/"}},
		{"2001:db8::7", []string{"network.peer.address", "2001:db8::7"}},
		{"10.0.0.7:9042", []string{"peer.ipv4", "10.0.0.7", "peer.port", "9042"}},
		{"/var/run/app.sock", []string{"server.address", "/var/run/app.sock"}},
		{"aws-api S3", []string{"rpc.system", "aws-api", "rpc.service", "S3"}},
	} {
		if got := string(peerOf(c.attrs...).Name()); got != c.want {
			t.Errorf("%q: named %q, want %q", c.attrs, got, c.want)
		}
	}
}

func TestAnEndpointOfZipkinNamesAPeerWhereItSaysMoreThanTheTags(t *testing.T) {
	address := netip.MustParseAddr("10.0.0.7")
	for _, c := range []struct {
		want, service string
		address       netip.Addr
		port          uint16
		tags          []string
	}{
		{"payments", "payments", address, 80, nil},
		{"payments", "payments", address, 80, []string{"server.address", "10.0.0.7"}},
		{"payments", "payments", address, 80, []string{"db.system", "mysql", "net.peer.name", "orders-db"}},
		{"10.0.0.7:9042", "", address, 9042, nil},
		{"10.0.0.7", "", address, 0, nil},
		{"", "", netip.Addr{}, 9042, nil},
		// Exporters of OpenTelemetry make the service of a host or of a database.
		{"mysql orders-db", "orders-db", address, 3306, []string{"db.system", "mysql", "net.peer.name", "orders-db"}},
		{"mysql orders", "orders", address, 3306, []string{"db.system", "mysql", "db.name", "orders"}},
		{"stock:8080", "stock", netip.Addr{}, 0, []string{"server.address", "stock", "server.port", "8080"}},
		{"given", "stock", netip.Addr{}, 0, []string{"peer.service", "given"}},
	} {
		p := peerOf(c.tags...)
		p.ObserveEndpoint([]byte(c.service), c.address, c.port)
		if got := string(p.Name()); got != c.want {
			t.Errorf("%q at %v, %q: named %q, want %q", c.service, c.address, c.tags, got, c.want)
		}
	}
}

func TestTheNameOfAPeerIsBoundedAndValid(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, p := range []*Peer{peerOf("peer.service", long), peerOf("db.system", long, "server.address", long), peerOf("server.address", long, "server.port", "8080"),
		peerOf("server.address", ":"+long, "server.port", "8080"), peerOf("peer.service", strings.Repeat("\xff", 1000)), peerOf("peer.service", strings.Repeat("é", 127)+"x"),
		peerOf("server.address", strings.Repeat("é", 300), "server.port", "65535")} {
		name := string(p.Name())
		if len(name) == 0 || len(name) > maxPeerName || strings.ToValidUTF8(name, "") != name {
			t.Errorf("%d bytes: %q", len(name), name)
		}
	}
	p := peerOf("peer.service", "a", "server.port", "1")
	p.ObserveNumber([]byte("server.port"), 1<<16)
	p.ObserveNumber([]byte("server.port"), -1)
	p.ObserveTruth([]byte("server.port"), true)
	p.ObserveLiteral([]byte("server.port"), "true")
	if name := string(p.Name()); name != "a" || p.port != 1 {
		t.Errorf("%q, port %d: neither a number without a port nor a truth is one", name, p.port)
	}
	if p.Reset(); p.Name() != nil || p.port != 0 {
		t.Errorf("after Reset: %q", p.Name())
	}
}

func FuzzPeer(f *testing.F) {
	f.Add("https://user:pw@[::1]:99999/x", "orders-db:5432", "é")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		for _, keys := range [][3]string{{"url.full", "db.system", "net.peer.port"}, {"server.address", "server.port", "db.name"}, {"messaging.system", "messaging.destination", "peer.address"}} {
			if name := string(peerOf(keys[0], a, keys[1], b, keys[2], c).Name()); len(name) > maxPeerName || strings.ToValidUTF8(name, "") != name {
				t.Errorf("%q", name)
			}
		}
	})
}

// peersOf returns the peers of the spans, in order.
func peersOf(t *testing.T, frames []*trimtab.SpanFrame) (names []string) {
	t.Helper()
	if err := Spans(frames, func(_ *trimtab.Span, _ *Resource, peer string) { names = append(names, peer) }); err != nil {
		t.Fatal(err)
	}
	return names
}

func TestEachSpanKeepsItsPeerAndItsSender(t *testing.T) {
	p := NewPacker(1)
	shop, stock := NewResource([]trimtab.Attr{{Key: "service.name", Value: "shop"}}), NewResource([]trimtab.Attr{{Key: "service.name", Value: "stock"}})
	var want []string
	for round := range 2 {
		for i := range 3 * codec.MaxPeers {
			for _, r := range []*Resource{shop, stock} {
				s := trimtab.Span{TraceID: [16]byte{1}, SpanID: [8]byte{byte(round), byte(i), 1}, Kind: trimtab.SpanClient}
				name := r.Service() + " calls " + strings.Repeat("x", i)
				if i == 5 {
					name = ""
				}
				p.SetResource(r)
				p.AddCall(&s, []byte(name))
				want = append(want, name)
			}
		}
	}
	frames := p.Frames()
	if got := peersOf(t, frames); strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("%q,\nwant %q", got, want)
	}
	entries := 0
	r, _ := codec.ReadFrame(frames[0].Data)
	r.Resources(func(int, []byte) bool { entries++; return true })
	if most := 2 * 3 * (codec.MaxPeers + 1); len(frames) != 1 || entries > most {
		t.Errorf("%d frames, %d entries, want at most %d", len(frames), entries, most)
	}
	err := Spans(frames, func(_ *trimtab.Span, from *Resource, peer string) {
		if peer != "" && !strings.HasPrefix(peer, from.Service()) {
			t.Errorf("%q of %q", peer, from.Service())
		}
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAHundredThousandPeersOfOneRequestLeaveTheFrameWithinItsBound(t *testing.T) {
	p := NewPacker(1)
	p.SetResource(NewResource([]trimtab.Attr{{Key: "service.name", Value: strings.Repeat("shop", 200)}}))
	for i := range 100_000 {
		s := trimtab.Span{TraceID: [16]byte{1}, SpanID: [8]byte{byte(i), byte(i >> 8), byte(i >> 16), 1}, Kind: trimtab.SpanClient}
		p.AddCall(&s, []byte(strings.Repeat("x", i%200)+string(rune('a'+i/200%26))+string(rune('A'+i/5200))))
	}
	named := 0
	for _, f := range p.Frames() {
		if len(f.Data) > 1<<20-8<<10 {
			t.Errorf("a frame of %d bytes", len(f.Data))
		}
		for _, name := range peersOf(t, []*trimtab.SpanFrame{f}) {
			if name != "" {
				named++
			}
		}
	}
	if p.Spans() != 100_000 || named == 0 {
		t.Errorf("%d spans, %d with a peer", p.Spans(), named)
	}
}

func TestASpanWithAKnownPeerCostsNoAllocation(t *testing.T) {
	p := NewPacker(1)
	p.SetResource(NewResource([]trimtab.Attr{{Key: "service.name", Value: "shop"}}))
	s := trimtab.Span{TraceID: [16]byte{1}, SpanID: [8]byte{1}, Kind: trimtab.SpanClient}
	db, orders := []byte("db.system"), []byte("postgresql")
	each := func() {
		p.Reset()
		for range 100 {
			peer := p.Peer()
			peer.Observe(db, orders)
			p.AddCall(&s, peer.Name())
		}
	}
	each()
	if n := testing.AllocsPerRun(20, each); n > 1 {
		t.Errorf("%v allocations for 100 spans, want that of the peer's name", n)
	}
}
