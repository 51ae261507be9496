package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/lab/kubernetes"
)

// onCluster runs `trimtab-lab sim kubernetes` and returns its exit code and what it printed.
func onCluster(t *testing.T, args ...string) (code int, out, said string) {
	t.Helper()
	var o, e strings.Builder
	code = Main(t.Context(), append([]string{"sim", "kubernetes"}, args...), &o, &e)
	return code, o.String(), e.String()
}

func TestKubernetesComparesAutoscalersAtTheirBestThreshold(t *testing.T) {
	t.Parallel()
	code, out, said := onCluster(t, "--policy=hpa,oracle,oracle", "--load=nasa", "--threshold=50,80", "--seeds=1", "-o", "json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}
	var answer kubernetesAnswer
	if err := json.Unmarshal([]byte(out), &answer); err != nil {
		t.Fatal(err)
	}
	part := answer.Loads[0]
	if len(part.Policies) != 2 || part.Policies[0].Policy != "hpa" || len(part.Policies[0].Services) != 10 || part.Policies[0].Services[0].Threshold != 50 {
		t.Errorf("answer %s", out)
	}
	if hpa, oracle := &part.Policies[0], &part.Policies[1]; oracle.CoreHours >= hpa.CoreHours || hpa.Saved != nil || oracle.Services[0].Threshold != 0 {
		t.Errorf("hpa %+v, oracle %+v", hpa, oracle)
	}
}

func TestAMistakeInWhatKubernetesShallPlayIsToldWithWhatToDo(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"--policy=hpaa", `did you mean "hpa"`}, {"--load=nass", `did you mean "nasa"`}, {"--threshold=0", "1 to 100"}, {"--pool=-1", "0 to 1000000"},
	} {
		code, _, said := onCluster(t, c.args, "--seeds=1")
		if code == 0 || !strings.Contains(said, c.want) {
			t.Errorf("%s: exit code %d, %s: want %q", c.args, code, said, c.want)
		}
	}
}

func TestKubernetesTellsOfEachFigureThatIsAskedWhetherItIsMet(t *testing.T) {
	t.Parallel()
	policies := []kubernetes.Summary{{Policy: "trimtab", CoreHours: 70, Missed: 3, Nodes: 9, Resizes: 5, QuietHours: 1}, {Policy: "eks", CoreHours: 100, Missed: 2, Nodes: 10}, {Policy: "vpa", CoreHours: 80, Missed: 4, Nodes: 10}}
	text := strings.Join(asked("on nasa", policies), "\n")
	for _, want := range []string{"of eks +0.7 of at most 0.75: met", "of vpa +0.875 of at most 0.8: missed", "beside eks +3 of at most 2: missed", "beside vpa +3 of at most 4: met", "nodes, .* 0.9 of at most 0.85: missed", "day +5 of at most 4: missed", "quiet hour +0 of at most 0: met"} {
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("%s\nwant %q", text, want)
		}
	}
	if asked("on nasa", policies[:2]) != nil {
		t.Error("it compares with what was not played")
	}
	at := 60.0
	both := kubernetesAnswer{Loads: []kubernetesPart{{Policies: []kubernetes.Summary{{Policy: "eks", CoreHours: 100, Missed: 2, Resizes: 3, Quiet: 1, QuietHours: 3, Advice: &at}}}, {Policies: []kubernetes.Summary{{Policy: "eks", CoreHours: 50, Missed: 1, Resizes: 1, Quiet: 5, QuietHours: 1}}}}}
	if got := both.together()[0]; got.CoreHours != 150 || got.Missed != 3 || got.Resizes != 2 || got.Quiet != 2 || got.Advice != nil {
		t.Errorf("together %+v", got)
	}
}
