package config

import (
	"strings"
	"testing"
	"time"
)

// sized is a file of one workload of a cluster with such a knob.
func sized(knob string) string {
	return `pool: {cpu: 8}
workloads:
  - name: checkout
    slo: {latency: 100ms, fraction: 0.95}
    match: {kubernetes: {namespace: shop, deployment: checkout}}
    knob: ` + knob + "\n"
}

func TestTheNumberOfPodsIsBoundedBesideTheirSize(t *testing.T) {
	c, err := Parse("f.yaml", []byte(sized(`{cpu: {min: 0.1, max: 2}, replicas: {max: 6, behavior: {scaleDown: {stabilizationWindowSeconds: 60, policies: [{type: Percent, value: 10, periodSeconds: 60}]}}, fallback: {failureThreshold: 3, replicas: 4, behavior: currentReplicasIfHigher}}}`)))
	if err != nil {
		t.Fatal(err)
	}
	k := &c.Workloads[0].Knob
	if b, ok := k.BoundsOf("replicas"); !ok || b.Min != 1 || b.Max != 6 {
		t.Errorf("bounds %+v, %v", b, ok)
	}
	if kind, _, at, ok := k.Scale(); !ok || kind != "kubernetes-scale" || at != "shop/Deployment/checkout/*" {
		t.Errorf("the number is at %s %s, %v", kind, at, ok)
	}
	if w := k.Replicas.Behavior.ScaleDown.Window; w == nil || *w != 60 {
		t.Errorf("window %v", w)
	}
}

func TestAWordThatLowersOnMissingInputIsRefusedWithTheOneThatIsAccepted(t *testing.T) {
	for knob, want := range map[string]string{
		`{cpu: {min: 0.1, max: 2}, replicas: {fallback: {replicas: 2, behavior: currentReplicasIfLower}}}`:                                                    "use currentReplicasIfHigher",
		`{cpu: {min: 0.1, max: 2}, replicas: {min: 3, fallback: {replicas: 2, behavior: static}}}`:                                                            "use behavior: currentReplicasIfHigher",
		`{cpu: {min: 0.1, max: 2}, replicas: {behavior: {scaleUp: {policies: []}}}}`:                                                                          "want 1 to 64",
		`{cpu: {min: 0.1, max: 2}, replicas: {behavior: {scaleUp: {selectPolicy: max}}}}`:                                                                     `did you mean "Max"?`,
		`{cpu: {min: 0.1, max: 2}, replicas: {behavior: {scaleDown: {policies: [{type: Pods, value: 0, periodSeconds: 15}]}}}}`:                               "selectPolicy: Disabled",
		`{cpu: {min: 0.1, max: 2}, replicas: {min: 3, max: 2}}`:                                                                                               "max is 2, want 3",
		`{cpu: {min: 0.1, max: 2}, replicas: {max: 2, spare: 2}}`:                                                                                             "spare is 2",
		`{cpu: {min: 0.1, max: 2}, replicas: {max: 2}, resources: {replicas: {max: 3}}}`:                                                                      "bounded twice",
		`{cgroup: a, cpu: {min: 0.1, max: 2}, replicas: {max: 2}}`:                                                                                            "only a workload of Kubernetes",
		`{cpu: {min: 0.1, max: 2}, replicas: {behavior: {scaleUp: {policies: [{type: Pod, value: 1, periodSeconds: 1}]}}}}`:                                   `did you mean "Pods"?`,
		`{cpu: {min: 0.1, max: 2}, replicas: {behavior: {scaleUp: {stabilizationWindowSeconds: 4000}}}}`:                                                      "want 0 to 3600",
		`{cpu: {min: 0.1, max: 2}, replicas: {behavior: {scaleUp: {policies: [{type: Pods, value: 1, periodSeconds: 1801}]}}, fallback: {behavior: static}}}`: "want 1 to 1800",
	} {
		if _, err := Parse("f.yaml", []byte(sized(knob))); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "f.yaml:6:") {
			t.Errorf("%s: %v, want %q with its place", knob, err, want)
		}
	}
}

func TestZeroPodsNeedALoadThatIsToldFromOutsideThem(t *testing.T) {
	const query = "    load: sum(rate(ingress_requests_total[1m]))\nprometheus: {url: http://localhost:9090}\n"
	c, err := Parse("f.yaml", []byte(sized(`{cpu: {min: 0.1, max: 2}, replicas: {max: 6, allow_zero: true}}`)+query))
	if err != nil {
		t.Fatal(err)
	}
	k := &c.Workloads[0].Knob
	if b, _ := k.BoundsOf("replicas"); b.Min != 0 || k.Replicas.Min != 1 || k.Replicas.Cooldown != 5*time.Minute {
		t.Errorf("bounds %+v of %+v", b, k.Replicas)
	}
	for text, want := range map[string]string{
		sized(`{cpu: {min: 0.1, max: 2}, replicas: {allow_zero: true}}`):                        "write load: a query",
		sized(`{cpu: {min: 0.1, max: 2}, replicas: {cooldown: 1m}}`):                            "cooldown has no effect without allow_zero",
		sized(`{cpu: {min: 0.1, max: 2}, replicas: {allow_zero: true, cooldown: 0s}}`) + query:  "1s",
		sized(`{cpu: {min: 0.1, max: 2}, replicas: {allow_zero: true, cooldown: 48h}}`) + query: "24h",
	} {
		if _, err := Parse("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "f.yaml:6:") {
			t.Errorf("%s: %v, want %q with its place", text, err, want)
		}
	}
}
