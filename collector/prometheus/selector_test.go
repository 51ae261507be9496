package prometheus_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab/collector/prometheus"
)

func TestSelectorsFindsWhatAnExpressionReads(t *testing.T) {
	for _, c := range []struct {
		expr   string
		want   []string
		window time.Duration
	}{
		{`up`, []string{`up`}, 0},
		{`up{job="a"}`, []string{`up{job="a"}`}, 0},
		{`{__name__="up"}`, []string{`{__name__="up"}`}, 0},
		{`sum(rate(http_requests_total{job="a",code=~"2.."}[1m]))`, []string{`http_requests_total{job="a",code=~"2.."}`}, time.Minute},
		{`sum by (job) (rate(x[30s])) / on (job) group_left (pod) y`, []string{`x`, `y`}, 30 * time.Second},
		{`sum without(pod)(job:x:rate5m)`, []string{`job:x:rate5m`}, 0},
		{`histogram_quantile(0.99, sum by (le) (rate(b{a="}"}[2m])))`, []string{`b{a="}"}`}, 2 * time.Minute},
		{`1 - sum(rate(e{c="5"}[1m]))/sum(rate(e[1m])) or vector(0)`, []string{`e{c="5"}`, `e`}, time.Minute},
		{`x offset 5m`, []string{`x offset 5m`}, 0},
		{`rate(x[1m] offset -30s)`, []string{`x offset -30s`}, time.Minute},
		{`max_over_time(rate(x[1m])[1h:1m])`, []string{`x`}, time.Hour},
		{`x > bool 1e-3 and y unless z`, []string{`x`, `y`, `z`}, 0},
		{`count`, []string{`count`}, 0},
		{`label_replace(x, "a", "$1", "b", "(.*)")`, []string{`x`}, 0},
		{`x # not y` + "\n + z", []string{`x`, `z`}, 0},
		{`x + x`, []string{`x`}, 0},
		{`vector(5) + time() * Inf`, nil, 0},
		{"x{a='it\\'s', b=`\\`}", []string{"x{a='it\\'s', b=`\\`}"}, 0},
	} {
		got, window, ok := prometheus.Selectors(c.expr)
		if !ok || window != c.window {
			t.Errorf("%s: ok %v, window %v, want %v", c.expr, ok, window, c.window)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.expr, diff)
		}
	}
}

func TestSelectorsAdmitsWhatItDoesNotUnderstand(t *testing.T) {
	for _, expr := range []string{`x @ 1700000000`, `(x + y) offset 5m`, `x{a="b`, `x[5m`, `sum by (a`} {
		if got, _, ok := prometheus.Selectors(expr); ok {
			t.Errorf("%s: %v", expr, got)
		}
	}
}

func FuzzSelectors(f *testing.F) {
	f.Add(`sum by (job) (rate(x{a="b"}[1m] offset 5m)) or {b='c'} # d`)
	f.Add("x{`")
	f.Fuzz(func(t *testing.T, expr string) {
		found, _, ok := prometheus.Selectors(expr)
		for _, s := range found {
			if !ok || s == "" {
				t.Errorf("%q: selector %q, ok %v", expr, s, ok)
			}
		}
	})
}
