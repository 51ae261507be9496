package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/dashboards"
)

// shown is one expression of a board, and the panel or annotation it is for.
type shown struct {
	panel, ref, expr string
}

// exprsOf reads the expressions out of the committed JSON, as Grafana would.
func exprsOf(t *testing.T, board string, text []byte) []shown {
	t.Helper()
	var b struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr, RefID string }
		}
		Annotations struct{ List []struct{ Name, Expr string } }
	}
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	var out []shown
	for _, p := range b.Panels {
		for _, q := range p.Targets {
			out = append(out, shown{board + " / " + p.Title, q.RefID, q.Expr})
		}
	}
	for _, a := range b.Annotations.List {
		out = append(out, shown{board + " / annotation " + a.Name, "A", a.Expr})
	}
	return out
}

// boardHasMetrics asks that a process exports every metric that the panels which begin
// so show (all panels of the board where none is given): those that
// TestEveryPanelShowsWhatARealPrometheusScraped cannot have.
func (p *program) boardHasMetrics(board string, panels ...string) error {
	has, missing := p.metrics(), []string{}
	for _, x := range exprsOf(p.T, board, dashboards.Generate()[board]) {
		if len(panels) > 0 && !slices.ContainsFunc(panels, func(panel string) bool { return strings.HasPrefix(x.panel, panel) }) {
			continue
		}
		for _, name := range regexp.MustCompile(`trimtab_[a-z_]+`).FindAllString(x.expr, -1) {
			if has[name] == nil { // a histogram is one family
				name = regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(name, "")
			}
			if has[name] == nil && !slices.Contains(missing, name) {
				missing = append(missing, name)
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no value of %v", missing)
	}
	return nil
}
