//go:build integration

package prometheus_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/prometheus"
	"github.com/trimtab/trimtab/internal/loopback"
	"github.com/trimtab/trimtab/internal/promql"
	"github.com/trimtab/trimtab/quantity"
)

// startPrometheus runs Debian's prometheus on a free loopback port, scraping
// target five times a second, and returns its URL once it is ready.
func startPrometheus(t *testing.T, target string) string {
	t.Helper()
	return start(t, "prometheus", fmt.Sprintf("scrape_configs:\n- job_name: shop\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n  static_configs:\n  - targets: [%q]\n", target))
}

// servers are the programs that answer PromQL, with where they come from.
var servers = map[string]string{
	"prometheus":       "apt-get install prometheus",
	"prometheus-3":     "go install github.com/prometheus/prometheus/cmd/prometheus@v0.316.0, renamed",
	"victoria-metrics": "go install github.com/VictoriaMetrics/VictoriaMetrics/app/victoria-metrics@v1.151.0",
}

// start runs one of them with a scrape configuration.
func start(t *testing.T, program, scrapes string) string {
	t.Helper()
	binary, err := exec.LookPath(program)
	if err != nil {
		t.Skipf("no %s here (%v): %s", program, err, servers[program])
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(scrapes), 0o600); err != nil {
		t.Fatal(err)
	}
	address := loopback.Address(t)
	args := []string{"--config.file=" + file, "--storage.tsdb.path=" + filepath.Join(dir, "data"), "--web.listen-address=" + address, "--log.level=error"}
	if program == "victoria-metrics" {
		args = []string{"-promscrape.config=" + file, "-storageDataPath=" + filepath.Join(dir, "data"), "-httpListenAddr=" + address,
			"-promscrape.fileSDCheckInterval=1s", "-loggerLevel=ERROR", "-memory.allowedBytes=256MiB", "-inmemoryDataFlushInterval=1s"}
	}
	cmd := exec.Command(binary, args...)
	if testing.Verbose() {
		cmd.Stderr = os.Stderr
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	url := "http://" + address
	eventually(t, program+" is ready", func() bool {
		r, err := http.Get(url + "/-/ready")
		if err != nil {
			return false
		}
		defer r.Body.Close()
		return r.StatusCode == http.StatusOK
	})
	return url
}

// eventually asks ok every 50 ms for at most two minutes.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not within two minutes: %s", what)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// watch runs a collector of exprs, and returns a function that waits until
// the workload named like its expression satisfies ok.
func watch(t *testing.T, url string, exprs ...string) func(expr string, ok func(*trimtab.Sample) bool) *trimtab.Sample {
	t.Helper()
	c, o := settings(url)
	c.Interval = 100 * time.Millisecond
	c.Queries = nil
	for _, e := range exprs {
		c.Queries = append(c.Queries, prometheus.Query{Workload: e, Quantity: quantity.Load, Expr: e})
	}
	collector, err := prometheus.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- collector.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		collector.Close()
	})
	return func(expr string, ok func(*trimtab.Sample) bool) *trimtab.Sample {
		t.Helper()
		limit := time.After(2 * time.Minute)
		var last *trimtab.Sample
		for {
			select {
			case s := <-o.samples:
				if s.Workload != expr {
					continue
				}
				if last = s; ok(s) {
					return s
				}
			case <-limit:
				t.Fatalf("%s: last sample %+v", expr, last)
			}
		}
	}
}

func present(s *trimtab.Sample) bool { return s.Missing == "" }

func saying(reason string) func(*trimtab.Sample) bool {
	return func(s *trimtab.Sample) bool { return strings.Contains(s.Missing, reason) }
}

