package wire

import (
	"testing"
	"time"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/quantity"
)

func TestAPerformanceIsAskedForWithItsNumberOfRequests(t *testing.T) {
	cfg := &config.Config{Workloads: []config.Workload{{Name: "shop", Match: config.Match{Prometheus: map[string]string{"job": "shop"}},
		Load:        `sum(rate(d_count{$match}[20s]))`,
		Performance: `sum(rate(d_bucket{$match,le="0.2"}[20s])) / sum(rate(d_count{$match}[20s]))`}}}
	for _, q := range Queries(cfg) {
		want := ""
		if q.Quantity == quantity.Performance {
			want = `(sum(rate(d_count{job="shop"}[20s]))) * 20`
		}
		if q.Requests != want {
			t.Errorf("%s: %q, want %q", q.Quantity, q.Requests, want)
		}
	}
	if got := cfg.Workloads[0].Ratio().Within; got != 200*time.Millisecond {
		t.Errorf("within %v", got)
	}
}

func TestTheMemoryOfPodsIsAskedForOnlyWherePrometheusIsToTellIt(t *testing.T) {
	cfg := &config.Config{Workloads: []config.Workload{{Name: "shop", Knob: config.Knob{Memory: &config.MemoryBounds{Max: 1 << 30},
		Kubernetes: &config.KubernetesTarget{Namespace: "prod", Deployment: "shop"}}}}}
	if got := Queries(cfg); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	cfg.Kubernetes.Memory = config.MemoryByPrometheus
	want := `{namespace="prod",pod=~"shop-[a-z0-9]+-[a-z0-9]+",container!="",container!="POD"}`
	got := Queries(cfg)
	if len(got) != 3 || got[1].Expr != "container_memory_working_set_bytes"+want || got[2].Expr != "container_oom_events_total"+want || !got[2].Counter || got[1].Counter {
		t.Errorf("%+v", got)
	}
}
