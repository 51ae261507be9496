package hostfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// rooted makes root/a/value and a secret outside of it.
func rooted(t *testing.T) (root *hostfs.Root, dir, secret string) {
	t.Helper()
	base := t.TempDir()
	dir, secret = filepath.Join(base, "root"), filepath.Join(base, "secret")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(dir, "a"), 0o755),
		os.WriteFile(filepath.Join(dir, "a", "value"), []byte("old and long\n"), 0o644),
		os.WriteFile(secret, []byte("secret"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	root, err := hostfs.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, dir, secret
}

func TestNothingOutsideADeclaredRootIsReadOrWritten(t *testing.T) {
	root, dir, secret := rooted(t)
	for link, to := range map[string]string{
		"link": secret, "relative": "../secret", "dirlink": "..", "a/deep": "../../secret", "proc": "/proc/self/cwd",
	} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{
		"../secret", "a/../../secret", secret, "/" + secret, "link", "relative", "dirlink/secret", "a/deep", "proc/x",
		"..", "/etc/passwd", "a/../../../../../../etc/passwd",
	} {
		if err := root.Write(name, "hacked"); err == nil {
			t.Errorf("write %s: no error", name)
		}
		if s, err := root.Read(name); err == nil {
			t.Errorf("read %s: %q", name, s)
		}
		if err := root.Mkdir(name + "/x"); err == nil {
			t.Errorf("make %s/x: no error", name)
		}
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "secret" {
		t.Errorf("the secret is %q, %v", b, err)
	}
	if err := root.Write("../secret", "x"); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("error %v, want refused", err)
	}
}

func TestAMountBelowTheRootIsNotCrossed(t *testing.T) {
	root, dir, _ := rooted(t)
	inside := filepath.Join(dir, "mounted")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	// A bind mount of the same file system: the device does not tell.
	if err := unix.Mount(filepath.Join(dir, "a"), inside, "", unix.MS_BIND, ""); err != nil {
		t.Skipf("cannot mount: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(inside, unix.MNT_DETACH) })
	if err := root.Write("mounted/value", "x"); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("write over a mount: %v, want refused", err)
	}
	if _, err := root.Read("mounted/value"); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("read over a mount: %v, want refused", err)
	}
}

func TestAWriteReplacesTheValueAndCreatesNothing(t *testing.T) {
	root, dir, _ := rooted(t)
	if err := root.Write("a/value", "new\n"); err != nil {
		t.Fatal(err)
	}
	if s, err := root.Read("a/value"); err != nil || s != "new\n" {
		t.Errorf("read %q, %v", s, err)
	}
	if err := root.Write("a/absent", "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("write to an absent file: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a/absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it was created: %v", err)
	}
}

func TestAnErrorNamesPathAndValue(t *testing.T) {
	root, dir, _ := rooted(t)
	err := root.Write("a/absent", "150000")
	if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "a/absent")) || !strings.Contains(err.Error(), `"150000"`) {
		t.Errorf("error %v", err)
	}
}

func TestOnlyRegularFilesOfBoundedSizeAreRead(t *testing.T) {
	root, dir, _ := rooted(t)
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "big"), make([]byte, hostfs.MaxRead+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Read("pipe"); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("read a pipe: %v, want refused", err)
	}
	if err := root.Write("pipe", "x"); err == nil {
		t.Error("write to a pipe: no error")
	}
	if _, err := root.Read("big"); !errors.Is(err, trimtab.ErrInvalid) {
		t.Errorf("read a big file: %v, want invalid", err)
	}
	if _, err := root.Read("a"); err == nil {
		t.Error("read a directory: no error")
	}
}

func TestTheKindOfFileSystemIsKnown(t *testing.T) {
	root, _, _ := rooted(t)
	if root.Filesystem() != hostfs.Ordinary {
		t.Errorf("a temporary directory is %s", root.Filesystem())
	}
	for _, dir := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"} {
		r, err := hostfs.OpenRoot(dir)
		if err != nil {
			t.Logf("not here: %v", err)
			continue
		}
		want := hostfs.Ordinary
		for file, kind := range map[string]hostfs.Filesystem{"cgroup.controllers": hostfs.Cgroup2, "cgroup.clone_children": hostfs.Cgroup1} {
			if ok, err := r.Exists(file); ok && err == nil {
				want = kind
			}
		}
		if r.Filesystem() != want {
			t.Errorf("%s is %s, want %s", dir, r.Filesystem(), want)
		}
		r.Close()
	}
}

func TestALockHasOneHolder(t *testing.T) {
	dir := t.TempDir()
	first, err := hostfs.AcquireLock(t.Context(), dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hostfs.AcquireLock(t.Context(), dir, 0); !errors.Is(err, trimtab.ErrRefused) {
		t.Errorf("a second holder: %v, want refused", err)
	}
	first.Close()
	second, err := hostfs.AcquireLock(t.Context(), dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	second.Close()
}

func TestARootWithinARootKeepsToItsOwnDirectory(t *testing.T) {
	root, dir, _ := rooted(t)
	for link, to := range map[string]string{"a/escape": "../b/value", "a/value2": "value", "link": "../elsewhere"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range []error{
		os.Mkdir(filepath.Join(dir, "b"), 0o755), os.WriteFile(filepath.Join(dir, "b", "value"), []byte("other"), 0o644),
		os.Mkdir(filepath.Join(dir, "../elsewhere"), 0o755), unix.Mkfifo(filepath.Join(dir, "pipe"), 0o644),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if text, err := root.Read("a/escape"); err != nil || text != "other" {
		t.Fatalf("%q, %v: from the outer root both are within", text, err)
	}
	sub, err := root.Sub("a")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	for _, name := range []string{"escape", "../b/value", "../a/value"} {
		if text, err := sub.Read(name); !errors.Is(err, trimtab.ErrRefused) {
			t.Errorf("%s: %q, %v", name, text, err)
		}
		if err := sub.Write(name, "hacked"); !errors.Is(err, trimtab.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, err := sub.Read("value2"); err != nil || text != "old and long\n" {
		t.Errorf("%q, %v", text, err)
	}
	// ReadIn is the same.
	for name, want := range map[string]string{"value": "old and long\n", "value2": "old and long\n", "escape": "", "../b/value": "", "none": ""} {
		text, err := root.ReadIn("a", name)
		if text != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v; want %q", name, text, err, want)
		}
		if other, bad := sub.Read(name); other != text || (bad == nil) != (err == nil) || errors.Is(bad, trimtab.ErrRefused) != errors.Is(err, trimtab.ErrRefused) {
			t.Errorf("%s: %q, %v, from a root of its own %q, %v", name, text, err, other, bad)
		}
	}
	if text, err := root.ReadIn("link", "value"); err == nil {
		t.Errorf("through a link that leaves the root: %q", text)
	}
	// None of these is a directory of the root; the pipe must not make it wait.
	for _, name := range []string{"..", "../elsewhere", "link", "a/value", "pipe", "none"} {
		if sub, err := root.Sub(name); err == nil {
			t.Errorf("%s was opened", name)
			sub.Close()
		}
	}
}
