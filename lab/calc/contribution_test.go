package calc

import (
	"errors"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
)

func TestContributionNamesWhatCannotBe(t *testing.T) {
	const pods = `{"servpods": [{"name": "a", "sojourn": [1, 2]}], "tail": [3, 4]`
	for in, want := range map[string]string{
		pods + `, "pods": 1}`:                       `1:66: unknown field "pods"`,
		pods + `, "variant": {"V": "robust"}}`:      `variation "robust"`,
		pods + `, "variant": {"negative": "drop"}}`: `negative "drop"`,
		pods + `, "paths": [["b"]]}`:                `path 0: component "b"`,
		pods + `, "cov": {"a": [1, 2]}}`:            "loads: 0 values, tail has 2",
		`{"servpods": [], "tail": []}`:              "0 components",
	} {
		if _, err := Contribution(strings.NewReader(in)); !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n %v, want %s", in, err, want)
		}
	}
}

func TestMLRQNamesWhatCannotBe(t *testing.T) {
	const jobs = `{"predictable": [], "unpredictable": [{"id": "a", "U": 1, "attained": 0}]`
	for in, want := range map[string]string{
		jobs + `, "servers": [["b"]]}`:                         `server 0: job "b"`,
		jobs + `, "servers": [["a", "a"]]}`:                    `server 0: job "a"`,
		jobs + `, "servers": [["a"]], "contributions": [1,2]}`: "1 servers, 2 contributions",
		jobs + `, "contributions": [1], "rounding": "up"}`:     `rounding "up"`,
		`{"predictable": []}`:                                  `"unpredictable" is missing`,
	} {
		if _, err := MLRQ(strings.NewReader(in)); !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n %v, want %s", in, err, want)
		}
	}
}

func TestMLRQWithoutServersGivesTheQueueAlone(t *testing.T) {
	out, err := MLRQ(strings.NewReader(`{"predictable": [{"id": "p", "L": 1, "U": 0, "attained": 0}], "unpredictable": []}`))
	if got := out.(mlrqOutput); err != nil || len(got.Queue) != 1 || len(got.Sizes) != 0 || len(got.MLRQ) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}
