package metric

import (
	"fmt"
	"strings"
)

// Markdown prints the table as docs/metrics.md.
func Markdown() string {
	var b strings.Builder
	b.WriteString("# Metrics\n\nWhat trimtab exports about itself and its workloads at `/metrics`. Printed from `internal/metric`; do not edit.\n\n")
	b.WriteString("| metric | type | labels | what |\n|---|---|---|---|\n")
	for _, r := range Table() {
		labels := "–"
		if len(r.Labels) > 0 {
			labels = "`" + strings.Join(r.Labels, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.Name, r.Type, labels, r.Help)
	}
	return b.String()
}
