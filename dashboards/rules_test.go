package dashboards

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestPromtoolFindsTheRulesGood(t *testing.T) {
	out, err := exec.Command(promtool(t), "check", "rules", "--lint-fatal", "rules/trimtab.rules.yaml").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// play runs an alert's unit tests against its rules after a change.
func play(t *testing.T, name string, change func(expr string) string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	test, err := os.ReadFile(filepath.Join("rules", name+"_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	rules := string(rulesYAML())
	for _, a := range alerts() {
		if a.name == name && change != nil {
			old := "      - alert: " + name + "\n        expr: " + quote(inRule(a.expr)) + "\n"
			if !strings.Contains(rules, old) {
				t.Fatalf("%s is not in the rules as expected", name)
			}
			rules = strings.Replace(rules, old, "      - alert: "+name+"\n        expr: "+quote(change(inRule(a.expr)))+"\n", 1)
		}
	}
	for file, text := range map[string]string{"trimtab.rules.yaml": rules, "test.yaml": string(test)} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(promtool(t), "test", "rules", filepath.Join(dir, "test.yaml")).CombinedOutput()
	return string(out), err
}

func TestEveryAlertFiresAndIsQuietWhereItsTestsSaySo(t *testing.T) {
	for _, a := range alerts() {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			if out, err := play(t, a.name, nil); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			// Tests that an alert passes which never, or always, fires are none.
			if _, err := play(t, a.name, func(string) string { return "vector(0) > 1" }); err == nil {
				t.Error("no test asks that it fires")
			}
			if _, err := play(t, a.name, func(expr string) string { return `(` + expr + `) or label_replace(vector(1), "job", "always", "", "")` }); err == nil {
				t.Error("no test asks that it is quiet")
			}
		})
	}
}

func TestEveryAlertIsNamedExplainedAndHasItsPage(t *testing.T) {
	all := alerts()
	if len(all) > maxAlerts {
		t.Errorf("%d alerts: more than %d are not read", len(all), maxAlerts)
	}
	pages := map[string]bool{}
	for _, a := range all {
		if !regexp.MustCompile(`^Trimtab([A-Z][a-z]+|SLO)+$`).MatchString(a.name) || a.summary == "" || a.description == "" ||
			a.severity != "critical" && a.severity != "warning" {
			t.Errorf("%+v", a)
		}
		path := filepath.Join("..", "docs", "runbooks", a.name+".md")
		pages[path] = true
		b, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}
		text := string(b)
		for _, part := range []string{"# " + a.name + "\n", "\n## What it means\n", "\n## What to look at\n", "\n## What to do\n", "\n## When it is harmless\n"} {
			if strings.Count(text, part) != 1 {
				t.Errorf("%s: want %q once", path, part)
			}
		}
		for _, name := range names(t, strings.Join(regexp.MustCompile("trimtab[_:][a-z0-9_:]+").FindAllString(text, -1), " ")) {
			if !isKnown(name) {
				t.Errorf("%s: %s is no metric", path, name)
			}
		}
	}
	have, err := filepath.Glob("../docs/runbooks/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range have {
		if !pages[path] {
			t.Errorf("%s belongs to no alert", path)
		}
	}
}
