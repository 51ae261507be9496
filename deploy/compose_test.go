// Package deploy has no code, only tests: of the packages, the container image, and
// the compose file.
package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// composed is the part of a compose file that ours uses.
type composed struct {
	Name     string
	Services map[string]struct {
		Image       string
		Command     []string
		Environment map[string]string
		Volumes     []string
		Secrets     []string
		Ports       []string
		ReadOnly    bool `yaml:"read_only"`
		Tmpfs       []string
		CapDrop     []string `yaml:"cap_drop"`
		SecurityOpt []string `yaml:"security_opt"`
		Restart     string
	}
	Secrets map[string]struct{ File string }
	Volumes map[string]struct{}
}

func compose(t *testing.T) (c composed) {
	t.Helper()
	strict(t, "compose/compose.yaml", &c)
	return c
}

func strict(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalWithOptions(b, into, yaml.Strict()); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func TestEveryFileVolumeAndSecretOfTheComposeFileIsThere(t *testing.T) {
	c := compose(t)
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if !strings.HasPrefix(from, ".") {
				if _, ok := c.Volumes[from]; !ok {
					t.Errorf("%s: no volume %s", name, from)
				}
				continue
			}
			if _, err := os.Stat(filepath.Join("compose", from)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, secret := range s.Secrets {
			if _, ok := c.Secrets[secret]; !ok {
				t.Errorf("%s: no secret %s", name, secret)
			}
		}
	}
}

func TestTheComposeFilePublishesOnLoopbackOnlyAndPinsItsImages(t *testing.T) {
	for name, s := range compose(t).Services {
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s is published as %s", name, p)
			}
		}
		if !regexp.MustCompile(`:v?\d+\.\d+\.\d+$`).MatchString(s.Image) {
			t.Errorf("%s: image %s", name, s.Image)
		}
	}
}

func TestEveryServiceOfTheComposeFileIsAskedWhereItListens(t *testing.T) {
	c := compose(t)
	at := regexp.MustCompile(`\b([a-z]+):(9\d{3}|3000|4317|4318)\b`)
	for _, file := range []string{"trimtab.yaml", "prometheus.yml", "alertmanager.yml", "grafana/provisioning/datasources/prometheus.yaml"} {
		b, err := os.ReadFile(filepath.Join("compose", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range at.FindAllStringSubmatch(string(b), -1) {
			s, ok := c.Services[m[1]]
			if !ok || !strings.Contains(strings.Join(s.Ports, " ")+" ", ":"+m[2]+" ") {
				t.Errorf("%s asks %s, which is not in compose.yaml", file, m[0])
			}
		}
	}
}

func TestGrafanaIsGivenThePrometheusAndTheBoards(t *testing.T) {
	var sources struct {
		APIVersion  int `yaml:"apiVersion"`
		Datasources []struct {
			Name, UID, Type, URL, Access string
			IsDefault                    bool              `yaml:"isDefault"`
			JSONData                     map[string]string `yaml:"jsonData"`
		}
	}
	strict(t, "compose/grafana/provisioning/datasources/prometheus.yaml", &sources)
	if len(sources.Datasources) != 1 || sources.Datasources[0].Type != "prometheus" || !sources.Datasources[0].IsDefault {
		t.Errorf("%+v", sources)
	}
	var boards struct {
		APIVersion int `yaml:"apiVersion"`
		Providers  []struct {
			Name, Folder, Type string
			AllowUIUpdates     bool `yaml:"allowUiUpdates"`
			Options            struct{ Path string }
		}
	}
	strict(t, "compose/grafana/provisioning/dashboards/trimtab.yaml", &boards)
	mounted := strings.Join(compose(t).Services["grafana"].Volumes, " ")
	if len(boards.Providers) != 1 || !strings.Contains(mounted, ":"+boards.Providers[0].Options.Path+":ro") {
		t.Errorf("%+v is not among %s", boards, mounted)
	}
	files, err := filepath.Glob("../dashboards/*.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("%q, %v", files, err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var board struct{ UID, Title string }
		if err := json.Unmarshal(b, &board); err != nil || board.UID == "" || board.Title == "" {
			t.Errorf("%s: %+v, %v", file, board, err)
		}
	}
}

func TestPrometheusAndAlertmanagerAcceptTheirFilesOfTheComposeFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "rules"), 0o755); err != nil {
		t.Fatal(err)
	}
	for to, from := range map[string]string{"prometheus.yml": "compose/prometheus.yml", "rules/trimtab.rules.yaml": "../dashboards/rules/trimtab.rules.yaml"} {
		b, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"promtool", "check", "config", filepath.Join(dir, "prometheus.yml")}, {"amtool", "check-config", "compose/alertmanager.yml"}} {
		if _, err := exec.LookPath(args[0]); err != nil {
			t.Skip(err)
		}
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

// TestOneVersionIsNamedEverywhere holds what names a version against the source.
func TestOneVersionIsNamedEverywhere(t *testing.T) {
	b, err := os.ReadFile("../internal/cli/version.go")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`const thisRelease = "(\d+\.\d+\.\d+)"`).FindStringSubmatch(string(b))
	if m == nil {
		t.Fatal("version.go names no release")
	}
	if image := compose(t).Services["trimtab"].Image; image != "trimtab:"+m[1] {
		t.Errorf("compose.yaml has %s, want %s", image, m[1])
	}
	for file, want := range map[string]string{"../docs/release-notes.md": "\n## " + m[1] + "\n", "compose/compose.yaml": "dist/trimtab_" + m[1] + ".oci.tar", "../docs/install.md": "trimtab_" + m[1] + "_"} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s does not name %q: %v", file, strings.TrimSpace(want), err)
		}
	}
}
