//go:build integration

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// scraped runs a real Prometheus that scrapes target five times a second.
func scraped(p *program, target string) (url string) {
	p.Helper()
	dir, address := p.TempDir(), freeLoopback(p.T)
	file := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("scrape_configs:\n- job_name: shop\n  scrape_interval: 200ms\n  scrape_timeout: 200ms\n  static_configs:\n  - targets: [%q]\n", target)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		p.Fatal(err)
	}
	cmd := exec.Command(tool(p.T, "prometheus", "prometheus"), "--config.file="+file,
		"--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=error")
	if err := cmd.Start(); err != nil {
		p.Fatal(err)
	}
	p.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return "http://" + address
}

// What stands in for feedback that is missing, through the real loop: metrics
// that a real Prometheus scrapes, and quotas that are read back.
func TestFallbacksStandInForMissingFeedbackAndRaiseOnly(t *testing.T) {
	t.Parallel()
	// Until feedback ends all do well on 0.2; the truth behind the proxy is 0.6.
	names := []string{"byproxy", "byprofile", "bydemand", "small"}
	q := groupsWith(t, 0.8, append([]string{"nightly"}, names...)...)
	var silent atomic.Bool
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for _, name := range names {
			fmt.Fprintf(w, "load{w=%q} 100\nproxy{w=%q} %v\n", name, name, min(1, q.read(name)/0.6))
			if !silent.Load() {
				fmt.Fprintf(w, "perf{w=%q} %v\n", name, min(1, q.read(name)/0.2))
			}
		}
	}))
	defer exporter.Close()
	p := prepare(t, q, "")
	profile := filepath.Join(p.dir, "profile.csv")
	if err := os.WriteFile(profile, []byte("allocation_per_load,performance\n0.003,0.5\n0.006,0.95\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	fmt.Fprintf(&text, `
pool: {cpu: 10, unit: 0.01, step: 0.5}
objective: njc
round: 1s
guard: {off: true} # the fallbacks are tried, not the guard: with it nobody is lowered for nothing
analyzer: {report_interval: 1s, partitions: 1}
actuator: {cgroup_root: %q}
storage: {path: %q}
nats: {listen: %q}
web: {listen_address: %q}
otlp: {grpc: "off", http: "off"}
jaeger: {grpc: "off"}
prometheus: {url: %q, interval: 1s, timeout: 500ms}
workloads:
  - {name: nightly, class: best-effort, slo: {performance: 1}, fallback: {demand: 0.3}, knob: {cgroup: nightly, cpu: {min: 0.05, max: 0.9}}, mode: act}
`, q.root, p.storage(), p.nats, p.web, scraped(p, strings.TrimPrefix(exporter.URL, "http://")))
	fallbacks := map[string]string{"byproxy": `{proxy: 'proxy{w="byproxy"}'}`, "byprofile": "{profile: profile.csv}", "bydemand": "{demand: 0.6}", "small": "{demand: 0.05}"}
	for _, name := range names {
		if f := fallbacks[name]; f != "" {
			fmt.Fprintf(&text, "  - {name: %s, slo: {performance: 0.9}, load: 'load{w=%q}', performance: 'perf{w=%q}', fallback: %s, knob: {cgroup: %s, cpu: {min: 0.05, max: 0.9}}, mode: act}\n",
				name, name, name, f, name)
		}
	}
	p.text = text.String()
	p.start()
	p.until("all to be lowered, nightly to its declared demand", func() error {
		for _, name := range names {
			if v := q.read(name); v > 0.4 {
				return fmt.Errorf("%s has %v: %+v", name, v, p.explanation(name))
			}
		}
		if v := q.read("nightly"); v < 0.29 || v > 0.32 {
			return fmt.Errorf("nightly has %v: %+v", v, p.explanation("nightly"))
		}
		return nil
	})
	silent.Store(true)
	p.until("the fallbacks to stand in", func() error {
		for name := range fallbacks {
			if e := p.explanation(name); !strings.Contains(e.State, "stands in") {
				return fmt.Errorf("%s is %q", name, e.State)
			}
		}
		return nil
	})
	// A plan that was made before may still be on its way to the actuator.
	before := p.planned()
	p.until("what was decided before to be done", func() error {
		if now, err := p.plan(); err != nil || now.Sequence < before.Sequence+2 {
			return fmt.Errorf("plan %s after %s: %w", now.ID(), before.ID(), err)
		}
		for _, name := range names {
			if e := p.explanation(name); e.Result == nil {
				return fmt.Errorf("%s: no answer to %q", name, e.Decision)
			}
		}
		return nil
	})
	least := map[string]float64{}
	for _, name := range names {
		least[name] = q.read(name)
	}
	p.until("the fallbacks to raise", func() error {
		for _, name := range names {
			v := q.read(name)
			if v < least[name]-1e-9 {
				t.Fatalf("%s fell from %v to %v without feedback: %+v", name, least[name], v, p.explanation(name))
			}
			if least[name] = v; name != "small" && v < 0.5 {
				return fmt.Errorf("%s has %v: %+v", name, v, p.explanation(name))
			}
		}
		return nil
	})
	for name, word := range map[string]string{"byproxy": "the declared proxy stands in", "byprofile": "the declared profile stands in", "bydemand": "the declared demand stands in"} {
		if code, out := p.command("explain", name); code != exitDone || !strings.Contains(out, word) {
			t.Errorf("explain %s does not tell that %s: code %d: %s", name, word, code, out)
		}
	}
	p.stop()
}
