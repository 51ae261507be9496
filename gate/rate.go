package gate

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/trimtab/trimtab/planner/admission"
)

// RateDocument is the answer to /v1/rate and /v1/rate/CLASS.
type RateDocument struct {
	// Rate is the rate that was set, in requests admitted per second; null: none.
	Rate *float64 `json:"rate"`
	// InForce is the rate as the gate has corrected it; null: none.
	InForce *float64 `json:"in_force"`
	// Exact: the gate does not correct it.
	Exact bool `json:"exact"`
	// LeaseLeft is the time until the rate expires, in milliseconds.
	LeaseLeft int64 `json:"lease_left_ms"`
}

// rateChange is the body of PUT /v1/rate.
type rateChange struct {
	Rate  float64 `json:"rate"`
	Exact bool    `json:"exact"`
	Lease int64   `json:"lease_ms"`
}

func rateAllowed(v float64) bool { return v >= minRate && v <= maxRate }

// lease converts the duration of a lease, in milliseconds, into the time at which it ends.
func lease(now time.Duration, ms int64) (until time.Duration, err error) {
	if ms < 1 || ms > maxLease.Milliseconds() {
		return 0, fmt.Errorf("lease_ms is %d: not between 1 and %d", ms, maxLease.Milliseconds())
	}
	return now + time.Duration(ms)*time.Millisecond, nil
}

// rate answers /v1/rate, for all requests or for one class: it returns, sets or removes the rate. It is
// apart from the envelope of /v1/limit, so that two programs, or two knobs of one, need not know of each
// other: of all rates the lowest holds.
func (g *Gate) rate(w http.ResponseWriter, r *http.Request) {
	class := admission.All
	if name := r.PathValue("class"); name != "" {
		if class = slices.Index(g.config.classes.names, name); class < 0 {
			plain(w, http.StatusNotFound, fmt.Sprintf("no class %.64q: the gate has %q", name, g.config.classes.names))
			return
		}
	}
	switch r.Method {
	case http.MethodGet:
	case http.MethodDelete:
		g.mu.Lock()
		g.controller.SetRate(g.now(), class, admission.Rate{})
		g.mu.Unlock()
	case http.MethodPut:
		var c rateChange
		if err := decode(w, r, &c); err != nil {
			plain(w, http.StatusBadRequest, "read the body: "+err.Error())
			return
		}
		if err := g.setRate(class, c); err != nil {
			plain(w, http.StatusBadRequest, err.Error())
			return
		}
	default:
		w.Header().Set("Allow", "GET, PUT, DELETE")
		plain(w, http.StatusMethodNotAllowed, "only GET, PUT and DELETE")
		return
	}
	answerJSON(w, g.rateDocument(class))
}

// setRate sets the rate of a class, or of all requests.
func (g *Gate) setRate(class int, c rateChange) error {
	if !rateAllowed(c.Rate) {
		return fmt.Errorf("rate is %v: not between %v and %v", c.Rate, minRate, maxRate)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	until, err := lease(now, c.Lease)
	if err == nil {
		g.controller.SetRate(now, class, admission.Rate{PerSecond: c.Rate, Exact: c.Exact, Until: until})
	}
	return err
}

// rateDocument returns the rate of a class, or of all requests.
func (g *Gate) rateDocument(class int) RateDocument {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	set, inForce, ok := g.controller.Rate(now, class)
	if !ok {
		return RateDocument{}
	}
	return RateDocument{Rate: &set.PerSecond, InForce: &inForce, Exact: set.Exact, LeaseLeft: (set.Until - now).Milliseconds()}
}
