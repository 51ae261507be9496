package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// maxBody bounds what a request may carry: commands are small.
const maxBody = 64 << 10

// Options are what the handler needs from the process around it.
type Options struct {
	// Metrics serves /metrics.
	Metrics http.Handler
	// Ready returns what is not ready, by part, with the reason; empty means
	// ready.
	Ready func() map[string]string
	// Reload reads the configuration again; an error leaves the old one.
	Reload func(context.Context) error
	// Send gives a command to the bus.
	Send func(context.Context, *trimtab.Command) error
	// Config returns the configuration in force, as it may be shown.
	Config func() []byte
	// Debug prints texts without secrets for people who look for a fault, by
	// name: log, goroutines.
	Debug map[string]func(io.Writer) error
	// Mount are further handlers by path. They check who asks themselves, so
	// that any Host reaches them.
	Mount map[string]http.Handler
	// Hosts are accepted as Host besides loopback names and addresses; "*"
	// accepts any, for a site whose proxy checks it.
	Hosts []string
}

// Handler serves the page, the API, metrics and health.
func Handler(v *View, o Options) http.Handler {
	h := &handler{view: v, options: o, pages: pages()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", h.page)
	mux.HandleFunc("GET /workloads/{name}", h.workload)
	mux.HandleFunc("GET /style.css", style)
	mux.HandleFunc("GET /api/v1/status", h.status)
	mux.HandleFunc("GET /api/v1/workloads/{name}", h.explain)
	mux.HandleFunc("GET /api/v1/plan", h.plan)
	mux.HandleFunc("GET /api/v1/applied/{plan}", h.applied)
	mux.HandleFunc("GET /api/v1/diff", h.diff)
	mux.HandleFunc("GET /api/v1/config", h.config)
	mux.HandleFunc("GET /api/v1/debug/{name}", h.debug)
	mux.HandleFunc("POST /api/v1/commands", h.command)
	mux.HandleFunc("POST /-/reload", h.reload)
	mux.HandleFunc("GET /-/healthy", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "healthy") })
	mux.HandleFunc("GET /-/ready", h.ready)
	if o.Metrics != nil {
		mux.Handle("GET /metrics", o.Metrics)
	}
	for path, mounted := range o.Mount {
		mux.Handle(path, mounted)
	}
	return h.guarded(mux)
}

type handler struct {
	view    *View
	options Options
	pages   *template.Template
}

