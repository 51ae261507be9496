package main

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/collector/alertmanager"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/site"
)

// alertConfig is the loop's configuration with rounds so long that only alerts
// start them, and with the webhook's token in a file.
func alertConfig(t testing.TB, root string) *config.Config {
	t.Helper()
	cfg := loopConfig(t, root)
	cfg.Round, cfg.Lease, cfg.Analyzer.ReportInterval = 10*time.Minute, 30*time.Minute, 10*time.Minute
	cfg.Guard.ReversalWindow = 5 * time.Minute
	cfg.Alertmanager.TokenFile = filepath.Join(t.TempDir(), "alertmanager.token")
	if err := os.WriteFile(cfg.Alertmanager.TokenFile, []byte("a token of the test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return cfg
}

// needs tells the planner which CPU each workload needs for its SLO.
func needs(t testing.TB, s *site.Site, cores map[string]float64) {
	t.Helper()
	for name, need := range cores {
		p := 0.5
		e := &trimtab.Estimate{Workload: name, Time: time.Now(), Model: "test/1", Reports: 100, Performance: &p,
			Load: &trimtab.LoadForecast{Now: 100, Mean: 100, Upper: 100, Level: 0.9, Model: "test/1"},
			Curve: &trimtab.Curve{Load: 100, Level: 0.9, Knots: []trimtab.Knot{
				{Allocation: 0.01, Band: trimtab.Band{Lower: 0.01, Mean: 0.02, Upper: 0.03}},
				{Allocation: need, Band: trimtab.Band{Lower: 0.95, Mean: 0.96, Upper: 0.97}},
				{Allocation: 0.9, Band: trimtab.Band{Lower: 0.97, Mean: 0.98, Upper: 0.99}}}}}
		if err := s.Bus().Publish(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// alerted opens a site that has made its first round, with a short gap.
func alerted(t *testing.T, q quotas) *operated {
	t.Helper()
	s, err := site.Open(t.Context(), alertConfig(t, q.root), site.Options{Logger: slog.New(slog.DiscardHandler), AlertGap: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	o := &operated{t, s, q}
	o.eventually("the first round", func() bool { return s.View().Rounds() > 0 })
	return o
}

// reasons returns a function that tells whether a plan moved the workload for
// a reason, and had a cause, that hold these texts.
func reasons(t *testing.T, s *site.Site) func(workload, reason, cause string) bool {
	t.Helper()
	var mu sync.Mutex
	var seen []*trimtab.Plan
	stop, err := s.Bus().Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindPlan, Handle: func(_ context.Context, d bus.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, d.Value.(*trimtab.Plan))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return func(workload, reason, cause string) bool {
		mu.Lock()
		defer mu.Unlock()
		return slices.ContainsFunc(seen, func(p *trimtab.Plan) bool {
			return strings.Contains(p.Cause.String(), cause) && slices.ContainsFunc(p.Actions, func(a trimtab.Action) bool {
				return a.Workload == workload && strings.Contains(a.Why.Summary, reason)
			})
		})
	}
}

func TestAnAlertFromTheCommandLineRaisesItsWorkloadAndItsEndGivesBack(t *testing.T) {
	t.Parallel()
	q := fixtureQuotas(t)
	o := alerted(t, q)
	moved := reasons(t, o.site)
	// send reports whether the bus took the alert: on a busy machine it may refuse
	// one, which Alertmanager sends again.
	send := func(more ...string) bool {
		t.Helper()
		args := append([]string{"test", "alert", "--workload", "hungry", "--name", "Slow", "--token-file", o.site.Config().Alertmanager.TokenFile}, more...)
		code, out := o.trimtab(args...)
		if strings.Contains(out, "503 Service Unavailable") {
			return false
		}
		if code != exitDone || !strings.Contains(out, "1 handed to the planner") {
			t.Fatal(code, out)
		}
		return true
	}
	// A raise takes two steps, and the estimates are on their way, as is the
	// analyzer's own that nothing was seen: an alert with another start asks
	// again.
	o.eventually("hungry to be raised", func() bool {
		needs(t, o.site, map[string]float64{"hungry": 0.62, "modest": 0.3})
		send()
		return q.read("hungry") > 0.615
	})
	o.eventually("a plan that says that the alert raised it", func() bool {
		return moved("hungry", "; alert Slow fires", "alert Slow of hungry (group ")
	})
	lent := q.read("hungry")
	given := map[string]float64{"hungry": 0.2, "modest": 0.62}
	needs(t, o.site, given)
	o.eventually("the end of the alert to be taken", func() bool { return send("--resolved") })
	o.eventually("what was lent to be given back", func() bool {
		// The analyzer's own estimate, that nothing was seen, may come in between, and
		// a host lowers one at a time: both are asked again, so one that a busy machine
		// does not store in time is no matter.
		needs(t, o.site, given)
		if err := o.site.Bus().Publish(t.Context(), &trimtab.Command{Pool: o.site.Config().Pool.Name, Verb: trimtab.Round, Time: time.Now()}); err != nil {
			t.Log(err)
		}
		return q.read("hungry") < lent && moved("hungry", "; it was lent for alert Slow, which is over", "")
	})
}

func TestTheWebhookAsksForItsTokenWhateverTheHost(t *testing.T) {
	t.Parallel()
	o := alerted(t, fixtureQuotas(t))
	post := func(auth, path, host string) (int, string) {
		req, err := http.NewRequest(http.MethodPost, "http://"+o.site.WebAddress()+path, strings.NewReader(`{"version":"4","alerts":[]}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", auth)
		req.Host = host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var b bytes.Buffer
		_, _ = b.ReadFrom(resp.Body)
		return resp.StatusCode, b.String()
	}
	for _, host := range []string{"127.0.0.1", "trimtab.internal:9600"} {
		if code, text := post("Bearer a token of the test", alertmanager.Path, host); code != http.StatusOK {
			t.Errorf("%s with the token: %d %s", host, code, text)
		}
		if code, text := post("Bearer another", alertmanager.Path, host); code != http.StatusUnauthorized {
			t.Errorf("%s without the token: %d %s", host, code, text)
		}
	}
	if code, _ := post("Bearer a token of the test", "/api/v1/commands", "trimtab.internal:9600"); code != http.StatusForbidden {
		t.Errorf("the API behind a foreign name: %d", code)
	}
	// A reload without a token closes the endpoint and says which key is missing.
	next := *o.site.Config()
	next.Alertmanager.TokenFile = ""
	if err := o.site.Apply(t.Context(), &next); err != nil {
		t.Fatal(err)
	}
	if code, text := post("Bearer a token of the test", alertmanager.Path, ""); code != http.StatusForbidden || !strings.Contains(text, "alertmanager.token_file") {
		t.Errorf("without a token configured: %d %s", code, text)
	}
	next.Alertmanager.TokenFile = filepath.Join(t.TempDir(), "missing")
	if err := o.site.Apply(t.Context(), &next); err == nil {
		t.Error("a token file that is not there is taken")
	}
}

func TestTestAlertSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	o := alerted(t, fixtureQuotas(t))
	token := o.site.Config().Alertmanager.TokenFile
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`{"alerts":`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "nothing to send"},
		{[]string{"--workload", "hungry"}, "401 Unauthorized"},
		{[]string{"--workload", "nobody", "--token-file", token}, "1 concern no workload"},
		{[]string{bad, "--token-file", token}, "400 Bad Request"},
		{[]string{bad, "--workload", "hungry"}, "keep one of them"},
		{[]string{"missing.json"}, "read alert: open missing.json"},
		{[]string{"--workload", "hungry", "--url", "http://127.0.0.1:1"}, "is trimtab running there?"},
	} {
		if code, out := o.trimtab(append([]string{"test", "alert"}, c.args...)...); code != exitError || !strings.Contains(out, c.want) || !strings.Contains(out, "trimtab: error:") {
			t.Errorf("%v: code %d: %s, want %q", c.args, code, out, c.want)
		}
	}
	if code, out := o.trimtab("test", "alert", "--help"); code != exitDone || !strings.Contains(out, "Example:\n  trimtab test alert") {
		t.Errorf("help: %d %s", code, out)
	}
}
