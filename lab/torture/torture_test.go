package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab/internal/trial"
)

func TestEveryPromiseHasATestOrAReasonWhyItHasNone(t *testing.T) {
	has := map[string]bool{}
	for _, p := range all() {
		for id := range strings.SplitSeq(p.id, "/") {
			if has[id] {
				t.Errorf("%s stands there twice", id)
			}
			has[id] = true
		}
		if p.sentence == "" || len(p.tests)+len(p.not) == 0 {
			t.Errorf("%s: nothing shows it, and nothing says why", p.id)
		}
	}
	for prefix, n := range map[string]int{"R": 27, "S": 15} {
		for i := range n {
			if id := prefix + strconv.Itoa(i+1); !has[id] {
				t.Errorf("%s is missing", id)
			}
		}
	}
}

// testsOf reads the names of the tests of a package, with the names that their
// bodies mention.
func testsOf(t *testing.T, pkg string) map[string][]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	mentions := map[string][]string{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			names := []string{}
			ast.Inspect(fn, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if x, ok := n.X.(*ast.Ident); ok {
						names = append(names, x.Name+"."+n.Sel.Name)
					}
				case *ast.Ident:
					names = append(names, n.Name)
				}
				return true
			})
			mentions[fn.Name.Name] = names
		}
	}
	return mentions
}

// reaches tells whether a function of a package uses what, itself or through
// the functions that it calls.
func reaches(mentions map[string][]string, from, what string, seen map[string]bool) bool {
	if seen[from] {
		return false
	}
	seen[from] = true
	return slices.ContainsFunc(mentions[from], func(name string) bool {
		_, local := mentions[name]
		return name == what || local && reaches(mentions, name, what, seen)
	})
}

func TestEveryTestOfTheTableExistsAndTriesAsManyCasesAsItIsAskedTo(t *testing.T) {
	packages := map[string]map[string][]string{}
	for _, p := range all() {
		for _, c := range p.tests {
			if packages[c.pkg] == nil {
				packages[c.pkg] = testsOf(t, c.pkg)
			}
			mentions := packages[c.pkg]
			pattern := regexp.MustCompile("^" + c.name + "$")
			found := 0
			for name := range mentions {
				if !strings.HasPrefix(name, "Test") || !pattern.MatchString(name) {
					continue
				}
				found++
				switch trials := reaches(mentions, name, "trial.Start", map[string]bool{}); {
				case c.rapid && !reaches(mentions, name, "rapid.Check", map[string]bool{}):
					t.Errorf("%s: %s is none of rapid", p.id, name)
				case c.full > 0 && !c.rapid && !trials:
					t.Errorf("%s: %s does not ask how many cases to try", p.id, name)
				case c.full == 0 && trials:
					t.Errorf("%s: %s asks how many cases to try, and the table does not say", p.id, name)
				}
			}
			if found == 0 {
				t.Errorf("%s: there is no %s in %s", p.id, c.name, c.pkg)
			}
		}
	}
}

// The numbers of cases that the table of promises states.
func TestEveryNumberThatAPromiseStatesIsTriedInFullSize(t *testing.T) {
	for id, want := range map[string][]int{
		"R1": {4 * 200, 200}, "R2": {200}, "R3/R4": {120, 200}, "R5": {5 * 4 * 3}, "R7": {1_000_000}, "R9/R10": {100_000}, "R12": {100_000, 100_000},
		"R15": {200, 200, 200}, "R16": {1000}, "R17": {1000}, "R20/S2": {100_000}, "R22": {8 * 60}, "R27": {10_000},
	} {
		i := slices.IndexFunc(all(), func(p promise) bool { return p.id == id })
		var tried []int
		for _, c := range all()[i].tests {
			tried = append(tried, c.full)
		}
		for _, n := range want {
			at := slices.IndexFunc(tried, func(full int) bool { return full >= n })
			if at < 0 {
				t.Errorf("%s: no test tries %d cases", id, n)
				continue
			}
			tried = slices.Delete(tried, at, at+1)
		}
	}
}

const output = `=== RUN   TestA
=== RUN   TestA/one
=== RUN   TestA/two
    a_test.go:7: wrong
=== RUN   TestA/three
    a_test.go:9: no hierarchy: permission denied
--- FAIL: TestA (0.00s)
    --- PASS: TestA/one (0.00s)
    --- FAIL: TestA/two (0.00s)
`

