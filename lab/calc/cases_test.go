package calc

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// casesIn returns the example files of one algorithm: TRIMTAB_CASES names
// their directory; else they are looked for beside the recorded data.
func casesIn(t *testing.T, name string) []string {
	t.Helper()
	dir := os.Getenv("TRIMTAB_CASES")
	if data := os.Getenv("TRIMTAB_DATA"); dir == "" && data != "" {
		dir = filepath.Join(data, "..", "spec", "cases")
	}
	files, _ := filepath.Glob(filepath.Join(dir, name+"-*.json"))
	if dir == "" || len(files) == 0 {
		t.Skip("no example cases: neither TRIMTAB_CASES nor TRIMTAB_DATA leads to files " + name + "-*.json")
	}
	return files
}

// checkCases runs every example of one algorithm, {"input", "expected"}, and
// compares what is expected; more keys are welcome.
func checkCases(t *testing.T, name string, run Func, tolerance float64) {
	t.Helper()
	for _, file := range casesIn(t, name) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Input    json.RawMessage
			Expected any
		}
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatal(err)
		}
		out, err := run(bytes.NewReader(c.Input))
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		text, err := json.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		compare(t, filepath.Base(file), c.Expected, got, tolerance)
	}
}

// compare demands that got has all that want has, numbers within tolerance.
func compare(t *testing.T, at string, want, got any, tolerance float64) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s: %v, want an object", at, got)
			return
		}
		for k, v := range want {
			compare(t, at+"."+k, v, g[k], tolerance)
		}
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(want) {
			t.Errorf("%s: %v, want %v", at, got, want)
			return
		}
		for i, v := range want {
			compare(t, at, v, g[i], tolerance)
		}
	case float64:
		g, ok := got.(float64)
		if !ok || math.Abs(g-want) > tolerance*math.Max(1, math.Abs(want)) {
			t.Errorf("%s: %v, want %v", at, got, want)
		}
	default:
		if want != got {
			t.Errorf("%s: %v, want %v", at, got, want)
		}
	}
}

func TestNJCAgreesWithTheExamples(t *testing.T)  { checkCases(t, "njc", NJC, 1e-9) }
func TestEDRFAgreesWithTheExamples(t *testing.T) { checkCases(t, "edrf", EDRF, 1e-6) }
func TestContributionAgreesWithTheExamples(t *testing.T) {
	checkCases(t, "contribution", Contribution, 1e-9)
}
func TestMLRQAgreesWithTheExamples(t *testing.T) { checkCases(t, "mlrq", MLRQ, 1e-9) }
func TestMMFAgreesWithTheExamples(t *testing.T)  { checkCases(t, "mmf", MMF, 1e-9) }
