package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/config"
)

// oneObjective reads the only objective of a text.
func oneObjective(t *testing.T, text string) *config.Objective {
	t.Helper()
	all, err := config.ReadObjectives("x.yaml", []byte(text), config.DefaultWindow)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d objectives, %v, of\n%s", len(all), err, text)
	}
	return &all[0]
}

func pyrraLatency(metric, le string) string {
	return fmt.Sprintf("apiVersion: pyrra.dev/v1alpha1\nkind: ServiceLevelObjective\nmetadata: {name: a}\nspec:\n  target: '99'\n  indicator: {latency: {success: {metric: '%s_bucket{%s}'}, total: {metric: %s_count}}}\n", metric, le, metric)
}

func TestALatencyIsInTheUnitOfItsHistogram(t *testing.T) {
	for text, want := range map[string]time.Duration{
		pyrraLatency("istio_request_duration_milliseconds", `le="250"`): 250 * time.Millisecond,
		pyrraLatency("response_latency_ms", `le="62.5"`):                62500 * time.Microsecond,
		pyrraLatency("rpc_duration_microseconds", `le="1e+03"`):         time.Millisecond,
		pyrraLatency("http_seconds", `le="1.0"`):                        time.Second,
		pyrraLatency("http_seconds", `le=~"1(\\.0)?"`):                  time.Second,
		pyrraLatency("http_seconds", `le="0.05"`):                       50 * time.Millisecond,
	} {
		o := oneObjective(t, text)
		if o.SLO.Latency != want || o.SLO.Fraction != 0.99 || len(o.Notes) != 0 {
			t.Errorf("%+v, want %v, of\n%s", o, want, text)
		}
		if r := config.RatioOf(o.Performance); r.Within != want || r.Requests == "" {
			t.Errorf("%s: %+v, want %v", o.Performance, r, want)
		}
	}
	if o := oneObjective(t, pyrraLatency("latency", `le="10"`)); o.SLO.Latency != 10*time.Second || len(o.Notes) != 1 || !strings.Contains(o.Notes[0], "taken for seconds") {
		t.Errorf("%+v", o)
	}
	if _, err := config.ReadObjectives("x", []byte(pyrraLatency("response_size_bytes", `le="1000"`)), time.Minute); err == nil || !strings.Contains(err.Error(), "is no latency") {
		t.Error(err)
	}
}

func TestABucketOfAWholeNumberIsAskedForAsEitherVersionOfPrometheusSpellsIt(t *testing.T) {
	if o := oneObjective(t, pyrraLatency("http_seconds", `le="1"`)); !strings.Contains(o.Performance, `le=~"1(\\.0)?"`) {
		t.Error(o.Performance)
	}
}

const slothFile = "version: prometheus/v1\nservice: basket\nslos:\n- name: a\n  objective: 99.5\n  sli:\n    events:\n"

func TestCommentsAndBlanksOfAQueryAreNoPartOfIt(t *testing.T) {
	o := oneObjective(t, slothFile+`      error_query: |
        sum(rate(x{service="basket  # 2",code=~"5.."}[{{.window}}])) # only what is ours
      total_query: |
        # probes are no requests
        sum(
        	rate(x{service="basket  # 2"}[{{ .window }}])
        )
`)
	total := `sum(rate(x{service="basket  # 2"}[1m]))`
	if want := `1 - (sum(rate(x{service="basket  # 2",code=~"5.."}[1m])) or 0 * ` + total + `) / ` + total; o.Performance != want || o.Load != total {
		t.Errorf("%s\n%s", o.Performance, o.Load)
	}
	// Of a query of our own, what is derived ends where it ends without its comments.
	if r := config.RatioOf("sum(rate(a{$match}[1m])) / # all\nsum(rate(b{$match}[1m])) # of them\n"); r.Requests != "(sum(rate(b{$match}[1m]))) * 60" {
		t.Error(r.Requests)
	}
}

