package natsbus

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// centralServer starts a nats-server that takes leaf nodes, and returns it with
// what a leaf node needs to join.
func centralServer(t *testing.T) (*server.Server, Config) {
	t.Helper()
	web := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(web.Close)
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true,
		LeafNode: server.LeafNodeOpts{Host: "127.0.0.1", Port: server.RANDOM_PORT, TLSTimeout: leafPatience.Seconds(),
			TLSConfig: &tls.Config{Certificates: web.TLS.Certificates}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(readyWithin) {
		t.Fatal("the central server is not ready")
	}
	v, err := s.Varz(nil)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(web.Certificate())
	return s, Config{Host: "h1", Logger: slog.New(slog.DiscardHandler), Leaf: fmt.Sprintf("tls://127.0.0.1:%d", v.LeafNode.Port), TLS: &tls.Config{RootCAs: roots, ServerName: "127.0.0.1"}}
}

func TestALeafNodeKeepsNoSubjectOfAMessageThatWasSent(t *testing.T) {
	central, c := centralServer(t)
	l, err := startLeaf(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.close)
	connect := func(s *server.Server) *nats.Conn {
		n, err := nats.Connect("", nats.InProcessServer(s))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(n.Close)
		return n
	}
	answers, asks := connect(central), connect(l.Server)
	if _, err := answers.Subscribe("question.*", func(m *nats.Msg) { _ = m.Respond(nil) }); err != nil {
		t.Fatal(err)
	}
	const questions = 300
	for i := range questions {
		// The first ones may be asked before the leaf node heard that somebody answers.
		for begin := time.Now(); ; {
			_, err := asks.Request(fmt.Sprint("question.", i), nil, readyWithin)
			if err == nil {
				break
			}
			if time.Since(begin) > readyWithin {
				t.Fatal(err)
			}
		}
	}
	kept, err := l.Subsz(nil)
	if err != nil {
		t.Fatal(err)
	}
	if kept.NumCache > 0 {
		t.Errorf("after %d questions, each and its answer on a subject of its own, the leaf node knows %d subjects by heart", questions, kept.NumCache)
	}
}
