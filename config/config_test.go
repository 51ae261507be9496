package config_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	promconfig "github.com/prometheus/common/config"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
)

func load(t *testing.T, name string) *config.Config {
	t.Helper()
	c, err := config.Load(filepath.Join("testdata", "good", name))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// plain compares the HTTP client's configuration without its cache.
func plain() cmp.Option { return cmpopts.IgnoreUnexported(promconfig.ProxyConfig{}) }

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return c
}

func TestGoodFilesAreReadAsTheyStand(t *testing.T) {
	c := load(t, "shop.yaml")
	if c.Pool.Resource() != "cpu" || c.Pool.Capacity() != 8 || c.Pool.Unit != 0.005 || c.Pool.Step != 2.665 {
		t.Errorf("pool %+v", c.Pool)
	}
	if c.Round != 30*time.Second || c.Lease != 90*time.Second || c.Analyzer.ReportInterval != 6*time.Second {
		t.Errorf("round %v, lease %v, report %v", c.Round, c.Lease, c.Analyzer.ReportInterval)
	}
	want := filepath.Join("testdata", "good", "prometheus.password")
	if got := c.Prometheus.HTTP.BasicAuth.PasswordFile; got != want {
		t.Errorf("password_file %q, want it relative to the file: %q", got, want)
	}
	if !c.Prometheus.HTTP.FollowRedirects || c.Prometheus.Interval != 6*time.Second || c.Prometheus.Timeout != 6*time.Second {
		t.Errorf("prometheus %v", c.Prometheus)
	}
	a, b := c.Workloads[0], c.Workloads[1]
	if diff := cmp.Diff(config.Workload{
		Name: "checkout", Class: trimtab.LatencyCritical, SLO: config.SLO{Latency: 200 * time.Millisecond, Fraction: 0.95},
		Utility: "linear", Weight: 1, Mode: trimtab.Recommend,
		Match: config.Match{
			Spans:      map[string]config.Values{"service.name": {"checkout"}},
			Prometheus: map[string]string{"namespace": "shop", "deployment": "checkout"},
			Alert:      map[string]string{"service": "checkout"},
		},
		Load: "sum(rate(http_requests_total{$match}[1m]))",
		Knob: config.Knob{Cgroup: "shop.slice/checkout.service", CPU: &config.CPUBounds{Bounds: config.Bounds{Min: 0.2, Max: 6}}},
	}, a); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if b.SLO.Target() != 40 || b.Match.Spans["service.name"][0] != "search" || *b.Knob.Bounds() != (config.Bounds{Min: 0.005, Max: 8, Default: 2}) {
		t.Errorf("%+v %+v", b, b.Knob.Bounds())
	}
	if len(c.Warnings) != 0 {
		t.Errorf("warnings: %v", c.Warnings)
	}
}

func TestWorkersAreCountedInWholeNumbers(t *testing.T) {
	c := load(t, "workers.yaml")
	w := c.Workloads[0]
	if c.Pool.Resource() != "workers" || c.Pool.Unit != 1 || w.Knob.Bounds().Max != 8 || w.Mode != trimtab.Act || c.Lease != 10*time.Second {
		t.Errorf("%v", c)
	}
	if w.Knob.Process.Dir != "/run/render" {
		t.Error(w.Knob.Process.Dir)
	}
}

func TestADirectoryMayBeAPatternWhoseInstancesNobodyKnows(t *testing.T) {
	c := load(t, "instances.yaml")
	// The min of what has instances does not count: 1 for each of them, and 12 for the other, are in 12.
	if render, mail := &c.Workloads[0].Knob, &c.Workloads[1].Knob; !render.Several() || mail.Several() || render.Bounds().Min != 1 || len(c.Warnings) > 0 {
		t.Errorf("%+v, %+v, %v", render, mail, c.Warnings)
	}
}

