//go:build integration

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
)

func TestTenThousandHostileLabelsAreTextEverywhere(t *testing.T) {
	t.Parallel()
	hostileLabels(t, 10_000)
}

// TestPromtoolReadsHostileLabelsAsText: what config makes of them stands in
// the expressions of rules, which Prometheus's own parser reads.
func TestPromtoolReadsHostileLabelsAsText(t *testing.T) {
	promtool := tool(t, "promtool", "prometheus")
	r := seed(t)
	var text strings.Builder
	text.WriteString("groups:\n- name: hostile\n  rules:\n")
	for i := range 10_000 {
		m := config.Match{Prometheus: map[string]string{"job": hostileLabel(r)}}
		expr, err := m.Expand("up{$match}")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "  - {record: 'r:%d', expr: %s}\n", i, strconv.QuoteToASCII(expr))
	}
	file := filepath.Join(t.TempDir(), "hostile.yaml")
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	runTool(t, promtool, "check", "rules", file)
}
