package calc

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
)

func TestMMFNamesWhatCannotBe(t *testing.T) {
	const one = `{"machines": [{"id": "a", "load": {"cpu": 1}}], "K": 1, "L_max": 1`
	for in, want := range map[string]string{
		one + `, "threshold": {}}`: `1:69: unknown field "threshold"`,
		one + `, "d": -1}`:         "d -1",
		one + `, "K_task": -1}`:    "K_task -1",
		one + `, "K_cpi": -1}`:     "K 1, -1 and 1",
		one + `, "jobs": [{"tasks": [{"machine": "b", "status": "ok"}]}]}`:                     `job 0: task 0: unknown machine "b"`,
		one + `, "jobs": [{"tasks": [{"machine": "a"}]}]}`:                                     `"status" is missing`,
		`{"machines": [{"id": "a", "load": {"cpu": -1}}], "K": 1, "L_max": 1}`:                 "row 0: ",
		`{"machines": [{"id": "a", "load": {"cpu": null}}], "K": 1, "L_max": 1}`:               "want a number, not null",
		`{"machines": [{"id": "a", "load": {}}, {"id": "a", "load": {}}], "K": 1, "L_max": 1}`: `machine "a" stands at 0 and at 1`,
		`{"machines": [{"id": "", "load": {}}], "K": 1, "L_max": 1}`:                           "machine 0",
		`{"machines": [], "K": 1}`: `"L_max" is missing`,
		`{"machines": [{"id": "a", "load": {"q": 1e308}}], "K": 1, "L_max": 1, "queue_filter": {"q": 10}}`: "queue filter is out of range",
	} {
		if _, err := MMF(strings.NewReader(in)); !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n %v, want %s", in, err, want)
		}
	}
}

// mmf runs MMF and returns its answer as JSON has it.
func mmf(t *testing.T, in string) (out mmfOutput) {
	t.Helper()
	got, err := MMF(strings.NewReader(in))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAMachineWithoutALoadThatIsReadIsNoCandidate(t *testing.T) {
	out := mmf(t, `{"machines": [{"id": "a", "load": {"cpu": 1}}, {"id": "b", "load": {"cpu": 2, "wait": 1}}, {"id": "c", "load": {"wait": 0}}],
		"K": 0, "L_max": 3, "load_filter": {"cpu": 1, "disk": null}, "queue_filter": {"wait": 1}}`)
	if !reflect.DeepEqual(out.Missing, []string{"a", "c"}) || !reflect.DeepEqual(out.Candidates, []string{"b"}) {
		t.Fatalf("missing %q, candidates %q", out.Missing, out.Candidates)
	}
}

func TestTheNumberOfMachinesThatPassByLoadIsRoundedUp(t *testing.T) {
	const in = `{"machines": [{"id": "a", "load": {"cpu": 1, "wait": 3}}, {"id": "b", "load": {"cpu": 2, "wait": 2}}, {"id": "c", "load": {"cpu": 3, "wait": 1}}],
		"K": 0, "L_max": 1, "load_filter": {"cpu": 1}, "queue_filter": {"wait": 1}, "d": `
	for d, want := range map[string]string{"1": "a", "1.01": "b", "2": "b", "2.5": "c", "100": "c"} {
		if out := mmf(t, in+d+"}"); !reflect.DeepEqual(out.Candidates, []string{want}) {
			t.Errorf("d %s: candidates %q, want %q", d, out.Candidates, want)
		}
	}
	if out := mmf(t, in+"0}"); len(out.Candidates) != 0 {
		t.Errorf("d 0: candidates %q", out.Candidates)
	}
}

func TestEachOfTheFourKsCanBeSetByItself(t *testing.T) {
	const in = `{"machines": [{"id": "a", "cpi": 3, "mpki": 1, "load": {}}, {"id": "b", "cpi": 2, "mpki": 3, "load": {}}, {"id": "c", "cpi": 1, "mpki": 2, "load": {}}],
		"jobs": [{"tasks": [{"machine": "c", "status": "killed"}, {"machine": "b", "status": "failed"}, {"machine": "c", "status": "tailed"}]}],
		"rp_oversubscription": true, "L_max": 3, "K": `
	out := mmf(t, in+`0, "K_task": 1, "K_cpi": 1}`)
	if !reflect.DeepEqual(out.Scores, map[string]int64{"c": -2}) || !reflect.DeepEqual(out.B0, []string{"a"}) || len(out.B1) != 0 {
		t.Errorf("%+v", out)
	}
	out = mmf(t, in+`2, "K_cpi": 0, "K_mpki": 1}`)
	if !reflect.DeepEqual(out.Scores, map[string]int64{"b": -1, "c": -2}) || !reflect.DeepEqual(out.B0, []string{"b"}) || !reflect.DeepEqual(out.B1, []string{"b", "c"}) {
		t.Errorf("%+v", out)
	}
}

// The examples are compared with more keys allowed; of machines there are to
// be no more than expected either.
func TestMMFNamesNoMachineBeyondTheExamples(t *testing.T) {
	for _, file := range casesIn(t, "mmf") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Input    json.RawMessage
			Expected mmfOutput
		}
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		out := mmf(t, string(c.Input))
		if len(out.Index) != len(c.Expected.Index) || !reflect.DeepEqual(out.Scores, c.Expected.Scores) {
			t.Errorf("%s: index of %d machines, scores %v", filepath.Base(file), len(out.Index), out.Scores)
		}
	}
}

func FuzzMMF(f *testing.F) {
	fuzz(f, MMF, `{"machines": [{"id": "a", "connected": true, "cpi": 1, "mpki": 2, "load": {"cpu": 4, "wait": 1}, "capacity": {"cpu": 16}}, {"id": "b", "load": {"cpu": 9, "wait": 0}, "capacity": {"cpu": 32}}], "jobs": [{"tasks": [{"machine": "b", "status": "killed"}]}], "rp_oversubscription": true, "K": 1, "K_task": 1, "thresholds": {"cpu": 0.9}, "load_filter": {"cpu": 1}, "queue_filter": {"wait": 1, "x": null}, "L_max": 1, "d": 1.5, "strict_topk": true}`)
}
