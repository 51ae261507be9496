package main

import (
	"strings"
	"testing"

	"github.com/trimtab/trimtab/lab/services"
)

// made are rows with shares in time.
func made(scenario string, over bool, rows ...*row) *result {
	return &result{Scenario: scenario, Over: over, Rows: rows}
}

func TestTheBenchEndsByWhomTrimtabIsWorthItFor(t *testing.T) {
	kernel := func(in float64) *row {
		return &row{Policy: "weights", InTime: in, Welfare: services.Welfare{Social: in, NJC: 0.4, Egalitarian: 0.1}}
	}
	for name, c := range map[string]struct {
		results []*result
		want    []string
		not     string
	}{
		"alike where needs fit, better with social where not": {
			results: []*result{
				made("peaks", false, kernel(1), &row{Policy: "equal"}, &row{Policy: "trimtab:njc:spans", InTime: 0.997}),
				made("over132", true, kernel(0.02), &row{Policy: "oracle:egalitarian", Welfare: services.Welfare{Egalitarian: 0.105}},
					&row{Policy: "trimtab:social:spans", Welfare: services.Welfare{Social: 0.28}},
					&row{Policy: "trimtab:egalitarian:spans", Welfare: services.Welfare{Egalitarian: 0.1}},
					&row{Policy: "trimtab:default:promql", Welfare: services.Welfare{NJC: 0.1}}),
			},
			want: []string{
				"no better and no worse: peaks njc:spans -0.3",
				"better than the kernel alone: over132 social:spans +26.0",
				"over132 egalitarian:spans +0.0 (nor is one who knows everything better)",
				"worse than the kernel alone: over132 default:promql -30.0",
				"Where the needs fit, the kernel alone is as good, and is all that you need.",
				"trimtab is worth it with social (better in 1 of 1 rows, worse in 0).",
				"trimtab is not worth it with egalitarian (better in 0 of 1 rows, worse in 0), default (better in 0 of 1 rows, worse in 1).",
			},
		},
		"worse where needs fit": {
			results: []*result{made("steps", false, kernel(1), &row{Policy: "trimtab:njc:spans", InTime: 0.86}, &row{Policy: "trimtab:njc:promql", InTime: 0.995})},
			want:    []string{"worse than the kernel alone: steps njc:spans -14.0", "take the kernel alone: trimtab is worse in 1 of 2 rows, and better in 0."},
			not:     "Where they do not",
		},
		"better where needs fit": {
			results: []*result{made("steps", false, kernel(0.9), &row{Policy: "trimtab:njc:spans", InTime: 0.95})},
			want:    []string{"Where the needs fit, trimtab is worth it in 1 of 1 rows."},
		},
	} {
		got := strings.Join(verdict(c.results), "\n")
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
		if c.not != "" && strings.Contains(got, c.not) {
			t.Errorf("%s: %q in\n%s", name, c.not, got)
		}
	}
}

func TestWithoutTheKernelOrTrimtabNothingIsSaid(t *testing.T) {
	for _, r := range []*result{made("peaks", false, &row{Policy: "trimtab:njc:spans"}), made("peaks", false, &row{Policy: "weights"})} {
		if got := verdict([]*result{r}); got != nil {
			t.Errorf("%q", got)
		}
	}
}
