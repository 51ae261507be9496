package main

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"
)

// load sends requests whose arrivals are Poisson, at a rate that jumps between low and high each
// period, and collects how long each took from when it was meant to be sent.
type load struct {
	url       string
	low, high float64 // requests per second
	period    time.Duration
	seed      uint64

	mu     sync.Mutex
	took   []time.Duration
	failed int
}

// run sends until ctx ends.
func (l *load) run(ctx context.Context) {
	random := rand.New(rand.NewPCG(l.seed, 0))
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256}}
	defer client.CloseIdleConnections()
	var wg sync.WaitGroup
	defer wg.Wait()
	begun := time.Now()
	for at := time.Duration(0); ; {
		rate := l.low
		if at/(l.period/2)%2 == 1 {
			rate = l.high
		}
		at += time.Duration(random.ExpFloat64() / rate * float64(time.Second))
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(begun.Add(at))):
		}
		meant := begun.Add(at)
		wg.Go(func() {
			answer, err := client.Get(l.url)
			if err == nil {
				_, err = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if err != nil {
				l.failed++
				return
			}
			l.took = append(l.took, time.Since(meant))
		})
	}
}

// take returns the latencies since the last take, in order, and how many requests failed.
func (l *load) take() (took []time.Duration, failed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	took, failed = l.took, l.failed
	l.took, l.failed = nil, 0
	slices.Sort(took)
	return took, failed
}

// quantile returns a quantile of sorted latencies; 0: there are none.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
