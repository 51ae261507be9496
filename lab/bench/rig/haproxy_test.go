package rig_test

import (
	"os"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	actuator "github.com/trimtab/trimtab/actuator/haproxy"
	"github.com/trimtab/trimtab/internal/haproxy"
	"github.com/trimtab/trimtab/internal/haproxy/haproxytest"
	"github.com/trimtab/trimtab/lab/bench/rig"
)

// A session of PostgreSQL is a connection: what is more waits, and then its client sees it closed.
func TestMaxconnBoundsTheSessionsOfARealPostgresInModeTCP(t *testing.T) {
	if _, _, err := rig.PostgresHome(); err != nil {
		t.Skip(err)
	}
	dir, err := os.MkdirTemp("", "haproxy-postgres")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	files := dir + "/db"
	if err := os.Mkdir(files, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	db, err := rig.StartPostgres(t.Context(), nil, files, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	front, err := rig.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	p := haproxytest.Start(t, "db", `global
  stats socket DIR/s mode 600 level admin
defaults
  mode tcp
  timeout connect 1s
  timeout client 60s
  timeout server 60s
  timeout queue 200ms
frontend in
  bind `+front+`
  default_backend db
backend db
  server one `+db.Address+`
`)
	knob, err := actuator.Open(actuator.Config{Socket: p.Socket, Backend: "db", Server: "one"})
	if err != nil {
		t.Fatal(err)
	}
	// session opens one and keeps it.
	session := func() error {
		s := rig.NewSessions(front, 1)
		t.Cleanup(s.Close)
		return s.Sum(t.Context(), 1)
	}
	for _, limit := range []float64{1, 2} {
		if err := knob.Write(t.Context(), trimtab.Units(limit)); err != nil {
			t.Fatal(err)
		}
		if err := session(); err != nil {
			t.Fatalf("session %v of %v: %v", limit, limit, err)
		}
		from := time.Now()
		if err := session(); err == nil {
			t.Errorf("one more than %v sessions", limit)
		} else if waited := time.Since(from); waited < 150*time.Millisecond {
			t.Errorf("it was closed after %v, without the wait in the queue", waited)
		}
	}
	b, err := haproxy.Look(t.Context(), p.Socket, "db")
	if err != nil || b.Own == nil || b.Own.NoConnection != 2 || b.Servers[0].NoConnection != 0 {
		t.Errorf("%+v, %v: want the two that were refused, by the backend", b.Own, err)
	}
	if err := knob.Write(t.Context(), trimtab.Unlimited()); err != nil {
		t.Fatal(err)
	}
	if err := session(); err != nil {
		t.Errorf("without a limit: %v", err)
	}
}
