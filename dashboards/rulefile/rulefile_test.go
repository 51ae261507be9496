package rulefile

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/dashboards"
)

// check returns the problems of one file, a line each.
func check(text string) string {
	_, problems := Check([]File{{"f.yaml", []byte(text)}})
	var lines []string
	for _, p := range problems {
		line := p.Error()
		if p.Hint != "" {
			line += " (" + p.Hint + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestTheGeneratedRulesAreGood(t *testing.T) {
	data := dashboards.Generate()["rules/trimtab.rules.yaml"]
	n, problems := Check([]File{{"trimtab.rules.yaml", data}})
	if n != 19 || len(problems) > 0 {
		t.Errorf("%d rules, %v", n, problems)
	}
}

func TestMistakesAreToldWithPlaceAndTheNearestName(t *testing.T) {
	const head = "groups:\n- name: g\n  rules:\n"
	for name, c := range map[string]struct{ text, want string }{
		"a metric that is misspelt": {
			head + "  - record: a:b\n    expr: rate(trimtab_stage_inputs_totl[5m])\n",
			"f.yaml:5:16: trimtab has no metric trimtab_stage_inputs_totl (trimtab_stage_inputs_total)"},
		"in the third line of a block": {
			head + "  - alert: A\n    expr: |\n      sum(\n        trimtab_workload_laod\n      ) > 0\n",
			"f.yaml:7:9: trimtab has no metric trimtab_workload_laod (trimtab_workload_load)"},
		"a histogram without its ending": {
			head + "  - alert: A\n    expr: trimtab_stage_lag_seconds > 1\n",
			"f.yaml:5:11: trimtab_stage_lag_seconds is a histogram (trimtab_stage_lag_seconds_bucket, trimtab_stage_lag_seconds_sum or trimtab_stage_lag_seconds_count)"},
		"a recorded series that nothing records": {
			head + "  - alert: A\n    expr: trimtab:workload_atainment:ratio < 1\n",
			"f.yaml:5:11: trimtab has no metric trimtab:workload_atainment:ratio (trimtab:workload_attainment:ratio)"},
		"a name that is like none": {
			head + "  - alert: A\n    expr: trimtab_flux_capacitor > 1\n", "f.yaml:5:11: trimtab has no metric trimtab_flux_capacitor"},
		"an unknown key": {
			head + "  - alert: A\n    exp: up == 0\n", `f.yaml:5:5: unknown field "exp" (expr)`},
		"both": {
			head + "  - alert: A\n    record: b\n    expr: up\n", "f.yaml:4:5: a rule needs either record or alert"},
		"no expression": {head + "  - alert: A\n", "f.yaml:4:5: a rule without expr"},
		"a duration": {
			head + "  - alert: A\n    expr: up\n    for: 5 minutes\n", `f.yaml:6:10: "5 minutes" is no duration (30s, 5m, 1h)`},
		"a bracket": {
			head + "  - alert: A\n    expr: sum(trimtab_workload_load\n", "f.yaml:5:11: expr: '(' is never closed"},
		"others' metrics":     {head + "  - alert: A\n    expr: whatever_total > 1\n", ""},
		"what itself records": {head + "  - record: trimtab:mine\n    expr: up\n  - alert: A\n    expr: trimtab:mine == 0\n", ""},
		"nothing":             {"groups: []\n", "f.yaml:1:1: no groups: nothing would be evaluated"},
		"no text":             {"", "f.yaml:1:1: want one document, with groups of rules"},
		"not UTF-8":           {"\xff", "f.yaml:1:1: the file is not UTF-8"},
	} {
		if got := check(c.text); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

func TestWhatOneFileRecordsAnotherMayUse(t *testing.T) {
	n, problems := Check([]File{
		{"alerts.yaml", []byte("groups: [{name: a, rules: [{alert: A, expr: 'trimtab:ours > 1'}]}]")},
		{"records.yaml", []byte("groups: [{name: r, rules: [{record: 'trimtab:ours', expr: trimtab_workload_load}]}]")},
	})
	if n != 2 || len(problems) > 0 {
		t.Errorf("%d rules, %v", n, problems)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(dashboards.Generate()["rules/trimtab.rules.yaml"])
	f.Add([]byte("groups: [{name: a, rules: [{alert: A, expr: 'trimtab:ours > 1', for: 5m}]}]"))
	f.Add([]byte("groups: &a\n- *a\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, problems := Check([]File{{"f.yaml", data}})
		for _, p := range problems {
			if p.Line < 1 || p.Col < 1 || p.Message == "" {
				t.Errorf("%q: %+v", data, p)
			}
		}
	})
}

func TestWhatWouldExhaustTheParserIsRefused(t *testing.T) {
	stairs, keys := "", "groups:\n- labels:\n"
	for i := range 40 {
		stairs += strings.Repeat(" ", i) + "a:\n"
	}
	for i := range 2 * maxKeys {
		keys += fmt.Sprintf("    k%d: x\n", i)
	}
	for _, c := range []struct{ text, want string }{
		{strings.Repeat("[", MaxBytes/2), "f.yaml:1:33: nested deeper"},
		{strings.Repeat("{a: ", MaxBytes/8), "f.yaml:1:129: nested deeper"},
		{strings.Repeat("- ", MaxBytes/4), "f.yaml:1:65: nested deeper"},
		{strings.Repeat("? ", MaxBytes/4), "f.yaml:1:1: anchors"},
		{"groups: &a\n- *a\n", "f.yaml:1:9: anchors"},
		{stairs, "f.yaml:33:34: nested deeper"},
		{keys, "f.yaml:1003:10: more than 1000 keys"},
		{strings.Repeat("#", MaxBytes+1), "f.yaml:1:1: the file has more than"},
	} {
		if got := check(c.text); !strings.HasPrefix(got, c.want) {
			t.Errorf("%.20q…: %.200q, want %q…", c.text, got, c.want)
		}
	}
}
