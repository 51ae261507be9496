package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/config"
)

func TestTheRequestsOfARatioAreItsDenominatorOverTheRange(t *testing.T) {
	for query, want := range map[string]string{
		`sum(rate(d_bucket{$match,le="0.2"}[20s])) / sum(rate(d_count{$match}[20s]))`:           `(sum(rate(d_count{$match}[20s]))) * 20`,
		`rate(a_total[1m]) / rate(b_total[60s])`:                                                `(rate(b_total[60s])) * 60`,
		`sum(increase(a[1h30m])) / sum(increase(b[90m]))`:                                       `sum(increase(b[90m]))`,
		`sum by (job) (rate(a[5m])) / sum without (pod, code) (rate(b[5m]))`:                    `(sum without (pod, code) (rate(b[5m]))) * 300`,
		`SUM(rate(a[5m])) BY (job) / sum(rate(b[5m])) by (job)`:                                 `(sum(rate(b[5m])) by (job)) * 300`,
		`((sum(rate(a[1m]))) / (sum(rate(b[1m]))))`:                                             `((sum(rate(b[1m])))) * 60`,
		`clamp_max(sum(rate(a[1m])) / sum(rate(b[1m])), 1)`:                                     `(sum(rate(b[1m]))) * 60`,
		`clamp(sum(rate(a[1m])) / sum(rate(b[1m])), 0, 1)`:                                      `(sum(rate(b[1m]))) * 60`,
		`1 - (sum(rate(errors_total[1m])) / sum(rate(all_total[1m])))`:                          `(sum(rate(all_total[1m]))) * 60`,
		`1 - sum(rate(errors_total[1m])) / sum(rate(all_total[1m]))`:                            `(sum(rate(all_total[1m]))) * 60`,
		`1 - (sum(rate(x{code=~"5.."}[1m])) or vector(0)) / sum(rate(x[1m]))`:                   `(sum(rate(x[1m]))) * 60`,
		`1 - (sum(rate(bad[1m])) or 0 * sum(rate(all[1m]))) / sum(rate(all[1m]))`:               `(sum(rate(all[1m]))) * 60`,
		`(sum(rate(all[1m])) - sum(rate(bad[1m]))) / sum(rate(all[1m]))`:                        `(sum(rate(all[1m]))) * 60`,
		`sum(rate(hit[1m])) / (sum(rate(hit[1m])) + sum(rate(miss[1m])))`:                       `((sum(rate(hit[1m])) + sum(rate(miss[1m])))) * 60`,
		`sum(rate(a[1m])) / (sum(rate(b[1m])) > 0)`:                                             `((sum(rate(b[1m])) > 0)) * 60`,
		`sum(rate(a[1m])) / clamp_min(sum(rate(b[1m])), 0.001)`:                                 `(sum(rate(b[1m]))) * 60`,
		"sum(rate(a{x=\"}) / (\"}[1m])) # in time\n/ sum(rate(b{y='it\\'s', z=`[`}[1m])) # all": "(sum(rate(b{y='it\\'s', z=`[`}[1m]))) * 60",
		`sum(rate(a{"le"="1"}[1m])) / sum(rate(b[1m]))`:                                         `(sum(rate(b[1m]))) * 60`,

		// Not the same time, not a number of events, or not understood.
		``:                                     ``,
		`5`:                                    ``,
		`job:in_time:ratio`:                    ``,
		`job:good:rate1m / job:all:rate1m`:     ``,
		`rate(job:good[1m]) / rate(job:b[1m])`: ``,
		`sum(rate(a[1m]))`:                     ``,
		`sum(rate(a[1m])) / sum(rate(b[5m]))`:  ``,
		`sum(rate(a[1m])) / sum(increase(b[1m]))`:                      ``,
		`100 * sum(rate(a[1m])) / sum(rate(b[1m]))`:                    ``,
		`sum(rate(a[1m])) / sum(rate(b[1m])) / 2`:                      ``,
		`(sum(rate(a[1m])) + sum(rate(b[1m]))) / 2 / sum(rate(c[1m]))`: ``,
		`avg(rate(a[1m])) / avg(rate(b[1m]))`:                          ``,
		`sum(irate(a[1m])) / sum(irate(b[1m]))`:                        ``,
		`sum(rate(a[1m] offset 5m)) / sum(rate(b[1m] offset 5m))`:      ``,
		`sum(rate(a[1m] @ end())) / sum(rate(b[1m] @ end()))`:          ``,
		`sum(rate(a[5m:1m])) / sum(rate(b[5m:1m]))`:                    ``,
		`rate(a[1m]) / on (job) rate(b[1m])`:                           ``,
		`rate(a[1m]) / ignoring (code) group_left rate(b[1m])`:         ``,
		`sum(a) / sum(b)`: ``,
		`sum(rate(d_seconds_sum[1m])) / sum(rate(d_seconds_count[1m]))`:                   ``,
		`sum(rate(done_total[1m])) / sum(rate(cpu_seconds_total[1m]))`:                    ``,
		`sum(rate(sent_bytes_total[1m])) / sum(rate(all_total[1m]))`:                      ``,
		`1 / (sum(rate(a[1m])) / sum(rate(b[1m])))`:                                       ``,
		`2 - sum(rate(a[1m])) / sum(rate(b[1m]))`:                                         ``,
		`clamp_max(sum(rate(a[1m])) / sum(rate(b[1m])), 2)`:                               ``,
		`sum(rate(a[1m])) / sum(rate(b[1m])) or vector(1)`:                                ``,
		`histogram_quantile(0.95, sum by (le) (rate(d_bucket[1m])))`:                      ``,
		`sum(rate(a[1m])) / sum(rate(b[1m])`:                                              ``,
		`sum(rate(a[1m])) / sum(rate(b[1m])) )`:                                           ``,
		strings.Repeat("(", 5000) + "rate(a[1m])/rate(b[1m])" + strings.Repeat(")", 5000): `(rate(b[1m])) * 60`,
	} {
		if got := config.RatioOf(query).Requests; got != want {
			t.Errorf("%.100s\n  gives %q\n  want  %q", query, got, want)
		}
	}
}

