package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab/bench/rig"
	"github.com/trimtab/trimtab/lab/limiter"
)

// childWord is the first argument of this program when it plays a part of its own bench.
const childWord = "child"

// The parts: a limiter in a proxy, the HTTP service before PgBouncer, and a neighbour that
// never has enough CPU.
const (
	childProxy = "proxy"
	childSQL   = "sql"
	childSpin  = "spin"
)

// childArgs are the arguments with which this program plays a part.
func childArgs(args ...string) ([]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", args[0], err)
	}
	return append([]string{self, childWord}, args...), nil
}

// child plays a part until it is told to end.
func child(args []string) error {
	f := flag.NewFlagSet("overload child", flag.ContinueOnError)
	listen, to := f.String("listen", "", "address"), f.String("to", "", "address behind")
	name := f.String("limiter", "", "limiter")
	if len(args) == 0 {
		return trimtab.Invalidf("child: want a part")
	}
	if err := f.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case childSpin:
		for range runtime.NumCPU() {
			go func() {
				for x := uint64(1); ; x = x*6364136223846793005 + 1 {
				}
			}()
		}
		select {}
	case childSQL:
		return serve(*listen, sqlService{rig.NewSessions(*to, sqlSessions)})
	case childProxy:
		by, ok := limiter.New(*name)
		if !ok && *name != rowPlain {
			return trimtab.Invalidf("limiter %.40q: unknown", *name)
		}
		return serve(*listen, newProxy(*to, by))
	}
	return trimtab.Invalidf("child %.40q: unknown", args[0])
}

// serve answers HTTP until the process is told to end.
func serve(address string, h http.Handler) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s := &http.Server{Addr: address, Handler: h}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// sqlSessions is how many sessions the HTTP service has with PgBouncer: so many that requests
// wait in the pooler, and not before it.
const sqlSessions = 2000

// sqlService answers each request with a query of as many hundred rows as it says.
type sqlService struct{ sessions *rig.Sessions }

func (s sqlService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	work, err := strconv.Atoi(r.FormValue("work"))
	if err == nil {
		// A client that goes away takes its query out of the queue.
		err = s.sessions.Sum(r.Context(), 100*work)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprintln(w, "done")
}

// proxy is a reverse proxy with a limiter.
type proxy struct {
	to    *httputil.ReverseProxy
	begin time.Time
	under atomic.Int64

	mu sync.Mutex
	by limiter.Limiter // nil: there is none
}

func newProxy(address string, by limiter.Limiter) *proxy {
	to := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: address}) },
		Transport:    &http.Transport{MaxIdleConnsPerHost: inFlight, DisableCompression: true},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	return &proxy{to: to, by: by, begin: time.Now()}
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	under := p.under.Add(1)
	defer p.under.Add(-1)
	if p.by == nil {
		p.to.ServeHTTP(w, r)
		return
	}
	p.mu.Lock()
	limit := p.by.Limit()
	p.mu.Unlock()
	if under > int64(limit) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many requests are under way", http.StatusServiceUnavailable)
		return
	}
	s := limiter.Sample{From: time.Since(p.begin), Under: int(under)}
	p.to.ServeHTTP(w, r)
	if r.Context().Err() != nil {
		return // its client gave up: both leave such a request out
	}
	s.To = time.Since(p.begin)
	p.mu.Lock()
	p.by.Learn(s)
	p.mu.Unlock()
}
