//go:build integration

package kubernetes

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/trimtab/trimtab/internal/kube/kubetest"
	"github.com/trimtab/trimtab/internal/loopback"
)

// crowd is one size to measure.
type crowd struct{ nodes, workloads, pods int }

// name says the size.
func (c crowd) name() string {
	return fmt.Sprintf("%d nodes, %d workloads of %d pods", c.nodes, c.workloads, c.pods)
}

// For how long each phase is measured. TRIMTAB_CROWD_SECONDS changes it.
const phase = 45 * time.Second

// BenchmarkCrowd prints what trimtab uses beside clusters of growing size: the number of
// pods grows, then that of workloads. TRIMTAB_CROWD=NODESxWORKLOADSxPODS measures one.
func BenchmarkCrowd(b *testing.B) {
	sizes := []crowd{{50, 50, 10}, {200, 200, 10}, {500, 500, 10}, {500, 1000, 5}, {1000, 1000, 10}}
	if one := os.Getenv("TRIMTAB_CROWD"); one != "" {
		var c crowd
		if _, err := fmt.Sscanf(one, "%dx%dx%d", &c.nodes, &c.workloads, &c.pods); err != nil {
			b.Fatal(err)
		}
		sizes = []crowd{c}
	}
	for _, c := range sizes {
		b.Run(c.name(), func(b *testing.B) {
			for b.Loop() {
				c.measure(b)
			}
		})
	}
}

// subject is the program that is measured.
type subject struct {
	b         *testing.B
	cmd       *exec.Cmd
	web, otlp string
	log       string
	began     time.Time
}

func (c crowd) measure(b *testing.B) {
	r := kubetest.StartReal(b, "trimtab")
	r.Kwok()
	r.Crowd(c.nodes, c.workloads, c.pods)
	r.Apply(rights(b))
	for _, phased := range []struct {
		name  string
		spans bool
	}{{"no spans", false}, {"spans", true}} {
		c.run(b, r, phased.name, phased.spans)
	}
}

// rights are those of deploy/kubernetes, for the user trimtab.
func rights(b *testing.B) string {
	var all []string
	for _, file := range []string{"rbac-recommend.yaml", "rbac-act.yaml"} {
		text, err := os.ReadFile(filepath.Join("../../../deploy/kubernetes", file))
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, strings.ReplaceAll(strings.ReplaceAll(string(text), "namespace: default", "namespace: shop"),
			"{kind: ServiceAccount, name: trimtab, namespace: trimtab}", "{kind: User, name: trimtab, apiGroup: rbac.authorization.k8s.io}"))
	}
	return strings.Join(all, "\n---\n")
}

// run starts the program, and measures it once it holds all workloads.
func (c crowd) run(b *testing.B, r *kubetest.Real, what string, spans bool) {
	s := c.start(b, r)
	defer s.stop()
	s.until("ready", time.Minute, func() bool { return s.get("/-/ready", nil) })
	ready := time.Since(s.began)
	held := time.Duration(0)
	known := 0
	s.until("a first holding", 2*time.Minute, func() bool {
		known = len(s.metrics()["trimtab_workload_allocation"].GetMetric())
		held = time.Since(s.began)
		return known > 0
	})
	listed := time.Now()
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if spans {
			s.send(ctx, c.workloads)
		}
	}()
	defer func() { cancel(); <-done }()
	time.Sleep(20 * time.Second)
	long := phase
	if seconds, err := strconv.Atoi(os.Getenv("TRIMTAB_CROWD_SECONDS")); err == nil {
		long = time.Duration(seconds) * time.Second
	}
	s.profile(syscall.SIGUSR1)
	from, cpu, before := time.Now(), s.cpu(), s.metrics()
	time.Sleep(long)
	to, used, after := time.Now(), s.cpu()-cpu, s.metrics()
	s.profile(syscall.SIGUSR2)
	asked := r.Asked("trimtab", from, to)
	sum := 0
	for _, n := range asked {
		sum += n
	}
	starts := r.Asked("trimtab", s.began.Add(-time.Second), listed)
	lists, most := 0, 0
	for name, n := range starts {
		if strings.HasPrefix(name, "list ") {
			lists, most = lists+n, max(most, n)
		}
	}
	seconds := to.Sub(from).Seconds()
	fmt.Printf("%s, %s: ready after %.1f s, first holding after %.1f s with %d workloads, resident %.0f MiB (peak %.0f), %.1f%% of a core, %.2f requests/s, %d LISTs at the start (at most %d of a kind)\n",
		c.name(), what, ready.Seconds(), held.Seconds(), known, s.status("VmRSS:"), s.status("VmHWM:"), 100*used/seconds, float64(sum)/seconds, lists, most)
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		fmt.Printf("    %-60s %5d\n", name, asked[name])
	}
	for _, name := range slices.Sorted(maps.Keys(starts)) {
		fmt.Printf("    start: %-60s %5d\n", name, starts[name])
	}
	for _, line := range steps(before, after) {
		fmt.Println("    " + line)
	}
	fmt.Printf("    %d workloads with an allocation, %.0f in brief, %d held, %.0f actions applied\n", len(after["trimtab_workload_allocation"].GetMetric()), after["trimtab_exporter_brief_workloads"].GetMetric()[0].GetGauge().GetValue(), len(after["trimtab_workload_held"].GetMetric()), total(after["trimtab_actuator_actions_total"])-total(before["trimtab_actuator_actions_total"]))
}

