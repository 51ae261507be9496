package site

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
	"github.com/trimtab/trimtab/internal/loopback"
)

// raw passes bytes on.
type raw struct{}

func (raw) Name() string { return "proto" }

func (raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// asked is a GetMetricsRequest about a workload.
func asked(workload string) []byte {
	entry := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), "workload")
	entry = protowire.AppendString(protowire.AppendTag(entry, 2, protowire.BytesType), workload)
	ref := protowire.AppendString(protowire.AppendTag(nil, 2, protowire.BytesType), "shop")
	ref = protowire.AppendBytes(protowire.AppendTag(ref, 3, protowire.BytesType), entry)
	return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), ref)
}

const kedaFile = `
pool: {resources: {replicas: 20}}
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
kubernetes: {kubeconfig: %q}
exporters: {keda: {listen_address: %q}}
workloads:
  - name: checkout
    slo: {latency: 100ms, fraction: 0.95}
    match: {kubernetes: {namespace: shop, deployment: checkout}}
    knob: {resources: {replicas: {min: 2, max: 10, default: 5}}}
    mode: recommend
`

func TestKEDAIsToldHowManyPodsThePlanOfARunningTrimtabWants(t *testing.T) {
	t.Parallel()
	server := kubetest.New(t)
	server.Shop(2, kubetest.HalfCore)
	address := loopback.Address(t)
	cfg, err := config.Parse("keda.yaml", fmt.Appendf(nil, kedaFile, t.TempDir(), t.TempDir(), server.Kubeconfig(), address))
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), cfg, Options{Host: "h", Logger: slog.New(slog.DiscardHandler), Watchdog: []string{"true"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		server.EndWatches()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if got := server.Writes(); len(got) != 0 {
			t.Errorf("it wrote %q", got)
		}
	}()
	client, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(raw{})))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	var answer []byte
	const method = "/externalscaler.ExternalScaler/GetMetrics"
	if err := client.Invoke(t.Context(), method, asked("nobody"), &answer); status.Code(err) != codes.NotFound {
		t.Errorf("a workload that is not there: %v", err)
	}
	deadline := time.After(20 * time.Second)
	for err := error(nil); ; {
		if err = client.Invoke(t.Context(), method, asked("checkout"), &answer); err == nil {
			break
		}
		if status.Code(err) != codes.Unavailable {
			t.Fatal(err)
		}
		select {
		case <-deadline:
			t.Fatalf("no advice within 20 s: %v", err)
		case <-time.After(50 * time.Millisecond):
		}
	}
	inner, _ := protowire.ConsumeBytes(answer[1:])
	const before = 1 + 1 + len("trimtab-replicas") + 1 // tag, length and name, tag of the number
	if n, _ := protowire.ConsumeVarint(inner[before:]); n <= 2 || n > 5 {
		t.Errorf("%d pods are advised, want more than the 2 there are and at most the default of 5", n)
	}
}
