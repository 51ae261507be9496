//go:build integration

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/collector/alertmanager"
	"github.com/trimtab/trimtab/dashboards"
	"github.com/trimtab/trimtab/internal/site"
)

// watcher is a real Prometheus that scrapes what a file names, and evaluates
// the generated rules.
type watcher struct {
	url, targets string
}

func startWatcher(t *testing.T) *watcher {
	t.Helper()
	binary, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skipf("no Prometheus here (%v): apt-get install prometheus", err)
	}
	dir := t.TempDir()
	w := &watcher{targets: filepath.Join(dir, "targets.json")}
	if err := os.WriteFile(w.targets, []byte("[]"), 0o600); err != nil {
		t.Fatal(err)
	}
	rules, err := filepath.Abs("../../dashboards/rules/trimtab.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: trimtab, file_sd_configs: [{files: [%q], refresh_interval: 1s}]}]\n", rules, w.targets)
	file := filepath.Join(dir, "prometheus.yml")
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
	w.url = "http://" + address
	for tick, limit := time.NewTicker(50*time.Millisecond), time.After(2*time.Minute); ; {
		if r, err := http.Get(w.url + "/-/ready"); err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return w
			}
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatal("Prometheus is not ready within two minutes")
		}
	}
}

// scrape makes address a target, with the label that service discovery would
// give it in Kubernetes.
func (w *watcher) scrape(t *testing.T, address string) {
	t.Helper()
	text := fmt.Sprintf(`[{"targets": [%q], "labels": {"namespace": "floor"}}]`, address)
	// Prometheus must not read half of it.
	err := os.WriteFile(w.targets+".new", []byte(text), 0o600)
	if err == nil {
		err = os.Rename(w.targets+".new", w.targets)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// get asks the HTTP API and reads its data.
func (w *watcher) get(t *testing.T, path string, q url.Values, data any) {
	t.Helper()
	r, err := http.Get(w.url + path + "?" + q.Encode())
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || answer.Status != "success" {
		t.Fatalf("%s %v: %v %s", path, q, err, answer.Error)
	}
}

// numbers is how many finite values an expression had in the last time, at
// steps of a second.
func (w *watcher) numbers(t *testing.T, expr string, last time.Duration) int {
	t.Helper()
	now := float64(time.Now().UnixMilli()) / 1000
	q := url.Values{"query": {expr}, "step": {"1"}, "end": {fmt.Sprint(now)}, "start": {fmt.Sprint(now - last.Seconds())}}
	var data struct {
		Result []struct{ Values [][2]any }
	}
	w.get(t, "/api/v1/query_range", q, &data)
	n := 0
	for _, series := range data.Result {
		for _, v := range series.Values {
			text, _ := v[1].(string)
			if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
				n++
			}
		}
	}
	return n
}

// silent are the expressions that only have values when something happens that
// does not happen in this test, with the event.
func silent() map[string]string {
	return map[string]string{
		"workload.json / annotation Recommendations A":          "both workloads act",
		"contributions.json / Part in the growth of the tail A": "the tail grows",
		"contributions.json / Slack and slacklimits B":          "a slacklimit is declared or was searched for",
		"contributions.json / Load and loadlimits B":            "four levels of load were seen",
		"contributions.json / Tail grew A":                      "two minutes have passed",
		"pipeline.json / Spans C":                               "a span is refused",
		"pipeline.json / Spans D":                               "a request with spans is refused",
		"pipeline.json / Inputs of the learner B":               "an input is set aside",
		"pipeline.json / Trouble in stages C":                   "a publish came to nothing",
		"pipeline.json / Trouble in planning F":                 "an input is ignored",
		"pipeline.json / Trouble on the bus F":                  "the NATS server is of a release that is not tested",
		"pipeline.json / Memory and recording B":                "a recording is written",
		"overview.json / Instances A":                           "a workload has several instances",
		"overview.json / Refused requests A":                    "a gate refuses a request",
		"workload.json / Refused requests A":                    "a gate refuses a request",
		"workload.json / Killed for want of memory B":           "an agent raises a limit between rounds, which needs groups of a kernel",
		"overview.json / Least free A":                          "a host is measured, which needs groups of a kernel",
		"overview.json / Given out by host A":                   "a host is measured",
		"pipeline.json / Samples C":                             "a host is measured",
	}
}

// elsewhere are boards and panels that need groups of a kernel, each with the test that
// has them and asks for their metrics (see [program.boardHasMetrics]).
func elsewhere() map[string]string {
	return map[string]string{
		"gate.json /":                                          "TestARequestPassesUnchangedWithItsHostAndTrailersAndIsCounted of package gate: a gate is a process of its own",
		"colocate.json /":                                      "TestRealJobsGrowAndAreFrozenBesideAService",
		"speculate.json / Machines":                            "TestNoTaskIsLostOrRunsTwiceAtOnceWhenAProcessIsKilled",
		"speculate.json / Time to store":                       "TestNoTaskIsLostOrRunsTwiceAtOnceWhenAProcessIsKilled",
		"speculate.json /":                                     "TestRealTasksRunBesideAServiceAreFrozenForItKilledAndEndWithTheirLease",
		"workload.json / Between rounds":                       "TestTheFastLoopMovesRealGroupsBetweenRoundsAndItsPanelsHaveTheirMetrics",
		"workload.json / Borrowed and lent":                    "TestTheFastLoopMovesRealGroupsBetweenRoundsAndItsPanelsHaveTheirMetrics",
		"workload.json / Fast loop":                            "TestTheFastLoopMovesRealGroupsBetweenRoundsAndItsPanelsHaveTheirMetrics",
		"workload.json / Groups of the fast loop":              "TestTheFastLoopMovesRealGroupsBetweenRoundsAndItsPanelsHaveTheirMetrics",
		"workload.json / Cycles per instruction, cache misses": "nothing: most machines have no hardware counters",
		"workload.json / Waiting for a CPU":                    "TestPerformanceCountersAreExplainedShownAndExported",
		"workload.json / What waits":                           "TestPerformanceCountersAreExplainedShownAndExported",
		"workload.json / Switches, faults, migrations":         "TestPerformanceCountersAreExplainedShownAndExported",
		"workload.json / Task clock":                           "TestPerformanceCountersAreExplainedShownAndExported",
	}
}

// shownElsewhere reports whether another test asks for the data of x.
func shownElsewhere(x shown) bool {
	for panel := range elsewhere() {
		if strings.HasPrefix(x.panel, panel) {
			return true
		}
	}
	return false
}

func TestEveryPanelShowsWhatARealPrometheusScraped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	w := startWatcher(t)
	// Every other panel needs an action, so the limits are wrong by
	// construction: hungry needs 0.65 cores and has 0.2.
	q := groupsWith(t, 0.5, "hungry", "modest")
	setLimit(t, q.root, "hungry", 0.2)
	cfg := loopConfig(t, q.root)
	cfg.Prometheus.URL = w.url
	cfg.Workloads[1].Load = `sum(rate(trimtab_collector_spans_accepted_total[5s])) / 2`
	cfg.Alertmanager.TokenFile = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(cfg.Alertmanager.TokenFile, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := site.Open(ctx, cfg, site.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w.scrape(t, s.WebAddress())
	load := newSender(t, s.OTLPAddress(), q)
	var all []shown
	for name, text := range dashboards.Generate() {
		if strings.HasSuffix(name, ".json") {
			all = append(all, exprsOf(t, name, text)...)
		}
	}
	missing := all
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for n := 1; len(missing) > 0 && ctx.Err() == nil; n++ {
		<-tick.C
		if err := load.send(ctx); err != nil {
			break
		}
		// An alert now and then, so that there is something to show. Needs change
		// more slowly than they are learnt: to a learner, workloads that take
		// turns every few seconds are two of the same kind, and it moves neither.
		if n%50 == 0 {
			sendAlert(t, s)
		}
		if n%300 == 0 {
			load.need["hungry"], load.need["modest"] = load.need["modest"], load.need["hungry"]
		}
		if n >= 200 && n%50 == 0 {
			missing = w.missing(t, missing)
			t.Logf("after %d ticks hungry has %v and modest %v cores, and %d expressions have no data", n, q.read("hungry"), q.read("modest"), len(missing))
		}
		if n > 2500 {
			break
		}
	}
	for _, m := range missing {
		t.Errorf("%s %s has no data: %s", m.panel, m.ref, m.expr)
	}
	w.checkRules(t)
	w.checkVariables(t)
}

// setLimit writes the limit that a group of a fixture has, in cores.
func setLimit(t *testing.T, root, name string, cores float64) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, name, "cpu.max"), fmt.Appendf(nil, "%.0f 100000\n", cores*100000), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sendAlert sends what Alertmanager would.
func sendAlert(t *testing.T, s *site.Site) {
	t.Helper()
	const body = `{"version": "4", "groupKey": "{}", "status": "firing", "receiver": "trimtab", "groupLabels": {}, "commonLabels": {}, "commonAnnotations": {},
		"alerts": [{"status": "firing", "labels": {"alertname": "Slow", "workload": "hungry"}, "annotations": {}, "startsAt": "2026-01-02T12:00:00Z", "endsAt": "0001-01-01T00:00:00Z", "fingerprint": "a1"}]}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.WebAddress()+alertmanager.Path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer secret")
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK && r.StatusCode != http.StatusServiceUnavailable { // a busy bus takes the next one
		t.Errorf("the alert was answered %s", r.Status)
	}
}

// missing returns those without data, under every choice of the variables.
func (w *watcher) missing(t *testing.T, all []shown) []shown {
	t.Helper()
	var out []shown
	for _, x := range all {
		if silent()[x.panel+" "+x.ref] != "" || shownElsewhere(x) {
			continue
		}
		// One of the workloads must have it, whichever way the site is chosen.
		workloads := []string{"hungry", "modest"}
		if strings.HasPrefix(x.panel, "overview") {
			workloads = []string{"(hungry|modest)"}
		}
		for _, namespace := range []string{".*", "floor"} {
			n := 0
			for _, workload := range workloads {
				n += w.numbers(t, strings.NewReplacer("$namespace", namespace, "$workload", workload, "$__rate_interval", "5s", "$__interval", "1s").Replace(x.expr), time.Minute)
			}
			if n == 0 {
				out = append(out, x)
				break
			}
		}
	}
	return out
}

// checkRules asks that all rules were evaluated and that recordings exist.
func (w *watcher) checkRules(t *testing.T) {
	t.Helper()
	var data struct {
		Groups []struct {
			Rules []struct{ Name, Health, LastError, State string }
		}
	}
	// A scrape that took too long is nothing to alert about, and pending for a
	// moment.
	tick, limit := time.NewTicker(time.Second), time.After(time.Minute)
	defer tick.Stop()
	down := func() bool {
		w.get(t, "/api/v1/rules", nil, &data)
		for _, g := range data.Groups {
			for _, r := range g.Rules {
				if r.Name == "TrimtabDown" && r.State != "inactive" {
					return true
				}
			}
		}
		return false
	}
	for waiting := true; waiting && down(); {
		select {
		case <-tick.C:
		case <-limit:
			waiting = false
		}
	}
	n := 0
	for _, g := range data.Groups {
		for _, r := range g.Rules {
			n++
			if r.Health != "ok" {
				t.Errorf("rule %s: %s: %s", r.Name, r.Health, r.LastError)
			}
			if r.State == "firing" || r.Name == "TrimtabDown" && r.State != "inactive" {
				t.Errorf("%s is %s while all is well", r.Name, r.State)
			}
		}
	}
	if n != 19 {
		t.Errorf("%d rules were evaluated", n)
	}
	for _, name := range dashboards.Recorded() {
		if name == "trimtab:host_free:ratio" || name == "trimtab:workload_refused:ratio" {
			continue // no host is measured, and nothing is refused: see silent
		}
		if w.numbers(t, name, time.Minute) == 0 {
			t.Errorf("%s was not recorded", name)
		}
	}
}

// checkVariables asks what the boards ask for their choices.
func (w *watcher) checkVariables(t *testing.T) {
	t.Helper()
	for label, want := range map[string]string{"namespace": "[floor]", "workload": "[hungry modest]"} {
		var values []string
		w.get(t, "/api/v1/label/"+label+"/values", url.Values{"match[]": {`trimtab_workload_held{namespace=~".*"}`}}, &values)
		if fmt.Sprint(values) != want {
			t.Errorf("choices of %s: %v, want %s", label, values, want)
		}
	}
}
