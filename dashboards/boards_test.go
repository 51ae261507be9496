package dashboards

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab/internal/metric"
)

// boards returns all boards by file name.
func boards() map[string]*board {
	return map[string]*board{"overview": overview(), "workload": workload(), "pipeline": pipeline(), "colocate": colocate(), "speculate": speculate(), "contributions": contributions(), "gate": gate()}
}

// expressions returns every expression of the boards, with where it stands.
func expressions() map[string]string {
	out := map[string]string{}
	for name, b := range boards() {
		for _, p := range b.Panels {
			for _, q := range p.Targets {
				out[name+": "+p.Title+": "+q.RefID] = q.Expr
			}
		}
		for _, a := range b.Annotations.List {
			out[name+": annotation "+a.Name] = a.Expr
		}
	}
	return out
}

// ruled returns every expression of the rules by the rule's name.
func ruled() map[string]string {
	out := map[string]string{}
	for _, r := range recordings() {
		out[r.name] = inRule(r.expr)
	}
	for _, a := range alerts() {
		out[a.name] = inRule(a.expr)
	}
	return out
}

// names returns the trimtab names in an expression, histograms without what
// their series end in.
func names(t *testing.T, expr string) []string {
	t.Helper()
	found, err := Metrics(expr)
	if err != nil {
		t.Errorf("%s: %v", expr, err)
	}
	for i, name := range found {
		for _, r := range metric.Table() {
			if rest, ok := strings.CutPrefix(name, r.Name); ok && r.Type == metric.Histogram && slices.Contains([]string{"_bucket", "_sum", "_count"}, rest) {
				found[i] = r.Name
			}
		}
	}
	return found
}

// isKnown reports whether name is in the table, recorded, or the build's.
func isKnown(name string) bool {
	return slices.ContainsFunc(metric.Table(), func(r metric.Row) bool { return r.Name == name }) ||
		slices.Contains(append(Recorded(), "trimtab_build_info"), name)
}

func TestEveryNameInAnExpressionIsInTheTableOrRecorded(t *testing.T) {
	all := expressions()
	for name, expr := range ruled() {
		all[name] = expr
	}
	for where, expr := range all {
		for _, name := range names(t, expr) {
			if !isKnown(name) {
				t.Errorf("%s: %s is in no table and no rule records it", where, name)
			}
		}
	}
}

// notShown are metrics that no board needs, with the reason.
func notShown() map[string]string {
	return map[string]string{}
}

func TestEveryMetricOfTheTableIsOnABoard(t *testing.T) {
	shown := map[string]bool{}
	for _, expr := range expressions() {
		for _, name := range names(t, expr) {
			shown[name] = true
		}
	}
	for _, r := range metric.Table() {
		if why := notShown()[r.Name]; shown[r.Name] == (why != "") {
			t.Errorf("%s: on a board: %v, reason not to be: %q", r.Name, shown[r.Name], why)
		}
		delete(shown, r.Name)
	}
}

func TestEveryLabelInALegendIsOneThatTheMetricsHave(t *testing.T) {
	labels := []string{"job", "instance", "namespace"}
	for _, r := range metric.Table() {
		labels = append(labels, r.Labels...)
	}
	for name, b := range boards() {
		for _, p := range b.Panels {
			for _, q := range p.Targets {
				for rest := q.LegendFormat; strings.Contains(rest, "{{"); {
					_, after, _ := strings.Cut(rest, "{{")
					label, tail, _ := strings.Cut(after, "}}")
					if !slices.Contains(labels, label) || !strings.Contains(q.Expr, label) {
						t.Errorf("%s: %s: legend %q: no such label in %s", name, p.Title, q.LegendFormat, q.Expr)
					}
					rest = tail
				}
			}
		}
	}
}

func TestEveryPanelHasAUnitADescriptionAndTheChosenDatasource(t *testing.T) {
	for name, b := range boards() {
		ids := map[int]bool{}
		for _, p := range b.Panels {
			if ids[p.ID] {
				t.Errorf("%s: %s: id %d is taken", name, p.Title, p.ID)
			}
			ids[p.ID] = true
			if p.Type == "row" {
				continue
			}
			if p.FieldConfig.Defaults.Unit == "" || p.Description == "" || p.Title == "" || len(p.Targets) == 0 {
				t.Errorf("%s: %q: unit %q, description %q, %d targets", name, p.Title, p.FieldConfig.Defaults.Unit, p.Description, len(p.Targets))
			}
			for _, q := range p.Targets {
				if *p.Datasource != chosen() || q.Datasource != chosen() || !strings.Contains(q.Expr, "$namespace") || q.LegendFormat == "" {
					t.Errorf("%s: %s: %s: not from the chosen data source and namespace, or without legend", name, p.Title, q.RefID)
				}
			}
		}
	}
}

