package cgroup_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/cgroup"
)

func TestAKernelWithoutBurstMovesTheQuotaAlone(t *testing.T) {
	for _, has := range []bool{false, true} {
		root := t.TempDir()
		dir := filepath.Join(root, "g")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{"cpu.max": "50000 100000\n", "cpu.stat": "usage_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n"}
		if has {
			files["cpu.max.burst"] = "0\n"
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		k, err := cgroup.Open(cgroup.Config{Root: root, Path: "g"})
		if err != nil {
			t.Fatal(err)
		}
		if err := k.Ready(true); err != nil {
			t.Fatalf("with burst %v: %v", has, err)
		}
		found, err := k.Move(trimtab.Units(0.8), 0.2)
		if err != nil || found != trimtab.Units(0.8) {
			t.Errorf("with burst %v: moved to %v, %v", has, found, err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "cpu.max.burst"))
		switch {
		case has && (err != nil || !strings.HasPrefix(string(b), "20000")):
			t.Errorf("the burst is %q, %v", b, err)
		case !has && !errors.Is(err, os.ErrNotExist):
			t.Errorf("without burst in the kernel there is %q, %v", b, err)
		}
		if strings.Contains(string(k.Undo()), `"bursts":true`) != has {
			t.Errorf("with burst %v the undo is %s", has, k.Undo())
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}
