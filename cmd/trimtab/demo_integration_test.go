//go:build integration

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/trimtab/trimtab/internal/demo"
)

// demoFor is the length of all phases together.
const demoFor = "90s"

func TestTheDemoKeepsToTheCapacityAndRestoresTheLimits(t *testing.T) {
	t.Run("cgroup", func(t *testing.T) {
		kernelQuotas(t) // skips where no hierarchy is writable
		checkDemo(t, playDemo(t, "cgroup", nil), "cgroup", 0)
	})
	t.Run("worker processes without root", func(t *testing.T) {
		var as *syscall.Credential
		if os.Getuid() == 0 {
			as = &syscall.Credential{Uid: 65534, Gid: 65534}
		}
		checkDemo(t, playDemo(t, "auto", as), "process", 1e-9)
	})
}

func TestTheDemoNeedsNoNetworkButTheLoopbackInterface(t *testing.T) {
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("no ip here to bring the loopback interface up")
	}
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := withoutNetwork(t, `ip link set lo up && exec "$0" demo --headless --for 10s --report `+report)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "limits are what they were before.") {
		t.Fatalf("%v:\n%s", err, out)
	}
	b, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var r demo.Report
	if err := json.Unmarshal(b, &r); err != nil || !r.Restored || len(r.Phases) < 2 {
		t.Errorf("%v: %s", err, b)
	}
}

func TestADemoWhoseReaderGoesAwayLeavesNoGroupBehind(t *testing.T) {
	t.Parallel()
	kernelQuotas(t)
	cmd := exec.Command("/proc/self/exe", "demo", "--headless", "--for", "10m", "--knob", "cgroup", "--web.listen-address", "127.0.0.1:0")
	cmd.Env, cmd.SysProcAttr = append(os.Environ(), "TMPDIR="+t.TempDir()), &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "| shop ") { // its groups are there then, and under load
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("demo: %v", err)
	}
	roots, err := demo.CgroupRoots()
	if err != nil {
		t.Fatal(err)
	}
	for _, root := range roots {
		left, err := filepath.Glob(filepath.Join(root, fmt.Sprintf("trimtab-demo-%d-*", cmd.Process.Pid)))
		if err != nil || len(left) > 0 {
			t.Errorf("left: %q, %v", left, err)
		}
	}
}

func TestARecordedDemoCanBeReplayedAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "rec")
	for _, args := range [][]string{
		{"demo", "--headless", "--for", "30s", "--knob", "process", "--web.listen-address", "127.0.0.1:0", "--record", dir},
		{"replay", dir, "--config.file", filepath.Join(dir, demoFile), "--policy", "egalitarian"},
	} {
		cmd := exec.Command("/proc/self/exe", args...)
		cmd.Env, cmd.SysProcAttr = append(os.Environ(), "TMPDIR="+t.TempDir()), &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Fatalf("%s: %v", args[0], err)
		}
	}
}

// playDemo runs the demo as a process, perhaps as somebody without rights.
func playDemo(t *testing.T, knob string, as *syscall.Credential) *demo.Report {
	t.Helper()
	dir, err := os.MkdirTemp("", "trimtab-demo-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	// The test's own program may lie where nobody else can read it.
	binary := filepath.Join(dir, "trimtab.test")
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(binary, self, 0o755); err != nil {
		t.Fatal(err)
	}
	report := filepath.Join(dir, "report.json")
	cmd := exec.Command(binary, "demo", "--headless", "--for", demoFor, "--seed", "7", "--knob", knob, "--report", report, "--web.listen-address", "127.0.0.1:0")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir, "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: as, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("demo: %v", err)
	}
	b, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	r := new(demo.Report)
	if err := json.Unmarshal(b, r); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return r
}

// checkDemo asserts the structure of the report, the capacity and the
// restoring; how good the shares were is only reported.
func checkDemo(t *testing.T, r *demo.Report, knob string, slack float64) {
	t.Helper()
	want, played := []string{demo.Equal, demo.Learned}, []string{}
	if knob == demo.KnobCgroup {
		want = []string{demo.Kernel, demo.Equal, demo.Learned}
	}
	for _, p := range r.Phases {
		played = append(played, p.Name)
	}
	if r.Knob != knob || !slices.Equal(played, want) {
		t.Fatalf("report: knob %s, phases %v, want %v", r.Knob, played, want)
	}
	for _, p := range r.Phases {
		names := []string{}
		for _, s := range p.Services {
			names = append(names, s.Name)
			if s.Requests == 0 || s.Allocation <= 0 || s.Utility < 0 || s.Utility > 1 || s.SLOAttained < 0 || s.SLOAttained > 1 || s.P50 > s.P95 || s.P95 > s.P99 {
				t.Errorf("%s phase: %+v", p.Name, s)
			}
		}
		slices.Sort(names)
		if fmt.Sprint(names) != "[search shop thumbs]" || p.MinUtility > p.Social {
			t.Errorf("%s phase: services %v, least utility %v, mean %v", p.Name, names, p.MinUtility, p.Social)
		}
	}
	if r.MaxAllocatedSum > r.Capacity+slack+1e-6 {
		t.Errorf("at most %v was given out of a capacity of %v", r.MaxAllocatedSum, r.Capacity)
	}
	if !r.Restored || r.Interrupted || r.Rounds < 20 {
		t.Errorf("restored %v, interrupted %v, %d rounds", r.Restored, r.Interrupted, r.Rounds)
	}
}