// steps says how long the steps of each stage took.
func steps(before, after map[string]*dto.MetricFamily) (lines []string) {
	old := map[string]*dto.Histogram{}
	for _, m := range before["trimtab_stage_step_seconds"].GetMetric() {
		old[m.GetLabel()[0].GetValue()] = m.GetHistogram()
	}
	for _, m := range after["trimtab_stage_step_seconds"].GetMetric() {
		h, stage := m.GetHistogram(), m.GetLabel()[0].GetValue()
		n := h.GetSampleCount() - old[stage].GetSampleCount()
		if n == 0 {
			continue
		}
		longest := "longer"
		for i, bucket := range h.GetBucket() {
			var had uint64
			if was := old[stage].GetBucket(); i < len(was) {
				had = was[i].GetCumulativeCount()
			}
			if bucket.GetCumulativeCount()-had == n {
				longest = fmt.Sprintf("at most %v s", bucket.GetUpperBound())
				break
			}
		}
		lines = append(lines, fmt.Sprintf("step of %-12s %6d times, mean %.1f ms, each %s", stage, n, 1000*(h.GetSampleSum()-old[stage].GetSampleSum())/float64(n), longest))
	}
	slices.Sort(lines)
	return lines
}

func total(f *dto.MetricFamily) (sum float64) {
	for _, m := range f.GetMetric() {
		sum += m.GetCounter().GetValue()
	}
	return sum
}

// start writes the configuration and runs the program.
func (c crowd) start(b *testing.B, r *kubetest.Real) *subject {
	s := &subject{b: b, web: loopback.Address(b), otlp: loopback.Address(b)}
	dir := b.TempDir()
	binary := os.Getenv("TRIMTAB_CROWD_BINARY")
	if binary == "" {
		binary = filepath.Join(dir, "trimtab")
		if out, err := exec.Command("go", "build", "-trimpath", "-tags", "profile", "-o", binary, "../../../cmd/trimtab").CombinedOutput(); err != nil {
			b.Fatalf("build trimtab: %v\n%s", err, out)
		}
	}
	var text bytes.Buffer
	fmt.Fprintf(&text, `pool: {cpu: %g, unit: 0.1}
actuator: {lock_dir: %q}
storage: {path: %q}
web: {listen_address: %q}
otlp: {grpc: "off", http: %q}
jaeger: {grpc: "off"}
kubernetes: {kubeconfig: %q, journal: trimtab}
workloads:
`, 0.6*float64(c.workloads*c.pods), filepath.Join(dir, "locks"), filepath.Join(dir, "data"), s.web, s.otlp, r.Kubeconfig("trimtab"))
	for i := range c.workloads {
		fmt.Fprintf(&text, "  - {name: %[1]s, slo: {latency: 100ms, fraction: 0.95}, match: {kubernetes: {namespace: shop, deployment: %[1]s}}, knob: {cpu: {min: 0.2, max: 1}}, mode: act}\n", kubetest.CrowdName(i))
	}
	file := filepath.Join(dir, "trimtab.yaml")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		b.Fatal(err)
	}
	s.cmd = exec.Command(binary, "run", "--config.file", file, "--log.level=warn")
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = log.Close() })
	s.log, s.cmd.Stderr = log.Name(), log
	s.cmd.Env = os.Environ()
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	s.began = time.Now()
	if err := s.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return s
}

