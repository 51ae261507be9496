package alertmanager

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/trimtab/trimtab"
)

// Receiver answers the webhook; it is an http.Handler, safe for concurrent
// use, and needs no Close.
type Receiver struct {
	config Config
	index  index
	seen   seen
	again  repeats
	budget budget
	slots  chan struct{}
}

// Open returns a receiver. The error says what is wrong with the configuration, such as a token
// file that does not exist.
func Open(c Config) (*Receiver, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("open alertmanager receiver: %w", err)
	}
	return &Receiver{config: c, index: newIndex(c.Workloads), budget: budget{most: int64(c.HeldBytes)}, slots: make(chan struct{}, c.Requests)}, nil
}

// Summary is the answer to an accepted webhook: the number of alerts, and what was done with them.
// An alert that concerns several workloads counts once for each.
type Summary struct {
	Alerts    int    `json:"alerts"`
	Published int    `json:"published"`
	Repeated  int    `json:"repeated"`
	Unmatched int    `json:"unmatched"`
	Malformed int    `json:"malformed"`
	Truncated uint32 `json:"truncated"`
}

// ServeHTTP handles one webhook. It is counted before it is answered, so that a sender that has
// its answer finds it in the metrics.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	began := time.Now()
	s, err := r.serve(w, req)
	counted := func(result string) {
		r.config.Metrics.Counter("trimtab_collector_webhook_requests_total", result).Inc()
		r.config.Metrics.Histogram("trimtab_collector_webhook_seconds").Observe(time.Since(began).Seconds())
	}
	if err == nil {
		r.count(s)
		counted("ok")
		writeJSON(w, http.StatusOK, s)
		return
	}
	f := refusal{http.StatusInternalServerError, "error", err.Error()}
	errors.As(err, &f)
	counted(f.result)
	refuse(w, f)
	r.config.Logger.Debug("alertmanager webhook refused", "code", f.code, "why", f.text)
}

// serve checks from the cheapest to the dearest; nothing of a body is read
// before the token was seen.
func (r *Receiver) serve(w http.ResponseWriter, req *http.Request) (Summary, error) {
	if req.Method != http.MethodPost && req.Method != http.MethodPut { // Grafana's contact points have both
		w.Header().Set("Allow", "POST, PUT")
		return Summary{}, refusal{http.StatusMethodNotAllowed, "method", "use POST or PUT"}
	}
	if f, ok := r.allowed(req); !ok {
		return Summary{}, f
	}
	if kind, _, err := mime.ParseMediaType(req.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		return Summary{}, refusal{http.StatusUnsupportedMediaType, "content_type", "Content-Type must be application/json"}
	}
	if e := req.Header.Get("Content-Encoding"); e != "" && e != "identity" {
		return Summary{}, refusal{http.StatusUnsupportedMediaType, "content_type", "Content-Encoding is not supported"}
	}
	body, err := r.budget.read(w, req, r.config.ReadTimeout)
	if err != nil {
		return Summary{}, err
	}
	defer r.budget.free(body)
	ctx, cancel := context.WithTimeout(req.Context(), Deadline)
	defer cancel()
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	default:
		return Summary{}, refusal{http.StatusServiceUnavailable, "overloaded", "too many requests at a time"}
	}
	return r.accept(ctx, body)
}

// accept publishes the alerts that concern a workload.
func (r *Receiver) accept(ctx context.Context, body []byte) (Summary, error) {
	var s Summary
	var news []*trimtab.Alert
	now := time.Now()
	var said [sha256.Size]byte
	m, err := decode(body, func(group string, a *received) {
		add(&said, a)
		names := r.index.concerned(a.Labels)
		if len(names) == 0 {
			s.Unmatched++
		}
		for _, name := range names[:min(len(names), maxAlerts+1-len(news))] {
			news = append(news, a.alert(name, group, now))
		}
	})
	if err == nil && len(news) > maxAlerts {
		err = trimtab.Invalidf("read webhook: the alerts concern workloads more than %d times", maxAlerts)
	}
	if err != nil {
		return s, refusal{http.StatusBadRequest, "malformed", err.Error()}
	}
	if wait := r.again.heard(m.group, said, now); wait > 0 {
		for _, a := range news {
			if a.Firing && a.Until.IsZero() {
				a.Until = now.Add(wait)
			}
		}
	}
	s.Alerts, s.Malformed, s.Truncated = m.alerts, m.malformed, m.truncated
	if m.truncated > 0 {
		r.config.Logger.Warn("alertmanager left alerts out of its webhook: raise max_alerts there", "group", m.group, "left_out", m.truncated)
	}
	return s, r.publish(ctx, news, &s)
}

// publishers is how many alerts of one request are published concurrently.
const publishers = 16

// publish publishes all alerts, or returns an error by which the sender retries: alerts that were
// published by then are remembered and not sent twice.
func (r *Receiver) publish(ctx context.Context, news []*trimtab.Alert, s *Summary) error {
	var published, repeated, malformed atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	next := make(chan *trimtab.Alert)
	for range min(publishers, len(news)) {
		wg.Go(func() {
			for a := range next {
				again, err := r.seen.once(ctx, identity{a.Fingerprint, a.Workload, a.Started}, a.Time, a.Firing, func() error { return r.config.Bus.Publish(ctx, a) })
				switch {
				case again && err == nil:
					repeated.Add(1)
				case errors.Is(err, trimtab.ErrInvalid):
					malformed.Add(1)
				case err != nil:
					failed.CompareAndSwap(nil, &err)
				default:
					published.Add(1)
				}
			}
		})
	}
	for _, a := range news {
		if failed.Load() != nil {
			break
		}
		next <- a
	}
	close(next)
	wg.Wait()
	s.Published, s.Repeated, s.Malformed = int(published.Load()), int(repeated.Load()), s.Malformed+int(malformed.Load())
	r.counted("published", s.Published)
	if err := failed.Load(); err != nil {
		r.config.Logger.Warn("alertmanager webhook: the bus does not take alerts", "err", *err)
		return refusal{http.StatusServiceUnavailable, "overloaded", "the bus does not take alerts now"}
	}
	return nil
}

// count counts an accepted request; published alerts are counted as they are published.
func (r *Receiver) count(s Summary) {
	r.counted("repeated", s.Repeated)
	r.counted("unmatched", s.Unmatched)
	r.counted("malformed", s.Malformed)
	r.counted("truncated", int(s.Truncated))
}

func (r *Receiver) counted(result string, n int) {
	if n > 0 {
		r.config.Metrics.Counter("trimtab_collector_alerts_total", result).Add(float64(n))
	}
}

// linger is how long the receiver reads the rest of a refused body, so that the sender reads the
// answer before the connection ends.
const linger = 500 * time.Millisecond

// refuse answers and closes the connection, so that a refused sender occupies nothing.
func refuse(w http.ResponseWriter, f refusal) {
	// On an error the writer has no deadlines; then the server's own applies.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(linger))
	switch f.code {
	case http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Bearer realm="trimtab"`)
	}
	w.Header().Set("Connection", "close")
	writeJSON(w, f.code, map[string]string{"error": f.text})
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "trimtab: print answer", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// A client that went away needs no answer.
	_, _ = w.Write(append(b, '\n'))
}
