package site

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/trimtab/trimtab/collector/alertmanager"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/supervise"
)

// webhook passes requests to the alert receiver of the newest configuration: the web server
// outlives the receivers.
type webhook struct {
	receiver atomic.Pointer[alertmanager.Receiver]
}

// ServeHTTP answers 503 while there is no receiver, so that Alertmanager tries
// again.
func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if receiver := h.receiver.Load(); receiver != nil {
		receiver.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Retry-After", "1")
	http.Error(w, "trimtab: starting or stopping", http.StatusServiceUnavailable)
}

// alertPart receives Alertmanager's webhooks at a path of the web server.
func (s *stages) alertPart(cfg *config.Config) ([]supervise.Part, error) {
	c := alertmanager.Config{TokenFile: cfg.Alertmanager.TokenFile}
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		c.Workloads = append(c.Workloads, alertmanager.Workload{Name: w.Name, Labels: w.Match.Alert})
	}
	key := supervise.KeyOf(c)
	c.Bus, c.Metrics, c.Logger = s.bus, s.process.Metrics, s.process.Logger
	return []supervise.Part{{Name: "alertmanager", Key: key, Start: func(context.Context) (func() error, error) {
		r, err := alertmanager.Open(c)
		if err != nil {
			return nil, hint.Add(fmt.Errorf("receive alerts: %w", err), "alertmanager.token_file names a file that holds the token and nothing else")
		}
		s.webhook.receiver.Store(r)
		return func() error { s.webhook.receiver.Store(nil); return nil }, nil
	}}}, nil
}
