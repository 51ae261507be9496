package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/trimtab/trimtab/internal/pause"
	"github.com/trimtab/trimtab/lab/bench/rig"
)

// notifier is what sends the webhook of Alertmanager.
type notifier struct {
	Name, Version string
	// Debian is the program of a Debian package, Go a command below
	// internal/tools/interop that has the notifier as a library.
	Debian, Go string
	Core       bool
}

func notifiers() []notifier {
	return []notifier{
		{Name: "Alertmanager 0.25", Version: "0.25.0 (Debian)", Debian: "prometheus-alertmanager", Core: true},
		{Name: "Alertmanager 0.35, notifier", Version: "0.35.0, notify/webhook as a library", Go: "notifier"},
	}
}

// alerted is a row: one alert for web that fires, and then is over.
type alerted struct {
	notifier
	// Fired and Resolved say whether trimtab took the two messages.
	Fired, Resolved bool
	// Webhooks and Alerts are counted by result.
	Webhooks, Alerts map[string]float64
	Missing          error
}

func (h *home) installNotifier(ctx context.Context, n *notifier) error {
	if n.Debian != "" {
		_, err := h.program(n.Debian, "")
		return err
	}
	return h.build(ctx, n.Go)
}

func (p *player) notify(ctx context.Context, n notifier) alerted {
	o := alerted{notifier: n}
	dir, err := os.MkdirTemp("", "trimtab-interop-")
	if err != nil {
		o.Missing = fmt.Errorf("make a directory: %w", err)
		return o
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if o.Missing = p.notified(ctx, dir, &o); o.Missing != nil {
		if log, err := os.ReadFile(filepath.Join(dir, "notifier.log")); err == nil && len(log) > 0 {
			o.Missing = fmt.Errorf("%w; notifier.log: %.2000s", o.Missing, log)
		}
	}
	return o
}

func (p *player) notified(ctx context.Context, dir string, o *alerted) error {
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("a-token-of-this-try"), 0o600); err != nil {
		return fmt.Errorf("write a token: %w", err)
	}
	t, err := start(ctx, p.trimtab, dir, fmt.Sprintf("alertmanager: {token_file: %q}", token), "slo: {latency: 200ms, fraction: 0.95}\n    match: {alert: {service: web}}")
	if err != nil {
		return err
	}
	defer t.Process.Close()
	url := "http://" + t.web + "/webhook/alertmanager"
	if o.Debian == "" {
		process, err := rig.Start(rig.Program{Args: []string{p.home.binary(o.Go), url, token}, Dir: dir, Log: filepath.Join(dir, "notifier.log"), Stop: syscall.SIGTERM}, nil)
		if err != nil {
			return err
		}
		<-process.Done()
		if err := process.Err(); err != nil {
			return fmt.Errorf("notify: %w", err)
		}
		return o.finish(ctx, t, 2)
	}
	at, err := rig.FreeAddresses(1)
	if err != nil {
		return err
	}
	program, err := p.home.program(o.Debian, "")
	if err != nil {
		return err
	}
	file := filepath.Join(dir, "alertmanager.yml")
	text := fmt.Sprintf(`route: {receiver: trimtab, group_by: [alertname], group_wait: 100ms, group_interval: 1s}
receivers:
  - name: trimtab
    webhook_configs: [{url: %q, http_config: {authorization: {credentials_file: %q}}}]
`, url, token)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write the configuration of Alertmanager: %w", err)
	}
	process, err := rig.StartAt(ctx, rig.Program{Args: []string{program, "--config.file=" + file, "--storage.path=" + filepath.Join(dir, "am"), "--web.listen-address=" + at[0], "--cluster.listen-address="},
		Dir: dir, Log: filepath.Join(dir, "notifier.log"), Stop: syscall.SIGTERM}, nil, "http://"+at[0]+"/-/ready")
	if err != nil {
		return err
	}
	defer process.Close()
	now := time.Now()
	if err := post(ctx, at[0], now, time.Time{}); err != nil {
		return err
	}
	if err := o.finish(ctx, t, 1); err != nil {
		return err
	}
	if err := post(ctx, at[0], now, time.Now()); err != nil {
		return err
	}
	return o.finish(ctx, t, 2)
}

// post gives Alertmanager an alert as Prometheus does; one that has ended is over.
func post(ctx context.Context, address string, began, ended time.Time) error {
	alert := map[string]any{"labels": map[string]string{"alertname": "WebSlow", "service": "web"}, "startsAt": began}
	if !ended.IsZero() {
		alert["endsAt"] = ended
	}
	body, err := json.Marshal([]any{alert})
	if err != nil {
		return fmt.Errorf("write an alert: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address+"/api/v2/alerts", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("post an alert: %w", err)
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return fmt.Errorf("post an alert: %w", err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("post an alert: %s", answer.Status)
	}
	return nil
}

// finish waits until trimtab took so many messages, at most 20 s.
func (o *alerted) finish(ctx context.Context, t *product, messages float64) error {
	for range 100 {
		m, err := t.metrics(ctx)
		if err != nil {
			return err
		}
		o.Webhooks = m.by("trimtab_collector_webhook_requests_total", "result")
		o.Alerts = m.by("trimtab_collector_alerts_total", "result")
		o.Fired, o.Resolved = o.Webhooks["ok"] >= 1, o.Webhooks["ok"] >= 2
		if o.Webhooks["ok"] >= messages || !pause.For(ctx, 200*time.Millisecond) {
			return nil
		}
	}
	return nil // the row shows what is missing
}
