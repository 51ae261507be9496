//go:build integration

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/lab/bench/rig"
)

// needsAll skips with the proof of what is absent.
func needsAll(t *testing.T) string {
	t.Helper()
	root, err := rig.FindRoot()
	if err != nil {
		t.Skipf("no cgroup to make groups in (root or a delegated subtree is needed): %v", err)
	}
	for name, debian := range map[string]string{"nginx": "nginx-light", "redis-server": "redis-server", "go": "golang"} {
		if _, err := rig.Lookup(name, debian); err != nil {
			t.Skip(err)
		}
	}
	if _, _, err := rig.PostgresHome(); err != nil {
		t.Skip(err)
	}
	return root
}

// Structure and safety of a short run with the real services; nothing about
// how well anybody did, since the machine may be busy.
func TestAShortRunIsSafeAndLeavesNothingBehind(t *testing.T) {
	root := needsAll(t)
	o, err := parse([]string{"--minutes", "0.2", "--scenario", "peaks", "--policy", "equal,trimtab:default:spans", "--cost", "5ms", "-o", "json"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	// PostgreSQL's user must get through to its directory.
	if err := os.Chmod(filepath.Dir(os.TempDir()), 0o711); err != nil {
		t.Fatal(err)
	}
	var out, said bytes.Buffer
	// With the default of 30 s nothing would move before the end.
	b := &bench{options: *o, out: &out, err: &said, override: []byte("round: 2s\n")}
	if err := b.run(t.Context()); err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if len(r.Rows) != 2 || r.Rows[0].Policy != "equal" || r.Rows[1].Policy != "trimtab:default:spans" {
		t.Fatalf("rows: %s", out.String())
	}
	for _, row := range r.Rows {
		t.Logf("%s: %s in time, %d moves, highest sum %.3f", row.Policy, percent(row.InTime), row.Moves, row.Highest)
		if row.Highest > o.Pool+1e-6 || row.Highest < o.Pool/2 {
			t.Errorf("%s: the highest sum of quotas is %v, the pool has %v", row.Policy, row.Highest, o.Pool)
		}
		if len(row.Unsafe) > 0 {
			t.Errorf("%s: %v", row.Policy, row.Unsafe)
		}
		for _, f := range row.Services {
			if f.Requests == 0 || f.P99 < f.P95 || f.P95 <= 0 {
				t.Errorf("%s: %+v", row.Policy, f)
			}
		}
	}
	nothingLeft(t, root)
}

// nothingLeft fails if groups or files of the run are there. A group with a
// process in it cannot be removed: where none is left, no process is.
func nothingLeft(t *testing.T, root string) {
	t.Helper()
	for _, dir := range hierarchies(root) {
		left, err := filepath.Glob(filepath.Join(dir, groupPrefix+strconv.Itoa(os.Getpid())+"-*"))
		if err != nil || len(left) > 0 {
			t.Errorf("groups left: %v, %v", left, err)
		}
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("files left: %v, %v", left, err)
	}
}

// hierarchies lists where a group beneath root has a directory: in version 1
// also where CPU time is accounted.
func hierarchies(root string) []string {
	if twin := hostfs.Accounting(root); twin != "" {
		return []string{root, twin}
	}
	return []string{root}
}
