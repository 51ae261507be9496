package gate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestAStopAnswersWhatIsInFlightAndRefusesNobody(t *testing.T) {
	service := newBlocked()
	behind := httptest.NewServer(service)
	defer behind.Close()
	g, stop := runTo(t, behind.URL, func(c *Config) { c.Drain = time.Minute })
	got := make(chan *http.Response, 1)
	go func() { resp, _ := get(t, g.url("/")); got <- resp }()
	<-service.come
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	for !g.draining.Load() {
		time.Sleep(time.Millisecond) // the network is real: no bubble of synctest holds it
	}
	close(service.go_)
	if resp := <-got; resp.StatusCode != http.StatusOK {
		t.Error(resp.Status)
	}
	<-stopped
}

func TestTheNextProcessTakesOverWithoutALostConnectionWhereTheKernelSteers(t *testing.T) {
	behind := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "ok") }))
	defer behind.Close()
	first, stop := runTo(t, behind.URL, func(c *Config) { c.Drain = 10 * time.Second })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var asked, lost atomic.Int64
	var clients sync.WaitGroup
	for i := range 8 {
		keep := i%2 == 0
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: !keep}}
		clients.Go(func() {
			defer client.CloseIdleConnections()
			for ctx.Err() == nil {
				asked.Add(1)
				// A POST: the client may not try it again by itself.
				resp, err := client.Post(first.url("/"), "text/plain", nil)
				if err == nil {
					_, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				if err != nil {
					lost.Add(1)
					t.Log(err)
				}
			}
		})
	}
	second, _ := runTo(t, behind.URL, func(c *Config) { c.Listen = first.Address(); c.Drain = 10 * time.Second })
	for first.counted == nil || asked.Load() < 200 {
		time.Sleep(time.Millisecond)
	}
	stop()
	for from, until := asked.Load(), int64(200); asked.Load() < from+until; {
		time.Sleep(time.Millisecond)
	}
	cancel()
	clients.Wait()
	allowed := int64(0)
	if err := steer(second.clients); errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOPROTOOPT) {
		allowed = asked.Load() / 100 // this kernel resets what waits to be accepted when the listener closes
		t.Logf("new connections cannot be steered here: %v", err)
	}
	if lost.Load() > allowed {
		t.Errorf("%d of %d requests were lost", lost.Load(), asked.Load())
	}
	if _, d := control(t, second, http.MethodGet, ""); d.Answered < 200 {
		t.Errorf("the second answered %d of %d", d.Answered, asked.Load())
	}
}
