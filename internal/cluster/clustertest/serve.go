// Package clustertest runs the NATS server of a site's files in the process of a
// test: the real server, its configuration read from the file as it was written,
// but for the places where it listens and stores.
package clustertest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// Serve runs the server whose files are in dir/nats-NAME until the test ends,
// and returns its URL, and the one for leaf nodes. change, when not nil, changes the configuration first.
func Serve(t testing.TB, dir, name string, change func(conf string) string) (url, leaf string) {
	t.Helper()
	at := filepath.Join(dir, "nats-"+name)
	b, err := os.ReadFile(filepath.Join(at, "nats-server.conf"))
	if err != nil {
		t.Fatal(err)
	}
	conf := strings.NewReplacer("/etc/nats/", at+"/", "/var/lib/nats", t.TempDir(), "0.0.0.0:4222", "127.0.0.1:-1", "0.0.0.0:7422", "127.0.0.1:-1").Replace(string(b))
	if change != nil {
		changed := change(conf)
		if changed == conf {
			t.Fatal("nothing changed")
		}
		conf = changed
	}
	s := Start(t, conf)
	if !s.ReadyForConnections(20 * time.Second) {
		t.Fatal("nats-server is not ready")
	}
	v, err := s.Varz(nil)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(s.ClientURL(), "nats://", "tls://", 1), fmt.Sprintf("tls://127.0.0.1:%d", v.LeafNode.Port)
}

// Start starts the server that conf configures; it runs until the test ends.
func Start(t testing.TB, conf string) *server.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "nats-server.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := server.ProcessConfigFile(file)
	if err != nil {
		t.Fatal(err)
	}
	o.NoSigs, o.NoLog = true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}
