package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/lab/colocate"
)

// beside runs `trimtab-lab sim colocate` and returns its exit code and what it printed.
func beside(t *testing.T, args ...string) (code int, out, said string) {
	t.Helper()
	var o, e strings.Builder
	code = Main(t.Context(), append([]string{"sim", "colocate"}, args...), &o, &e)
	return code, o.String(), e.String()
}

func TestColocateComparesThePoliciesThatItRan(t *testing.T) {
	t.Parallel()
	code, out, said := beside(t, "--hours=0.02", "--seeds=2", "--load=constant", "--policy=heracles,rhythm,rhythm", "-o", "json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	var answer colocateAnswer
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	part := answer.Loads[0]
	if len(part.Policies) != 2 || part.Policies[1].Policy != "rhythm" || part.Policies[1].OverHeracles == nil || part.Policies[1].EMUOfOracle != nil || part.Policies[1].StdErr == nil {
		t.Errorf("answer %s", out)
	}
	if row := answer.Rows[5]; len(answer.Rows) != 10 || row.Policy != "rhythm" || row.Service != "e-commerce" || row.EMU != part.Policies[1].Services["e-commerce"].EMU || row.Held == 0 {
		t.Errorf("%d rows, the sixth %+v", len(answer.Rows), row)
	}
	if len(part.Policies[0].Services) != 5 || len(part.Profiles) != 5 {
		t.Errorf("%d services, %d profiles, want 5", len(part.Policies[0].Services), len(part.Profiles))
	}
}

func TestTheEnvironmentThatColocatePrintsCanBePlayedAndDrawn(t *testing.T) {
	t.Parallel()
	code, out, said := beside(t, "--print-env")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	// One service and its two hosts of it are enough.
	var e colocate.Environment
	if err := json.Unmarshal([]byte(out), &e); err != nil {
		t.Fatal(err)
	}
	e.Name, e.Services = "mine", e.Services[2:3]
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, said = beside(t, "--env", file, "--hours=0.1", "--seeds=1", "--policy=rhythm,oracle", "--plot", filepath.Join(dir, "figures"))
	if code != 0 || !strings.Contains(out, "mine: 1 services on 13 hosts") || !strings.Contains(out, "oracle") {
		t.Fatalf("exit code %d: %s%s", code, out, said)
	}
	figures, err := filepath.Glob(filepath.Join(dir, "figures", "fig30-constant-solr-rhythm-*.svg"))
	if err != nil || len(figures) != 5 {
		t.Errorf("figures %v, %v", figures, err)
	}
}

func TestAMistakeInAnEnvironmentIsToldWithItsPlaceAndWhatToDo(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(file, []byte("{\n\"hosts\": 3}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"--env=" + file, "bad.json:2"}, {"--env=" + file, "--print-env"},
		{"--policy=rhythn", `did you mean "rhythm"`}, {"--load=clark", "clarknet"}, {"--hours=0", "0.01 to 240"},
	} {
		code, _, said := beside(t, c.args, "--seeds=1")
		if code == 0 || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit code %d, %s: want %q", c.args, code, said, c.want)
		}
	}
}
