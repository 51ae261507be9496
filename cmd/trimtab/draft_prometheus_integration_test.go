//go:build integration

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// measuredServices is an exporter of services that send no spans: of mailer with
// latencies, of queue and of the exporter itself without.
func measuredServices() *httptest.Server {
	var n atomic.Int64
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		served := 100 * n.Add(1)
		for _, le := range []string{"0.005", "0.05", "0.1", "0.25", "1", "+Inf"} {
			within := served
			if le == "0.005" {
				within /= 2
			}
			fmt.Fprintf(w, "http_request_duration_seconds_bucket{service=\"mailer\",le=%q} %d\n", le, within)
		}
		fmt.Fprintf(w, "http_request_duration_seconds_count{service=\"mailer\"} %d\nhttp_requests_total{service=\"mailer\"} %d\n", served, served)
		fmt.Fprintf(w, "http_requests_total{service=\"the queue\"} %d\nhttp_client_requests_total{service=\"caller\"} %d\npromhttp_metric_handler_requests_total %d\n", served, served, served)
	}))
}

// A trimtab runs with a file, hears no spans, and a real Prometheus scrapes two services
// that are not in the file.
func TestADraftHasWhatOnlyPrometheusKnowsAndWhatTheRunningFileSays(t *testing.T) {
	t.Parallel()
	p := prepare(t, groupsWith(t, 0.5, "hungry", "modest", "mailer"), "")
	exporter := measuredServices()
	defer exporter.Close()
	url := scraped(p, strings.TrimPrefix(exporter.URL, "http://"))
	p.text += fmt.Sprintf("prometheus: {url: %q, basic_auth: {username: me, password: hunter2}}\n", url)
	p.start()
	draft := ""
	p.until("a draft of what only Prometheus knows", func() error {
		code, out := p.command("init")
		for _, want := range []string{
			"  - name: mailer # only in Prometheus, service=\"mailer\": ",
			`    load: 'sum(rate(http_request_duration_seconds_count{service="mailer"}[1m]))' # `,
			`    performance: 'sum(rate(http_request_duration_seconds_bucket{service="mailer",le="0.1"}[1m])) / sum(rate(http_request_duration_seconds_count{service="mailer"}[1m]))' # the share of requests within 100ms`,
			"    slo: {performance: 0.95} # Prometheus saw ", "    knob: {cgroup: mailer, cpu: {max: ", "    mode: recommend # trimtab says",
			"  - name: the-queue # only in Prometheus, service=\"the queue\": ", "    # performance: http_requests_total tells no latencies: write ", "    mode: off # no control group is named the queue",
			"\nprometheus: {url: '" + url + "', ", "\nactuator: {cgroup_root: " + p.q.root, "\npool: {cpu: 1, unit: 0.01, step: 0.1} # as the running trimtab has it",
			"  - {name: hungry, slo: {latency: 100ms, fraction: 0.95}, knob: {cgroup: hungry, cpu: {min: 0.05, max: 0.9}}, mode: act} # as the running",
			"# prometheus.basic_auth.password is set in the running trimtab, and secret",
		} {
			if code != exitDone || !strings.Contains(out, want) {
				return fmt.Errorf("code %d, no %q in:\n%s", code, want, out)
			}
		}
		draft = out
		return nil
	})
	for _, other := range []string{"hunter2", "<secret>", "caller", "promhttp"} {
		if strings.Contains(draft, other) {
			t.Errorf("%s is in\n%s", other, draft)
		}
	}
	file := filepath.Join(t.TempDir(), "trimtab.yaml")
	if err := os.WriteFile(file, []byte(draft), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := p.command("check", "config", "--live", file); code != exitDone || !strings.Contains(out, "workloads: 4") || strings.Contains(out, "warning:") {
		t.Errorf("code %d: %s\n%s", code, out, draft)
	}
	// From the file, with nothing that runs, the draft is the same but for what it goes on
	// from, and it starts.
	p.stop()
	code, out := p.command("init", "--config.file", filepath.Join(p.dir, "trimtab.yaml"))
	if code != exitDone || !strings.Contains(out, "  - name: mailer # only in Prometheus") || !strings.Contains(out, "# no trimtab answers at ") || strings.Contains(out, "hunter2") {
		t.Errorf("code %d: %s", code, out)
	}
	p.text = out
	p.start()
	p.until("the load of both services is known", func() error {
		_, out := p.command("status", "-o", "json")
		for _, name := range []string{"mailer", "the-queue"} {
			_, row, _ := strings.Cut(out, `"name": "`+name+`"`)
			if row, _, _ = strings.Cut(row, `"name": `); !strings.Contains(row, `"load": `) {
				return fmt.Errorf("no load of %s in\n%s", name, out)
			}
		}
		return nil
	})
	t.Log("\n" + draft)
}
