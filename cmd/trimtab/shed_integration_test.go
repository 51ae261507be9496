//go:build integration

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/trimtab/trimtab/actuator/haproxy"
	"github.com/trimtab/trimtab/internal/loopback"
	"github.com/trimtab/trimtab/internal/proctest"
)

// shedder is a HAProxy and a gate before one service, on which a trimtab sets limits so low that
// both refuse requests.
type shedder struct {
	*program
	proxy, gate, admin, socket string
	knob                       *haproxy.MaxConn
	refused                    [2]atomic.Int64 // by HAProxy, by the gate
}

const refusingHAProxy = `global
  stats socket %s mode 600 level admin
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout queue 50ms
frontend in
  bind %s
  default_backend shop
backend shop
  server one %s
`

func startShedder(t *testing.T) *shedder {
	t.Helper()
	binary, err := exec.LookPath("haproxy")
	if err != nil {
		t.Skip("no haproxy is installed")
	}
	dir := proctest.SocketDir(t)
	s := &shedder{proxy: loopback.Address(t), gate: loopback.Address(t), admin: filepath.Join(dir, "gate"), socket: filepath.Join(dir, "haproxy")}
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		<-time.After(100 * time.Millisecond)
	}))
	t.Cleanup(service.Close)
	behind := strings.TrimPrefix(service.URL, "http://")
	file := filepath.Join(dir, "haproxy.cfg")
	if err := os.WriteFile(file, fmt.Appendf(nil, refusingHAProxy, s.socket, s.proxy, behind), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{binary, "-db", "-f", file},
		{os.Args[0], "gate", "--listen", s.gate, "--to", service.URL, "--workload", "modest", "--within", "200ms", "--admin", "unix:" + s.admin}} {
		c := exec.Command(args[0], args[1:]...)
		c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	}
	if s.knob, err = haproxy.Open(haproxy.Config{Socket: s.socket, Backend: "shop", Server: "one"}); err != nil {
		t.Fatal(err)
	}
	s.program = prepare(t, fixtureQuotas(t), "")
	for workload, by := range map[string]string{"hungry": fmt.Sprintf("haproxy: {socket: %q, backend: shop, server: one}", s.socket), "modest": "gate: unix:" + s.admin} {
		s.text = strings.Replace(s.text, "knob: {cgroup: "+workload+",", "knob: {concurrency: {"+by+", value: 2, max: 4}, cgroup: "+workload+",", 1)
	}
	return s
}

// send sends requests over 16 connections to HAProxy and to the gate, each again and again, until
// the test ends. A connection that breaks off is an error.
func (s *shedder) send() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for k, address := range []string{s.proxy, s.gate} {
		for range 16 {
			all.Go(func() {
				dials := 0
				c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
					dials++
					return new(net.Dialer).DialContext(ctx, network, address)
				}}}
				defer c.CloseIdleConnections()
				for ctx.Err() == nil {
					r, err := c.Get("http://" + address)
					if err != nil {
						s.Errorf("%s: %v", address, err)
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					r.Body.Close()
					switch {
					case r.StatusCode == http.StatusServiceUnavailable:
						s.refused[k].Add(1)
					case r.StatusCode != http.StatusOK:
						s.Errorf("%s: status %d", address, r.StatusCode)
					}
				}
				if dials > 1 && address == s.gate {
					s.Errorf("the gate ended %d of %d connections", dials-1, dials)
				}
			})
		}
	}
	stop = func() { cancel(); all.Wait() }
	s.Cleanup(stop)
	return stop
}

// limits returns HAProxy's maxconn and the max of the gate's envelope; 0: none.
func (s *shedder) limits() (proxy, gate int, err error) {
	v, err := s.knob.Read(s.Context())
	if err != nil {
		return 0, 0, err
	}
	if !v.Unlimited {
		proxy = int(v.Value)
	}
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.admin)
	}}}
	r, err := c.Get("http://gate/v1/limit")
	if err != nil {
		return 0, 0, err
	}
	defer r.Body.Close()
	var d struct{ Envelope *struct{ Max int } }
	if err := json.NewDecoder(r.Body).Decode(&d); err != nil {
		return 0, 0, err
	}
	if d.Envelope != nil {
		gate = d.Envelope.Max
	}
	return proxy, gate, nil
}

func (s *shedder) both(want int) func() error {
	return func() error {
		if p, g, err := s.limits(); err != nil || p != want || g != want {
			return fmt.Errorf("HAProxy %d, gate %d: %w", p, g, err)
		}
		return nil
	}
}

// trimtab is killed while HAProxy and the gate refuse by its limits: its watchdog takes both limits
// back when the lease ends. If the watchdogs are killed as well, trimtab restore does it.
func TestLimitsOnRequestsEndWithTheLeaseOfATrimtabThatWasKilled(t *testing.T) {
	t.Parallel()
	s := startShedder(t)
	s.until("HAProxy and gate", s.both(0))
	stop := s.send()
	for _, watchdogs := range []bool{false, true} {
		s.start()
		s.until("both limits", s.both(2))
		before := [2]int64{s.refused[0].Load(), s.refused[1].Load()}
		s.until("refusals by both", func() error {
			if s.refused[0].Load() == before[0] || s.refused[1].Load() == before[1] {
				return fmt.Errorf("refused %d and %d, before %v", s.refused[0].Load(), s.refused[1].Load(), before)
			}
			return nil
		})
		s.kill(watchdogs)
		if watchdogs {
			if code, out := s.command("restore", "--storage.path", s.storage()); code != exitDone {
				t.Errorf("restore: %d: %s", code, out)
			}
		}
		began := time.Now()
		s.until("no limits", s.both(0))
		t.Logf("watchdogs killed %v: no limits %v after that", watchdogs, time.Since(began).Round(10*time.Millisecond))
	}
	stop()
}
