package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/config"
)

// warnedOf are the warnings of a workload with these lines.
func warnedOf(t *testing.T, lines string) string {
	t.Helper()
	c, err := config.Parse("x", []byte("prometheus: {url: http://p}\nworkloads:\n- name: a\n  mode: off\n"+lines))
	if err != nil {
		t.Fatalf("%s: %v", lines, err)
	}
	return fmt.Sprint(c.Warnings)
}

func TestAPerformanceThatRisesWhenThingsGetWorseHasAWarning(t *testing.T) {
	for query, want := range map[string]string{
		`histogram_quantile(0.99, sum by (le) (rate(d_seconds_bucket{$match}[5m])))`:  "a percentile of latency",
		`max(histogram_quantile(0.99, sum by (le, pod) (rate(d_bucket[5m])))) * 1000`: "a percentile of latency",
		`max(http_request_duration_seconds{quantile="0.99"})`:                         "a percentile of latency",
		`job:request_latency:p99`:       "a percentile of latency",
		`max_over_time(basket_p95[5m])`: "a percentile of latency",
		`sum(rate(http_request_duration_seconds_sum[1m])) / sum(rate(http_request_duration_seconds_count[1m]))`: "a mean latency",
		`sum(rate(nginx_request_duration_seconds_total[1m])) / sum(rate(nginx_requests_total[1m]))`:             "a mean latency",
		`histogram_avg(sum(rate(d_seconds[1m])))`:                                                               "a mean latency",
		`avg(probe_duration_seconds)`:                                                                               "a latency",
		`sum(rate(r_total{code=~"5.."}[1m])) / sum(rate(r_total[1m]))`:                                              "a share of errors",
		`(sum(rate(r_total{status=~"4..|5.."}[1m])) or vector(0)) / sum(rate(r_total[1m]))`:                         "a share of errors",
		`1 - sum(rate(r_total{code!~"5.."}[1m])) / sum(rate(r_total[1m]))`:                                          "a share of errors",
		`1 - sum(rate(d_bucket{le="0.2"}[1m])) / sum(rate(d_count[1m]))`:                                            "a share of errors",
		`(sum(rate(d_count[1m])) - sum(rate(d_bucket{le="0.2"}[1m]))) / sum(rate(d_count[1m]))`:                     "a share of errors",
		`100 * sum(rate(errors_total[1m])) / sum(rate(requests_total[1m]))`:                                         "a share of errors",
		`sum(rate(r_total{outcome="SERVER_ERROR"}[1m])) / sum(rate(r_total[1m]))`:                                   "a share of errors",
		`slo:sli_error:ratio_rate5m`:                                                                                "a share of errors",
		`sum(rate(errors_total[1m]))`:                                                                               "a number of errors",
		`max(kafka_consumergroup_lag)`:                                                                              "what waits",
		`max(slo:current_burn_rate:ratio)`:                                                                          "a burn rate",
		`sum(rate(container_cpu_cfs_throttled_periods_total[1m])) / sum(rate(container_cpu_cfs_periods_total[1m]))`: "a share of errors",
		`sum(rabbitmq_queue_messages)`:                                                                              "what waits",
	} {
		if got := warnedOf(t, fmt.Sprintf("  match: {prometheus: {job: a}}\n  slo: {performance: 0.3}\n  performance: %q\n", query)); !strings.Contains(got, "performance is "+want) {
			t.Errorf("%s: %q, want %s", query, got, want)
		}
	}
}