func TestAnchorsAliasesMergesAndTagsAreWhatTheyStandFor(t *testing.T) {
	all, err := config.ReadObjectives("x.yaml", []byte(`%YAML 1.2
---
version: !!str prometheus/v1
service: &s “basket”
x-common: &common
  objective: &goal 99.9
  name: common
slos:
- &first
  <<: *common
  name: a
  sli: {events: {error_query: 'sum(rate(e[{{.window}}]))', total_query: &total 'sum(rate(t[{{.window}}]))'}}
- <<: [*first]
  name: b
  objective: *goal
- {name: c, objective: *goal, sli: {events: {error_query: 'sum(rate(f[{{.window}}]))', total_query: *total}}}
`), time.Minute)
	if err != nil || len(all) != 3 || all[1].Name != "b" || all[1].SLO.Performance != 0.999 || all[2].Load != all[0].Load {
		t.Fatalf("%+v, %v", all, err)
	}
	for text, want := range map[string]string{
		"version: prometheus/v1\nservice: *gone\nslos: []\n": "x:2:10: *gone stands for nothing",
		"a: &a {b: *a}\nversion: prometheus/v1\nslos: *a\n":  "the file has no slos",
		"x: &a {<<: [*a, *a]}\nversion: prometheus/v1\n":     "",
	} {
		if _, err := config.ReadObjectives("x", []byte(text), time.Minute); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestMergesThatGrowWithoutEndAreCutShort(t *testing.T) {
	text := "a0: &a0 {k: v}\n"
	for i := 1; i < 30; i++ {
		text += fmt.Sprintf("a%d: &a%d {<<: [*a%d, *a%[3]d, *a%[3]d, *a%[3]d, *a%[3]d, *a%[3]d, *a%[3]d, *a%[3]d]}\n", i, i, i-1)
	}
	began := time.Now()
	if _, err := config.ReadObjectives("x", []byte(text+"version: prometheus/v1\n<<: *a29\n"), time.Minute); err == nil {
		t.Error("no mistake")
	}
	if took := time.Since(began); took > 5*time.Second { // 8^29 without a bound
		t.Error(took)
	}
}

const ownSLI = "apiVersion: openslo/v1\nkind: SLI\nmetadata: {name: good}\nspec:\n  ratioMetric:\n    counter: true\n    good: {metricSource: {metricSourceRef: p, spec: {query: 'good_total offset 5m'}}}\n    total: {metricSource: {metricSourceRef: p, spec: {query: 'sum(rate(all_total[5m] offset 5m))'}}}\n"

func TestObjectivesOfSeveralFilesFindEachOthersIndicators(t *testing.T) {
	slo := "apiVersion: openslo/v1\nkind: SLO\nmetadata: {name: a}\nspec: {service: s, indicatorRef: good, objectives: [{target: 0.99}]}\n"
	source := "apiVersion: openslo/v1\nkind: DataSource\nmetadata: {name: p}\nspec: {type: Prometheus}\n"
	files := []config.ObjectiveFile{{Name: "slo", Data: []byte(slo)}, {Name: "service", Data: []byte("apiVersion: v1\nkind: Service\n")}, {Name: "sli", Data: []byte(ownSLI)}, {Name: "p", Data: []byte(source)},
		{Name: "values.yaml", Data: []byte("replicas: 3\n"), Any: true}}
	all, passed, err := config.ReadObjectiveFiles(files, time.Minute)
	if err != nil || len(all) != 1 || len(passed) != 2 || passed[0] != "Service, service:1" {
		t.Fatalf("%+v, %q, %v", all, passed, err)
	}
	total := "sum(rate(all_total[1m] offset 5m))"
	if want := "(sum(rate(good_total[1m] offset 5m)) or 0 * " + total + ") / " + total; all[0].Performance != want || all[0].Load != total {
		t.Errorf("%s\n%s", all[0].Performance, all[0].Load)
	}
	_, _, err = config.ReadObjectiveFiles(append(files[:2:2], files[3]), time.Minute)
	if err == nil || !strings.Contains(err.Error(), `slo:4:34: no file has the SLI "good"`) {
		t.Error(err)
	}
	if _, _, err = config.ReadObjectiveFiles(files[:3], time.Minute); err == nil || !strings.Contains(err.Error(), `no DataSource is called "p"`) {
		t.Error(err)
	}
}

func TestTheSLOOfAWorkloadFindsItsIndicatorInAFileBesideIt(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"slo.yaml":     "apiVersion: openslo/v1\nkind: SLO\nmetadata: {name: a}\nspec: {service: s, indicatorRef: good, objectives: [{target: 0.99}]}\n",
		"sli.yaml":     strings.ReplaceAll(ownSLI, "metricSourceRef: p", "type: Prometheus"),
		"other.yaml":   "no: [SLO\n",
		"trimtab.yaml": "prometheus: {url: http://p}\nworkloads:\n- {name: a, mode: off, slo: {file: slo.yaml}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := config.Load(filepath.Join(dir, "trimtab.yaml"))
	if err != nil || c.Workloads[0].SLO.Performance != 0.99 || !strings.Contains(c.Workloads[0].Performance, "good_total") {
		t.Errorf("%+v, %v", c, err)
	}
	if err := os.Remove(filepath.Join(dir, "sli.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := config.Load(filepath.Join(dir, "trimtab.yaml")); err == nil || !strings.Contains(err.Error(), `has no SLI "good"`) {
		t.Error(err)
	}
}

func TestListsAreTakenApartAndOtherObjectsPassedOver(t *testing.T) {
	spec := "spec: {target: '99', indicator: {ratio: {errors: {metric: e}, total: {metric: t}}}}"
	for _, text := range []string{
		"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Service}\n- {apiVersion: pyrra.dev/v1alpha1, kind: ServiceLevelObjective, metadata: {name: a}, " + spec + "}\n",
		`{"kind":"ServiceLevelObjectiveList","apiVersion":"pyrra.dev/v1alpha1","items":[{"metadata":{"name":"a"},` + "\n\t\t" + `"spec":{"target":"99","indicator":{"ratio":{"errors":{"metric":"e"},"total":{"metric":"t"}}}}}]}`,
		"---\n---\n# nothing\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: " + strings.Repeat("{a: ", 60) + "1" + strings.Repeat("}", 60) + "\n---\napiVersion: pyrra.dev/v1alpha1\nkind: ServiceLevelObjective\nmetadata: {name: a}\n" + spec + "\n...\n",
	} {
		if o := oneObjective(t, text); o.Name != "a" || o.Form != "Pyrra" {
			t.Errorf("%+v", o)
		}
	}
	// A file of many documents has many keys at its left edge.
	docs := strings.Repeat("---\napiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {}\n", 400) + "---\napiVersion: pyrra.dev/v1alpha1\nkind: ServiceLevelObjective\nmetadata: {name: a}\n" + spec + "\n"
	if o := oneObjective(t, docs); o.Name != "a" {
		t.Errorf("%+v", o)
	}
	// What kubectl prints as JSON of many objects has many keys in brackets.
	many := `{"apiVersion":"v1","kind":"List","items":[`
	for i := range 300 {
		many += fmt.Sprintf(`{"apiVersion":"pyrra.dev/v1alpha1","kind":"ServiceLevelObjective","metadata":{"name":"a%d"},"spec":{"target":"99","indicator":{"ratio":{"errors":{"metric":"e"},"total":{"metric":"t"}}}}},`, i)
	}
	if all, err := config.ReadObjectives("x", []byte(strings.TrimSuffix(many, ",")+"]}"), time.Minute); err != nil || len(all) != 300 {
		t.Errorf("%d, %v", len(all), err)
	}
}

func TestRatioTimeslicesAskForTheirTarget(t *testing.T) {
	o := oneObjective(t, strings.ReplaceAll(ownSLI, "metricSourceRef: p", "type: Prometheus")+
		"---\napiVersion: openslo.com/v1\nkind: SLO\nmetadata: {name: a}\nspec: {service: s, indicatorRef: good, budgetingMethod: RatioTimeslices, objectives: [{target: 0.99, timeSliceWindow: 1m}]}\n")
	if o.SLO.Performance != 0.99 || len(o.Notes) != 1 {
		t.Errorf("%+v", o)
	}
}

func TestARatioThatIsThereAlreadyIsRead(t *testing.T) {
	slo := func(kind, target string) string {
		return "apiVersion: openslo/v1\nkind: SLO\nmetadata: {name: a}\nspec:\n  service: shop\n  indicator: {spec: {ratioMetric: {counter: false, raw: {metricSource: {type: Prometheus, spec: {query: 'job:x:ratio'}}}" + kind + "}}}\n  budgetingMethod: Occurrences\n  objectives: [{target: " + target + "}]\n"
	}
	for kind, want := range map[string]string{", rawType: success": "job:x:ratio", ", rawType: failure": "1 - job:x:ratio"} {
		if o := oneObjective(t, slo(kind, "0.99")); o.Performance != want || o.SLO != (config.SLO{Performance: 0.99}) {
			t.Errorf("%s: %+v", kind, o)
		}
	}
	for query, want := range map[string]string{
		"sum(rate(e_total[{{.window}}])) / sum(rate(all_total[{{.window}}])) # c":  "1 - (sum(rate(e_total[1m])) or 0 * sum(rate(all_total[1m]))) / sum(rate(all_total[1m])); sum(rate(all_total[1m]))",
		"(sum(rate(e_total[{{.window}}])) / (sum(rate(all_total[{{.window}}]))))":  "1 - (sum(rate(e_total[1m])) or 0 * (sum(rate(all_total[1m])))) / (sum(rate(all_total[1m]))); (sum(rate(all_total[1m])))",
		"1 - sum(rate(ok_total[{{.window}}])) / sum(rate(all_total[{{.window}}]))": "1 - (1 - sum(rate(ok_total[1m])) / sum(rate(all_total[1m]))); ",
		"avg_over_time(x[{{.window}}]) / 100":                                      "1 - (avg_over_time(x[1m]) / 100); ",
	} {
		if o := oneObjective(t, "version: prometheus/v1\nservice: b\nslos: [{name: a, objective: 99, sli: {raw: {error_ratio_query: '"+query+"'}}}]\n"); o.Performance+"; "+o.Load != want || (o.Load == "") != (len(o.Notes) > 0 && strings.Contains(o.Notes[0], "tells no load")) {
			t.Errorf("%s: %+v", query, o)
		}
	}
	for kind, want := range map[string]string{"": "rawType does not say", ", rawType: Success": "rawType does not say"} {
		if _, err := config.ReadObjectives("x", []byte(slo(kind, "0.99")), time.Minute); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if _, err := config.ReadObjectives("x", []byte(slo(", rawType: success", "99.9")), time.Minute); err == nil || !strings.Contains(fmt.Sprintf("%+v", err), "write 0.999, which is 99.9 percent") {
		t.Errorf("%+v", err)
	}
}

func TestVersion2AlphaOfOpenSLOIsRead(t *testing.T) {
	o := oneObjective(t, `apiVersion: openslo.com/v2alpha
kind: SLO
metadata: {name: a}
spec:
  service: s
  sliRef: good
  objectives: [{displayName: x, targetPercent: 99}]
---
apiVersion: openslo.com/v2alpha
kind: SLI
metadata: {name: good}
spec:
  ratioMetric:
    counter: true
    good: {dataSourceRef: prom, spec: {query: 'good_total'}}
    total: {dataSourceSpec: {type: Prometheus}, spec: {query: 'all_total'}}
---
apiVersion: openslo.com/v2alpha
kind: DataSource
metadata: {name: prom}
spec: {type: prometheus, connectionDetails: {url: x}}
`)
	if o.SLO.Performance != 0.99 || o.Load != "sum(rate(all_total[1m]))" {
		t.Errorf("%+v", o)
	}
	o = oneObjective(t, "apiVersion: openslo.com/v2alpha\nkind: SLO\nmetadata: {name: a}\nspec:\n  sli: {spec: {thresholdMetric: {dataSourceSpec: {type: Prometheus}, spec: {query: 'max(q)'}}}}\n  objectives: [{op: lte, value: 5, target: 0.9}]\n")
	if o.Performance != "5 / max(q)" || o.SLO.Performance != 1 {
		t.Errorf("%+v", o)
	}
}

func TestVersion1AlphaOfOpenSLOIsReadAsSlothWritesIt(t *testing.T) {
	o := oneObjective(t, `apiVersion: openslo/v1alpha
kind: SLO
metadata: {name: a, displayName: A}
spec:
  service: s
  budgetingMethod: Occurrences
  timeWindows: [{count: 30, unit: Day}]
  objectives:
  - target: 0.999
    ratioMetrics:
      good: {source: prometheus, queryType: promql, query: 'sum(rate(good_total[{{.window}}]))'}
      total: {source: prometheus, queryType: promql, query: 'sum(rate(all_total[{{.window}}]))'}
`)
	if o.SLO.Performance != 0.999 || o.Load != "sum(rate(all_total[1m]))" {
		t.Errorf("%+v", o)
	}
	o = oneObjective(t, "apiVersion: openslo/v1alpha\nkind: SLO\nmetadata: {name: a}\nspec: {indicator: {thresholdMetric: {source: p, queryType: promql, query: max(q)}}, objectives: [{op: lte, value: 5, target: 0.9}]}\n")
	if o.Performance != "5 / max(q)" {
		t.Errorf("%+v", o)
	}
}

func TestACounterThatNothingCountedYetIsZeroAndABucketThatIsMissingIsNot(t *testing.T) {
	o := oneObjective(t, slothFile+"      error_query: sum(rate(c_count[{{.window}}])) - sum(rate(c_bucket{le=\"0.1\"}[{{.window}}]))\n      total_query: sum(rate(c_count[{{.window}}]))\n")
	if strings.Contains(o.Performance, " or ") {
		t.Error(o.Performance)
	}
}

func TestAQueryWithSeveralSeriesHasANote(t *testing.T) {
	for text, want := range map[string]string{
		"      error_query: sum(rate(e[{{.window}}])) by (host)\n      total_query: sum(rate(t[{{.window}}])) by (host)\n": "each host,",
		"      error_query: rate(e[{{.window}}])\n      total_query: rate(t[{{.window}}])\n":                               "each set of labels of e,",
		"      error_query: sum(rate(e[{{.window}}]))\n      total_query: sum(rate(t[{{.window}}]))\n":                     "",
	} {
		o := oneObjective(t, slothFile+text)
		if got := strings.Join(o.Notes, ""); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

func TestAMistakeInAQueryIsWhereItStandsInTheFile(t *testing.T) {
	for text, want := range map[string]string{
		"      error_query: |\n        # a comment\n        sum(rate(x[{{.window}}])) + rte(y[1m])\n      total_query: t\n": "x:10:37: PromQL has no function",
		"      error_query: sum(rate(x[{{.window}}])\n      total_query: t\n":                                               "x:8:",
	} {
		if _, err := config.ReadObjectives("x", []byte(slothFile+text), time.Minute); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestAFileOfATemplateIsCalledOne(t *testing.T) {
	_, err := config.ReadObjectives("x", []byte("apiVersion: v1\nspec:\n  {{- toYaml .Values | nindent 4 }}\n"), time.Minute)
	var list config.Errors
	if !errors.As(err, &list) || !strings.Contains(list[0].Hint, "this is a template") {
		t.Error(err)
	}
}

// cases is the folder of small inputs with their right answers.
func cases(t *testing.T) string {
	t.Helper()
	dir := "../../shared/cases"
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the folder of small inputs is not here")
	}
	return dir
}

func TestErrorsThatNoTotalMatchesAreAMistake(t *testing.T) {
	const (
		errors = `rate(http_requests_total{code=~"5.."}[{{.window}}])`
		total  = `rate(http_requests_total[{{.window}}])`
	)
	for _, c := range []struct {
		errors, total string
		apart         bool
	}{
		{errors, "sum(" + total + ")", true},
		{"sum(" + errors + ")", total, true},
		{"sum by (pod) (" + errors + ")", "sum(" + total + ")", true},
		{"sum by (pod) (" + errors + ")", "(sum by (job) (" + total + "))", true},
		{"sum by (job, pod) (" + errors + ")", "sum(" + total + ") by (pod, job)", false},
		{"sum(" + errors + ")", "(sum(" + total + "))", false},
		{errors, total, false},
		{"job:errors:rate1m", "sum(" + total + ")", false},
	} {
		text := "version: prometheus/v1\nservice: b\nslos:\n  - name: a\n    objective: 99\n    sli: {events: {error_query: '" + c.errors + "', total_query: '" + c.total + "'}}\n"
		_, err := config.ReadObjectives("x", []byte(text), time.Minute)
		if (err != nil) != c.apart || c.apart && !strings.Contains(err.Error(), "have other labels") {
			t.Errorf("%s / %s: %v, want apart: %v", c.errors, c.total, err, c.apart)
		}
	}
}

func TestSmallInputsOfObjectivesHaveTheirRightAnswers(t *testing.T) {
	dir := cases(t)
	for _, c := range []struct{ files, want string }{
		{"01-pyrra-istio-ms", "0.99 of the requests within 250ms"},
		{"02-sloth-comment", `1 - (sum(rate(http_requests_total{service="basket",code=~"5.."}[1m])) or 0 * sum(rate(http_requests_total{service="basket",handler!="/healthz"}[1m])))`},
		{"40-sloth-by-label", "note: performance has a series for each request_host"},
		{"41-sloth-no-sum", "note: performance has a series for each set of labels of http_server_requests_seconds_count"},
		{"42-openslo-ratiotimeslices", "slo: performance 0.99"},
		{"44-openslo-separate-sli 44-openslo-separate-slo", "OpenSLO basket-availability"},
		{"55-sloth-anchors", "slo: performance 0.999"},
		{"63-kubectl-list", "Pyrra basket-errors"},
		{"64-multidoc", "Sloth availability"},
	} {
		var files []config.ObjectiveFile
		for _, name := range strings.Fields(c.files) {
			data, err := os.ReadFile(filepath.Join(dir, name+".yaml"))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, config.ObjectiveFile{Name: name, Data: data})
		}
		all, _, err := config.ReadObjectiveFiles(files, config.DefaultWindow)
		got := ""
		for i := range all {
			got += told(&all[i])
		}
		if err != nil || !strings.Contains(got, c.want) {
			t.Errorf("%s: %v\n%swant %s", c.files, err, got, c.want)
		}
	}
}
