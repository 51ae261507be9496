package rig

import (
	"os"
	"path/filepath"
	"testing"
)

func TestTheMemoryOfAGroupIsReadInBothVersions(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"version 1": {
			"memory.usage_in_bytes": "1000\n", "memory.limit_in_bytes": "2048\n", "memory.failcnt": "3\n", "memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
			"memory.stat": "inactive_file 1\ntotal_inactive_file 250\ntotal_workingset_refault_anon 1\ntotal_workingset_refault_file 4\n",
		},
		"version 2": {
			"memory.current": "1000\n", "memory.max": "2048\n", "memory.events": "low 0\nhigh 0\nmax 3\noom 2\noom_kill 2\n",
			"memory.stat": "inactive_file 250\nworkingset_refault_anon 1\nworkingset_refault_file 4\n",
		},
	} {
		dir := t.TempDir()
		for file, text := range files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		m, err := (&Group{dir: "none", also: []string{dir}}).Memory()
		if err != nil {
			t.Fatal(err)
		}
		want := MemoryUse{Usage: 1000, Working: 750, Limit: 2048, Kills: 2, Met: 3, Refaults: 5}
		if u, err := m.Use(); err != nil || u != want {
			t.Errorf("%s: %+v, %v", name, u, err)
		}
		for limit, same := range map[float64]float64{4096: 4096, 0: 0} {
			if err := m.Set(limit); err != nil {
				t.Fatal(err)
			}
			if v, err := m.Limit(); err != nil || limit > 0 && v != same || limit == 0 && v > 0 {
				t.Errorf("%s: %v after %v, %v", name, v, limit, err)
			}
		}
	}
	if _, err := (&Group{dir: t.TempDir()}).Memory(); err == nil {
		t.Error("a group without the controller has memory")
	}
}