func TestAPerformanceThatFallsWhenThingsGetWorseHasNone(t *testing.T) {
	for _, query := range []string{
		`0.3 / histogram_quantile(0.99, sum by (le) (rate(d_seconds_bucket[5m])))`,
		`-histogram_quantile(0.99, sum by (le) (rate(d_seconds_bucket[5m]))) + 3`,
		`histogram_quantile(0.99, sum by (le) (rate(d_seconds_bucket[5m]))) < bool 0.3`,
		`0.3 > bool max(basket_p99)`,
		`1 - sum(rate(r_total{code=~"5.."}[1m])) / sum(rate(r_total[1m]))`,
		`1 - (sum(rate(r_total{code=~"5.."}[1m])) or 0 * sum(rate(r_total[1m]))) / sum(rate(r_total[1m]))`,
		`sum(rate(r_total{code!~"5.."}[1m])) / sum(rate(r_total[1m]))`,
		`sum(rate(r_total{code=~"2.."}[1m])) / sum(rate(r_total[1m]))`,
		`sum(rate(d_bucket{le="0.2"}[1m])) / sum(rate(d_count[1m]))`,
		`(sum(rate(r_total[1m])) - sum(rate(errors_total[1m]))) / sum(rate(r_total[1m]))`,
		`histogram_fraction(0, 0.2, sum(rate(d_seconds[1m])))`,
		`histogram_quantile(0.5, sum by (le) (rate(batch_size_bytes_bucket[5m])))`,
		`sum(rate(r_total[1m]))`, `sum(rate(bytes_sent_total[1m]))`, `avg(up)`, `50 / max(mail_queue_length)`, `job:availability:ratio`,
		`sum(rate(container_cpu_usage_seconds_total[1m])) / sum(rate(r_total[1m]))`, `rate(jobs_done_total[1m]) / rate(cpu_seconds_total[1m])`,
		`avg(basket_apdex)`, `min(slo:period_error_budget_remaining:ratio)`, `sum(increase(success_total[1m])) / sum(increase(attempts_total[1m]))`, `1 - slo:sli_error:ratio_rate5m`,
		`sum(rate(http_requests_total{handler="/error"}[1m]))`, `avg_over_time(cache_hit_ratio[5m])`, `vector(1)`,
	} {
		if got := warnedOf(t, fmt.Sprintf("  slo: {performance: 0.3}\n  performance: %q\n", query)); strings.Contains(got, "performance is") {
			t.Errorf("%s: %s", query, got)
		}
	}
}

func TestTheRightFormStandsInTheWarning(t *testing.T) {
	for lines, want := range map[string]string{
		"  slo: {performance: 0.3}\n  performance: max(basket_p99)\n":                                                                 "write 0.3 / (max(basket_p99)) and slo: {performance: 1}",
		"  slo: {performance: 0.01}\n  performance: |\n    job:errors:ratio # c\n":                                                    "write 1 - (job:errors:ratio) and slo: {performance: 0.99}",
		"  slo: {latency: 200ms, fraction: 0.9}\n  performance: max(basket_p99)\n":                                                    "write the share of requests in time",
		"  slo: {latency: 200ms, fraction: 0.9}\n  performance: '1 - sum(rate(x_bucket{le=\"0.2\"}[1m])) / sum(rate(x_count[1m]))'\n": "write 1 - (1 - sum(",
	} {
		got := warnedOf(t, lines)
		if !strings.Contains(got, want) || strings.Contains(lines, "latency") && strings.Contains(got, "performance: ") {
			t.Errorf("%s: %s, want %s", lines, got, want)
		}
	}
}

