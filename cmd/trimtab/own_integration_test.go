//go:build integration

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

// shop is a service as many have one: it counts its requests and how long they
// took, under a load that moves.
type shop struct {
	// most is the load that it still answers in time.
	most            float64
	mu              sync.Mutex
	began           time.Time
	requests, quick float64
	at              time.Time
}

// ServeHTTP is its /metrics.
func (s *shop) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	// A load that goes up and down within a minute.
	rate := loadAt(now.Sub(s.began))
	n := rate * now.Sub(s.at).Seconds()
	s.requests += n
	s.quick += n * min(1, s.most/rate)
	s.at = now
	fmt.Fprintf(w, "# TYPE http_request_duration_seconds histogram\n"+
		"http_request_duration_seconds_bucket{le=\"0.2\"} %[1]f\nhttp_request_duration_seconds_bucket{le=\"+Inf\"} %[2]f\n"+
		"http_request_duration_seconds_count %[2]f\nhttp_request_duration_seconds_sum %[2]f\n", s.quick, s.requests)
}

func loadAt(t time.Duration) float64 { return 60 + 40*float64(int(t.Seconds())%60)/60 }

// ownYAML is the configuration that the README shows.
func ownYAML(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, ok := strings.Cut(string(b), "## With your own Prometheus")
	found := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(after)
	if !ok || found == nil {
		t.Fatal("the README shows no configuration with one's own Prometheus")
	}
	return found[1]
}

// TestTheFirstRecommendationFromOnesOwnPrometheus prints lines and seconds; the
// promise is 15 lines and 5 minutes.
func TestTheFirstRecommendationFromOnesOwnPrometheus(t *testing.T) {
	t.Parallel()
	for _, unit := range []struct {
		name, quota string
		// most is the load that the service answers in time, of 60 to 100.
		most float64
	}{
		{"with a quota of one core, which misses its objective at the height of its load", "100000 100000\n", 80},
		{"without a quota, which meets its objective", "max 100000\n", 95},
	} {
		t.Run(unit.name, func(t *testing.T) {
			t.Parallel()
			firstRecommendation(t, unit.quota, unit.most)
		})
	}
}

func firstRecommendation(t *testing.T, quota string, most float64) {
	text := ownYAML(t)
	lines := strings.Count(strings.TrimSpace(text), "\n") + 1
	if lines > 15 {
		t.Errorf("%d lines of YAML, at most 15", lines)
	}
	own := startOwnPrometheus(t, most)
	dir := t.TempDir()
	// A plain unit, as systemd makes it: without Delegate=yes.
	group := filepath.Join(dir, "groups", "shop.slice", "checkout.service")
	if err := errors.Join(os.MkdirAll(group, 0o755), os.Mkdir(filepath.Join(dir, "groups", "init.scope"), 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(group, "cpu.max"), []byte(quota), 0o600); err != nil {
		t.Fatal(err)
	}
	burn(t, filepath.Join(group, "cpu.stat"))
	// Only what this test must keep to itself is changed: address and places.
	const address = "http://127.0.0.1:9090"
	if !strings.Contains(text, address) {
		t.Fatalf("the README's configuration does not name %s", address)
	}
	web := freeLoopback(t)
	text = strings.ReplaceAll(text, address, own) + fmt.Sprintf("storage: {path: %q}\nactuator: {cgroup_root: %q}\nweb: {listen_address: %q}\notlp: {grpc: \"off\", http: \"off\"}\njaeger: {grpc: \"off\"}\n",
		filepath.Join(dir, "data"), filepath.Join(dir, "groups"), web)
	file := filepath.Join(dir, "trimtab.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	run := exec.Command(os.Args[0], "run", "--config.file", file)
	run.Stderr = os.Stderr
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = run.Process.Signal(os.Interrupt)
		_ = run.Wait()
	}()
	p := awaitPlan(t, web, 10*time.Minute) // the machine may be busy
	took := time.Since(began)
	a := p.Actions[0]
	t.Logf("first recommendation from one's own Prometheus: %d lines of YAML (asked: <= 15), %.0f s after the start (asked: <= 300): %s %s -> %s cores: %s",
		lines, took.Seconds(), a.Workload, view.Amount(a.Expect), view.Amount(a.Set), a.Why.Summary)
	if a.Mode != trimtab.Recommend {
		t.Errorf("mode %s", a.Mode)
	}
	if b, err := os.ReadFile(filepath.Join(group, "cpu.max")); err != nil || string(b) != quota {
		t.Errorf("mode recommend wrote %q, %v", b, err)
	}
}

// burn counts what the service uses, a hundredth of a core for each request per
// second, as a kernel does.
func burn(t *testing.T, file string) {
	t.Helper()
	write := func(seconds float64) error {
		text := fmt.Sprintf("usage_usec %.0f\nnr_periods 0\nnr_throttled 0\n", seconds*1e6)
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			return err
		}
		return os.Rename(file+".new", file)
	}
	if err := write(0); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		used, began, at := 0.0, time.Now(), time.Now()
		for {
			select {
			case <-stop:
				return
			case now := <-time.After(200 * time.Millisecond):
				used += loadAt(now.Sub(began)) / 100 * now.Sub(at).Seconds()
				at = now
				if err := write(used); err != nil {
					t.Errorf("count the use: %v", err)
					return
				}
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-done })
}

// awaitPlan returns the first plan that asks for something.
func awaitPlan(t *testing.T, web string, most time.Duration) (p trimtab.Plan) {
	t.Helper()
	for deadline := time.Now().Add(most); ; {
		resp, err := http.Get("http://" + web + "/api/v1/plan")
		if err == nil {
			p = trimtab.Plan{}
			err = json.NewDecoder(resp.Body).Decode(&p)
			resp.Body.Close()
		}
		if err == nil && len(p.Actions) > 0 {
			return p
		}
		if time.Now().After(deadline) {
			t.Fatalf("no recommendation within %v: %v, %+v", most, err, p)
		}
		<-time.After(200 * time.Millisecond)
	}
}

// startOwnPrometheus is a real one that scrapes every 5 s a shop that answers
// most requests/s in time.
func startOwnPrometheus(t *testing.T, most float64) (url string) {
	t.Helper()
	binary := tool(t, "prometheus", "prometheus")
	service := httptest.NewServer(&shop{most: most, began: time.Now(), at: time.Now()})
	t.Cleanup(service.Close)
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	text := fmt.Sprintf("global: {scrape_interval: 5s}\nscrape_configs: [{job_name: checkout, static_configs: [{targets: [%q]}]}]\n", strings.TrimPrefix(service.URL, "http://"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	address := freeLoopback(t)
	cmd := exec.Command(binary, "--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address, "--log.level=warn")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return "http://" + address
		}
		if time.Now().After(deadline) {
			t.Fatal("Prometheus does not listen")
		}
		<-time.After(50 * time.Millisecond)
	}
}
