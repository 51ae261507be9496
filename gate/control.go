package gate

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/trimtab/trimtab/planner/admission"
)

// Document is the answer to GET /v1/limit.
type Document struct {
	// Limit is the number of requests that may be in service.
	Limit int `json:"limit"`
	// Rate is the largest number of requests admitted per second, whatever bounds it; null: nothing
	// does.
	Rate     *float64  `json:"rate"`
	InFlight int       `json:"in_flight"`
	Queued   int       `json:"queued"`
	Envelope *Envelope `json:"envelope"`
	Shed     uint64    `json:"shed_total"`
	Answered uint64    `json:"answered_total"`
	InTime   uint64    `json:"in_time_total"`
	Classes  []Class   `json:"classes"`
}

// Envelope is the range to which another program confines the limit until the lease expires.
type Envelope struct {
	// Min and Max are the ends of the range in requests; null: no bound on that side.
	Min  *int     `json:"min"`
	Max  *int     `json:"max"`
	Rate *float64 `json:"rate"`
	// LeaseLeft is the time until the envelope expires, in milliseconds.
	LeaseLeft int64 `json:"lease_left_ms"`
}

// Class counts the requests of one class by outcome.
type Class struct {
	Name     string `json:"name"`
	Shed     uint64 `json:"shed_total"`
	Answered uint64 `json:"answered_total"`
	InTime   uint64 `json:"in_time_total"`
	// Brown counts the requests that got the brownout header.
	Brown uint64 `json:"brownout_total,omitempty"`
}

// change is the body of PUT /v1/limit.
type change struct {
	Min   *int     `json:"min"`
	Max   *int     `json:"max"`
	Rate  *float64 `json:"rate"`
	Lease int64    `json:"lease_ms"`
}

// The allowed values in an envelope.
const (
	maxLimit = 1 << 20
	maxLease = time.Hour
	// A rate near 0 would stop the service.
	minRate, maxRate = 0.001, 1e9
)

// envelope validates a change and converts it into an envelope.
func (c *change) envelope(now time.Duration) (e admission.Envelope, err error) {
	for _, n := range []*int{c.Min, c.Max} {
		if n != nil && (*n < 1 || *n > maxLimit) {
			return e, fmt.Errorf("min or max is %d: not between 1 and %d", *n, maxLimit)
		}
	}
	if c.Min != nil && c.Max != nil && *c.Min > *c.Max {
		return e, fmt.Errorf("min is %d, above max %d", *c.Min, *c.Max)
	}
	if c.Rate != nil && !rateAllowed(*c.Rate) {
		return e, fmt.Errorf("rate is %v: not between %v and %v", *c.Rate, minRate, maxRate)
	}
	if e.Until, err = lease(now, c.Lease); err != nil {
		return e, err
	}
	if c.Min != nil {
		e.Min = *c.Min
	}
	if c.Max != nil {
		e.Max = *c.Max
	}
	if c.Rate != nil {
		e.Rate = *c.Rate
	}
	return e, nil
}

// document returns the gate's state as the control API sends it.
func (g *Gate) document() *Document {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	s := g.controller.State(now)
	d := &Document{Limit: s.Limit, InFlight: s.InService, Queued: s.Queued, Shed: s.Refused, Answered: s.Answered, InTime: s.InTime}
	if e, ok := g.controller.Envelope(now); ok {
		d.Envelope = &Envelope{Min: some(e.Min), Max: some(e.Max), Rate: some(e.Rate), LeaseLeft: (e.Until - now).Milliseconds()}
	}
	d.Rate = some(s.Rate)
	for i, n := range g.classed {
		d.Classes = append(d.Classes, Class{Name: g.config.classes.names[i], Shed: n.shed, Answered: n.answered, InTime: n.inTime, Brown: n.brown})
	}
	return d
}

// some returns a pointer to v, or nil if v is 0.
func some[N int | float64](v N) *N {
	if v == 0 {
		return nil
	}
	return &v
}

// control returns the handler of metrics and the control API. A web page of another site cannot use
// it: over TCP the handler accepts only requests whose Host header names the loopback interface.
func (g *Gate) control() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(g.metrics, promhttp.HandlerOpts{}))
	mux.HandleFunc("GET /v1/limit", func(w http.ResponseWriter, _ *http.Request) { g.tell(w) })
	mux.HandleFunc("PUT /v1/limit", func(w http.ResponseWriter, r *http.Request) {
		var c change
		err := decode(w, r, &c)
		g.mu.Lock()
		now := g.now()
		e, bad := c.envelope(now)
		if err == nil && bad == nil {
			g.controller.SetEnvelope(now, e)
		}
		g.mu.Unlock()
		switch {
		case err != nil:
			plain(w, http.StatusBadRequest, "read the body: "+err.Error())
		case bad != nil:
			plain(w, http.StatusBadRequest, bad.Error())
		default:
			g.tell(w)
		}
	})
	mux.HandleFunc("DELETE /v1/limit", func(w http.ResponseWriter, _ *http.Request) {
		g.mu.Lock()
		g.controller.SetEnvelope(g.now(), admission.Envelope{})
		g.mu.Unlock()
		g.tell(w)
	})
	mux.HandleFunc("/v1/rate", g.rate)
	mux.HandleFunc("/v1/rate/{class}", g.rate)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if g.admin.Addr().Network() != "unix" && !local(r.Host) {
			plain(w, http.StatusForbidden, "ask by address: the name in Host is not one of the loopback interface")
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// local reports whether a Host header names the loopback interface.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// decode reads the body of a request, which is one JSON document.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	body := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096))
	body.DisallowUnknownFields()
	err := body.Decode(into)
	if err == nil && body.Decode(&struct{}{}) != io.EOF {
		err = fmt.Errorf("more than one document")
	}
	return err
}

func (g *Gate) tell(w http.ResponseWriter) { answerJSON(w, g.document()) }

func answerJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v)
}