// guarded sets the headers of every answer and refuses foreign Host names, so
// that a page elsewhere cannot reach the API by pointing its name here.
func (h *handler) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		head := w.Header()
		head.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'")
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cache-Control", "no-store")
		if h.options.Mount[r.URL.Path] == nil && !h.hostAllowed(r.Host) {
			http.Error(w, "trimtab: Host is not allowed; name it with --web.allowed-host", http.StatusForbidden)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead && foreignOrigin(r) {
			http.Error(w, "trimtab: request from another origin", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (h *handler) hostAllowed(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	if ip := net.ParseIP(host); ip != nil && ip.IsLoopback() {
		return true
	}
	return strings.EqualFold(host, "localhost") || slices.Contains(h.options.Hosts, host) || slices.Contains(h.options.Hosts, "*")
}

// foreignOrigin tells a browser's cross-site request. Programs send neither header.
func foreignOrigin(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return true
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return false
	}
	u, err := url.Parse(origin)
	return err != nil || u.Host != r.Host
}

func (h *handler) status(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, h.view.Status(time.Now()))
}

func (h *handler) explain(w http.ResponseWriter, r *http.Request) {
	history, err := strconv.Atoi(r.URL.Query().Get("history"))
	if err != nil || history < 0 {
		history = 0
	}
	e, ok := h.view.Explain(r.PathValue("name"), history, time.Now())
	if !ok {
		problem(w, http.StatusNotFound, fmt.Errorf("find workload %q: not configured and not seen", r.PathValue("name")))
		return
	}
	writeJSON(w, http.StatusOK, e)
}

func (h *handler) plan(w http.ResponseWriter, _ *http.Request) {
	p := h.view.LastPlan()
	if p == nil {
		problem(w, http.StatusNotFound, errors.New("find plan: none was made yet"))
		return
	}
	writeJSON(w, http.StatusOK, p)
}

func (h *handler) applied(w http.ResponseWriter, r *http.Request) {
	p := h.view.Applied(r.PathValue("plan"))
	if p == nil {
		problem(w, http.StatusNotFound, fmt.Errorf("find answer to apply %s: none yet", r.PathValue("plan")))
		return
	}
	writeJSON(w, http.StatusOK, p)
}

// Difference is one knob's current value against where the solver wants it.
type Difference struct {
	Workload string         `json:"workload"`
	Resource string         `json:"resource"`
	Mode     trimtab.Mode   `json:"mode"`
	Now      trimtab.Amount `json:"now"`
	Next     trimtab.Amount `json:"next"`
	Target   *float64       `json:"target,omitempty"`
	Binding  string         `json:"binding,omitempty"`
}

// Differences returns the workloads whose knob is not where the last decision
// wanted it, in order of name.
func (v *View) Differences() []Difference {
	v.mu.Lock()
	defer v.mu.Unlock()
	out := []Difference{}
	for name, s := range v.workloads {
		n := len(s.decisions)
		if n == 0 || s.held == nil {
			continue
		}
		a := s.decisions[n-1].Action
		wanted := a.Set
		if t := a.Why.Target; t != nil {
			wanted = trimtab.Units(*t)
		}
		if s.held.Now.Equal(wanted, 1e-6) {
			continue
		}
		out = append(out, Difference{Workload: name, Resource: a.Resource, Mode: a.Mode, Now: s.held.Now, Next: a.Set, Target: a.Why.Target, Binding: a.Why.Binding})
	}
	slices.SortFunc(out, func(a, b Difference) int { return strings.Compare(a.Workload, b.Workload) })
	return out
}

func (h *handler) diff(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, h.view.Differences())
}

func (h *handler) command(w http.ResponseWriter, r *http.Request) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		problem(w, http.StatusUnsupportedMediaType, errors.New("read command: Content-Type must be application/json"))
		return
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		problem(w, http.StatusRequestEntityTooLarge, fmt.Errorf("read command: %w", err))
		return
	}
	c := new(trimtab.Command)
	if err := json.Unmarshal(b, c); err != nil {
		problem(w, http.StatusBadRequest, fmt.Errorf("read command: %w", err))
		return
	}
	c.Time = time.Now()
	if c.Pool == "" {
		c.Pool = h.view.pool()
	}
	if err := c.Validate(); err != nil {
		problem(w, http.StatusBadRequest, err)
		return
	}
	if err := h.options.Send(r.Context(), c); err != nil {
		problem(w, http.StatusServiceUnavailable, fmt.Errorf("send %s: %w", c.Verb, err))
		return
	}
	writeJSON(w, http.StatusAccepted, c)
}

func (v *View) pool() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.config.Pool
}

func (h *handler) reload(w http.ResponseWriter, r *http.Request) {
	if h.options.Reload == nil {
		problem(w, http.StatusNotImplemented, errors.New("reload: started without a configuration file"))
		return
	}
	if err := h.options.Reload(r.Context()); err != nil {
		problem(w, http.StatusBadRequest, fmt.Errorf("reload: the old configuration stays: %w", err))
		return
	}
	fmt.Fprintln(w, "reloaded")
}

func (h *handler) ready(w http.ResponseWriter, _ *http.Request) {
	if h.options.Ready != nil {
		if bad := h.options.Ready(); len(bad) > 0 {
			writeJSON(w, http.StatusServiceUnavailable, bad)
			return
		}
	}
	fmt.Fprintln(w, "ready")
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, "trimtab: print answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// A client that went away is not our error.
	_, _ = w.Write(append(b, '\n'))
}

func problem(w http.ResponseWriter, code int, err error) {
	writeJSON(w, code, map[string]string{"error": err.Error()})
}
