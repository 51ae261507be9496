package classes

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/haproxy"
	"github.com/trimtab/trimtab/internal/haproxy/haproxytest"
)

// front is a real HAProxy before a service that answers after a while, with one request in service,
// and the bounds of its classes.
type front struct {
	*haproxytest.Program
	*Bounds
	now time.Time
}

func begin(t *testing.T, maxconn int) *front {
	t.Helper()
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "up"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-r.Context().Done():
		}
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	c := haproxy.Classes{Backend: "shop", Map: filepath.Join(dir, "map"), Header: "x-priority", Names: []string{"critical", "low"}}
	if err := os.WriteFile(c.Map, []byte(c.File()), 0o600); err != nil {
		t.Fatal(err)
	}
	f := &front{Program: haproxytest.Start(t, "shop", haproxytest.Front+c.Lines(150*time.Millisecond)+fmt.Sprintf("  server one unix@%s maxconn %d\n", l.Addr(), maxconn)), now: time.Now()}
	if f.Bounds, err = Open(Config{Workload: "shop", Socket: f.Socket, Classes: c, Within: 200 * time.Millisecond, ForeignHold: time.Minute}); err != nil {
		t.Fatal(err)
	}
	return f
}

// round does what a round of the loop does, at the time that the test says.
func (f *front) round(t *testing.T, after time.Duration) decision {
	t.Helper()
	f.now = f.now.Add(after)
	s := f.look(t.Context(), f.now)
	if s.err != nil {
		t.Fatal(s.err)
	}
	d := f.decide(t.Context(), f.now, s)
	f.act(t.Context(), f.now, d)
	return d
}

func (f *front) entries(t *testing.T) map[string]uint64 {
	t.Helper()
	s := f.look(t.Context(), f.now)
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.entries
}

// teach has the rule know the service, and returns what it bounds.
func (f *front) teach(t *testing.T) []int {
	t.Helper()
	s := f.look(t.Context(), f.now)
	if s.err != nil {
		t.Fatal(s.err)
	}
	for n := range uint64(20) {
		s.backend.Own.Sessions, s.backend.Own.Queued, s.backend.Servers[0].Answered = 20*n, 5, 10*n
		f.now = f.now.Add(Tick)
		d := f.decide(t.Context(), f.now, s)
		f.act(t.Context(), f.now, d)
		s.entries = f.entries(t)
	}
	if f.set == nil {
		t.Fatal("nothing is bounded")
	}
	return f.set
}

func TestBoundsAreInHAProxyAndRenewed(t *testing.T) {
	f := begin(t, 2)
	most := f.teach(t)
	if len(most) != 4 || most[0] <= most[2] || most[2] < most[3] {
		t.Fatalf("%v", most)
	}
	got := f.entries(t)
	if int(got["critical"]) != most[0] || int(got["low"]) != most[2] || got[haproxy.UntilKey] < uint64(f.now.Unix()) || got[haproxy.UntilKey] > uint64(f.now.Add(Lease).Unix()) {
		t.Errorf("HAProxy has %v, want %v", got, most)
	}
	before := got[haproxy.UntilKey]
	for range 40 {
		f.round(t, Tick)
	}
	if got = f.entries(t); got[haproxy.UntilKey] <= before {
		t.Errorf("4 s later they end at %d, before at %d", got[haproxy.UntilKey], before)
	}
}

func TestTheEndTakesTheBoundsBack(t *testing.T) {
	f := begin(t, 2)
	f.teach(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if got := f.entries(t); got[haproxy.UntilKey] != 0 {
		t.Errorf("%v", got)
	}
}

func TestAMapThatSomebodyElseChangedIsLeftToThemForAWhile(t *testing.T) {
	f := begin(t, 2)
	f.teach(t)
	for _, command := range []string{"set map " + f.config.Classes.Map + " low 1", f.config.Classes.SetUntil(f.now.Add(time.Hour).Unix())} {
		if _, err := haproxy.Ask(t.Context(), f.Socket, command); err != nil {
			t.Fatal(err)
		}
		before := f.entries(t)
		for range 50 {
			if d := f.round(t, Tick); d.write {
				t.Fatalf("after %q: %+v", command, d)
			}
		}
		if got := f.entries(t); got["low"] != before["low"] || got[haproxy.UntilKey] != before[haproxy.UntilKey] || !strings.Contains(f.problem, "somebody else") {
			t.Errorf("after %q: %v, problem %q", command, got, f.problem)
		}
	}
	if f.round(t, time.Minute); strings.Contains(f.problem, "somebody else") == (f.entries(t)[haproxy.UntilKey] <= uint64(f.now.Add(Lease).Unix())) {
		t.Errorf("after the hold %v, problem %q", f.entries(t), f.problem)
	}
}

func TestAReloadedHAProxyIsBoundedAnew(t *testing.T) {
	f := begin(t, 2)
	f.teach(t)
	f.Reload(t)
	if d := f.round(t, Tick); d.write || f.set != nil || f.problem != "" {
		t.Errorf("%+v, %q", d, f.problem)
	}
	if got := f.entries(t); got[haproxy.UntilKey] != 0 {
		t.Errorf("it begins with %v", got)
	}
	f.teach(t)
}

func TestWithoutAMaxconnNothingIsBounded(t *testing.T) {
	f := begin(t, 2)
	f.teach(t)
	if _, err := haproxy.Ask(t.Context(), f.Socket, "set maxconn server shop/one 0"); err != nil {
		t.Fatal(err)
	}
	if f.round(t, Tick); f.set != nil || f.entries(t)[haproxy.UntilKey] != 0 {
		t.Errorf("%v, %v", f.set, f.entries(t))
	}
}

func TestAHAProxyThatIsGoneIsAProblemAndNoMore(t *testing.T) {
	f := begin(t, 2)
	f.teach(t)
	f.Stop()
	s := f.look(t.Context(), f.now)
	if d := f.decide(t.Context(), f.now, s); s.err == nil || d.write || !strings.Contains(f.problem, "start HAProxy") {
		t.Errorf("%v, %+v, %q", s.err, d, f.problem)
	}
}