func TestEverySectionIsRead(t *testing.T) {
	c := load(t, "watch.yaml")
	want := config.Default()
	want.Guard = config.Guard{MaxFall: 0.1, MaxLowered: 0.5, MaxMoved: 0.2, DeadBand: 0.05, ReversalWindow: 10 * time.Minute, HoldRounds: 5}
	want.Analyzer = config.Analyzer{ReportInterval: 5 * time.Second, Partitions: 4, TraceTimeout: 10 * time.Second, MaxSpans: 100000, MaxTraceSpans: 5000, MaxDiscovered: 50, Confidence: 0.95}
	want.Actuator.CgroupRoot = "/sys/fs/cgroup"
	want.Storage = config.Storage{Path: "/var/lib/trimtab", Limit: 256 << 20}
	in := func(name string) string { return filepath.Join("testdata", "good", name) }
	want.NATS = config.NATS{URL: "tls://nats.example:4222", CredentialsFile: in("trimtab.creds"), TLS: config.TLS{CAFile: in("ca.pem")}}
	want.Web = config.Web{ListenAddress: "[::1]:9600", ConfigFile: in("web.yaml")}
	want.OTLP = config.OTLP{GRPC: "localhost:4317", HTTP: "off", TLS: config.TLS{CertFile: in("c.pem"), KeyFile: in("k.pem"), CAFile: in("ca.pem")}, MaxBody: 4 << 20}
	want.Jaeger.GRPC = "off"
	want.Prometheus.Interval, want.Prometheus.Timeout = 5*time.Second, 5*time.Second
	got := *c
	got.Workloads = nil
	if diff := cmp.Diff(want, &got, plain()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(config.Values{"cart", "cart-v2"}, c.Workloads[0].Match.Spans["service.name"]); diff != "" {
		t.Error(diff)
	}
}

// TestTheDefaultListensOnLoopbackOnly is promise S7.
func TestTheDefaultListensOnLoopbackOnly(t *testing.T) {
	c := config.Default()
	for _, address := range []string{c.Web.ListenAddress, c.OTLP.GRPC, c.OTLP.HTTP, c.Jaeger.GRPC} {
		host, _, err := net.SplitHostPort(address)
		if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
			t.Errorf("default address %q", address)
		}
	}
	if c.NATS.Listen != "" || len(c.Workloads) != 0 || c.Lease != time.Minute || c.Objective != "njc" {
		t.Errorf("%v", c)
	}
	least := load(t, "least.yaml")
	least.Workloads = nil
	if diff := cmp.Diff(c, least, plain()); diff != "" {
		t.Errorf("an empty list differs from no file (-want +got)\n%s", diff)
	}
}

func TestWhatIsDubiousIsAWarningWithPlaceAndHint(t *testing.T) {
	c := parse(t, `pool: {cpu: 2}
round: 30s
lease: 40s
guard: {off: true}
web: {listen_address: ":9600"}
otlp: {grpc: "0.0.0.0:4317"}
nats: {url: "nats://n", token: hunter2}
prometheus:
  url: http://p:9090
  authorization: {credentials: hunter2}
  tls_config: {insecure_skip_verify: true}
workloads:
  - name: a
    slo: {latency: 1s, fraction: 0.9}
    knob: {cgroup: a, cpu: {max: 4}}
`)
	want := []string{"3:8:", "4:14:", "5:23:", "6:14:", "7:32:", "10:32:", "11:38:", "15:34:"}
	for i, w := range c.Warnings {
		if i >= len(want) || !strings.HasPrefix(w.Error(), "test.yaml:"+want[i]) || w.Hint == "" || strings.Contains(w.Error(), "hunter2") {
			t.Errorf("warning %d: %v", i, w)
		}
	}
	if len(c.Warnings) != len(want) {
		t.Errorf("%d warnings, want %d", len(c.Warnings), len(want))
	}
}