// profile signals a program that was given a directory for profiles.
func (s *subject) profile(signal os.Signal) {
	if os.Getenv("TRIMTAB_PROFILE") != "" {
		_ = s.cmd.Process.Signal(signal) // the figures tell when it has ended
	}
}

// stop ends the program, and prints how long it took to put the baselines back.
func (s *subject) stop() {
	began := time.Now()
	_ = s.cmd.Process.Signal(os.Interrupt) // it may have ended
	err := s.cmd.Wait()
	log, _ := os.ReadFile(s.log)
	fmt.Printf("    stopped after %.1f s (%v), %d baselines are left to a restore\n", time.Since(began).Seconds(), err, bytes.Count(log, []byte("restore cpu of ")))
	if err != nil {
		fmt.Printf("    %.400s\n", log)
	}
}

func (s *subject) until(what string, most time.Duration, true func() bool) {
	for end := time.Now().Add(most); !true(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			s.b.Fatalf("not within %v: %s", most, what)
		}
	}
}

// get reads a page, and reports whether it was answered with 200.
func (s *subject) get(path string, read func(io.Reader)) bool {
	answer, err := http.Get("http://" + s.web + path)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	if read != nil {
		read(answer.Body)
	}
	return answer.StatusCode == http.StatusOK
}

func (s *subject) metrics() (all map[string]*dto.MetricFamily) {
	s.get("/metrics", func(r io.Reader) {
		p := expfmt.NewTextParser(model.UTF8Validation)
		var err error
		if all, err = p.TextToMetricFamilies(r); err != nil {
			s.b.Fatal(err)
		}
	})
	return all
}

// cpu is what the process used, in s.
func (s *subject) cpu() (sum float64) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		s.b.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, at := range []int{11, 12} { // utime and stime, in ticks of 10 ms
		ticks, err := strconv.ParseFloat(fields[at], 64)
		if err != nil {
			s.b.Fatal(err)
		}
		sum += ticks / 100
	}
	return sum
}

// status is a size of the process in MiB.
func (s *subject) status(name string) float64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.b.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kib, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			if err != nil {
				s.b.Fatal(err)
			}
			return kib / 1024
		}
	}
	s.b.Fatalf("the process has no %s", name)
	return 0
}

// send plays the services: each has a request a second, some of which take too long.
func (s *subject) send(ctx context.Context, workloads int) {
	random := rand.New(rand.NewPCG(1, 2))
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			body, err := proto.Marshal(batch(workloads, now, random))
			if err != nil {
				s.b.Error(err)
				return
			}
			answer, err := http.Post("http://"+s.otlp+"/v1/traces", "application/x-protobuf", bytes.NewReader(body))
			if err != nil {
				s.b.Logf("send spans: %v", err)
				continue
			}
			_ = answer.Body.Close()
		}
	}
}

func batch(workloads int, now time.Time, random *rand.Rand) *coltrace.ExportTraceServiceRequest {
	req := &coltrace.ExportTraceServiceRequest{}
	attr := func(key, value string) *common.KeyValue {
		return &common.KeyValue{Key: key, Value: &common.AnyValue{Value: &common.AnyValue_StringValue{StringValue: value}}}
	}
	for i := range workloads {
		took := 20 * time.Millisecond
		if random.IntN(20+i%20) == 0 {
			took = 300 * time.Millisecond
		}
		id := make([]byte, 24)
		for b := 0; b < len(id); b += 8 {
			binary.LittleEndian.PutUint64(id[b:], random.Uint64())
		}
		name := kubetest.CrowdName(i)
		req.ResourceSpans = append(req.ResourceSpans, &trace.ResourceSpans{
			Resource: &resource.Resource{Attributes: []*common.KeyValue{attr("service.name", name), attr("k8s.namespace.name", "shop"), attr("k8s.deployment.name", name)}},
			ScopeSpans: []*trace.ScopeSpans{{Spans: []*trace.Span{{
				TraceId: id[:16], SpanId: id[16:], Name: "GET /", Kind: trace.Span_SPAN_KIND_SERVER,
				StartTimeUnixNano: uint64(now.Add(-took).UnixNano()), EndTimeUnixNano: uint64(now.UnixNano()),
			}}}},
		})
	}
	return req
}
