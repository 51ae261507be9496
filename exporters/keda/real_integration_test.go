//go:build integration

package keda

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// scaled is KEDA's own scaler, in a process of its own.
type scaled struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Reader
}

// handed is what KEDA hands to the HorizontalPodAutoscaler.
type handed struct {
	Metric string
	Target float64
	Values []float64
	Active bool
	Error  string
}

func openScaled(t *testing.T, address string) *scaled {
	t.Helper()
	program := filepath.Join(kubetest.Tools(t), "keda-scaler")
	if _, err := os.Stat(program); err != nil {
		t.Skipf("no scaler of KEDA: run make kube-tools: %v", err)
	}
	c := exec.CommandContext(t.Context(), program, "shop", "checkout", "scalerAddress="+address, "workload=checkout")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // it ends with its input
		_ = c.Wait()
	})
	return &scaled{t, in, bufio.NewReader(out)}
}

// look is one look of KEDA.
func (s *scaled) look() (h handed) {
	s.t.Helper()
	if _, err := fmt.Fprintln(s.in); err != nil {
		s.t.Fatal(err)
	}
	line, err := s.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &h)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return h
}

func TestWithKEDAsOwnCodeAgainstARealTrimtabGetMetricsAnswersAnErrorNeverANumberWithoutAValidPlan(t *testing.T) {
	s := openSite(t)
	keda := openScaled(t, s.Addr().String())
	fails := func(when string) {
		t.Helper()
		if h := keda.look(); h.Error == "" || len(h.Values) != 0 || h.Active {
			t.Errorf("%s: KEDA is given %+v", when, h)
		}
	}
	gives := func(when string, want float64) {
		t.Helper()
		if h := keda.look(); h.Error != "" || len(h.Values) != 1 || h.Values[0] != want || !h.Active || h.Target != 1 || h.Metric != "s0-trimtab-replicas" {
			t.Errorf("%s: KEDA is given %+v, want %v", when, h, want)
		}
	}
	fails("before the first plan")
	s.plan(1, 6, nil)
	gives("with a plan", 6)
	s.at = s.at.Add(2*round - time.Millisecond)
	gives("just before it is stale", 6)
	s.at = s.at.Add(time.Millisecond)
	fails("two rounds later")
	s.plan(2, 0, map[string]trimtab.Held{"checkout": {Text: "performance is missing"}})
	fails("while an input is missing")
	s.plan(3, 0, nil)
	fails("while nobody tells how many pods there are")
	s.holds(5, "")
	gives("when it stays as it is", 5)
	s.plan(4, 0.2, nil)
	fails("with a plan of no whole pod")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	fails("when trimtab is gone")
}

func TestOnARealAPIServerAMetricThatKEDACannotReadLeavesReplicasWhereTheyAre(t *testing.T) {
	r := kubetest.StartReal(t)
	r.Shop(3, `{"requests":{"cpu":"100m"},"limits":{"cpu":"500m"}}`)
	// What KEDA makes of a ScaledObject; nobody answers for its metric, as KEDA does not
	// when its scaler fails.
	r.Apply(`{"apiVersion":"autoscaling/v2","kind":"HorizontalPodAutoscaler","metadata":{"name":"keda-hpa-checkout","namespace":"shop"},"spec":{"minReplicas":1,"maxReplicas":9,
"scaleTargetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"checkout"},"metrics":[{"type":"External","external":{"metric":{"name":"s0-trimtab-replicas"},"target":{"type":"AverageValue","averageValue":"1"}}}]}}`)
	r.Until("the HPA says that it has no metric", func() bool {
		return strings.Contains(r.Kubectl("-n", "shop", "get", "hpa", "keda-hpa-checkout", "-o", "jsonpath={.status.conditions}"), "FailedGetExternalMetric")
	})
	time.Sleep(3 * 2 * time.Second) // three looks of the controller
	if got := r.Kubectl("-n", "shop", "get", "deployment", "checkout", "-o", "jsonpath={.spec.replicas}"); got != "3" {
		t.Errorf("of 3 replicas there are %s", got)
	}
}
