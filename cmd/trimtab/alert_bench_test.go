package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/collector/alertmanager"
	"github.com/trimtab/trimtab/internal/site"
)

// BenchmarkWebhookAlertToLimit measures what BenchmarkAlertToLimit does, from
// the POST of a webhook of Alertmanager's form on: over HTTP, with its token,
// to the CPU limit as the file says it afterwards.
func BenchmarkWebhookAlertToLimit(b *testing.B) {
	for range b.N {
		took, answered := hooked(b)
		at := func(of []time.Duration, q float64) float64 {
			slices.Sort(of)
			return 1000 * of[int(q*float64(len(of)-1))].Seconds()
		}
		b.ReportMetric(at(took, 0.5), "p50-ms")
		b.ReportMetric(at(took, 0.99), "p99-ms")
		b.ReportMetric(at(answered, 0.99), "answer-p99-ms")
		b.ReportMetric(float64(len(took)), "groups")
		b.Logf("webhook POST -> plan -> CPU limit written and read back: p50 %.1f ms, p99 %.1f ms, worst %.1f ms over %d groups (asked: p99 <= 100 ms); 2xx after p99 %.1f ms, worst %.1f ms (asked: <= 500 ms)",
			at(took, 0.5), at(took, 0.99), at(took, 1), len(took), at(answered, 0.99), at(answered, 1))
	}
}

func hooked(b *testing.B) (took, answered []time.Duration) {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	q := benchQuotas(b)
	cfg := alertConfig(b, q.root)
	cfg.Guard.ReversalWindow = 0
	token, err := os.ReadFile(cfg.Alertmanager.TokenFile)
	if err != nil {
		b.Fatal(err)
	}
	s, err := site.Open(ctx, cfg, site.Options{Logger: slog.New(slog.DiscardHandler), AlertGap: time.Nanosecond})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	outcomes := make(chan *trimtab.Outcome, 64)
	stop, err := s.Bus().Subscribe(ctx, bus.Subscription{Kind: trimtab.KindOutcome, Handle: func(_ context.Context, d bus.Delivery) error {
		outcomes <- d.Value.(*trimtab.Outcome)
		return nil
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer stop()
	for i := 0; len(took) < reactGroups; i++ {
		// A swing takes three steps of B units, so it is told every third time.
		if i%3 == 0 {
			publishSwing(ctx, b, s, i/3)
		}
		for len(outcomes) > 0 {
			<-outcomes
		}
		began := time.Now()
		postAlert(ctx, b, s, i, strings.TrimSpace(string(token)))
		answered = append(answered, time.Since(began))
		if awaitRead(ctx, b, q, outcomes) {
			took = append(took, time.Since(began))
		}
		if i > 20*reactGroups {
			b.Fatalf("only %d of %d alerts moved a limit", len(took), i)
		}
	}
	return took, answered
}

// postAlert sends one webhook of a group of its own.
func postAlert(ctx context.Context, b *testing.B, s *site.Site, i int, token string) {
	b.Helper()
	body := fmt.Sprintf(`{"receiver":"trimtab","status":"firing","version":"4","groupKey":"{}:{n=\"%d\"}","truncatedAlerts":0,"alerts":[{"status":"firing",
		"labels":{"alertname":"Slow","workload":"hungry"},"annotations":{"summary":"p99 is 9s"},"startsAt":"2026-01-02T03:04:05.678Z","endsAt":"0001-01-01T00:00:00Z","fingerprint":"%016x"}]}`, i, i)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+s.WebAddress()+alertmanager.Path, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		b.Fatalf("%s: %s", resp.Status, text)
	}
}

// awaitRead returns whether the round ended with a grow whose file says what
// was written.
func awaitRead(ctx context.Context, b *testing.B, q quotas, outcomes <-chan *trimtab.Outcome) bool {
	quiet := time.NewTimer(300 * time.Millisecond)
	defer quiet.Stop()
	for {
		select {
		case o := <-outcomes:
			for _, r := range o.Results {
				if r.Status != trimtab.Written || !r.Before.Less(r.Found) {
					continue
				}
				if got := q.read(r.Workload); math.Abs(got-r.Found.Value) > 1e-3 {
					b.Fatalf("%s has %v, the outcome says %v", r.Workload, got, r.Found)
				}
				return true
			}
		case <-quiet.C:
			return false
		case <-ctx.Done():
			b.Fatal(ctx.Err())
		}
	}
}
