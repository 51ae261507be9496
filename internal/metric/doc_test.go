package metric

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md")

func TestTheMetricsPageIsPrintedFromTheTable(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "metrics.md")
	want := markdown()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/metrics.md is not what the table says: run `make generate`")
	}
}

// markdown prints the table as docs/metrics.md.
func markdown() string {
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

func TestEveryMetricIsLintCleanAndNamedOnce(t *testing.T) {
	seen := map[string]bool{}
	s := NewSet()
	for _, r := range Table() {
		if seen[r.Name] || !regexp.MustCompile(`^trimtab_[a-z0-9_]+$`).MatchString(r.Name) {
			t.Errorf("%s: named twice, or not trimtab_…", r.Name)
		}
		seen[r.Name] = true
		labels := make([]string, len(r.Labels))
		switch r.Type {
		case Counter:
			s.Counter(r.Name, labels...).Inc()
		case Gauge:
			s.Gauge(r.Name, labels...).Set(1)
		case Histogram:
			if len(r.Buckets) == 0 {
				t.Errorf("%s: no buckets", r.Name)
			}
			s.Histogram(r.Name, labels...).Observe(1)
		}
	}
	families, err := s.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(append([]*dto.MetricFamily(nil), families...)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
