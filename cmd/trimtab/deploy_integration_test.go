//go:build integration

package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// withoutCapabilities makes a command run as the units do: user 0, no
// capability, no new privileges.
func withoutCapabilities(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only user 0 can show what user 0 may do without a capability")
	}
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip(err)
	}
	return exec.Command(setpriv, append([]string{"--no-new-privs", "--inh-caps=-all", "--bounding-set=-all", "--"}, args...)...)
}

// commandOf is a command of the unit with what is installed replaced by what
// is here.
func commandOf(t *testing.T, p *program, key string) []string {
	t.Helper()
	line := unit(t, "trimtab.service")[key]
	line = strings.NewReplacer("/usr/bin/trimtab", os.Args[0], "/etc/trimtab/trimtab.yaml", filepath.Join(p.dir, "trimtab.yaml"), "/var/lib/trimtab", p.storage()).Replace(line)
	return strings.Fields(line)
}

func TestTheUnitsCommandsActOnRealGroupsWithoutAnyCapabilityAndRestoreAfterAKill(t *testing.T) {
	t.Parallel()
	p := prepare(t, kernelQuotas(t), "")
	if err := os.WriteFile(filepath.Join(p.dir, "trimtab.yaml"), []byte(p.text), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd = withoutCapabilities(t, commandOf(t, p, "ExecStart")...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Dir = log, log, p.dir
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); _ = p.cmd.Wait() })
	p.until("ready", func() error {
		code, body, err := p.get("/-/ready")
		if err != nil || code != 200 {
			return fmt.Errorf("%d %s: %w", code, body, err)
		}
		return nil
	})
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil || !strings.Contains(string(status), "CapEff:\t0000000000000000") || !strings.Contains(string(status), "CapBnd:\t0000000000000000") {
		t.Fatalf("it has capabilities: %v\n%s", err, status)
	}
	p.serve()
	p.until("both limits moved", p.moved)
	// KillMode=mixed: what is left of the unit is killed before ExecStopPost.
	p.kill(true)
	p.until("the end of every process", p.noneLeft)
	stop := withoutCapabilities(t, commandOf(t, p, "ExecStopPost")...)
	if out, err := stop.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := p.restored(); err != nil {
		t.Error(err)
	}
}

func TestThePackageIsCompleteRunsAndIsTheSameEachTime(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "built")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X github.com/prometheus/common/version.Version=9.9.9", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	name := "trimtab-9.9.9-linux-" + runtime.GOARCH
	var sums []string
	for i, env := range [][]string{{"TZ=UTC"}, {"TZ=Asia/Tokyo", "LC_ALL=C.UTF-8", "LANG=C.UTF-8"}} {
		out := filepath.Join(dir, fmt.Sprint(i))
		cmd := exec.Command("../../deploy/package.sh", binary, "9.9.9", out)
		cmd.Env = append(os.Environ(), env...)
		before := syscall.Umask(i * 0o77)
		text, err := cmd.CombinedOutput()
		syscall.Umask(before)
		if err != nil || strings.TrimSpace(string(text)) != filepath.Join(out, name+".tar.gz") {
			t.Fatalf("%v\n%s", err, text)
		}
		b, err := os.ReadFile(filepath.Join(out, name+".tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, fmt.Sprintf("%x", sha256.Sum256(b)))
	}
	if sums[0] != sums[1] {
		t.Errorf("two packages of one binary differ: %v", sums)
	}
	if out, err := exec.Command("tar", "-C", dir, "-xzf", filepath.Join(dir, "0", name+".tar.gz")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	top := filepath.Join(dir, name)
	for _, f := range []string{
		"trimtab", "README.md", "LICENSE", "NOTICE", "CHANGELOG.md", "docs/install.md", "docs/config.md", "docs/cluster.md", "docs/metrics.md", "docs/operations.md", "docs/fairness.md", "docs/papers.md", "docs/console.png",
		"systemd/trimtab.service", "systemd/trimtab-watch.service", "completion/trimtab.bash", "completion/_trimtab", "completion/trimtab.fish",
		"man/trimtab.1", "examples/trimtab.yaml", "examples/prometheus.yml", "examples/otel-collector.yml", "examples/jaeger.md",
	} {
		if info, err := os.Stat(filepath.Join(top, f)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
	if out, err := exec.Command(filepath.Join(top, "trimtab"), "--version").CombinedOutput(); err != nil || !strings.Contains(string(out), "version 9.9.9") {
		t.Errorf("--version: %v\n%s", err, out)
	}
	if out, err := exec.Command(filepath.Join(top, "trimtab"), "check", "config", filepath.Join(top, "examples/trimtab.yaml")).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, reader := range [][]string{{"mandoc", "-Tlint", "-Wwarning"}, {"groff", "-man", "-ww", "-Tutf8", "-z"}} {
		if _, err := exec.LookPath(reader[0]); err != nil {
			t.Logf("not read by %s: %v", reader[0], err)
			continue
		}
		if out, err := exec.Command(reader[0], append(slices.Clone(reader[1:]), filepath.Join(top, "man/trimtab.1"))...).CombinedOutput(); err != nil || len(out) > 0 {
			t.Errorf("%s: %v\n%s", reader[0], err, out)
		}
	}
}
