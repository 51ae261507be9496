package promql_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/trimtab/trimtab/internal/promql"
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
		{`sum(rate(http_requests_total{job="a",code=~"2.."}[1m]))`, []string{`http_requests_total{code=~"2..",job="a"}`}, time.Minute},
		{`sum by (job) (rate(x[30s])) / on (job) group_left (pod) y`, []string{`x`, `y`}, 30 * time.Second},
		{`sum without(pod)(job:x:rate5m)`, []string{`job:x:rate5m`}, 0},
		{`histogram_quantile(0.99, sum by (le) (rate(b{a="}"}[2m])))`, []string{`b{a="}"}`}, 2 * time.Minute},
		{`1 - sum(rate(e{c="5"}[1m]))/sum(rate(e[1m])) or vector(0)`, []string{`e{c="5"}`, `e`}, time.Minute},
		{`x offset 5m`, []string{`x offset 5m`}, 0},
		{`rate(x[1m] offset -30s)`, []string{`x offset -30s`}, time.Minute},
		{`rate(x[1m] offset (2s + 1s))`, []string{`x offset (2s + 1s)`}, time.Minute},
		{`rate(x[5m+1m])`, []string{`x`}, 6 * time.Minute},
		{`rate(x[(2*(3m-60s))^1])`, []string{`x`}, 4 * time.Minute},
		{`rate(x[5m] anchored) + rate(y[1m] smoothed offset 1m)`, []string{`x`, `y offset 1m`}, 5 * time.Minute},
		{`info(rate(x[1m]), {k8s_cluster=~".+"})`, []string{`x`}, time.Minute},
		{`a / fill(0) b`, []string{`a`, `b`}, 0},
		{`holt_winters(x[10m], 0.5, 0.1)`, []string{`x`}, 10 * time.Minute},
		{`max_over_time(rate(x[1m])[1h:1m])`, []string{`x`}, time.Hour},
		{`max_over_time(rate(x[1m])[1h:1m] offset 2h)`, []string{`x`}, time.Hour},
		{`x > bool 1e-3 and y unless z`, []string{`x`, `y`, `z`}, 0},
		{`count`, []string{`count`}, 0},
		{`label_replace(x, "a", "$1", "b", "(.*)")`, []string{`x`}, 0},
		{`x # not y` + "\n + z", []string{`x`, `z`}, 0},
		{`x + x{}`, []string{`x`}, 0},
		{`vector(5) + time() * Inf`, nil, 0},
		{"x{a='it\\'s', b=`\\`}", []string{`x{a="it's",b="\\"}`}, 0},
		{`{"http.requests", job="a"}`, []string{`{__name__="http.requests",job="a"}`}, 0},
	} {
		got, window, ok := promql.Selectors(c.expr)
		if !ok || window != c.window {
			t.Errorf("%s: ok %v, window %v, want %v", c.expr, ok, window, c.window)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.expr, diff)
		}
		for _, s := range got {
			if _, err := promql.Parse("timestamp(" + s + ")"); err != nil {
				t.Errorf("%s: selector %s: %v", c.expr, s, err)
			}
		}
	}
}

func TestSelectorsAdmitsWhatItDoesNotUnderstand(t *testing.T) {
	for _, expr := range []string{`x @ 1700000000`, `max_over_time(x[1h:1m] @ end())`, `(x + y) offset 5m`, `x{a="b`, `x[5m`, `sum by (a`} {
		if got, _, ok := promql.Selectors(expr); ok {
			t.Errorf("%s: %v", expr, got)
		}
	}
}

