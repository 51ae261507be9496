package hungfs_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab/internal/hungfs"
)

func TestNoSignalEndsWhoLooksAtANameUntilItIsUnmounted(t *testing.T) {
	fs := hungfs.Mount(t)
	cmd := exec.Command("stat", filepath.Join(fs.Dir, "x"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-fs.Asked
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
	if err != nil || bytes.Contains(b, []byte(") Z ")) {
		t.Errorf("it ended: %s, %v", b, err)
	}
	if err := fs.Release(); err != nil {
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it saw something")
	}
}