// TestNoFormOfPrintingShowsASecret is promise S13.
func TestNoFormOfPrintingShowsASecret(t *testing.T) {
	c := parse(t, `nats: {url: "nats://n", token: hunter2}
prometheus:
  url: http://p:9090
  oauth2: {client_id: me, client_secret: hunter2, token_url: "http://t"}
  tls_config: {cert_file: c.pem, key: hunter2}
  proxy_url: http://me:hunter2@proxy:3128
  proxy_connect_header: {X-Token: [hunter2]}
  http_headers: {X-Token: {values: [hunter2], secrets: [hunter2]}}
`)
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb+verb+verb, *c, c, c.Prometheus, c.NATS)
		fmt.Fprintf(&out, verb+verb, c.NATS.Token, &c.NATS.Token)
	}
	for _, v := range []any{c, c.NATS, c.NATS.Token} {
		b, _ := json.Marshal(v) // a refusal is also an answer
		out.Write(b)
	}
	for _, h := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(h).Info("x", "config", c, "value", *c, "prometheus", c.Prometheus, "nats", c.NATS, "token", c.NATS.Token)
	}
	out.Write(c.Redacted())
	for _, change := range config.Changed(config.Default(), c) {
		out.WriteString(change.String())
	}
	for _, secret := range []string{"hunter2", fmt.Sprintf("%x", "hunter2")} {
		if i := strings.Index(out.String(), secret); i >= 0 {
			t.Errorf("shown: …%s", out.String()[max(0, i-80):i+len(secret)])
		}
	}
	if !strings.Contains(string(c.Redacted()), "token: <secret>") || string(c.NATS.Token) != "hunter2" {
		t.Errorf("redacted:\n%s", c.Redacted())
	}
}

func TestTheRedactedConfigurationIsAConfiguration(t *testing.T) {
	for _, name := range []string{"shop.yaml", "workers.yaml", "watch.yaml", "least.yaml"} {
		c := load(t, name)
		again, err := config.Parse(name, c.Redacted())
		if err != nil {
			t.Errorf("%v\n%s", err, c.Redacted())
			continue
		}
		if lines := config.Changed(c, again); len(lines) > 0 {
			t.Errorf("%s: %v", name, lines)
		}
	}
}

func TestChangedSaysWhatNeedsARestart(t *testing.T) {
	old := parse(t, "round: 10s\nnats: {url: nats://n, token: a}\nworkloads:\n- {name: a, mode: off}\n- {name: b, mode: off}\n")
	new := parse(t, "round: 20s\nlease: 30s\nweb: {listen_address: \"127.0.0.1:1\"}\nnats: {url: nats://n, token: b}\nworkloads:\n- {name: c, mode: off}\n- {name: b, mode: off, weight: 2}\n")
	got := ""
	for _, c := range config.Changed(old, new) {
		got += c.String() + "\n"
	}
	for _, line := range []string{
		"round: 10s → 20s", "web.listen_address: 127.0.0.1:9600 → 127.0.0.1:1 (needs a restart)",
		"nats.token: <secret> → <secret> (needs a restart)", "workloads[a]: present → none", "workloads[b].weight: 1 → 2", "workloads[c]: none → present",
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no line %q in\n%s", line, got)
		}
	}
	if lines := config.Changed(old, old); len(lines) != 0 {
		t.Errorf("the same differs: %v", lines)
	}
}

func TestAFileThatCannotBeReadIsAnError(t *testing.T) {
	if _, err := config.Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	if _, err := config.Load(t.TempDir()); err == nil {
		t.Error("a directory was read")
	}
	if _, err := config.Load("/dev/zero"); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("an endless file: %v", err)
	}
}

