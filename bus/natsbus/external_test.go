//go:build integration

package natsbus

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/bus/bustest"
	"github.com/trimtab/trimtab/internal/cluster/clustertest"
	"github.com/trimtab/trimtab/internal/loopback"
	"github.com/trimtab/trimtab/internal/trial"
)

// natsServer is a nats-server as a process of its own.
type natsServer struct {
	t       *testing.T
	address string
	dir     string
	cmd     *exec.Cmd
}

func newServer(t *testing.T) *natsServer {
	t.Helper()
	s := &natsServer{t: t, address: loopback.Address(t), dir: filepath.Join(t.TempDir(), "store")}
	t.Cleanup(func() { s.kill() })
	return s
}

func (s *natsServer) start() {
	s.t.Helper()
	_, port, _ := net.SplitHostPort(s.address)
	if n, err := strconv.Atoi(port); err != nil || n == 0 {
		s.t.Fatal(s.address)
	}
	s.cmd = clustertest.Process(nil, "-a", "127.0.0.1", "-p", port, "-js", "-sd", s.dir)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	until(s.t, func() bool {
		c, err := net.Dial("tcp", s.address)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// kill is kill -9.
func (s *natsServer) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

func TestAnExternalServerKeepsTheContract(t *testing.T) {
	bustest.Run(t, func(t *testing.T) bus.Bus {
		s := newServer(t)
		s.start()
		return open(t, Config{URL: "nats://" + s.address, AckWait: patient})
	})
}

// traffic publishes numbered alerts, one at a time, and notes what two
// subscribers, one of them of a group, were handed.
type traffic struct {
	bus  testBus
	mu   sync.Mutex
	got  map[string]map[string]int
	sent int
}

func newTraffic(t *testing.T, s *natsServer) *traffic {
	t.Helper()
	tr := &traffic{bus: open(t, Config{URL: "nats://" + s.address}), got: map[string]map[string]int{"group": {}, "": {}}}
	for name := range tr.got {
		_, err := tr.bus.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindAlert, Consumer: name, Handle: func(_ context.Context, d bus.Delivery) error {
			tr.mu.Lock()
			defer tr.mu.Unlock()
			tr.got[name][d.Value.(*trimtab.Alert).Name]++
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	return tr
}

// send publishes n values; every one that Publish returned nil for counts.
func (tr *traffic) send(t *testing.T, n int) {
	t.Helper()
	for range n {
		if err := tr.bus.Publish(t.Context(), alertOf("w", fmt.Sprint(tr.sent))); err != nil {
			t.Fatal(err)
		}
		tr.sent++
	}
}

// complete waits until both subscribers have all of [from, sent).
func (tr *traffic) complete(t *testing.T, from int) {
	t.Helper()
	until(t, func() bool {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		for _, got := range tr.got {
			for i := from; i < tr.sent; i++ {
				if got[fmt.Sprint(i)] == 0 {
					return false
				}
			}
		}
		return true
	})
}

func TestAServerThatIsKilledLosesAndRepeatsNothing(t *testing.T) {
	s := newServer(t)
	s.start()
	traffic := newTraffic(t, s)
	tr := trial.Start(t, 10)
	for range tr.N {
		before := traffic.sent
		done := make(chan struct{})
		go func() {
			defer close(done)
			traffic.send(t, 100)
		}()
		select {
		case <-time.After(time.Duration(tr.Rand.IntN(20)) * time.Millisecond):
		case <-done:
		}
		s.kill()
		s.start()
		began := time.Now()
		<-done
		traffic.complete(t, before)
		tr.Took(time.Since(began))
	}
	traffic.complete(t, 0)
	for name, got := range traffic.got {
		for value, n := range got {
			if n != 1 {
				tr.Failf("%q: value %s was handled %d times", name, value, n)
			}
		}
	}
	tr.Notef("%d messages", traffic.sent)
}

func TestASubscriberWaitsForAServerThatAnswersLate(t *testing.T) {
	s := newServer(t)
	s.start()
	b := open(t, Config{URL: "nats://" + s.address})
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// Longer than one attempt takes.
	on := time.AfterFunc(7*time.Second, func() { _ = s.cmd.Process.Signal(syscall.SIGCONT) })
	defer on.Stop()
	got := make(chan string, 10)
	if _, err := b.Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindAlert, Handle: func(_ context.Context, d bus.Delivery) error {
		got <- d.Value.(*trimtab.Alert).Name
		return nil
	}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(t.Context(), alertOf("w", "after")); err != nil {
		t.Fatal(err)
	}
	if name := <-got; name != "after" {
		t.Errorf("got %q", name)
	}
}

func TestAStoreThatIsWipedOrRolledBackCostsTimeOnly(t *testing.T) {
	s := newServer(t)
	s.start()
	tr, traffic := trial.Start(t, 5), newTraffic(t, s)
	k, err := traffic.bus.Bucket(t.Context(), "leaders")
	if err != nil {
		t.Fatal(err)
	}
	// A wipe in six, as the promise has 20 beside 100 rollbacks.
	for round := range tr.N {
		change := "rollback"
		if round%6 == 0 {
			change = "wipe"
		}
		from := traffic.sent
		traffic.send(t, 30)
		traffic.complete(t, from)
		old := filepath.Join(t.TempDir(), "old")
		s.kill()
		if err := os.CopyFS(old, os.DirFS(s.dir)); err != nil {
			t.Fatal(err)
		}
		s.start()
		from = traffic.sent
		traffic.send(t, 30)
		traffic.complete(t, from)
		s.kill()
		if err := os.RemoveAll(s.dir); err != nil {
			t.Fatal(err)
		}
		if change == "rollback" {
			if err := os.CopyFS(s.dir, os.DirFS(old)); err != nil {
				t.Fatal(err)
			}
		}
		s.start()
		from = traffic.sent
		began := time.Now()
		traffic.send(t, 30)
		traffic.complete(t, from)
		tr.Took(time.Since(began))
		if _, err := k.Put(t.Context(), "p", []byte{byte(round)}); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(old); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAnEmbeddedServerThatListensKeepsTheContract(t *testing.T) {
	t.Parallel()
	bustest.Run(t, func(t *testing.T) bus.Bus { return open(t, Config{Listen: "127.0.0.1:0", AckWait: patient}) })
}
