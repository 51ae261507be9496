package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/trimtab/trimtab/config"
)

const units = "../../deploy/systemd"

// installed copies the units to a directory, with this program in the place of
// the installed one: systemd-analyze looks whether it is there.
func installed(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"trimtab.service", "trimtab-watch.service"} {
		b, err := os.ReadFile(filepath.Join(units, name))
		if err != nil {
			t.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "/usr/bin/trimtab", self)
		// The page comes with the package.
		text = strings.ReplaceAll(text, "man:trimtab(1) ", "")
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestSystemdVerifiesTheUnits(t *testing.T) {
	dir := installed(t)
	out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", filepath.Join(dir, "trimtab.service"), filepath.Join(dir, "trimtab-watch.service")).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("%v\n%s", err, out)
	}
	// And it would have found a mistake.
	bad := filepath.Join(dir, "bad.service")
	if err := os.WriteFile(bad, []byte("[Service]\nExecStart=/no/such/program\nNoNewPrivilege=yes\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _ := exec.CommandContext(t.Context(), "systemd-analyze", "verify", bad).CombinedOutput(); !strings.Contains(string(out), "NoNewPrivilege") {
		t.Errorf("a wrong unit passes: %s", out)
	}
}

// worstExposure is the worst rating allowed, in tenths: 0 is best, 100 worst.
var worstExposure = map[string]string{"trimtab.service": "20", "trimtab-watch.service": "13"}

func TestSystemdRatesTheUnitsAsLittleExposed(t *testing.T) {
	dir := installed(t)
	for name, threshold := range worstExposure {
		out, err := exec.CommandContext(t.Context(), "systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold="+threshold, filepath.Join(dir, name)).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		t.Log(lines[len(lines)-1])
	}
}

// unit returns the settings of a unit, the last of each name.
func unit(t *testing.T, name string) map[string]string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(units, name))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			out[key] = value
		}
	}
	return out
}

func TestNoUnitHasACapabilityAndTheOneThatOnlyWatchesMayTurnNothing(t *testing.T) {
	for _, name := range []string{"trimtab.service", "trimtab-watch.service"} {
		u := unit(t, name)
		for key, want := range map[string]string{"CapabilityBoundingSet": "", "AmbientCapabilities": "", "NoNewPrivileges": "yes", "ProtectSystem": "strict"} {
			if got, ok := u[key]; !ok || got != want {
				t.Errorf("%s: %s=%s, want %q", name, key, got, want)
			}
		}
	}
	act, watch := unit(t, "trimtab.service"), unit(t, "trimtab-watch.service")
	if act["ReadWritePaths"] != "/sys/fs/cgroup" || act["ExecStopPost"] != "/usr/bin/trimtab restore --storage.path /var/lib/"+act["StateDirectory"] {
		t.Errorf("trimtab.service: %v", act)
	}
	if watch["DynamicUser"] != "yes" || watch["ProtectControlGroups"] != "yes" || watch["ReadWritePaths"] != "" || watch["ExecStopPost"] != "" {
		t.Errorf("trimtab-watch.service: %v", watch)
	}
}

func TestPrometheusAcceptsTheExampleOfItsConfiguration(t *testing.T) {
	if _, err := exec.LookPath("promtool"); err != nil {
		t.Skip(err)
	}
	file := "../../deploy/examples/prometheus.yml"
	if out, err := exec.CommandContext(t.Context(), "promtool", "check", "config", file).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), `"`+config.Default().Web.ListenAddress+`"`) {
		t.Errorf("%s does not scrape where trimtab listens by default, %s", file, config.Default().Web.ListenAddress)
	}
}

// collectorConfig is the part of an OpenTelemetry Collector's configuration
// that the example uses. There is no Collector to run here, so the example is
// read strictly in this form, and its references and addresses are checked.
type collectorConfig struct {
	Receivers map[string]struct {
		Protocols map[string]struct {
			Endpoint string `yaml:"endpoint"`
		} `yaml:"protocols"`
	} `yaml:"receivers"`
	Processors map[string]struct {
		Timeout string `yaml:"timeout"`
	} `yaml:"processors"`
	Exporters map[string]struct {
		Endpoint    string `yaml:"endpoint"`
		Compression string `yaml:"compression"`
		TLS         struct {
			Insecure bool `yaml:"insecure"`
		} `yaml:"tls"`
		Queue struct {
			Enabled bool `yaml:"enabled"`
			Size    int  `yaml:"queue_size"`
		} `yaml:"sending_queue"`
		Retry struct {
			Enabled bool   `yaml:"enabled"`
			Max     string `yaml:"max_elapsed_time"`
		} `yaml:"retry_on_failure"`
	} `yaml:"exporters"`
	Service struct {
		Pipelines map[string]struct{ Receivers, Processors, Exporters []string } `yaml:"pipelines"`
	} `yaml:"service"`
}

func TestTheCollectorExampleSendsToTrimtabsDefaultAddressAndNamesWhatIsThere(t *testing.T) {
	b, err := os.ReadFile("../../deploy/examples/otel-collector.yml")
	if err != nil {
		t.Fatal(err)
	}
	var c collectorConfig
	if err := yaml.UnmarshalWithOptions(b, &c, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	own := config.Default().OTLP
	if e := c.Exporters["otlp/trimtab"]; e.Endpoint != own.GRPC || !e.TLS.Insecure || !e.Retry.Enabled || !e.Queue.Enabled {
		t.Errorf("exporter %+v, want endpoint %s", e, own.GRPC)
	}
	for name, r := range c.Receivers["otlp"].Protocols {
		if _, _, err := net.SplitHostPort(r.Endpoint); err != nil || r.Endpoint == own.GRPC || r.Endpoint == own.HTTP {
			t.Errorf("receiver %s listens on %s, where trimtab does (%v)", name, r.Endpoint, err)
		}
	}
	if len(c.Service.Pipelines) == 0 {
		t.Error("no pipeline")
	}
	for name, p := range c.Service.Pipelines {
		if !strings.HasPrefix(name, "traces/") || len(p.Exporters) == 0 {
			t.Errorf("pipeline %s: %+v", name, p)
		}
		for _, x := range p.Receivers {
			if _, ok := c.Receivers[x]; !ok {
				t.Errorf("no receiver %s", x)
			}
		}
		for _, x := range p.Processors {
			if _, ok := c.Processors[x]; !ok {
				t.Errorf("no processor %s", x)
			}
		}
		for _, x := range p.Exporters {
			if _, ok := c.Exporters[x]; !ok {
				t.Errorf("no exporter %s", x)
			}
		}
	}
}