func TestTheLatencyIsThatOfTheOneBucket(t *testing.T) {
	for query, want := range map[string]time.Duration{
		`sum(rate(d_bucket{le="0.2"}[20s])) / sum(rate(d_count[20s]))`:                200 * time.Millisecond,
		`sum(rate(d_bucket{le="0.2"}[20s])) / sum(rate(d_bucket{le="+Inf"}[20s]))`:    200 * time.Millisecond,
		`1 - sum(rate(d_bucket{ le = '1.5' }[20s] offset 1m)) / sum(rate(x[1m] @ 5))`: 1500 * time.Millisecond,
		`sum(rate(d_bucket{le="0.2"}[1m])) + sum(rate(d_bucket{le="0.8"}[1m]))`:       0,
		`sum(rate(x{handle="0.2"}[20s]))`:                                             0,
		`sum(rate(x{le=~"0.2|0.4"}[20s]))`:                                            0,
		`sum(rate(x{le=~"0.2"}[20s]))`:                                                200 * time.Millisecond,
		`sum(rate(x_seconds_bucket{le=~"1(\\.0)?"}[20s])) / sum(rate(y[20s]))`:        time.Second,
		`sum(rate(x_milliseconds_bucket{le="250"}[20s])) / sum(rate(y[20s]))`:         250 * time.Millisecond,
		`histogram_fraction(0, 0.2, sum(rate(x_seconds[1m])))`:                        200 * time.Millisecond,
		`histogram_fraction(0.1, 0.2, sum(rate(x_seconds[1m])))`:                      0,
		`sum(rate(x{le="-1"}[20s]))`:                                                  0,
		`sum(rate(x[20s]))`:                                                           0,
	} {
		if got := config.RatioOf(query).Within; got != want {
			t.Errorf("%s: %v, want %v", query, got, want)
		}
	}
}

func TestAnExplicitNumberOfRequestsWins(t *testing.T) {
	const ratio = `sum(rate(a[1m])) / sum(rate(b[1m]))`
	w := config.Workload{Performance: ratio, Requests: "sum(increase(b[1m]))"}
	if got := w.Ratio().Requests; got != w.Requests {
		t.Errorf("%q", got)
	}
	w = config.Workload{Performance: ratio, SLO: config.SLO{Performance: 40}}
	if got := w.Ratio().Requests; got != "" {
		t.Errorf("of a performance of 40: %q", got)
	}
}

// FuzzRatio: of any query that is derived from, the denominator is a part, and
// what is derived is a query that is accepted where the first one is.
func FuzzRatio(f *testing.F) {
	for _, q := range []string{
		`sum(rate(d_bucket{$match,le="0.2"}[20s])) / sum(rate(d_count{$match}[20s]))`,
		`clamp(1 - (sum by (a) (increase(a[1h])) or vector(0)) / clamp_min(sum(increase(b[1h])), 1), 0, 1)`,
		"(rate(a{x='\\'',y=`}`}[1m])-rate(b[1m]))/(rate(c[1m])>0) # end", `a offset 5m @ 3 / on (x) {le="1e-3"}`, `rate(a[1m`, "\"\\", "1e+",
	} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, query string) {
		r := config.RatioOf(query)
		if r.Within < 0 || r.Within > time.Hour {
			t.Errorf("within %v", r.Within)
		}
		if r.Requests == "" {
			return
		}
		text := r.Requests
		if cut, _, ok := strings.Cut(text, ") * "); ok && strings.HasPrefix(text, "(") {
			text = cut[1:]
		}
		if !strings.Contains(query, text) {
			t.Errorf("%q is no part of %q", text, query)
		}
		m := config.Match{Prometheus: map[string]string{"job": "x"}}
		if _, err := m.Expand(query); err != nil {
			return
		}
		if _, err := m.Expand(r.Requests); err != nil {
			t.Errorf("%q: %v", r.Requests, err)
		}
		again := config.RatioOf(query + "\n")
		if again != r {
			t.Errorf("%+v, then %+v", r, again)
		}
	})
}
