//go:build integration

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A trimtab that only watches has heard spans of two services, which have control groups,
// and a real Prometheus scrapes metrics of one of them.
func TestADraftOfWhatIsThereIsAConfigurationThatRuns(t *testing.T) {
	t.Parallel()
	p := prepare(t, fixtureQuotas(t), "")
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "http_requests_total{service=\"hungry\",code=\"200\"} 7\nmail_queue_length 3\n")
	}))
	defer exporter.Close()
	url := scraped(p, strings.TrimPrefix(exporter.URL, "http://"))
	before, after, _ := strings.Cut(p.text, "workloads:\n")
	_, rest, _ := strings.Cut(after, "analyzer:")
	p.text = before + "analyzer:" + rest
	p.start()
	defer p.serve()()
	draft := ""
	p.until("a draft of both services", func() error {
		code, out := p.command("init", "--cgroup-root", p.q.root, "--prometheus.url", url)
		for _, want := range []string{
			"  - name: hungry # found in spans", "  - name: modest # found in spans", "fraction: 0.95} # saw ", " with 95% confidence at most ",
			"knob: {cgroup: hungry, cpu: {max: ", "mode: recommend # ", `# load: 'sum(rate(http_requests_total{service="hungry"}[1m]))'`,
			"# Prometheus has no counter of requests whose job, service, app or container is modest",
			"no group of their own in common.", "# To have them share by weight (docs/operations.md), put ",
		} {
			if code != exitDone || !strings.Contains(out, want) {
				return fmt.Errorf("code %d, no %q in:\n%s", code, want, out)
			}
		}
		draft = out
		return nil
	})
	for line := range strings.Lines(draft) {
		if strings.TrimSpace(line) != "" && line != "workloads:\n" && !strings.Contains(line, "# ") {
			t.Errorf("a line without its reason: %s", line)
		}
	}
	file := filepath.Join(t.TempDir(), "trimtab.yaml")
	if err := os.WriteFile(file, []byte(draft), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out := p.command("check", "config", file); code != exitDone || !strings.Contains(out, "workloads: 2") || strings.Contains(out, "warning:") {
		t.Errorf("code %d: %s\n%s", code, out, draft)
	}
	// The doctor finds the running one ready, and both limits.
	code, out := p.command("doctor", "--config.file", filepath.Join(p.dir, "trimtab.yaml"))
	if code != exitDone || !strings.Contains(out, "ok    running ") || strings.Contains(out, "bad   ") {
		t.Errorf("doctor: code %d: %s", code, out)
	}
	t.Log("\n" + draft)
}

// What a real Prometheus answers to queries that are good and to some that are not.
func TestTheDoctorTellsWhatEachQueryAnswers(t *testing.T) {
	t.Parallel()
	p := prepare(t, fixtureQuotas(t), "")
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "load 40\nshare 97\nseveral{a=\"1\"} 1\nseveral{a=\"2\"} 2\n")
	}))
	defer exporter.Close()
	url := scraped(p, strings.TrimPrefix(exporter.URL, "http://"))
	file := filepath.Join(p.dir, "live.yaml")
	text := fmt.Sprintf(`prometheus: {url: %q}
workloads:
  - {name: good, mode: off, slo: {performance: 0.95}, load: load, performance: share / 100}
  - {name: percent, mode: off, slo: {performance: 0.95}, load: several, performance: share}
  - {name: gone, mode: off, load: 'sum(rate(nothing[1m]))'}
`, url)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p.until("the values are scraped", func() error {
		code, out := p.command("check", "config", "--live", file)
		for _, want := range []string{
			"ok    prometheus prometheus.url: answers in", "ok    query load of good: 40", "query performance of good: 0.97",
			"bad   query load of percent: no value: 2 series: aggregate", "bad   query performance of percent: 97", "divide percent by 100",
			"bad   query load of gone: no value: empty result",
		} {
			if code != exitError || !strings.Contains(out, want) {
				return fmt.Errorf("code %d, no %q in:\n%s", code, want, out)
			}
		}
		return nil
	})
}
