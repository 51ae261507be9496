package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab/internal/pause"
	"github.com/trimtab/trimtab/lab/bench/rig"
)

// dependency is what the services ask: after 10 to 50 ms, and after 800 ms a poll.
type dependency struct {
	*http.Server
	address      string
	works, polls atomic.Int64
}

// depend starts it on a port of loopback.
func depend() (*dependency, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the dependency: %w", err)
	}
	d := &dependency{address: "http://" + l.Addr().String()}
	d.Server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/poll" {
			pause.For(r.Context(), 800*time.Millisecond)
			d.polls.Add(1)
			return
		}
		n := d.works.Add(1)
		pause.For(r.Context(), time.Duration(10+n*7%41)*time.Millisecond)
	})}
	go func() { _ = d.Serve(l) }() // ends with Close
	return d, nil
}

// sent is what a service was asked, as its client saw it.
type sent struct {
	Requests, Failed int
	// Rate is in requests per second, P50 and P95 are durations of requests.
	Rate     float64
	P50, P95 time.Duration
}

// drive asks a service rate times a second, whatever its answers take.
func drive(ctx context.Context, address string, rate float64, during time.Duration) sent {
	ctx, cancel := context.WithTimeout(ctx, during)
	defer cancel()
	var wait sync.WaitGroup
	var lock sync.Mutex
	var out sent
	var took []time.Duration
	ask := func() {
		start := time.Now()
		_, err := rig.Get(context.WithoutCancel(ctx), "http://"+address+"/") // also one that ends after the load
		lock.Lock()
		defer lock.Unlock()
		if err != nil {
			out.Failed++
			return
		}
		took = append(took, time.Since(start))
	}
	began := time.Now()
	// By the clock, so that a machine that is busy for a while does not slow the load.
	for asked := 0; pause.For(ctx, time.Duration(float64(time.Second)/rate)); {
		for ; asked < int(rate*time.Since(began).Seconds()); asked++ {
			wait.Go(ask)
		}
	}
	elapsed := time.Since(began)
	wait.Wait()
	out.Requests = len(took)
	out.Rate = float64(out.Requests+out.Failed) / elapsed.Seconds()
	if slices.Sort(took); len(took) > 0 {
		out.P50, out.P95 = took[len(took)/2], took[len(took)*95/100]
	}
	return out
}
