package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/lab/bench/rig"
	"github.com/trimtab/trimtab/lab/services/shape"
)

// three are services without software.
func three() *host {
	h := &host{Pool: 0.66, Host: &rig.Host{Root: "/sys/fs/cgroup/cpu"}, above: &rig.Group{Name: "g-pool"}}
	for i, name := range shape.Names() {
		h.services[i] = &service{Name: name, SLO: slo{250 * time.Millisecond, 0.95}, group: &rig.Group{Name: "g-" + name}}
	}
	return h
}

// A key that is written is a default that is not measured.
func TestTrimtabsFileHasOnlyWhatIsRequired(t *testing.T) {
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a := addresses{"127.0.0.1:1", "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4", ""}
	for name, by := range map[string]source{"spans": &spans{}, "promql": &promql{Range: 20 * time.Second, prometheus: "127.0.0.1:5", token: token}} {
		text, err := (&subject{Objective: "default", Signal: by}).file(three(), a, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"objective", "round", "guard", "step", "unit", "min", "max", "planning", "analyzer", "cap"} {
			if strings.Contains(string(text), key+":") {
				t.Errorf("%s: the file has %s:\n%s", name, key, text)
			}
		}
		file := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Load(file)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, text)
		}
		for _, w := range cfg.Workloads {
			if name == "promql" && (w.Requests != "" || w.Ratio().Requests == "") {
				t.Errorf("%s: its number of requests is not derived: %s", w.Name, w.Performance)
			}
		}
	}
}

func TestWarningsAndErrorsOfTheLogAreCounted(t *testing.T) {
	log := "time=1 level=INFO msg=a\ntime=2 level=WARN msg=b\ntime=3 level=ERROR msg=c\ntrimtab: error: d\n"
	if got := complaints(log); len(got) != 3 {
		t.Errorf("%q", got)
	}
}