func TestBytesThatAreNoTextAreRefusedWithTheirPlace(t *testing.T) {
	for text, want := range map[string]string{
		"round: 10s\nobjective: \xff":                   "f:2:12: this byte is not UTF-8",
		"round: 1\x000s":                                "f:1:9: control character U+0000",
		strings.Repeat("# long\n", config.MaxBytes/7+1): "f:1:1: the file is larger than",
		strings.Repeat("[", 100_000):                    "f:1:33: nested deeper than",
		strings.Repeat("- ", 100_000):                   "f:1:65: nested deeper than",
		strings.Repeat("{a: ", 100_000):                 "f:1:129: nested deeper than",
		strings.Repeat("a: |\n", 10_000):                "f:1001:2: more than 1000 keys side by side",
		"a: {" + strings.Repeat("a: 1,", 10_000):        "f:1:5006: more than 1000 keys side by side",
	} {
		if _, err := config.Parse("f", []byte(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.30q: %v, want %s", text, err, want)
		}
	}
	if c, err := config.Parse("f", []byte("\ufeffround: 10s\r\nobjective: social\r\n")); err != nil || c.Objective != "social" {
		t.Errorf("byte order mark and CRLF: %v", err)
	}
}

func TestManyWorkloadsAreNoKeysSideBySide(t *testing.T) {
	var b strings.Builder
	b.WriteString("workloads:\n")
	for i := range 10_000 {
		fmt.Fprintf(&b, "  - name: w%d\n    mode: off\n    match: {alert: {a: b}}\n", i)
	}
	if c := parse(t, b.String()); len(c.Workloads) != 10_000 {
		t.Errorf("%d workloads", len(c.Workloads))
	}
}

func TestUtilitiesHaveTheShapesOfThePaper(t *testing.T) {
	for _, c := range []struct {
		text string
		f    func(m float64) float64
	}{
		{"linear", func(m float64) float64 { return m }},
		{"quadratic", func(m float64) float64 { return m * m }},
		{"sqrt", math.Sqrt},
		{"m", func(m float64) float64 { return m }},
		{"min(p, slo) / slo", func(m float64) float64 { return m }},
		{"m ** 2", func(m float64) float64 { return m * m }},
		{"p >= slo ? 1 : 0", math.Floor},
		{"1", func(float64) float64 { return 1 }},
		{"sqrt(4) * m - max(1, m)", func(m float64) float64 { return max(0, 2*m-1) }},
		{"let half = m / 2; half + half", func(m float64) float64 { return m }},
		{"5 * m - 3", func(m float64) float64 { return min(1, max(0, 5*m-3)) }},
	} {
		u, err := config.Utility(c.text, 40)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		for p := 0.0; p <= 100; p += 0.5 {
			if got, want := u(p), c.f(min(1, p/40)); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: u(%v) = %v, want %v", c.text, p, got, want)
			}
		}
		for _, p := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1} {
			if got := u(p); !(got >= 0 && got <= 1) {
				t.Errorf("%s: u(%v) = %v", c.text, p, got)
			}
		}
	}
}

func TestAUtilityCannotReadTheClockOrExhaustMemory(t *testing.T) {
	for _, text := range []string{
		"now().Unix()", "float(date('2020-01-01').Year())", "duration('1h').Hours()", "len(1..1000000)", "sum([1,2])",
		"reduce([1], # + p)", "repeat('a', 1000000) == '' ? 1 : 0", strings.Repeat("(", 900) + "1" + strings.Repeat(")", 900) + "+", strings.Repeat("p+", 300) + "p", "env.p", "p = 1", "slo / 0 * 0", "log(p) - log(p)",
	} {
		if _, err := config.Utility(text, 1); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%.40s: %v", text, err)
		}
	}
	for _, slo := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		if _, err := config.Utility("linear", slo); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("slo %v: %v", slo, err)
		}
	}
}

func TestTheUnitIsARoundNumber(t *testing.T) {
	for capacity, want := range map[string]float64{"1": 0.001, "2": 0.002, "3": 0.002, "4": 0.002, "8": 0.005, "16": 0.01, "64": 0.05, "0.5": 0.001, "1000": 1, "5000": 5} {
		if got := parse(t, "pool: {cpu: "+capacity+"}").Pool.Unit; got != want {
			t.Errorf("capacity %s: unit %v, want %v", capacity, got, want)
		}
	}
}
