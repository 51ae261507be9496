package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// speculated runs `trimtab-lab sim rose` and returns its exit code and what it printed.
func speculated(t *testing.T, args ...string) (code int, out, said string) {
	t.Helper()
	var o, e strings.Builder
	code = Main(t.Context(), append([]string{"sim", "rose"}, args...), &o, &e)
	return code, o.String(), e.String()
}

func TestRosePrintsThePapersRowsBesideOurs(t *testing.T) {
	t.Parallel()
	code, out, said := speculated(t, "--machines=4", "--seeds=2", "--part=batch,mixed", "--policy=none,RB,ROSE", "-o", "json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	var answer roseAnswer
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Rows) != 8 || len(answer.Targets) != 4 {
		t.Fatalf("%d rows, %d targets: want 8 and 4", len(answer.Rows), len(answer.Targets))
	}
	if r := answer.Rows[5]; r.Name != "ROSE" || r.Paper["makespan_s"] != 517.4 || r.Makespan <= 0 || r.StdErr == nil || r.LRA != nil {
		t.Errorf("row %+v", r)
	}
	if r := answer.Rows[7]; r.Name != "ROSE-RP" || r.Paper["cpu"] < 0.56 || r.LRA == nil {
		t.Errorf("row %+v", r)
	}
}

func TestRoseListsEachPolicyOnceForEachMode(t *testing.T) {
	t.Parallel()
	code, out, said := speculated(t, "--policy", "none,RB,ROSE", "--mode", "UP,RP", "--machines", "4", "--seeds", "1", "-o", "json", "--part", "yarn,batch,mixed")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	var answer struct{ Policies []map[string]any }
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range answer.Policies {
		got = append(got, fmt.Sprint(p["policy"], "/", p["mode"]))
		for _, key := range []string{"makespan_s", "cpu_use", "disk_use", "started", "evicted"} {
			if _, number := p[key].(float64); !number {
				t.Errorf("%v: no %s", p, key)
			}
		}
		if p95, number := p["lra_p95_over_alone"].(float64); number != (p["mode"] != "") || number && p95 < 1 {
			t.Errorf("%v: p95 %v over alone", p, p["lra_p95_over_alone"])
		}
	}
	want := []string{"none/", "none/UP", "none/RP", "RB/", "RB/UP", "RB/RP", "ROSE/", "ROSE/UP", "ROSE/RP"}
	if !slices.Equal(got, want) {
		t.Errorf("policies %q, want %q", got, want)
	}
}

func TestRoseDrawsFigures13To18(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "figures")
	code, out, said := speculated(t, "--machines=4", "--seeds=1", "--part=batch,rescheduling,mixed", "--policy=none,ROSE", "--plot", dir)
	if code != 0 || !strings.Contains(out, "Tables 4 and 5") || !strings.Contains(out, "(117676)") {
		t.Fatalf("exit code %d: %s%s", code, out, said)
	}
	for _, name := range []string{"fig13-spec-ROSE", "fig13-disk-ROSE", "fig14a-cpu", "fig14b-disk", "fig15a-makespan", "fig15b-jct", "fig16-rescheduling", "fig17-ycsb", "fig18-sysbench"} {
		if info, err := os.Stat(filepath.Join(dir, name+".svg")); err != nil || info.Size() < 1000 {
			t.Errorf("figure %s: %v", name, err)
		}
	}
}

func TestAMistakeInTheFlagsOfRoseIsToldWithWhatToDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ arg, want string }{
		{"--policy=ROSA", `did you mean "ROSE"`}, {"--mode=RP,XP", "UP, RP"}, {"--part=bach", `did you mean "batch"`},
		{"--machines=1", "2 to 10000"}, {"--seeds=0", "1 to 1000"}, {"--data=" + t.TempDir(), "machine_usage_shared.csv.gz"},
	} {
		code, _, said := speculated(t, c.arg)
		if code == 0 || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit code %d, %s: want %q", c.arg, code, said, c.want)
		}
	}
}
