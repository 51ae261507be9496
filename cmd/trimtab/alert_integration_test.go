//go:build integration

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/trimtab/trimtab/internal/loopback"
)

// tool finds a program of Debian's, or skips with the proof that it is absent.
func tool(t *testing.T, name, debian string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("no %s here (%v): apt-get install -y --no-install-recommends %s", name, err, debian)
	}
	return path
}

// freeLoopback returns an address that nobody listens on, nor will.
func freeLoopback(t *testing.T) string { return loopback.Address(t) }

// example copies a file of deploy/examples into dir with texts replaced, each
// of which must be there.
func example(t *testing.T, dir, name string, replace ...string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../deploy/examples", name))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("%s does not hold %q", name, replace[i])
		}
		text = strings.ReplaceAll(text, replace[i], replace[i+1])
	}
	to := filepath.Join(dir, name)
	if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return to
}

// process runs a server until the test ends, and waits until it is ready.
func (o *operated) process(binary, address string, args ...string) {
	o.Helper()
	log, err := os.Create(filepath.Join(o.TempDir(), "log"))
	if err != nil {
		o.Fatal(err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text, _ := os.ReadFile(log.Name()); o.Failed() {
			o.Logf("%s:\n%s", filepath.Base(binary), text)
		}
		log.Close()
	})
	o.eventually(filepath.Base(binary)+" to be ready", func() bool {
		resp, err := http.Get("http://" + address + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// says waits until the answer to a command line has all the texts: the console may
// see a plan after its actuator.
func (o *operated) says(args []string, texts ...string) {
	o.Helper()
	out := ""
	defer func() {
		if o.Failed() {
			o.Logf("%v: %s", args, out)
		}
	}()
	o.eventually(fmt.Sprintf("%v to say %q", args, texts), func() bool {
		_, out = o.trimtab(args...)
		return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(out, text) })
	})
}

func runTool(t *testing.T, binary string, args ...string) {
	t.Helper()
	if out, err := exec.Command(binary, args...).CombinedOutput(); err != nil {
		t.Errorf("%s %s: %v\n%s", filepath.Base(binary), strings.Join(args, " "), err, out)
	}
}

func TestTheExamplesPassTheirOwnTools(t *testing.T) {
	runTool(t, tool(t, "amtool", "prometheus-alertmanager"), "check-config", "../../deploy/examples/alertmanager.yml")
	promtool := tool(t, "promtool", "prometheus")
	runTool(t, promtool, "check", "config", "../../deploy/examples/prometheus.yml")
	runTool(t, promtool, "check", "rules", "../../deploy/examples/alert-rules.yml")
}

// The whole way with real parts: a scraped metric, a rule, Prometheus,
// Alertmanager, the webhook, a plan, a limit that is read back; and back.
func TestARuleThatFiresChangesALimitAndItsEndGivesBack(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) quotas{"files in the form of v2": fixtureQuotas, "real v1": kernelQuotas} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fromRuleToLimit(t, open(t))
		})
	}
}

func fromRuleToLimit(t *testing.T, q quotas) {
	prometheus, alertmanager := tool(t, "prometheus", "prometheus"), tool(t, "prometheus-alertmanager", "prometheus-alertmanager")
	var latency atomic.Value
	latency.Store("0.05")
	shop := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "# TYPE shop_latency_p99_seconds gauge\nshop_latency_p99_seconds{service=\"checkout\"} %s\n", latency.Load())
	}))
	t.Cleanup(shop.Close)
	o := alerted(t, q)
	dir, am, prom := t.TempDir(), freeLoopback(t), freeLoopback(t)
	amFile := example(t, dir, "alertmanager.yml", "127.0.0.1:9600", o.site.WebAddress(), "credentials_file: alertmanager.token", "credentials_file: "+o.site.Config().Alertmanager.TokenFile,
		"group_wait: 1s", "group_wait: 100ms", "group_interval: 10s", "group_interval: 1s")
	promFile := example(t, dir, "prometheus.yml", "127.0.0.1:9093", am, "127.0.0.1:9600", o.site.WebAddress(), "127.0.0.1:8080", shop.Listener.Addr().String(),
		"scrape_interval: 15s", "scrape_interval: 200ms\n  scrape_timeout: 200ms", "evaluation_interval: 15s", "evaluation_interval: 200ms")
	rules := example(t, dir, "alert-rules.yml", "workload: checkout", "workload: hungry")
	runTool(t, tool(t, "amtool", "prometheus-alertmanager"), "check-config", amFile)
	runTool(t, tool(t, "promtool", "prometheus"), "check", "rules", rules)
	o.process(alertmanager, am, "--config.file="+amFile, "--storage.path="+filepath.Join(dir, "am"), "--web.listen-address="+am, "--cluster.listen-address=")
	o.process(prometheus, prom, "--config.file="+promFile, "--storage.tsdb.path="+filepath.Join(dir, "prom"), "--web.listen-address="+prom, "--rules.alert.resend-delay=1s")

	needed := map[string]float64{"hungry": 0.62, "modest": 0.3}
	needs(t, o.site, needed)
	if got := q.read("hungry"); got != 0.5 {
		t.Fatalf("before any alert hungry has %v", got)
	}
	latency.Store("9")
	// The analyzer's own estimate, that nothing was seen, may come in between.
	o.eventually("the rule to raise hungry", func() bool {
		needs(t, o.site, needed)
		return q.read("hungry") > 0.5
	})
	o.says([]string{"explain", "hungry"}, "alert WorkloadSlow of hungry (group ", "alert WorkloadSlow fires")
	o.says([]string{"plan"}, "alert WorkloadSlow of hungry")
	lent := q.read("hungry")
	needed = map[string]float64{"hungry": 0.2, "modest": 0.62}
	needs(t, o.site, needed)
	latency.Store("0.05")
	o.eventually("the end of the rule to give back", func() bool {
		needs(t, o.site, needed)
		return q.read("hungry") < lent
	})
	o.says([]string{"explain", "hungry"}, "alert WorkloadSlow of hungry is over")
	if h, m := both(q.read); h+m > 1+1e-6 {
		t.Errorf("the sum is %v + %v of 1", h, m)
	}
}
