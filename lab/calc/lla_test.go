package calc

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
)

func TestLLAAgreesWithTheExamples(t *testing.T) { checkCases(t, "lla", LLA, 1e-9) }

func TestLLATakesEachBranch(t *testing.T) {
	for in, want := range map[string]string{
		`{"data": [3]}`:                                `{"value":3,"branch":"monotone","segment_means":[]}`,
		`{"data": [4, 2, 2, 1]}`:                       `{"value":1,"branch":"monotone","segment_means":[]}`,
		`{"data": [1, 3, 2]}`:                          `{"value":2,"branch":"short","segment_means":[]}`,
		`{"data": [1, 3, 2, 100], "quartile":"tukey"}`: `{"value":26.5,"branch":"short","segment_means":[]}`,
		`{"data": [1, 3, 4, 6, 5, 7], "k": 3}`:         `{"value":6,"branch":"segments-monotone","segment_means":[2,5,6]}`,
		`{"data": [1, 3, 9, 9, 5, 7], "k": 3}`:         `{"value":5.666666666666667,"branch":"segments-mean","segment_means":[2,9,6]}`,
		// Segments of ⌈6/4⌉ = 2 values: the fourth is empty and left out.
		`{"data": [1, 3, 9, 7, 5, 7], "k": 4}`: `{"value":5.333333333333333,"branch":"segments-mean","segment_means":[2,8,6]}`,
		`{"data": [0, 1, 0], "k": 9, "p": 0}`:  `{"value":0,"branch":"short","segment_means":[]}`,
	} {
		out, err := LLA(strings.NewReader(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got, _ := json.Marshal(out); string(got) != want {
			t.Errorf("%s:\n %s, want\n %s", in, got, want)
		}
	}
}

func TestLLANamesWhatCannotBe(t *testing.T) {
	for in, want := range map[string]string{
		`{"data": []}`:                              "no data",
		`{"k": 5}`:                                  `1:1: "data" is missing`,
		`{"data": [1, null]}`:                       "1:14: want a number, not null",
		`{"data": [1], "window": 2}`:                `1:15: unknown field "window"`,
		`{"data": [1, 2e300]}`:                      "row 1: value 2e+300",
		`{"data": [1], "k": 0}`:                     "k 0",
		`{"data": [1], "p": -1}`:                    "p -1",
		`{"data": [1], "quartile": "interpolated"}`: `quartile "interpolated"`,
	} {
		if _, err := LLA(strings.NewReader(in)); !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n %v, want %s", in, err, want)
		}
	}
}

func FuzzLLA(f *testing.F) {
	fuzz(f, LLA, `{"data": [0.75, 0.5], "k": 1}`, `{"data": [1, 3, 9, 9, 5, 7, 1e100, -1e100, 5e-324, 0], "k": 3, "p": 0, "quartile": "exclusive"}`,
		`{"data": [1, 3, 2, 100], "p": 1e100, "quartile": "tukey"}`, `{"data": [], "k": -9}`)
}
