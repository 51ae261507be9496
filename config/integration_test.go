//go:build integration

package config_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/loopback"
)

// TestARealPrometheusReadsTheSameLabelValues asks absent(), which answers
// with the labels that the server's own parser read from the matchers.
func TestARealPrometheusReadsTheSameLabelValues(t *testing.T) {
	server := startPrometheus(t)
	rapid.Check(t, func(t *rapid.T) {
		value := hostile().Draw(t, "value")
		if !utf8.ValidString(value) || value == "" { // absent() leaves empty labels out
			t.Skip("no label value")
		}
		m := config.Match{Prometheus: map[string]string{"a": value, "b": value}}
		query, err := m.Expand(`absent(no_such_metric{$match,last="1"})`)
		if err != nil {
			t.Fatal(err)
		}
		r, err := http.PostForm(server+"/api/v1/query", url.Values{"query": {query}})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		var answer struct {
			Error string
			Data  struct {
				Result []struct{ Metric map[string]string }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || len(answer.Data.Result) != 1 {
			t.Fatalf("%s: %v %+v", query, err, answer)
		}
		want := map[string]string{"a": value, "b": value, "last": "1"}
		if diff := cmp.Diff(want, answer.Data.Result[0].Metric); diff != "" {
			t.Fatalf("%s (-want +got)\n%s", query, diff)
		}
	})
}

// startPrometheus runs Debian's prometheus without targets on loopback.
func startPrometheus(t *testing.T) string {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skipf("no Prometheus here (%v): apt-get install prometheus", err)
	}
	address := loopback.Address(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte("{}\n"), 0o600); err != nil {
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
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(2 * time.Minute)
	for {
		if r, err := http.Get("http://" + address + "/-/ready"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return "http://" + address
			}
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("Prometheus is not ready within two minutes")
		}
	}
}