func TestPanelsDoNotOverlapAndStayOnTheBoard(t *testing.T) {
	for name, b := range boards() {
		taken := map[[2]int]string{}
		for _, p := range b.Panels {
			if p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: %s: beyond the right edge", name, p.Title)
			}
			for x := range p.GridPos.W {
				for y := range p.GridPos.H {
					at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
					if taken[at] != "" {
						t.Fatalf("%s: %s lies on %s", name, p.Title, taken[at])
					}
					taken[at] = p.Title
				}
			}
		}
	}
}

func TestBoardsHaveTheVariablesAndLinksThatPeopleLookFor(t *testing.T) {
	want := map[string]string{
		"overview": "datasource namespace workload", "workload": "datasource namespace workload", "pipeline": "datasource namespace",
		"colocate": "datasource namespace", "speculate": "datasource namespace", "contributions": "datasource namespace workload", "gate": "datasource namespace",
	}
	for name, b := range boards() {
		var have []string
		for _, v := range b.Templating.List {
			have = append(have, v.Name)
		}
		if diff := cmp.Diff(want[name], strings.Join(have, " ")); diff != "" {
			t.Errorf("%s (-want +got)\n%s", name, diff)
		}
		if b.UID != "trimtab-"+name || b.SchemaVersion != schemaVersion {
			t.Errorf("%s: uid %s, schema %d", name, b.UID, b.SchemaVersion)
		}
	}
	if n := len(workload().Annotations.List); n == 0 {
		t.Error("decisions are not marked on the board of a workload")
	}
}

// filled replaces what Grafana would fill in.
func filled(expr string) string {
	return strings.NewReplacer("$namespace", ".*", "$workload", "shop", "$__rate_interval", "1m", "$__interval", "15s", "$__range", "1h").Replace(expr)
}

func TestPromtoolReadsEveryExpression(t *testing.T) {
	tool := promtool(t)
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var rules []rule
	for where, expr := range expressions() {
		text := filled(expr)
		if strings.Contains(text, "$") {
			t.Errorf("%s: %s: a variable that no board has", where, text)
		}
		rules = append(rules, rule{"x", text})
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "all", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(tool, "check", "rules", "--lint=none", file).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// promtool finds Debian's, or skips.
func promtool(t *testing.T) string {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skipf("no promtool here (%v): apt-get install prometheus", err)
	}
	return tool
}

func TestMetricsFindsNamesAndNothingElse(t *testing.T) {
	for expr, want := range map[string]string{
		`rate(trimtab_a_total{workload="trimtab_b"}[5m])`:          "trimtab_a_total",
		`{__name__="trimtab_c"} + trimtab:d:ratio # trimtab_e`:     "trimtab:d:ratio trimtab_c",
		`sum by (stage) (up) * 1e3`:                                "",
		"label_replace(trimtab_f, \"x\", `(\"`, 'y', 'trimtab_g')": "trimtab_f",
		`trimtab_h{trimtab_label="x"} unless on () trimtab_h`:      "trimtab_h",
		`"\"trimtab_no" == bool trimtab_i`:                         "trimtab_i",
		`sum(trimtab_j`:                                            `error: '(' is never closed`,
		`trimtab_j{a="b)`:                                          `error: the text that begins with "b) is never closed`,
		`sum(trimtab_j]`:                                           `error: ']' closes nothing`,
	} {
		got, err := Metrics(expr)
		text := strings.Join(got, " ")
		if err != nil {
			text = "error: " + err.Error()
		}
		if text != want {
			t.Errorf("%s: %s, want %s", expr, text, want)
		}
	}
}

func FuzzMetrics(f *testing.F) {
	for _, expr := range ruled() {
		f.Add(expr)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		found, err := Metrics(expr)
		for _, name := range found {
			if err != nil || !strings.Contains(expr, name) {
				t.Errorf("%q: %q, %v", expr, name, err)
			}
		}
	})
}
