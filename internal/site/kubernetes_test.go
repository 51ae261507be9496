package site

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// clusterFile is a Deployment whose pods have too little for what is declared.
const clusterFile = `
pool: {cpu: 6, unit: 0.01, step: 1}
objective: egalitarian
round: 1s
lease: 10s
guard: {dead_band: 0.02, reversal_window: 0s}
analyzer: {report_interval: 500ms, partitions: 1}
actuator: {lock_dir: %q}
storage: {path: %q}
web: {listen_address: "127.0.0.1:0"}
otlp: {grpc: "off", http: "off"}
jaeger: {grpc: "off"}
kubernetes: {kubeconfig: %q%s}
workloads:
  - name: checkout
    slo: {performance: 1}
    fallback: {demand: 1.6}
    match: {kubernetes: {namespace: shop, deployment: checkout}}
    knob: {cpu: {min: 0.1, max: 2}}
    mode: %s
`

const halfCore = `{"requests":{"cpu":"100m"},"limits":{"cpu":"500m"}}`

func TestTheCheckOfAClusterNamesWhatIsMissing(t *testing.T) {
	server := kubetest.New(t)
	server.NoResize()
	server.Shop(2, halfCore)
	text := fmt.Sprintf(clusterFile, t.TempDir(), t.TempDir(), server.Kubeconfig(), ", journal: trimtab", "act")
	cfg, err := config.Parse("cluster.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	server.Deny("patch pods/resize", "watch horizontalpodautoscalers")
	var out strings.Builder
	if err := CheckCluster(t.Context(), cfg, &out); err == nil {
		t.Error("it is said to work")
	}
	for _, want := range []string{"Kubernetes 1.37", "no pods/resize", "1.33", "patch pods/resize in namespace shop", "watch horizontalpodautoscalers.autoscaling in namespace shop"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
	if got := server.Writes(); len(got) != 0 {
		t.Errorf("it wrote %q", got)
	}
}
