//go:build integration

package site

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab/internal/loopback"
)

// ingress is what stands before the pods of a Deployment, and counts requests for it also
// while there is no pod.
type ingress struct {
	mu      sync.Mutex
	since   time.Time
	rate    float64 // requests/s since then
	counted float64 // until then
}

func (i *ingress) has(now time.Time) float64 { return i.counted + i.rate*now.Sub(i.since).Seconds() }

// takes sets how many requests a second there are from now on.
func (i *ingress) takes(rate float64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	i.counted, i.since, i.rate = i.has(now), now, rate
}

func (i *ingress) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	fmt.Fprintf(w, "# TYPE ingress_requests_total counter\ningress_requests_total{service=\"checkout\"} %f\n", i.has(time.Now()))
}

// scraped runs a real Prometheus that scrapes it every second, and returns its URL.
func (i *ingress) scraped(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skipf("no Prometheus here (%v): apt-get install prometheus", err)
	}
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	dir, address := t.TempDir(), loopback.Address(t)
	file := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: [{job_name: ingress, static_configs: [{targets: [%q]}]}]\n", strings.TrimPrefix(server.URL, "http://"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=error")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return "http://" + address
}

const zeroFile = `
pool: {cpu: 4, unit: 0.01, step: 1}
objective: njc
actuator: {lock_dir: %[1]q}
storage: {path: %[2]q}
web: {listen_address: "127.0.0.1:0"}
otlp: {grpc: "off", http: %[5]q}
jaeger: {grpc: "off"}
kubernetes: {kubeconfig: %[3]q, journal: trimtab}
workloads:
  - name: checkout
    slo: {latency: 100ms, fraction: 0.95}
    match: {kubernetes: {namespace: shop, deployment: checkout}}
    load: sum(rate(ingress_requests_total{service="checkout"}[10s]))
    knob: {cpu: {min: 0.1, max: 0.6}, replicas: {min: 1, max: 6, startup: 3s, allow_zero: true, cooldown: 10s}}
    mode: %[4]s
prometheus: {url: "SERVER"}
`

func TestOnARealAPIServerADeploymentWithoutLoadGoesToZeroAndComesBack(t *testing.T) {
	in := &ingress{since: time.Now(), rate: 40}
	s := openShopOf(t, strings.ReplaceAll(zeroFile, "SERVER", in.scraped(t)), "act", brisk, nil)
	s.need = 0.8
	s.until("it has seen load", func(int, float64) bool { return len(s.said) > 15 })
	if n := len(s.Pods()); n < 2 {
		t.Fatalf("%d pods under load, want the 2 of before at least", n)
	}
	in.takes(0)
	s.quiet = true
	s.until("no pod is left", func(int, float64) bool { return len(s.Pods()) == 0 })
	if !s.says("no load for 10s") {
		t.Error("no plan says so")
	}
	in.takes(40)
	s.quiet = false
	s.until("a pod runs again", func(pods int, _ float64) bool { return pods > 0 })
	if !s.says("replicas raised from 0 to") {
		t.Error("no plan says so")
	}
}