func TestALoadThatIsACounterOrAnIncreaseHasAWarning(t *testing.T) {
	for query, want := range map[string]string{
		`sum(http_requests_total)`:                            "load is the counter http_requests_total itself",
		`sum(rate(http_requests_total[1m])) * 60`:             "load is requests in 60 seconds, and not per second",
		`3600 * sum(irate(http_requests_total[1m]))`:          "load is requests in 3600 seconds",
		`sum by (x) (d_seconds_count) > 0`:                    "load is the counter d_seconds_count itself",
		`sum(increase(http_requests_total[5m]))`:              "load is increase over 5m0s, and not requests per second\n  hint: write rate in place of increase, or divide by 300",
		`sum(delta(http_requests_total[1m]))`:                 "write rate in place of delta",
		`count_over_time(x[1m])`:                              "divide by 60",
		`sum(increase(x_total[1m])) / 60`:                     "",
		`sum(increase(x_total[1m])) * 0.0166`:                 "",
		`sum(rate(x_total[1m])) or 0 * sum(y_total)`:          "",
		`sum(rate(x_total[1m])) and on () count(y_total)`:     "",
		`sum(rate(x_total[1m]))`:                              "",
		`thread_count`:                                        "",
		`max_over_time(sum(rate(x_total[1m]))[5m:])`:          "",
		`histogram_count(sum(rate(d_seconds[1m])))`:           "",
		`sum(rate(x_total[1m])) unless on () absent(x_total)`: "",
	} {
		got := warnedOf(t, fmt.Sprintf("  load: %q\n", query))
		if want == "" && strings.Contains(got, "load") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
	if got := warnedOf(t, "  slo: {performance: 0.9}\n  performance: sum(good_total) / sum(all_total)\n"); !strings.Contains(got, "performance takes the counter good_total itself") {
		t.Error(got)
	}
}

func TestABucketOfAnotherLatencyThanTheSLOsHasAWarning(t *testing.T) {
	share := func(metric, le string) string {
		return fmt.Sprintf("  slo: {latency: 250ms, fraction: 0.9}\n  performance: 'sum(rate(%s_bucket{%s}[1m])) / sum(rate(%[1]s_count[1m]))'\n", metric, le)
	}
	for lines, want := range map[string]string{
		share("d_seconds", `le="0.5"`):       `counts requests within 500ms (le=0.5 of d_seconds_bucket), and slo.latency is 250ms` + "\n  hint: write the bucket le=\"0.25\"",
		share("d_milliseconds", `le="0.25"`): `write the bucket le="250"`,
		share("d_seconds", `le="250"`):       "counts requests within 4m10s",
		share("d_seconds", `le="0.25"`):      "",
		share("d_milliseconds", `le="250"`):  "",
		share("d_ms", `le=~"250(\\.0)?"`):    "",
		share("d_ms", `le="250.0"`):          "",
		share("d_seconds", `le=~"0.25|0.5"`): "",
		"  slo: {latency: 250ms, fraction: 0.9}\n  performance: 'histogram_fraction(0, 0.5, sum(rate(d_seconds[1m])))'\n": "write histogram_fraction(0, 0.25, ...) or slo: {latency: 500ms}",
		"  slo: {performance: 0.9}\n  performance: 'sum(rate(d_bucket{le=\"0.5\"}[1m])) / sum(rate(d_count[1m]))'\n":      "",
	} {
		got := warnedOf(t, lines)
		if want == "" && strings.Contains(got, "slo.latency") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", lines, got, want)
		}
	}
}

func TestADoubtIsOfAPerformanceThatRisesAlone(t *testing.T) {
	for query, want := range map[string]string{
		"histogram_quantile(0.99, sum by (le) (rate(x_bucket[1m])))":       "performance is a percentile of latency, which rises when things get worse",
		`sum(rate(x_bucket{le="0.2"}[1m])) / sum(rate(x_count[1m]))`:       "",
		"0.3 / histogram_quantile(0.99, sum by (le) (rate(x_bucket[1m])))": "",
		"": "",
	} {
		if got := (&config.Workload{Performance: query}).Doubt(); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

func TestSmallInputsOfQueriesHaveTheirRightAnswers(t *testing.T) {
	dir := cases(t) + "/q/"
	for name, want := range map[string]string{
		"p99": "performance is a percentile of latency", "lemismatch": "within 500ms (le=0.5 of http_request_duration_seconds_bucket), and slo.latency is 200ms",
		"istioms": "", "istioms2": "", "linkerd": "",
	} {
		data, err := os.ReadFile(dir + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		c, err := config.Parse(name, data)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(c.Warnings); want == "" && strings.Contains(got, "performance") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
