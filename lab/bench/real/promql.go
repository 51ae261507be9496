package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// promql exposes histograms as a service does, and has a Prometheus and an
// Alertmanager of its own between them and trimtab.
type promql struct {
	// Range is that of trimtab's queries.
	Range time.Duration

	counts     [3]prometheus.Histogram
	server     *http.Server
	prometheus string
	token      string
	children   []*rig.Process
}

// Scrape and rules are evaluated at this interval; an alert fires after the
// SLO was missed for so long.
const (
	scrapeEvery = 5 * time.Second
	alertAfter  = 15 * time.Second
)

func (p *promql) open(ctx context.Context, t *trial, a addresses) error {
	targets, err := p.expose(t.names())
	if err != nil {
		return err
	}
	addresses, err := rig.FreeAddresses(2)
	if err != nil {
		return err
	}
	p.prometheus, p.token = addresses[0], filepath.Join(t.dir, "alertmanager.token")
	for name, text := range map[string]string{
		p.token:                                  "secret-of-one-run\n",
		filepath.Join(t.dir, "rules.yml"):        rules(t.services, p.Range),
		filepath.Join(t.dir, "prometheus.yml"):   prometheusFile(t.names(), targets, addresses[1]),
		filepath.Join(t.dir, "alertmanager.yml"): alertmanagerFile(a.Web, p.token),
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return fmt.Errorf("write Prometheus's files: %w", err)
		}
	}
	return p.launch(ctx, t, addresses[1])
}

// launch starts Alertmanager and Prometheus.
func (p *promql) launch(ctx context.Context, t *trial, alertmanager string) error {
	for _, c := range []struct {
		name, address string
		args          []string
	}{
		{"prometheus-alertmanager", alertmanager, []string{
			"--config.file=alertmanager.yml", "--storage.path=alertmanager-data", "--web.listen-address=" + alertmanager, "--cluster.listen-address="}},
		{"prometheus", p.prometheus, []string{
			"--config.file=prometheus.yml", "--storage.tsdb.path=prometheus-data", "--web.listen-address=" + p.prometheus, "--rules.alert.resend-delay=10s"}},
	} {
		binary, err := rig.Lookup(c.name, c.name)
		if err != nil {
			return err
		}
		program := rig.Program{Args: append([]string{binary}, c.args...), Dir: t.dir, Log: filepath.Join(t.dir, c.name+".log"), Stop: syscall.SIGTERM}
		child, err := rig.StartAt(ctx, program, t.Control, "http://"+c.address+"/-/ready")
		if err != nil {
			return err
		}
		p.children = append(p.children, child)
	}
	return nil
}

// expose serves the histogram of each service, at a path of its own.
func (p *promql) expose(names [3]string) (address string, err error) {
	mux := http.NewServeMux()
	for i, name := range names {
		p.counts[i] = prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "http_request_duration_seconds", Help: "Time from when a request was meant to be sent to its end.",
			Buckets: []float64{.01, .025, .05, .1, .15, .2, .25, .3, .4, .5, 1, 2.5, 5, 10},
		})
		registry := prometheus.NewRegistry()
		if err := registry.Register(p.counts[i]); err != nil {
			return "", fmt.Errorf("expose metrics: %w", err)
		}
		mux.Handle("/"+name, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("expose metrics: %w", err)
	}
	p.server = &http.Server{Handler: mux, ReadHeaderTimeout: time.Second}
	go func() { _ = p.server.Serve(listener) }() // it always ends with an error
	return listener.Addr().String(), nil
}

// inTime is the PromQL of README for the share of requests within the SLO.
func inTime(s *service, match string, over time.Duration) string {
	return fmt.Sprintf("sum(rate(http_request_duration_seconds_bucket{%[1]s,le=\"%[2]v\"}[%[3]v])) / sum(rate(http_request_duration_seconds_count{%[1]s}[%[3]v]))",
		match, s.SLO.Latency.Seconds(), over)
}

// rules are alerts as in deploy/examples/alert-rules.yml.
func rules(services [3]*service, over time.Duration) string {
	var b strings.Builder
	b.WriteString("groups:\n  - name: ask-trimtab\n    rules:\n")
	for _, s := range services {
		fmt.Fprintf(&b, "      - alert: SLOMissed\n        expr: %s < %v\n        for: %v\n        labels: {severity: warning, trimtab: ask, workload: %s}\n",
			inTime(s, fmt.Sprintf("job=%q", s.Name), over), s.SLO.Fraction, alertAfter, s.Name)
	}
	return b.String()
}

func prometheusFile(names [3]string, targets, alertmanager string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "global: {scrape_interval: %[1]v, scrape_timeout: %[1]v, evaluation_interval: %[1]v}\nrule_files: [rules.yml]\n", scrapeEvery)
	fmt.Fprintf(&b, "alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}\nscrape_configs:\n", alertmanager)
	for _, name := range names {
		fmt.Fprintf(&b, "  - {job_name: %s, metrics_path: /%s, static_configs: [{targets: [%q]}]}\n", name, name, targets)
	}
	return b.String()
}

// alertmanagerFile is as deploy/examples/alertmanager.yml, without people.
func alertmanagerFile(web, token string) string {
	return fmt.Sprintf(`route: {receiver: trimtab, group_by: [alertname, workload], group_wait: 1s, group_interval: 10s}
receivers:
  - name: trimtab
    webhook_configs:
      - url: http://%s/webhook/alertmanager
        send_resolved: true
        http_config: {authorization: {type: Bearer, credentials_file: %q}}
`, web, token)
}

func (p *promql) lines(addresses) string {
	return fmt.Sprintf("prometheus: {url: \"http://%s\"}\nalertmanager: {token_file: %q}\n", p.prometheus, p.token)
}

func (p *promql) service(s *service) string {
	return fmt.Sprintf(`    slo: {performance: %v}
    match:
      prometheus: {job: %s}
    load: sum(rate(http_request_duration_seconds_count{$match}[%v]))
    performance: >-
      %s
`, s.SLO.Fraction, s.Name, p.Range, inTime(s, "$match", p.Range))
}

func (*promql) begin(context.Context, addresses) error { return nil }

func (p *promql) observe(i int, _ time.Time, took time.Duration, failed bool) {
	if failed {
		took = patience
	}
	p.counts[i].Observe(took.Seconds())
}

func (*promql) flush() {}

func (p *promql) close() {
	for _, c := range p.children {
		c.Close()
	}
	if p.server != nil {
		_ = p.server.Close()
	}
}
