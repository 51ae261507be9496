//go:build integration

package site

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
	"github.com/trimtab/trimtab/internal/loopback"
)

// realFile is a Deployment that match.kubernetes alone names: load and performance come
// from its spans, the knobs from its pods.
const realFile = `
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
    knob: {cpu: {min: 0.1, max: 0.6}, replicas: {min: 1, max: 6, startup: 3s}}
    mode: %[4]s
`

// brisk makes the loop quick enough for a test that waits for more than advice.
const brisk = `
round: 1s
lease: 15s
guard: {dead_band: 0.02, reversal_window: 0s}
analyzer: {report_interval: 500ms, partitions: 1}
`

// shop is a Deployment on a real API server whose kubelet is played, and a load on it
// that needs so many cores.
type shop struct {
	*kubetest.Real
	t        *testing.T
	site     *Site
	endpoint string
	need     float64
	// quiet: nobody sends spans; sent is when the last one ended.
	quiet bool
	sent  time.Time
	said  []string
}

const someCores = `{"requests":{"cpu":"100m","memory":"32Mi"},"limits":{"cpu":"500m","memory":"64Mi"}}`

// openShop starts a brisk trimtab beside it, with the rights of deploy/kubernetes and no others.
func openShop(t *testing.T, mode string, prepare func(*kubetest.Real)) *shop {
	t.Helper()
	return openShopWith(t, mode, brisk, prepare)
}

func openShopWith(t *testing.T, mode, settings string, prepare func(*kubetest.Real)) *shop {
	t.Helper()
	return openShopOf(t, realFile, mode, settings, prepare)
}

// openShopOf is openShopWith of a configuration in the place of realFile.
func openShopOf(t *testing.T, file, mode, settings string, prepare func(*kubetest.Real)) *shop {
	t.Helper()
	r := kubetest.StartReal(t, "trimtab")
	r.Shop(2, someCores)
	r.Rights()
	if prepare != nil {
		prepare(r)
	}
	s := &shop{Real: r, t: t, endpoint: loopback.Address(t), need: 1.6}
	s.open(fmt.Appendf(nil, file+settings, t.TempDir(), t.TempDir(), r.Kubeconfig("trimtab"), mode, s.endpoint))
	return s
}

// open starts trimtab with a configuration, and keeps what its plans say.
func (s *shop) open(file []byte) {
	t := s.t
	t.Helper()
	cfg, err := config.Parse("real.yaml", file)
	if err != nil {
		t.Fatal(err)
	}
	if s.site, err = Open(t.Context(), cfg, Options{Host: "h", Logger: slog.New(slog.DiscardHandler), Watchdog: []string{"true"}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.site.Close() })
	stop, err := s.site.Bus().Subscribe(t.Context(), bus.Subscription{Kind: trimtab.KindPlan, Key: "default", Handle: func(_ context.Context, d bus.Delivery) error {
		if p, ok := d.Value.(*trimtab.Plan); ok {
			text := "held: " + p.Held["checkout"].Text + " unmoved: " + p.Unmoved["checkout"].Text
			for _, a := range p.Actions {
				text += "\n  " + string(a.Mode) + ": " + a.Why.Summary
			}
			s.said = append(s.said, text)
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("it said:\n%s", strings.Join(s.said[max(0, len(s.said)-8):], "\n"))
		}
	})
}

// cores are what the pods have that run, which is those that were played.
func (s *shop) cores() (pods int, sum float64) {
	for _, pod := range s.Pods() {
		if kubetest.Sub(pod, "status")["phase"] != "Running" {
			continue
		}
		var v float64
		limit := fmt.Sprint(kubetest.Sub(kubetest.Container(pod, "app"), "resources", "limits")["cpu"])
		if _, err := fmt.Sscanf(limit, "%fm", &v); err == nil && strings.HasSuffix(limit, "m") {
			v /= 1000
		}
		pods, sum = pods+1, sum+v
	}
	return pods, sum
}

// perSecond is how many requests a second there are. A second of a busy machine is longer
// than one, and has more of them.
const perSecond = 40

// second plays the kubelets, and sends the spans of the requests since the last one.
func (s *shop) second() (pods int, cores float64) {
	for _, pod := range s.Pods() {
		s.Kubelet(pod)
	}
	pods, cores = s.cores()
	now := time.Now()
	if s.quiet || pods == 0 || s.sent.IsZero() {
		s.sent = now
		return pods, cores
	}
	late := 1 - math.Min(1, cores/s.need)
	var spans []any
	n, missed := int(perSecond*now.Sub(s.sent).Seconds()), 0.0
	for i := range n {
		took, end := 20*time.Millisecond, s.sent.Add(time.Duration(i)*time.Second/perSecond)
		if missed += late; missed >= 1 { // evenly among the others
			took, missed = 300*time.Millisecond, missed-1
		}
		begin := end.Add(-took)
		spans = append(spans, map[string]any{"traceId": fmt.Sprintf("%032x", now.UnixNano()+int64(i)), "spanId": fmt.Sprintf("%016x", now.UnixNano()+int64(i)), "name": "GET /", "kind": 2,
			"startTimeUnixNano": fmt.Sprint(begin.UnixNano()), "endTimeUnixNano": fmt.Sprint(begin.Add(took).UnixNano())})
	}
	attr := func(key, value string) any {
		return map[string]any{"key": key, "value": map[string]any{"stringValue": value}}
	}
	s.sent = s.sent.Add(time.Duration(n) * time.Second / perSecond)
	body, err := json.Marshal(map[string]any{"resourceSpans": []any{map[string]any{
		"resource":   map[string]any{"attributes": []any{attr("service.name", "pay"), attr("k8s.namespace.name", "shop"), attr("k8s.deployment.name", "checkout")}},
		"scopeSpans": []any{map[string]any{"spans": spans}},
	}}})
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.Post("http://"+s.endpoint+"/v1/traces", "application/json", bytes.NewReader(body))
	if err != nil {
		s.t.Logf("send spans: %v", err)
		return pods, cores
	}
	_ = answer.Body.Close()
	return pods, cores
}

// until plays until something is true.
func (s *shop) until(what string, true func(pods int, cores float64) bool) {
	s.t.Helper()
	deadline := time.After(2 * time.Minute)
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		pods, cores := s.second()
		if true(pods, cores) {
			return
		}
		select {
		case <-deadline:
			s.t.Fatalf("not within 2 minutes: %s; %d pods have %v cores", what, pods, cores)
		case <-tick.C:
		}
	}
}