func TestARealPrometheusAnswersWithValuesAgesAndEnds(t *testing.T) {
	const (
		gauge, old  = `sum(cores{job="shop"})`, `cores_old`
		both        = `sum(cores) + sum(cores_old)`
		long        = `sum(rate(requests_total[10m]))`
		zeroed      = `sum(rate(requests_total[10m])) or vector(0)`
		nothing     = `sum(no_such_metric)`
		several     = `{job="shop"}`
		bad         = `sum(cores`
		text        = `"hello"`
		ranged      = `cores[1m]`
		notNumber   = `cores / 0`
		divided     = `0 * cores / 0`
		scalar      = `scalar(cores)`
		constant    = `vector(5)`
		histogramOf = `histogram_quantile(0.5, sum by (le) (rate(latency_bucket[10m])))`
	)
	var requests atomic.Int64
	stamp := time.Now().Add(-40 * time.Second).UnixMilli()
	target := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := requests.Add(10)
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, _ = fmt.Fprintf(w, "cores 3\ncores_old 4 %d\nrequests_total %d\nlatency_bucket{le=\"1\"} %d\nlatency_bucket{le=\"+Inf\"} %d\n", stamp, n, n, n)
	}))
	defer target.Close()
	url := startPrometheus(t, target.Listener.Addr().String())
	wait := watch(t, url, gauge, old, both, long, zeroed, nothing, several, bad, text, ranged, notNumber, divided, scalar, constant, histogramOf)

	if s := wait(gauge, present); s.Value != 3 {
		t.Errorf("%+v", s)
	}
	for _, expr := range []string{old, both} {
		if s := wait(expr, present); time.Since(s.Time) < 40*time.Second {
			t.Errorf("%s: time %v, but a sample is from %v", expr, s.Time, time.UnixMilli(stamp))
		}
	}
	if s := wait(long, func(s *trimtab.Sample) bool { return present(s) && s.Value > 0 }); s.Window != 600 {
		t.Errorf("%+v", s)
	}
	wait(zeroed, func(s *trimtab.Sample) bool { return present(s) && s.Value > 0 })
	if s := wait(scalar, present); s.Value != 3 {
		t.Errorf("%+v", s)
	}
	if s := wait(constant, present); s.Value != 5 {
		t.Errorf("%+v", s)
	}
	wait(histogramOf, present)
	wait(nothing, saying("empty result"))
	wait(several, saying("aggregate with sum()"))
	wait(bad, saying("bad_data"))
	wait(text, saying("text"))
	wait(ranged, saying("range"))
	wait(notNumber, saying("+Inf"))
	wait(divided, saying("NaN"))

	target.Close() // the next scrape fails and marks the series stale
	wait(gauge, saying("empty result"))
	wait(long, saying("have ended"))
	wait(zeroed, saying("have ended"))
	if s := wait(constant, present); s.Value != 5 {
		t.Errorf("%+v", s)
	}
}

func TestEverySelectorFoundIsReadByARealPrometheus(t *testing.T) {
	target := httptest.NewServer(http.NotFoundHandler())
	defer target.Close()
	url := startPrometheus(t, target.Listener.Addr().String())
	for _, expr := range []string{
		`sum by (job) (rate(x{a="}"}[30s])) / on (job) group_left (pod) sum without(pod)(job:x:rate5m)`,
		`rate(x[1m] offset -30s) + max_over_time(rate(y[1m])[1h:1m])`,
		"x{a='it\\'s', b=`\\`} > bool 1e-3 and y unless z",
		`label_replace(x, "a", "$1", "b", "(.*)") or {__name__=~"w.+"}`,
	} {
		selectors, _, ok := promql.Selectors(expr)
		if !ok || len(selectors) == 0 {
			t.Errorf("%s: %v", expr, selectors)
		}
		for _, query := range []string{prometheus.AgeQuery(selectors), prometheus.UpQuery(selectors)} {
			r, err := http.PostForm(url+"/api/v1/query", map[string][]string{"query": {query}})
			if err != nil {
				t.Fatal(err)
			}
			body, _ := io.ReadAll(r.Body)
			r.Body.Close()
			if r.StatusCode != http.StatusOK {
				t.Errorf("%s: %s", query, body)
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
