package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/demo"
)

func TestTheConfigurationBesideARecordingOfTheDemoIsOneThatReplayReads(t *testing.T) {
	for _, knob := range []string{demo.KnobProcess, demo.KnobCgroup} {
		setup, err := demo.NewSetup(demo.Machine{CPUs: 2, Free: 2, Speed: 500}, knob, 1)
		if err != nil {
			t.Fatal(err)
		}
		setup.OTLP, setup.Root = "127.0.0.1:4317", "/sys/fs/cgroup/cpu"
		for _, s := range setup.Services {
			s.Handle = "trimtab-demo-1-" + s.Name
		}
		c := demoCmd{Record: filepath.Join(t.TempDir(), "rec")}
		if err := c.record(demoConfig(setup, t.TempDir(), "127.0.0.1:9600")); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(c.Record, demoFile))
		if err != nil {
			t.Fatal(err)
		}
		cfg, err := config.Parse(demoFile, b)
		if err != nil {
			t.Fatalf("%s: %v\n%s", knob, err, b)
		}
		if cfg.Exporters.Record.Path != c.Record || len(cfg.Workloads) != len(setup.Services) {
			t.Errorf("%s: %+v", knob, cfg)
		}
		if next := c.next(); !strings.Contains(next, "trimtab replay "+c.Record+" --config.file "+filepath.Join(c.Record, demoFile)) {
			t.Error(next)
		}
	}
}
