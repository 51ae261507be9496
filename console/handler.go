package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/klauspost/compress/gzip"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/speculation"
)

// Options has the functions and values that the process gives the handler.
type Options struct {
	// Metrics serves /metrics.
	Metrics http.Handler
	// Ready returns the parts that are not ready, with the reasons; empty: all are ready.
	Ready func() map[string]string
	// Reload reads the configuration again; an error leaves the old one.
	Reload func(context.Context) error
	// Send gives a command to the bus.
	Send func(context.Context, *trimtab.Command) error
	// Request gives a request on speculative jobs to the bus; nil: it cannot.
	Request func(context.Context, *speculation.JobRequest) error
	// Config returns the configuration in force, as it may be shown.
	Config func() []byte
	// Debug are texts without secrets for fault finding, by name: log, goroutines.
	Debug map[string]func(io.Writer) error
	// Mount are further handlers by path. They check their callers themselves; any Host header
	// reaches them.
	Mount map[string]http.Handler
	// Stages returns the state of every part of the process; nil: only what Ready returns is known.
	Stages func() []view.StageState
	// Bus is asked for queue lengths and dead letters; nil: these are unknown.
	Bus bus.Bus
	// Leader returns the leader of a pool and its term; nil: unknown.
	Leader func(ctx context.Context, pool string) (holder string, epoch uint64, err error)
	// Jobs returns the best-effort jobs of this process's host, or nil while it has no such part;
	// nil: it never has.
	Jobs func() Jobs
	// WhatIf answers what-if questions; nil: this process has no answer.
	WhatIf WhatIf
	// Done ends the streams of events, so that a server that stops need not
	// wait for them; nil: never.
	Done <-chan struct{}
	// Hosts are accepted in the header Host besides loopback names and addresses; "*" accepts
	// any, for a site whose proxy checks it.
	Hosts []string
}

// Handler serves the pages, the API, metrics and health.
func Handler(v *view.Model, o Options) http.Handler {
	h := &handler{view: v, options: o, asking: make(asking, maxAsking)}
	plain := http.NewServeMux()
	h.routePages(plain)
	h.routeAPI(plain)
	mux := http.NewServeMux()
	// A stream of events is not compressed; metrics compress themselves.
	mux.HandleFunc("GET /api/v1/events", h.events)
	if o.Metrics != nil {
		mux.Handle("GET /metrics", o.Metrics)
	}
	mux.Handle("/", compressed(h.flight.bounded(plain)))
	for path, mounted := range o.Mount {
		mux.Handle(path, mounted)
	}
	return h.guarded(mux)
}

// Plain serves health, reload, metrics and mounted handlers, for a process without a view.
func Plain(o Options) http.Handler {
	h := &handler{options: o}
	mux := http.NewServeMux()
	h.routeHealth(mux)
	h.routeJobs(mux)
	if o.Metrics != nil {
		mux.Handle("GET /metrics", compressed(o.Metrics))
	}
	for path, mounted := range o.Mount {
		mux.Handle(path, mounted)
	}
	return h.guarded(mux)
}

func (h *handler) routePages(mux *http.ServeMux) {
	mountPages(mux, h)
	h.routeHealth(mux)
}

func (h *handler) routeHealth(mux *http.ServeMux) {
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	mux.HandleFunc("GET /-/ready", h.ready)
	mux.HandleFunc("POST /-/reload", h.reload)
}

func (h *handler) routeAPI(mux *http.ServeMux) {
	for path, a := range map[string]reply{
		"GET /api/v1/status": h.status, "GET /api/v1/hosts": h.hosts, "GET /api/v1/hosts/{name}": h.host,
		"GET /api/v1/workloads/{name}": h.explain, "GET /api/v1/workloads/{name}/history": h.history,
		"GET /api/v1/workloads/{name}/decisions": h.decisions, "GET /api/v1/workloads/{name}/patch": h.patch,
		"GET /api/v1/pipeline": h.pipeline, "GET /api/v1/fairness": h.fairness, "GET /api/v1/what-if": h.whatIf, "GET /api/v1/report": h.report,
		"GET /api/v1/plan": h.plan, "GET /api/v1/applied/{plan}": h.applied, "GET /api/v1/diff": h.diff, "POST /api/v1/commands": h.command,
		"GET /api/v1/colocation": h.colocations, "GET /api/v1/colocation/{name}": h.colocation,
	} {
		mux.Handle(path, a)
	}
	mux.HandleFunc("GET /api/v1/config", h.config)
	mux.HandleFunc("GET /api/v1/debug/{name}", h.debug)
	h.routeJobs(mux)
	batch{h.view, h.options.Request}.route(mux)
}

// compressed gzips large answers for clients that accept it, at the fastest level: the metrics of
// 2,000 workloads are 3 MiB.
func compressed(next http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(gzhttp.CompressionLevel(gzip.BestSpeed))
	if err != nil {
		// Only invalid settings give an error, and these are valid.
		return next
	}
	return wrap(next)
}

type handler struct {
	view    *view.Model
	options Options
	asked   asked
	streams streams
	flight  flight
	asking  asking
}

// contentPolicy lets a page load its own files and nothing else: no script and
// no style inside the page, no other address.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// guarded sets the headers of every answer and refuses foreign Host names, so
// that a page elsewhere cannot reach the API by pointing its name here.
func (h *handler) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", contentPolicy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cache-Control", "no-store")
		if h.options.Mount[r.URL.Path] == nil && !h.options.allows(r.Host) {
			problem(w, http.StatusForbidden, errors.New("trimtab: Host is not allowed; name it with --web.allowed-host"))
			return
		}
		if foreign(r) {
			problem(w, http.StatusForbidden, errors.New("trimtab: request from another origin"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// allows reports whether a request may name this host.
func (o *Options) allows(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return true
	}
	return strings.EqualFold(host, "localhost") || slices.Contains(o.Hosts, host) || slices.Contains(o.Hosts, "*")
}

// foreign reports a request from another site's page that is to be refused: any that changes
// something, and of the API also reads, which the page cannot see but could hold open. Links to
// the API are allowed.
func foreign(r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return foreignOrigin(r)
	}
	return strings.HasPrefix(r.URL.Path, "/api/") && r.Header.Get("Sec-Fetch-Mode") != "navigate" && foreignSite(r)
}

func foreignSite(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	return site != "" && site != "same-origin" && site != "none"
}

// foreignOrigin reports a browser's cross-site request. Programs send neither header.
func foreignOrigin(r *http.Request) bool {
	if foreignSite(r) {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != r.Host
}

// ready answers 503 if a part fails, with a line for each: its name, the failure, since when, and
// what to do.
func (h *handler) ready(w http.ResponseWriter, _ *http.Request) {
	bad := map[string]string{}
	if h.options.Ready != nil {
		bad = h.options.Ready()
	}
	if len(bad) == 0 {
		fmt.Fprintln(w, "ready")
		return
	}
	since := map[string]time.Time{}
	if h.options.Stages != nil {
		for _, s := range h.options.Stages() {
			since[s.Name] = s.Since
		}
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusServiceUnavailable)
	for _, name := range slices.Sorted(maps.Keys(bad)) {
		at := ""
		if t := since[name]; !t.IsZero() {
			at = " (not ready since " + t.UTC().Format("2006-01-02 15:04:05 UTC") + ")"
		}
		fmt.Fprintf(w, "%s: %s%s\n", name, strings.ReplaceAll(bad[name], "\n", "; "), at)
	}
}
