// Command notifier sends an alert that fires, and then that it is over, with the
// webhook notifier of Alertmanager and its template data: notifier URL TOKENFILE.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"time"

	"github.com/prometheus/alertmanager/alert"
	amconfig "github.com/prometheus/alertmanager/config/common"
	"github.com/prometheus/alertmanager/notify"
	"github.com/prometheus/alertmanager/notify/webhook"
	"github.com/prometheus/alertmanager/template"
	"github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: notifier URL TOKENFILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "notifier:", err)
		os.Exit(1)
	}
}

func run(to, token string) error {
	words, err := template.FromGlobs(nil)
	if err != nil {
		return fmt.Errorf("read templates: %w", err)
	}
	words.ExternalURL = &url.URL{Scheme: "http", Host: "alertmanager.example"}
	n, err := webhook.New(&webhook.WebhookConfig{
		URL:        amconfig.SecretTemplateURL(to),
		HTTPConfig: &config.HTTPClientConfig{Authorization: &config.Authorization{Type: "Bearer", CredentialsFile: token}},
	}, words, slog.Default())
	if err != nil {
		return fmt.Errorf("open notifier: %w", err)
	}
	labels := model.LabelSet{"alertname": "WebSlow", "service": "web"}
	ctx := notify.WithGroupKey(context.Background(), `{}:{alertname="WebSlow"}`)
	ctx = notify.WithGroupLabels(notify.WithReceiverName(ctx, "trimtab"), model.LabelSet{"alertname": "WebSlow"})
	began := time.Now()
	for _, ended := range []time.Time{{}, began.Add(time.Second)} {
		if !ended.IsZero() {
			time.Sleep(time.Until(ended))
		}
		a := alert.New(model.Alert{Labels: labels, StartsAt: began, EndsAt: ended}, time.Now(), false)
		if err := n.Notify(notify.WithNow(ctx, time.Now()), a).Err(); err != nil {
			return fmt.Errorf("notify: %w", err)
		}
	}
	return nil
}
