package loadgen

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/demo/service"
)

// Target is one service and its day.
type Target struct {
	Name string
	URL  string
	Day  Day
	// Latency is the SLO's, from the intended start; > 0.
	Latency time.Duration
}

// Generator plays a day. Its fields must not change while it runs.
type Generator struct {
	Targets []Target
	// For is how long the day takes; > 0.
	For time.Duration
	// Seed of all draws; each target has its own stream.
	Seed uint64
	// Timeout ends a request, counted from its intended start; 0: 2 s.
	Timeout time.Duration
	// MaxInFlight limits the requests in flight per target; further ones are shed; 0: 1000.
	MaxInFlight int
	// Reconnect opens a connection per request, and tries again at once, up to
	// the time-out, when it is refused or reset: as a router in front of
	// worker processes does.
	Reconnect bool
	// Interval is how often Report is called; 0: 1 s.
	Interval time.Duration
	// Report, when not nil, gets what ended in the last interval, in the order
	// of Targets, with the time since the beginning of the day.
	Report func(at time.Duration, results []Result)
}

// Run plays the day, waits for the answers, and returns the totals in the order of Targets. When
// ctx ends it returns the totals so far, and the context's error.
func (g *Generator) Run(ctx context.Context) ([]Result, error) {
	if err := g.validate(); err != nil {
		return nil, err
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 256, DisableCompression: true, DisableKeepAlives: g.Reconnect}
	defer transport.CloseIdleConnections()
	p := &play{g: g, transport: transport, begin: time.Now(), timeout: cmp.Or(max(0, g.Timeout), 2*time.Second), limit: int64(cmp.Or(g.MaxInFlight, 1000))}
	var players sync.WaitGroup
	tallies := make([]*tally, len(g.Targets))
	for i, t := range g.Targets {
		tallies[i] = &tally{name: t.Name, slo: t.Latency, timeout: p.timeout}
		players.Go(func() { p.target(ctx, i, tallies[i]) })
	}
	done := make(chan struct{})
	go func() { players.Wait(); close(done) }()
	p.report(done, tallies)
	totals := make([]Result, len(tallies))
	for i, t := range tallies {
		totals[i] = t.all(min(time.Since(p.begin), g.For))
	}
	return totals, ctx.Err()
}

func (g *Generator) validate() error {
	if len(g.Targets) == 0 || g.For <= 0 || g.MaxInFlight < 0 {
		return trimtab.Invalidf("load of %d targets for %v with %d in flight", len(g.Targets), g.For, g.MaxInFlight)
	}
	for _, t := range g.Targets {
		if t.Latency <= 0 {
			return trimtab.Invalidf("load on %s: latency %v", t.Name, t.Latency)
		}
		if err := t.Day.Validate(); err != nil {
			return err
		}
	}
	return nil
}

// play is one day being played.
type play struct {
	g         *Generator
	transport *http.Transport
	begin     time.Time
	timeout   time.Duration
	limit     int64
}

// report calls Report every interval until done.
func (p *play) report(done <-chan struct{}, tallies []*tally) {
	tick := time.NewTicker(cmp.Or(max(0, p.g.Interval), time.Second))
	defer tick.Stop()
	last := p.begin
	for {
		select {
		case <-done:
			return
		case now := <-tick.C:
			results := make([]Result, len(tallies))
			for i, t := range tallies {
				results[i] = t.interval(now.Sub(last))
			}
			last = now
			if p.g.Report != nil {
				p.g.Report(now.Sub(p.begin), results)
			}
		}
	}
}

// target sends the requests of target i at their intended starts, and returns
// when all have ended.
func (p *play) target(ctx context.Context, i int, count *tally) {
	t := &p.g.Targets[i]
	due := arrivals{day: t.Day, length: p.g.For, rand: rand.New(rand.NewPCG(p.g.Seed, uint64(i)))}
	timer := time.NewTimer(0)
	defer timer.Stop()
	<-timer.C
	var flying sync.WaitGroup
	defer flying.Wait()
	var inFlight atomic.Int64
	for {
		at, more := due.next()
		if !more {
			return
		}
		start := p.begin.Add(at)
		if wait := time.Until(start); wait > 0 {
			timer.Reset(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				return
			}
		} else if ctx.Err() != nil {
			return
		}
		if inFlight.Load() >= p.limit {
			count.add(shed, 0)
			continue
		}
		inFlight.Add(1)
		flying.Go(func() {
			defer inFlight.Add(-1)
			err := p.send(ctx, t.URL, start)
			if ctx.Err() != nil {
				return // cut off by us: says nothing about the service
			}
			how := answered
			if err != nil {
				how = failed
			}
			count.add(how, time.Since(start))
		})
	}
}

// errStatus says that the status of the answer was not 200.
var errStatus = errors.New("status is not 200")

// send makes one request and reads its answer to the end.
func (p *play) send(ctx context.Context, url string, start time.Time) error {
	ctx, cancel := context.WithDeadline(ctx, start.Add(p.timeout))
	defer cancel()
	for {
		err := p.attempt(ctx, url, start)
		lost := errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF)
		if !lost || !p.g.Reconnect {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
	}
}

func (p *play) attempt(ctx context.Context, url string, start time.Time) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	service.SetRequestStart(req.Header, start)
	resp, err := p.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return errStatus
	}
	return nil
}
