package main

import (
	"os"
	"os/exec"
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

// withoutNetwork returns a command that runs a shell script in a network namespace of its
// own, whose loopback interface is down. In the script, $0 is trimtab.
func withoutNetwork(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	flags := "-n"
	if os.Getuid() != 0 {
		flags = "-rn"
	}
	if out, err := exec.Command("unshare", flags, "true").CombinedOutput(); err != nil {
		t.Skipf("this host lets nobody make a network namespace: unshare %s: %v: %s", flags, err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", flags, "sh", "-c", script, self)
	cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	return cmd
}

func TestADemoWithoutALoopbackInterfaceSaysSoAtOnceAndWhatToDo(t *testing.T) {
	for _, c := range []struct{ script, want string }{
		{`exec "$0" demo --headless --for 10s --web.listen-address 127.0.0.1:0`,
			"trimtab: error: connect over the loopback interface, which the demo needs and no other network: "},
		{`exec "$0" status`, "trimtab: error: ask http://127.0.0.1:9600: the loopback interface is down: "},
	} {
		out, err := withoutNetwork(t, c.script).CombinedOutput()
		if text := string(out); err == nil || !strings.HasPrefix(text, c.want) || !strings.Contains(text, "network is unreachable\ntrimtab: hint: bring it up: ip link set lo up") {
			t.Errorf("%s: %v:\n%s\nwant %s", c.script, err, text, c.want)
		}
	}
}
