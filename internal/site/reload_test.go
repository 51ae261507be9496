package site

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/analyzer/workingset"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/supervise"
)

// wholeConfig is a configuration with a part of every kind.
func wholeConfig(t *testing.T, replace ...string) *config.Config {
	t.Helper()
	root, dir := t.TempDir(), t.TempDir()
	profile, other := filepath.Join(dir, "profile.csv"), filepath.Join(dir, "other.csv")
	for _, file := range []string{profile, other} {
		if err := os.WriteFile(file, []byte("allocation_per_load,performance\n0.003,0.5\n0.006,"+fmt.Sprint(0.0001*float64(len(file)))+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"hungry", "modest"} {
		if err := os.Mkdir(filepath.Join(root, name), 0o755); err != nil {
			t.Fatal(err)
		}
		for file, content := range map[string]string{"cpu.max": "50000 100000\n", "memory.max": "268435456\n"} {
			if err := os.WriteFile(filepath.Join(root, name, file), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	text := fmt.Sprintf(`
pool: {cpu: 4, memory: 1GiB}
objective: drf
round: 10s
analyzer: {partitions: 1}
actuator: {cgroup_root: %q}
storage: {path: %q}
sockets: {components: [{name: store, program: redis-server, cgroup: shop.slice}]}
alertmanager: {token_file: /etc/trimtab/token}
prometheus:
  url: http://prometheus:9090
  basic_auth: {username: trimtab, password: s3cret}
  http_headers: {X-Scope-OrgID: {values: [shop]}}
exporters: {otlp: {endpoint: "http://collector:4317", headers: {authorization: t0ken}}, keda: {listen_address: "127.0.0.1:9601"}}
beside:
  jobs:
    lease: 30s
    capacity: {cpu: 2, cores: 2, memory: 512MiB, llc: 4, membw: 50, network: 1MiB}
    start: {cpu: 0.5, cores: 1, memory: 64MiB, llc: 1, membw: 10, network: 1KiB}
    step: {cpu: 0.5, cores: 1, memory: 64MiB, llc: 1, membw: 10, network: 1KiB}
groups: [{path: shop, weight: 2, guarantee: 1, guarantees: {memory: 1MiB}}]
workloads:
  - name: hungry
    slo: {latency: 100ms, fraction: 0.95}
    utility: sqrt
    weight: 2
    group: shop/front
    guarantee: 0.2
    guarantees: {memory: 1MiB}
    match: {spans: {service.name: hungry}, prometheus: {app: hungry}, alert: {service: hungry}}
    load: sum(rate(http_requests_total{$match}[1m]))
    fallback: {demand: 1}
    knob: {cgroup: hungry, cpu: {min: 0.05, max: 2, default: 1}, memory: {min: 1MiB, max: 512MiB, default: 2MiB}}
    mode: act
  - {name: modest, slo: {performance: 0.9}, performance: hit_ratio, requests: hits, allocation: quota, fallback: {proxy: hits, profile: %q}, knob: {cgroup: modest, cpu: {max: 2}, memory: {max: 256MiB}}}
  - {name: thumbs, slo: {performance: 5}, performance: queue, mode: off}
  - {name: batch, class: best-effort, knob: {cgroup: batch, cpu: {max: 2}, memory: {min: 1MiB}}, progress: {file: /run/batch}, predict: {kind: training}}
`, root, dir, profile)
	for i := 0; i+1 < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("no %q to replace", replace[i])
		}
		text = strings.Replace(text, replace[i], replace[i+1], 1)
	}
	c, err := config.Parse("whole.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// keysOf returns the key of every part of cfg, by name.
func keysOf(t *testing.T, cfg *config.Config) (map[string]string, error) {
	t.Helper()
	s := newSite(Options{Host: "h", Logger: slog.New(slog.DiscardHandler), Watchdog: []string{"true"}})
	parts, err := s.partsOf(cfg)
	keys := map[string]string{}
	for _, p := range parts {
		keys[p.Name] = p.Key
	}
	return keys, err
}

// restarted lists the parts that a reload from a to b stops or starts.
func restarted(t *testing.T, a, b *config.Config) []string {
	t.Helper()
	old, err := keysOf(t, a)
	if err != nil {
		t.Fatal(err)
	}
	next, err := keysOf(t, b)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for name := range old {
		if next[name] != old[name] {
			out = append(out, name)
		}
	}
	for name := range next {
		if _, was := old[name]; !was {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// changed is a copy of cfg with another workload i.
func changed(cfg *config.Config, i int, change func(*config.Workload)) *config.Config {
	c := *cfg
	c.Workloads = slices.Clone(cfg.Workloads)
	change(&c.Workloads[i])
	return &c
}

func TestAReloadOfTheSameFileRestartsNothing(t *testing.T) {
	cfg := wholeConfig(t)
	again := *cfg
	// As if read again: nothing that a pointer leads to is shared.
	again.Workloads = slices.Clone(cfg.Workloads)
	for i := range again.Workloads {
		k := &again.Workloads[i].Knob
		if k.CPU != nil {
			k.CPU = new(*k.CPU)
		}
		if k.Memory != nil {
			k.Memory = new(*k.Memory)
		}
	}
	again.Prometheus.HTTP.BasicAuth = new(*cfg.Prometheus.HTTP.BasicAuth)
	again.Prometheus.HTTP.HTTPHeaders = new(*cfg.Prometheus.HTTP.HTTPHeaders)
	again.Exporters.OTLP.Headers = maps.Clone(cfg.Exporters.OTLP.Headers)
	if got := restarted(t, cfg, &again); len(got) > 0 {
		t.Errorf("restarted: %v", got)
	}
	keys, err := keysOf(t, cfg)
	if want := 14; err != nil || len(keys) != want {
		t.Errorf("%v: the test has parts of %d kinds, want %d", err, len(keys), want)
	}
}

func TestAReloadSeesThatForceChanged(t *testing.T) {
	cfg := wholeConfig(t)
	if got := restarted(t, cfg, changed(cfg, 0, func(w *config.Workload) { w.Knob.Force = true })); !slices.Equal(got, []string{"actuator"}) {
		t.Errorf("restarted: %v", got)
	}
}

func TestAReloadSeesThatASecretChanged(t *testing.T) {
	cfg := wholeConfig(t)
	next := *cfg
	next.Prometheus.HTTP.BasicAuth = new(*cfg.Prometheus.HTTP.BasicAuth)
	next.Prometheus.HTTP.BasicAuth.Password = "other"
	if got := restarted(t, cfg, &next); !slices.Equal(got, []string{"prometheus"}) {
		t.Errorf("another password restarted: %v", got)
	}
	next = *cfg
	next.Exporters.OTLP.Headers = map[string]config.Secret{"authorization": "other"}
	if got := restarted(t, cfg, &next); !slices.Equal(got, []string{"export-otlp"}) {
		t.Errorf("another header restarted: %v", got)
	}
}

// writeCertificate writes a new certificate and its key.
func writeCertificate(t *testing.T, c config.TLS) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	what := &x509.Certificate{SerialNumber: big.NewInt(1)}
	cert, err := x509.CreateCertificate(rand.Reader, what, what, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{c.CertFile: {Type: "CERTIFICATE", Bytes: cert}, c.KeyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAReloadSeesThatACertificateWasRenewed(t *testing.T) {
	cfg, dir := wholeConfig(t), t.TempDir()
	cfg.OTLP.TLS = config.TLS{CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	writeCertificate(t, cfg.OTLP.TLS)
	before, err := keysOf(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if got := restarted(t, cfg, cfg); len(got) > 0 {
		t.Errorf("the same certificate restarted: %v", got)
	}
	writeCertificate(t, cfg.OTLP.TLS)
	after, err := keysOf(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for name := range after {
		// All that receive spans share one sink, and so one key.
		if got, want := after[name] != before[name], name == "otlp" || name == "jaeger" || name == "sockets"; got != want {
			t.Errorf("%s: restarted %v, want %v", name, got, want)
		}
	}
	if err := os.WriteFile(cfg.OTLP.TLS.CertFile, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := keysOf(t, cfg); err == nil {
		t.Error("a certificate that cannot be read is taken over")
	}
}

// without says whether a setting, by path, does nothing in this file, where
// nothing can be seen of a change.
func without(path string) bool {
	for _, p := range []string{
		"Storage", "NATS", "Web", // refused at a reload
		"Warnings",                                                                        // printed
		"Sockets.",                                                                        // has no components
		"Exporters.Record",                                                                // has no path
		"Planning.Entry", "Planning.MoveCost", "Planning.Optimism", "Planning.LoadWeight", // of other objectives
		"Pool.Workers",                                 // cpu is set
		"Workloads[0].Requests",                        // has no performance
		"Workloads[2].Guarantees", "Workloads[2].Knob", // has no knob
		"Workloads[0].Knob.Memory.Margin", "Workloads[1].Knob.Memory.Margin", // refused where the pool shares memory
	} {
		if strings.HasPrefix(path, p) {
			return true
		}
	}
	if !strings.HasPrefix(path, "Workloads[3]") && (strings.Contains(path, ".Progress") || strings.Contains(path, ".Predict")) {
		return true // of jobs
	}
	if strings.HasSuffix(path, ".SLO.File") || strings.HasSuffix(path, ".SLO.Object") || strings.HasSuffix(path, ".SLO.Name") {
		return true // what the file says of it stands in the other settings
	}
	// SLOs of other objectives; where a workload is from is only said by check kubernetes.
	return strings.HasSuffix(path, ".SLO.Entry") || strings.HasSuffix(path, ".Drafted")
}

// settings calls f with the path of every leaf below v.
func settings(v reflect.Value, path string, f func(path string, leaf reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			settings(v.Elem(), path, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				settings(v.Field(i), strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."), f)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			settings(v.Index(i), fmt.Sprintf("%s[%d]", path, i), f)
		}
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		f(path, v)
	}
}

// Whatever a file may say, a running trimtab takes it over, says that it needs
// a restart, or refuses it: no setting is forgotten.
func TestAReloadSeesEveryChangeOfTheFile(t *testing.T) {
	cfg := wholeConfig(t)
	before, err := keysOf(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	shown := func() string { return supervise.KeyOf(viewConfig(cfg), exported(cfg)) }
	view, count := shown(), 0
	settings(reflect.ValueOf(cfg).Elem(), "", func(path string, v reflect.Value) {
		if without(path) {
			return
		}
		old := reflect.New(v.Type()).Elem()
		old.Set(v)
		defer v.Set(old)
		switch v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Bool:
			v.SetBool(!v.Bool())
		case reflect.Int, reflect.Int64:
			v.SetInt(v.Int() + max(1, v.Int()/8))
		case reflect.Uint64:
			v.SetUint(v.Uint() + max(1, v.Uint()/8))
		default:
			v.SetFloat(v.Float()*0.9 + 0.013)
		}
		count++
		if after, err := keysOf(t, cfg); err == nil && maps.Equal(before, after) && shown() == view {
			t.Errorf("%s: %v became %v, which nothing sees", path, old, v)
		}
	})
	if count < 80 {
		t.Errorf("only %d settings were changed", count)
	}
}

func TestAReloadSeesTheMarginOfMemory(t *testing.T) {
	cfg := wholeConfig(t)
	cfg.Pool.Memory, cfg.Objective = 0, "social" // a margin counts where the pool shares no memory
	before, err := keysOf(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Workloads[0].Knob.Memory.Margin += 0.01
	after, err := keysOf(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if maps.Equal(before, after) {
		t.Error("a changed margin restarts nothing")
	}
}

// config may not import the learner, so the margin stands in both.
func TestTheMarginOfTheFileIsThatOfTheLearner(t *testing.T) {
	cfg, err := config.Parse("t.yaml", []byte("pool: {cpu: 1}\nworkloads: [{name: a, slo: {latency: 100ms, fraction: 0.95}, knob: {cgroup: a, cpu: {max: 0.9}, memory: {max: 400MiB}}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := cfg.Workloads[0].Knob.Memory.Margin; got != workingset.Margin {
		t.Errorf("the file's margin is %v, the learner's %v", got, workingset.Margin)
	}
}