func TestATestWithoutATrialCountsItsParts(t *testing.T) {
	got := judge(test{name: "TestA"}, []byte(output), nil, errors.New("exit status 1"))
	if got.cases != 2 || got.failures != 1 {
		t.Errorf("%+v", got)
	}
}

func TestASkippedTestIsNotTriedWithItsReason(t *testing.T) {
	text := "=== RUN   TestA\n    a_test.go:9: no hierarchy: permission denied\n--- SKIP: TestA (0.00s)\nPASS\n"
	got := judge(test{name: "TestA", full: 5}, []byte(text), nil, nil)
	if d := cmp.Diff([]string{"TestA: no hierarchy: permission denied"}, got.not); d != "" || got.cases != 0 || got.failures != 0 {
		t.Errorf("%+v %s", got, d)
	}
}

func TestATrialCountsWhatItReports(t *testing.T) {
	text := "=== RUN   TestA\n--- PASS: TestA (0.00s)\n"
	got := judge(test{name: "TestA", full: 10}, []byte(text), []trial.Report{{Test: "TestA", Planned: 10, Cases: 8, Took: []float64{1}, Notes: []string{"x"}}}, nil)
	if got.cases != 8 || got.failures != 0 || len(got.not) != 1 || !strings.Contains(got.not[0], "2 of the 10") {
		t.Errorf("%+v", got)
	}
}

func TestTheCasesOfRapidAreRead(t *testing.T) {
	text := "    a_test.go:3: [rapid] OK, passed 1000 tests (1.2s)\n--- PASS: TestA (1.20s)\n"
	if got := judge(test{name: "TestA", rapid: true}, []byte(text), nil, nil); got.cases != 1000 || got.failures != 0 {
		t.Errorf("%+v", got)
	}
}

func TestWhateverGoesWrongIsAFailure(t *testing.T) {
	for name, got := range map[string]result{
		"it does not build":  judge(test{name: "TestA"}, []byte("a.go:1: syntax error\n"), nil, errors.New("exit status 1")),
		"there is none":      judge(test{name: "TestA"}, []byte("testing: warning: no tests to run\nPASS\n"), nil, nil),
		"a panic":            judge(test{name: "TestA"}, []byte("=== RUN   TestA\npanic: x\n"), []trial.Report{{Planned: 2, Cases: 1}}, errors.New("exit status 2")),
		"a failure reported": judge(test{name: "TestA"}, []byte("--- PASS: TestA (0s)\n"), []trial.Report{{Planned: 1, Cases: 1, Failures: 1}}, nil),
	} {
		if got.failures == 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestWhatIsNotTriedIsPrintedAsThat(t *testing.T) {
	var b strings.Builder
	o := &table{w: &b}
	o.row(promise{id: "R1", sentence: "s", p99: time.Second}, result{not: []string{"a reason"}})
	o.row(promise{id: "R2", sentence: "s", p99: time.Second}, result{cases: 3, took: []float64{0.1, 2, 0.2}})
	for _, want := range []string{"R1      not tried         -", "not tried: a reason", "R2              3         0       2 s   LATE 1s"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("does not print %q:\n%s", want, b.String())
		}
	}
}

func TestPromisesAreChosenByName(t *testing.T) {
	got, err := choose(all(), "s2, R7")
	if err != nil || len(got) != 2 || got[0].id != "R20/S2" || got[1].id != "R7" {
		t.Errorf("%v %v", got, err)
	}
	if _, err := choose(all(), "R99"); err == nil {
		t.Error("R99 is chosen")
	}
}

func TestAReportThatIsHalfWrittenIsLeftOut(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trials")
	if got := reported(file); got != nil {
		t.Errorf("of no file: %v", got)
	}
	if err := os.WriteFile(file, []byte("{\"Test\":\"a\",\"Cases\":1}\n{\"Test\":\"a\",\"Cases\":2}\n{\"Te"), fs.FileMode(0o600)); err != nil {
		t.Fatal(err)
	}
	if got := reported(file); len(got) != 1 || got[0].Cases != 2 {
		t.Errorf("%+v", got)
	}
}
