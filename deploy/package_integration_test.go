//go:build integration

package deploy

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// command runs a program at the top of the repository and returns what it prints.
func command(t *testing.T, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = "..", append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// version is that of the source.
func version(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../internal/cli/version.go")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`const thisRelease = "(\d+\.\d+\.\d+)"`).FindSubmatch(b)
	if m == nil {
		t.Fatal("no release in version.go")
	}
	return string(m[1])
}

// built returns a directory with the static binary of this machine as ARCH/trimtab.
func built(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("trimtab-deploy-test-%d", os.Getpid()))
	once.Do(func() {
		command(t, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-ldflags", "-s -w -funcalign=16", "-o", filepath.Join(dir, runtime.GOARCH, "trimtab"), "./cmd/trimtab")
	})
	return dir
}

var once sync.Once

func TestMain(m *testing.M) {
	code := m.Run()
	_ = os.RemoveAll(filepath.Join(os.TempDir(), fmt.Sprintf("trimtab-deploy-test-%d", os.Getpid())))
	os.Exit(code)
}

// packages builds the Debian packages of this machine's architecture, one of each version.
func packages(t *testing.T, dir string, versions ...string) (files []string) {
	t.Helper()
	for _, v := range versions {
		command(t, []string{"ARCHES=" + runtime.GOARCH, "BINARIES=" + built(t)}, "deploy/release.sh", v, dir, "deb")
		files = append(files, filepath.Join(dir, "trimtab_"+v+"_"+runtime.GOARCH+".deb"))
	}
	return files
}

// inDebian runs a script of bash as root of a Debian 12 in which everything can be
// written: this machine's root below a layer of its own, which is gone with the
// script. The script finds the upper layer, what it changed, in $CHANGED, and runs
// commands in it by `in_it`.
func inDebian(t *testing.T, dir, script string) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only user 0 may mount a root of its own")
	}
	if b, err := os.ReadFile("/etc/debian_version"); err != nil || !strings.HasPrefix(string(b), "12.") {
		t.Skipf("this is no Debian 12: %q, %v", b, err)
	}
	const head = `set -euo pipefail
mount -t tmpfs layer "$PACKAGES/layer"
mkdir "$PACKAGES"/layer/{changed,work,root}
CHANGED=$PACKAGES/layer/changed
mount -t overlay overlay -o "lowerdir=/,upperdir=$CHANGED,workdir=$PACKAGES/layer/work" "$PACKAGES/layer/root"
cp "$PACKAGES"/*.deb "$PACKAGES/layer/root/root/"
mount --rbind /dev "$PACKAGES/layer/root/dev"
mount -t proc proc "$PACKAGES/layer/root/proc"
in_it() { chroot "$PACKAGES/layer/root" "$@"; }
`
	if err := os.Mkdir(filepath.Join(dir, "layer"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "unshare", "--mount", "bash", "-c", head+script)
	cmd.Env = append(os.Environ(), "PACKAGES="+dir, "DEBIAN_FRONTEND=noninteractive")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestThePackageInstallsUpgradesGoesBackAndIsPurgedWithoutARest(t *testing.T) {
	now, dir := version(t), t.TempDir()
	const next = "9.9.9"
	packages(t, dir, now, next)
	// A stand-in for systemctl notes what it is asked; systemd is not started here.
	out := inDebian(t, dir, `
mkdir -p "$PACKAGES/layer/root/run/systemd/system" "$PACKAGES/layer/root/usr/local/bin"
printf '#!/bin/sh\necho "systemctl $*"\n' >"$PACKAGES/layer/root/usr/local/bin/systemctl"
chmod +x "$PACKAGES/layer/root/usr/local/bin/systemctl"
files() { (cd "$CHANGED" && find . -type f -o -type l -o -type c) | grep -Ev '^\./(var/lib/dpkg|var/log|var/cache|root/|run/|usr/local/bin/systemctl|etc/ld.so.cache)' || true; }
before=$(files)
in_it dpkg -i /root/trimtab_`+now+`_`+runtime.GOARCH+`.deb
in_it trimtab --version | head -1
in_it sh -c 'dpkg --verify trimtab && dpkg -s trimtab | grep ^Version'
in_it sh -c 'mkdir -p /var/lib/trimtab && echo data >/var/lib/trimtab/kept && echo "pool: {cpu: 8}" >/etc/trimtab/trimtab.yaml'
in_it trimtab check config /etc/trimtab/trimtab.yaml
echo == upgrade
in_it dpkg -i /root/trimtab_`+next+`_`+runtime.GOARCH+`.deb
in_it dpkg -s trimtab | grep ^Version
in_it sh -c 'cat /var/lib/trimtab/kept /etc/trimtab/trimtab.yaml'
echo == downgrade
in_it dpkg -i /root/trimtab_`+now+`_`+runtime.GOARCH+`.deb
in_it dpkg -s trimtab | grep ^Version
echo == remove
in_it dpkg -r trimtab
in_it sh -c '! command -v trimtab; cat /var/lib/trimtab/kept /etc/trimtab/trimtab.yaml'
echo == purge
in_it dpkg -P trimtab
in_it sh -c '! dpkg -s trimtab 2>/dev/null; ls -d /etc/trimtab /var/lib/trimtab /usr/share/trimtab /usr/share/doc/trimtab 2>/dev/null || true'
echo == left
diff <(printf %s "$before") <(files) && echo nothing
`)
	t.Log(out)
	parts := regexp.MustCompile(`(?m)^== \w+$`).Split(out, -1)
	if len(parts) != 6 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, want := range [][]string{
		{"Version: " + now, "trimtab, version " + now, "systemctl daemon-reload", "good"},
		{"Version: " + next, "data", "pool: {cpu: 8}", "systemctl try-restart trimtab.service", "systemctl try-restart trimtab-watch.service"},
		{"downgrading", "Version: " + now},
		{"systemctl disable --now trimtab.service trimtab-watch.service", "nothing to restore", "data", "pool: {cpu: 8}"},
		{"Purging"},
		{"nothing"},
	} {
		for _, w := range want {
			if !strings.Contains(parts[i], w) {
				t.Errorf("part %d: no %q", i, w)
			}
		}
	}
	if strings.Contains(parts[0], "try-restart") {
		t.Error("a first installation started something")
	}
	if strings.Contains(parts[4], "/trimtab\n") {
		t.Error("a directory is left")
	}
}

func TestWhatCannotBeRestoredKeepsThePackageFromBeingRemoved(t *testing.T) {
	now, dir := version(t), t.TempDir()
	packages(t, dir, now)
	out := inDebian(t, dir, `
in_it dpkg -i /root/trimtab_`+now+`_`+runtime.GOARCH+`.deb
in_it sh -c 'mkdir -p /var/lib/trimtab; mv /usr/bin/trimtab /usr/bin/trimtab.real; printf "#!/bin/sh\nexit 1\n" >/usr/bin/trimtab; chmod +x /usr/bin/trimtab'
in_it dpkg -r trimtab && echo removed
in_it mv /usr/bin/trimtab.real /usr/bin/trimtab
in_it dpkg -r trimtab && echo removed then
`)
	if !strings.Contains(out, "trimtab is not removed") || strings.Contains(out, "removed\n") || !strings.Contains(out, "removed then") {
		t.Error(out)
	}
}

func TestTwoPackagesOfOneCommitAreTheSameBytes(t *testing.T) {
	now := version(t)
	var sums []string
	for _, zone := range []string{"UTC", "Asia/Tokyo"} {
		t.Setenv("TZ", zone)
		file := packages(t, t.TempDir(), now)[0]
		sum, _, _ := strings.Cut(command(t, nil, "sha256sum", file), " ")
		sums = append(sums, sum)
	}
	if sums[0] != sums[1] {
		t.Error(sums)
	}
}

// tree returns the files below dir.
func tree(t *testing.T, dir string) (files []string) {
	t.Helper()
	for line := range strings.Lines(command(t, nil, "find", dir, "-type", "f", "-printf", "%P\n")) {
		files = append(files, strings.TrimSpace(line))
	}
	slices.Sort(files)
	return files
}

func TestUninstallRemovesWhatInstallPutThereAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(built(t), runtime.GOARCH, "trimtab")
	root := filepath.Join(dir, "root")
	foreign := filepath.Join(root, "opt/bin/other")
	if err := os.MkdirAll(filepath.Dir(foreign), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(foreign, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"PREFIX=/opt", "DESTDIR=" + root}
	command(t, env, "deploy/install.sh", "install", binary)
	files := tree(t, root)
	for _, want := range []string{"opt/bin/trimtab", "opt/lib/systemd/system/trimtab.service", "opt/share/man/man1/trimtab.1.gz", "opt/share/zsh/site-functions/_trimtab",
		"opt/share/bash-completion/completions/trimtab", "opt/share/doc/trimtab/README.md", "opt/share/doc/trimtab/docs/config.md", "opt/share/trimtab/dashboards/overview.json", "opt/share/trimtab/rules/trimtab.rules.yaml"} {
		if !slices.Contains(files, want) {
			t.Errorf("no %s in %q", want, files)
		}
	}
	unit, err := os.ReadFile(filepath.Join(root, "opt/lib/systemd/system/trimtab.service"))
	if err != nil || !strings.Contains(string(unit), "ExecStart=/opt/bin/trimtab ") || strings.Contains(string(unit), "/usr/bin/trimtab") {
		t.Errorf("the unit does not start what was installed: %v\n%s", err, unit)
	}
	command(t, env, "deploy/install.sh", "uninstall")
	if left := tree(t, root); !slices.Equal(left, []string{"opt/bin/other"}) {
		t.Errorf("left: %q", left)
	}
}

func TestTheImageIsReadByOthersAndItsProgramRuns(t *testing.T) {
	for _, tool := range []string{"skopeo", "umoci"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(err)
		}
	}
	now, dir := version(t), t.TempDir()
	command(t, []string{"ARCHES=" + runtime.GOARCH, "BINARIES=" + built(t)}, "deploy/release.sh", now, dir, "image")
	archive := filepath.Join(dir, "trimtab_"+now+".oci.tar")
	config := command(t, nil, "skopeo", "inspect", "--config", "oci-archive:"+archive)
	for _, want := range []string{`"65532:65532"`, `"/trimtab"`, `"architecture": "` + runtime.GOARCH + `"`, `"org.opencontainers.image.version": "` + now + `"`} {
		if !strings.Contains(config, want) {
			t.Errorf("no %s in %s", want, config)
		}
	}
	command(t, nil, "skopeo", "copy", "--all", "oci-archive:"+archive, "oci:"+filepath.Join(dir, "layout")+":"+now)
	command(t, nil, "umoci", "unpack", "--image", filepath.Join(dir, "layout")+":"+now, filepath.Join(dir, "bundle"))
	if os.Getuid() != 0 {
		t.Skip("only user 0 may change its root")
	}
	out := command(t, nil, "chroot", "--userspec=65532:65532", filepath.Join(dir, "bundle/rootfs"), "/trimtab", "--version")
	if !strings.Contains(out, "trimtab, version "+now) {
		t.Error(out)
	}
}
