package calc

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
)

func observed(rows ...string) string {
	return `{"learner": "default", "level": 0.9, "observations": [` + strings.Join(rows, ",") + `], "query": [{"allocation": 5, "load": 10}]}`
}

func row(t float64, more string) string {
	return fmt.Sprintf(`{"time": %v, "allocation": 5, "load": 10, "performance": 0.8%s}`, t, more)
}

func TestEveryObservationThatCannotBeIsNamed(t *testing.T) {
	for in, want := range map[string]string{
		observed():                                                                                                "observations: empty",
		observed(row(1, ""), row(0, "")):                                                                          "observation 1: time goes back from 1 to 0",
		observed(row(1, `, "sigma": 0`)):                                                                          "observation 0: sigma 0",
		observed(row(1, `, "sigma": -1`)):                                                                         "observation 0: sigma -1",
		observed(row(1, `, "requests": 0`)):                                                                       "observation 0: requests 0",
		observed(row(1, `, "sigma": NaN`)):                                                                        "1:125: invalid character 'N'",
		observed(row(1, `, "requests": 1, "sigma": 1`)):                                                           "observation 0: both sigma and requests",
		observed(`{"time": 1, "allocation": 0, "load": 1, "performance": 1}`):                                     "observation 0: allocation 0",
		observed(`{"time": 1, "allocation": 1, "load": 0, "performance": 1}`):                                     "observation 0: load 0",
		observed(`{"time": 1, "allocation": 1, "load": 1, "performance": -1}`):                                    "observation 0: performance -1",
		observed(`{"time": 1, "allocation": 1, "load": 1, "performance": 2, "requests": 5}`):                      "observation 0: observe: performance 2 of 5 requests",
		observed(`{"time": 1e300, "allocation": 1, "load": 1, "performance": 1}`):                                 "observation 0: time",
		`{"learner": "best", "level": 0.9, "observations": [], "query": []}`:                                      `learner "best": want one of default`,
		`{"learner": "gp", "level": 1, "observations": [], "query": []}`:                                          `level 1`,
		`{"learner": "gp", "level": 0.9, "observations": [` + row(0, "") + `], "query": [], "max_allocation": 4}`: "observation 0: allocation 5: want more than 0, at most 4",
		`{"learner": "gp", "level": 0.9, "observations": [` + row(0, "") + `], "query": [{"allocation": 9, "load": 1}], "max_allocation": 8}`: "query 0: allocation 9",
	} {
		_, err := Learn(strings.NewReader(in))
		if !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n %v, want %s", in, err, want)
		}
	}
}

func TestLearnAnswersEveryQuery(t *testing.T) {
	for _, name := range Learners() {
		in := map[string]any{"learner": name, "level": 0.9, "max_allocation": 40}
		var rows, queries []map[string]any
		for i := range 300 {
			a := 1 + float64(i%60)/3
			rows = append(rows, map[string]any{"time": i, "allocation": a, "load": 10, "performance": 1 - math.Exp(-a/5), "requests": 100})
			queries = append(queries, map[string]any{"allocation": a, "load": 10})
		}
		in["observations"], in["query"] = rows, queries
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := Learn(strings.NewReader(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		got := out.(learnt)
		if len(got.Estimate) != 300 || len(got.Lower) != 300 || len(got.Upper) != 300 || got.Reports != 300 || got.Falls || got.Changes != 0 {
			t.Fatalf("%s: %+v", name, got)
		}
		for i := range queries {
			truth := 1 - math.Exp(-queries[i]["allocation"].(float64)/5)
			outside := got.Lower[i] > truth+1e-3 || got.Upper[i] < truth-1e-3
			bounded := name != "bintree" && name != publishedTree // steps, and bounds that are not valid
			if math.Abs(got.Estimate[i]-truth) > 0.08 || bounded && outside {
				t.Errorf("%s at %v: %v in [%v, %v], truth %v", name, queries[i], got.Estimate[i], got.Lower[i], got.Upper[i], truth)
			}
		}
	}
}

func TestNoBoundOfAFractionIsAboveOne(t *testing.T) {
	mixed := observed(row(0, `, "requests": 100`), row(1, ""), row(2, `, "sigma": 0.1`))
	rate := observed(row(0, ""), row(1, ""))
	for _, name := range Learners() {
		for in, fraction := range map[string]bool{mixed: true, rate: false} {
			in = strings.Replace(in, `"default"`, `"`+name+`"`, 1)
			in = strings.Replace(in, `"query": [`, `"query": [{"allocation": 500, "load": 10}, `, 1)
			out, err := Learn(strings.NewReader(in))
			if err != nil {
				t.Fatal(err)
			}
			for i, upper := range out.(learnt).Upper {
				if fraction && upper > 1 {
					t.Errorf("%s, query %d: upper bound %v", name, i, upper)
				}
				if name == "kernel" && !fraction && i == 0 && upper <= 1 {
					t.Errorf("a rate that is 0.8 at most so far is taken for a fraction: upper bound %v", upper)
				}
			}
		}
	}
}

func TestAnErrorSaysOnceThatTheInputIsInvalid(t *testing.T) {
	for _, in := range []string{
		observed(row(1, `, "sigma": 0`)), observed(row(1, ""), row(0, "")),
		observed(`{"time": 1, "allocation": 1, "load": 1, "performance": 2, "requests": 5}`),
	} {
		if _, err := Learn(strings.NewReader(in)); err == nil || strings.Count(err.Error(), "invalid") != 1 {
			t.Error(err)
		}
	}
}

func TestEachLearnerIsItself(t *testing.T) {
	for name, want := range map[string]string{"kernel": "kernel-curve/1", publishedTree: "bintree-published/1", "bintree": "bintree/", "default": "gp/"} {
		out, err := Learn(strings.NewReader(strings.Replace(observed(row(0, "")), `"default"`, `"`+name+`"`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if got := out.(learnt).Learner; !strings.HasPrefix(got, want) {
			t.Errorf("%s is %s", name, got)
		}
	}
}

func FuzzLearn(f *testing.F) {
	fuzz(f, Learn, strings.Replace(observed(row(0, `, "sigma": 0.1`), row(1, "")), `"default"`, `"bintree-published"`, 1),
		strings.Replace(observed(row(0, ""), row(1, "")), `"default"`, `"kernel"`, 1), observed(row(0, ""), row(1, `, "sigma": 0.1`)), observed(row(0, `, "requests": 50`), row(1, `, "requests": 1e14`)),
		observed(`{"time": 1, "allocation": 1e15, "load": 1e-12, "performance": 1e15}`, `{"time": 1, "allocation": 1e-12, "load": 1e15, "performance": 0}`))
}