// wrote are the writes to the Deployment and its pods.
func (s *shop) wrote() (all []string) {
	for _, w := range s.Wrote("trimtab") {
		if strings.Contains(w, "scale") || strings.Contains(w, "resize") {
			all = append(all, w)
		}
	}
	return all
}

func (s *shop) says(text string) bool { return strings.Contains(strings.Join(s.said, "\n"), text) }

func TestOnARealAPIServerADeploymentThatSendsSpansIsResizedThenScaled(t *testing.T) {
	s := openShop(t, "act", nil)
	s.until("pods are at their largest, and there are more of them", func(pods int, cores float64) bool { return pods >= 3 && cores >= s.need })
	writes := s.wrote()
	resized, scaled := -1, -1
	for i, w := range writes {
		if strings.Contains(w, "resize") && resized < 0 {
			resized = i
		}
		if strings.Contains(w, "scale") && scaled < 0 {
			scaled = i
		}
	}
	if resized < 0 || scaled < 0 {
		t.Errorf("it wrote %q, want both", writes)
	}
	if !s.says("replicas raised from 2 to") {
		t.Error("no plan says so")
	}
}

func TestOnARealAPIServerModeRecommendWritesNothing(t *testing.T) {
	s := openShop(t, "recommend", nil)
	s.until("it advises more pods", func(int, float64) bool { return s.says("replicas would be raised from 2 to") })
	if err := s.site.Close(); err != nil {
		t.Error(err)
	}
	for _, w := range s.Wrote("trimtab") {
		if !strings.Contains(w, "selfsubjectaccessreviews") && !strings.Contains(w, "configmaps") {
			t.Errorf("it did %s", w)
		}
	}
}

func TestOnARealAPIServerReplicasThatAnHPASetsAreRecommendedAndThePlanNamesIt(t *testing.T) {
	s := openShop(t, "act", func(r *kubetest.Real) {
		r.Apply("apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: h, namespace: shop}\nspec: {minReplicas: 2, maxReplicas: 2, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: checkout}, metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}\n")
	})
	s.until("it advises more pods and names the HPA", func(int, float64) bool {
		return s.says("replicas would be raised from 2 to") && s.says("HorizontalPodAutoscaler shop/h sets its replicas")
	})
	for _, w := range s.wrote() {
		if strings.Contains(w, "scale") {
			t.Errorf("it did %s", w)
		}
	}
	s.until("the size is its own still", func(_ int, cores float64) bool { return cores >= 1.15 })
}

// A user of an existing cluster: first recommendations within 5 minutes. The time is
// from before the rights are given, with default settings.
func TestARealClustersFirstRecommendationComesWithinFiveMinutesOfDefaultSettings(t *testing.T) {
	var began time.Time
	s := openShopWith(t, "recommend", "", func(*kubetest.Real) { began = time.Now() })
	deadline := began.Add(5 * time.Minute)
	for !s.says("recommend: ") {
		if time.Now().After(deadline) {
			t.Fatal("no recommendation within 5 minutes")
		}
		s.second()
		time.Sleep(time.Second)
	}
	t.Logf("the first recommendation came %v after the installation: %s", time.Since(began).Round(100*time.Millisecond), s.said[len(s.said)-1])
	if got := s.wrote(); len(got) != 0 {
		t.Errorf("in mode recommend it wrote %q", got)
	}
}