func TestOneLineLeavesOutCommentsAndKeepsTextsAsTheyAre(t *testing.T) {
	for text, want := range map[string]string{
		"sum(rate(x[1m])) # only ours":                    "sum(rate(x[1m]))",
		"# first\nsum(\n  rate(x{a=\"b  # c\"}[1m])\n)\n": `sum(rate(x{a="b  # c"}[1m]))`,
		"a  +\t b":                "a + b",
		"x{a='it  is', b=`1\n2`}": "x{a='it  is', b=`1\n2`}",
		"sum(rate(x[ 5m  ] offset  1h)) by (  a , b )":        "sum(rate(x[5m] offset 1h)) by (a, b)",
		"sum(rate(a[1m])) # up\n/\n# down\nsum(rate(b[1m]))#": "sum(rate(a[1m])) / sum(rate(b[1m]))",
		"x{a=\"": "x{a=\"",
	} {
		if got := promql.OneLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestABucketOfAWholeNumberIsSelectedAsEitherVersionSpellsIt(t *testing.T) {
	for text, want := range map[string]string{
		`x_bucket{le="1"} + y{le = "5.0" , a="1"}`: `x_bucket{le=~"1(\\.0)?"} + y{le =~ "5(\\.0)?", a="1"}`,
		`x_bucket{le="0.5"} - sum by (le) (z)`:     `x_bucket{le="0.5"} - sum by (le) (z)`,
		`x{tile="1",le!="1",le="+Inf"}`:            `x{tile="1",le!="1",le="+Inf"}`,
	} {
		if got := promql.WholeBuckets(text); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestARangeStandsBeforeTheModifiersOfASelector(t *testing.T) {
	for text, want := range map[string]string{
		`x`:                      `x[1m]`,
		`x{a="offset"}`:          `x{a="offset"}[1m]`,
		`x{a="b"} offset 5m`:     `x{a="b"}[1m] offset 5m`,
		`x @ 5`:                  `x[1m] @ 5`,
		"x # c\n offset (1m+1s)": "x # c[1m]\n offset (1m+1s)",
	} {
		got := promql.InRange(promql.OneLine(text), 0, len(promql.OneLine(text)), "1m")
		if want == "x # c[1m]\n offset (1m+1s)" {
			want = "x[1m] offset (1m+1s)"
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// selectorOf is the only selector of an expression.
func selectorOf(t *testing.T, text string) *parser.VectorSelector {
	t.Helper()
	e, err := promql.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return e.(*parser.VectorSelector)
}

func TestABucketIsATimeInTheUnitOfItsMetric(t *testing.T) {
	for text, want := range map[string]time.Duration{
		`http_request_duration_seconds_bucket{le="0.25"}`:       250 * time.Millisecond,
		`istio_request_duration_milliseconds_bucket{le="250"}`:  250 * time.Millisecond,
		`response_latency_ms_bucket{le="200"}`:                  200 * time.Millisecond,
		`rpc_us_bucket{le="1500"}`:                              1500 * time.Microsecond,
		`rpc_microseconds_by_method_bucket{le="5e3"}`:           5 * time.Millisecond,
		`scan_duration_nanoseconds_bucket{le="1e+06"}`:          time.Millisecond,
		`envoy_cluster_upstream_rq_time_bucket{le="250"}`:       250 * time.Millisecond,
		`latency_bucket{le="0.57"}`:                             570 * time.Millisecond,
		`x_seconds_bucket{le="1.0"}`:                            time.Second,
		`x_seconds_bucket{le=~"1(\\.0)?"}`:                      time.Second,
		`x_seconds_bucket{le=~"1|1\\.0"}`:                       time.Second,
		`x_seconds_bucket{le=~"(0.5|0\\.50)"}`:                  500 * time.Millisecond,
		`{"http.server.duration_milliseconds_bucket",le="100"}`: 100 * time.Millisecond,
		`response_size_bytes_bucket{le="1000"}`:                 0,
	} {
		b, ok := promql.BucketOf(selectorOf(t, text))
		if !ok || b.Latency != want {
			t.Errorf("%s: %v, %v, want %v", text, b, ok, want)
		}
	}
	for _, text := range []string{`x_bucket`, `x_bucket{le="+Inf"}`, `x_bucket{le=~"1|2"}`, `x_bucket{le=~".+"}`, `x_bucket{le="0"}`, `x_bucket{le="-1"}`, `x_bucket{le="NaN"}`, `x_bucket{le!="1"}`} {
		if b, ok := promql.BucketOf(selectorOf(t, text)); ok {
			t.Errorf("%s: %v", text, b)
		}
	}
}

func TestAnExpressionWithSeveralSeriesIsToldByItsLabels(t *testing.T) {
	for text, want := range map[string][]string{
		`sum(rate(x[1m]))`: nil,
		`1 - sum(rate(x{c=~"5.."}[1m])) / sum(rate(x[1m]))`:                          nil,
		`sum(rate(x[1m])) by (host)`:                                                 {"host"},
		`sum by (a, b) (rate(x[1m]))`:                                                {"a", "b"},
		`sum without (pod) (rate(x[1m]))`:                                            {"set of labels but pod"},
		`rate(x{a="b"}[1m])`:                                                         {"set of labels of x"},
		`rate(x[1m]) / rate(y[1m])`:                                                  {"set of labels of x"},
		`histogram_quantile(0.9, sum by (le) (rate(x_bucket[1m])))`:                  nil,
		`histogram_quantile(0.9, sum by (le, pod) (rate(x_bucket[1m])))`:             {"pod"},
		`histogram_quantile(0.9, rate(x_bucket[1m]))`:                                {"set of labels of x_bucket"},
		`job:errors:ratio`:                                                           nil,
		`max(sum by (pod) (rate(x[1m])))`:                                            nil,
		`topk(1, sum by (pod) (x))`:                                                  nil,
		`topk(3, sum by (pod) (x))`:                                                  {"pod"},
		`count_values("v", x)`:                                                       {"value"},
		`sum(a) / on () group_right () b`:                                            {"set of labels of b"},
		`vector(0) or x`:                                                             {"set of labels of x"},
		`scalar(x) * 2`:                                                              nil,
		`absent(x)`:                                                                  nil,
		`avg_over_time((sum(rate(a[1m])) / sum(rate(b[1m])))[10m:])`:                 nil,
		`(sum(a) by (host) - sum(b) by (host)) / sum(a) by (host)`:                   {"host"},
		`clamp_max(sum(rate(a[1m])), 1) and on () vector(1)`:                         nil,
		`label_replace(sum(rate(a[1m])), "x", "y", "", "") * scalar(sum(vector(1)))`: nil,
	} {
		e, err := promql.Parse(text)
		if err != nil {
			t.Fatal(text, err)
		}
		if got := promql.Several(e); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// FuzzPromQL: what is read is read again after it was printed on one line, and none of what
// looks at it fails.
func FuzzPromQL(f *testing.F) {
	f.Add(`sum by (job) (rate(x{a="b"}[1m] offset 5m)) or {b='c'} # d`)
	f.Add("x{`")
	f.Add(`histogram_quantile(0.9, rate(x_ms_bucket{le=~"1(\\.0)?"}[5m + step()] anchored))`)
	f.Add("a / fill(0) b # c\n + holt_winters(x[5m], 0.1, 0.1)")
	f.Fuzz(func(t *testing.T, text string) {
		found, _, ok := promql.Selectors(text)
		for _, s := range found {
			if !ok || s == "" {
				t.Errorf("%q: selector %q, ok %v", text, s, ok)
			}
		}
		e, err := promql.Parse(text)
		if err != nil {
			return
		}
		promql.Several(e)
		for _, one := range []string{promql.OneLine(text), promql.WholeBuckets(text)} {
			if _, err := promql.Parse(one); err != nil {
				t.Errorf("%q on one line: %q: %v", text, one, err)
			}
		}
		if again, err := promql.Parse(promql.OneLine(text)); err == nil && again.String() != e.String() {
			t.Errorf("%q on one line: %s, want %s", text, again, e)
		}
	})
}
