package prometheus_test

import (
	"compress/gzip"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	promconfig "github.com/prometheus/common/config"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/collector/prometheus"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/internal/metric"
	"github.com/trimtab/trimtab/quantity"
)

// TestMain lets more tests run side by side than there are processors: those of real servers wait
// for time to pass. -parallel says otherwise.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	leak.Main(m)
}

// outlet is a bus that only publishes, into a channel.
type outlet struct {
	bus.Bus
	samples chan *trimtab.Sample
}

func (o outlet) Publish(ctx context.Context, v trimtab.Value) error {
	if err := v.Validate(); err != nil {
		return err
	}
	select {
	case o.samples <- v.(*trimtab.Sample):
	case <-ctx.Done():
	}
	return nil
}

// settings is a configuration for one query of the server at url.
func settings(url string) (prometheus.Config, outlet) {
	o := outlet{samples: make(chan *trimtab.Sample)}
	return prometheus.Config{
		URL: url, HTTP: promconfig.DefaultHTTPClientConfig,
		Interval: time.Hour, Timeout: time.Minute,
		Queries: []prometheus.Query{{Workload: "shop", Quantity: quantity.Load, Expr: "sum(rate(x[1m]))"}},
		Bus:     o, Metrics: metric.NewSet(), Logger: slog.New(slog.DiscardHandler),
	}, o
}

// running runs c; next is its next sample.
func running(t *testing.T, c prometheus.Config, o outlet) (next func() *trimtab.Sample, stop func()) {
	t.Helper()
	collector, err := prometheus.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- collector.Run(ctx) }()
	next = func() *trimtab.Sample {
		t.Helper()
		select {
		case s := <-o.samples:
			return s
		case <-time.After(time.Minute):
			t.Fatal("no sample within a minute")
		}
		return nil
	}
	return next, func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		_ = collector.Close()
	}
}

// collect runs c until it published n samples.
func collect(t *testing.T, c prometheus.Config, o outlet, n int) []*trimtab.Sample {
	t.Helper()
	next, stop := running(t, c, o)
	defer stop()
	var got []*trimtab.Sample
	for range n {
		got = append(got, next())
	}
	return got
}

// answering serves one body for values, and age 7 for timestamp queries.
func answering(contentType string, status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.FormValue("query"), "timestamp(") {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, vector("7"))
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func vector(values ...string) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = fmt.Sprintf(`{"metric":{"n":"%d"},"value":[1700000000.5,%q]}`, i, v)
	}
	return data("vector", "["+strings.Join(parts, ",")+"]")
}

func data(kind, result string) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":%q,"result":%s}}`, kind, result)
}

func TestAValueComesWithTheAgeOfItsSeries(t *testing.T) {
	server := httptest.NewServer(answering("application/json", 200, vector("42.5")))
	defer server.Close()
	c, o := settings(server.URL)
	c.Queries[0].Requests = "sum(increase(x[1m]))"
	before := time.Now()
	got := collect(t, c, o, 1)[0]
	age := time.Since(got.Time)
	if age < 7*time.Second || got.Time.Before(before.Add(-7*time.Second)) {
		t.Errorf("time %v, want 7s before the query", got.Time)
	}
	want := &trimtab.Sample{Workload: "shop", Quantity: quantity.Load, Source: "prometheus", Time: got.Time, Window: 60, Value: 42.5, Requests: 42.5}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if n := testutil.ToFloat64(c.Metrics.Counter("trimtab_collector_prometheus_samples_total", "ok")); n != 1 {
		t.Errorf("counted %v as ok", n)
	}
}

func TestAScalarIsAValue(t *testing.T) {
	server := httptest.NewServer(answering("application/json", 200, data("scalar", `[1700000000,"3"]`)))
	defer server.Close()
	c, o := settings(server.URL)
	if got := collect(t, c, o, 1)[0]; got.Value != 3 || got.Missing != "" {
		t.Errorf("%+v", got)
	}
}

func TestSeveralSeriesWithAHostAreOneSampleOfEachInstance(t *testing.T) {
	of := func(labels, value string) string {
		return fmt.Sprintf(`{"metric":{%s},"value":[1700000000.5,%q]}`, labels, value)
	}
	all := "[" + strings.Join([]string{of(`"host":"h1","instance":"a"`, "1"), of(`"host":"h1","instance":"b"`, "NaN"), of(`"host":"h2"`, "3")}, ",") + "]"
	server := httptest.NewServer(answering("application/json", 200, data("vector", all)))
	defer server.Close()
	c, o := settings(server.URL)
	c.Queries[0].Requests = "sum by (host, instance) (increase(x[1m]))"
	got := collect(t, c, o, 3)
	for i, want := range []trimtab.Sample{{Host: "h1", Instance: "a", Value: 1, Requests: 1}, {Host: "h1", Instance: "b", Missing: "the value is NaN"}, {Host: "h2", Value: 3, Requests: 3}} {
		want.Workload, want.Quantity, want.Source, want.Time, want.Window = "shop", quantity.Load, "prometheus", got[i].Time, 60
		if diff := cmp.Diff(&want, got[i]); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

// Prometheus puts labels of its own on every series, a host among them at many
// sites: a single one is still that of all.
func TestASingleSeriesIsOfTheWorkloadWhateverItsLabels(t *testing.T) {
	server := httptest.NewServer(answering("application/json", 200, data("vector", `[{"metric":{"host":"h1","instance":"10.0.0.1:9100"},"value":[1700000000.5,"4"]}]`)))
	defer server.Close()
	c, o := settings(server.URL)
	if got := collect(t, c, o, 1)[0]; got.Host != "" || got.Instance != "" || got.Value != 4 {
		t.Errorf("%+v", got)
	}
}

// TestNonsenseIsMissingAndNeverZero serves everything that is no value.
func TestNonsenseIsMissingAndNeverZero(t *testing.T) {
	const js = "application/json"
	for name, c := range map[string]struct {
		contentType string
		status      int
		body        string
		reason      string
		kind        string
	}{
		"empty vector":     {js, 200, data("vector", "[]"), "empty result", "empty"},
		"null result":      {js, 200, data("vector", "null"), "empty result", "empty"},
		"several series":   {js, 200, vector("1", "2", "3"), "3 series: aggregate with sum(), or with sum by (host, instance)() for each instance", "several"},
		"one host twice":   {js, 200, data("vector", `[{"metric":{"host":"h"},"value":[1,"1"]},{"metric":{"host":"h"},"value":[1,"2"]}]`), "2 series: aggregate with sum(), or with sum by (host, instance)() for each instance", "several"},
		"NaN":              {js, 200, vector("NaN"), "the value is NaN", "not_finite"},
		"Inf":              {js, 200, vector("+Inf"), "the value is +Inf", "not_finite"},
		"minus Inf":        {js, 200, vector("-Inf"), "the value is -Inf", "not_finite"},
		"overflow":         {js, 200, vector("1e999"), "the value is +Inf", "not_finite"},
		"negative":         {js, 200, vector("-1"), "negative", "negative"},
		"string":           {js, 200, data("string", `[1,"hello"]`), "a text", "type"},
		"matrix":           {js, 200, data("matrix", `[{"metric":{},"values":[[1,"1"]]}]`), "use rate()", "type"},
		"native histogram": {js, 200, data("vector", `[{"metric":{},"histogram":[1,{}]}]`), "histogram_quantile", "type"},
		"no value":         {js, 200, data("vector", `[{"metric":{}}]`), "without a value", "malformed"},
		"value is number":  {js, 200, data("vector", `[{"metric":{},"value":[1,2]}]`), "cannot be read", "malformed"},
		"value is word":    {js, 200, vector("many"), "not a number", "malformed"},
		"three parts":      {js, 200, data("vector", `[{"metric":{},"value":[1,"2",3]}]`), "3 parts", "malformed"},
		"unknown type":     {js, 200, data("table", `[]`), "unknown result type", "malformed"},
		"no data":          {js, 200, `{"status":"success"}`, "unknown result type", "malformed"},
		"no status":        {js, 200, `{}`, "no status", "malformed"},
		"null":             {js, 200, `null`, "no status", "malformed"},
		"cut off":          {js, 200, vector("1")[:40], "cannot be read", "malformed"},
		"nothing":          {js, 200, "", "cannot be read", "malformed"},
		"HTML":             {"text/html; charset=utf-8", 200, "<html>log in</html>", `"text/html", not JSON`, "malformed"},
		"bad query":        {js, 400, `{"status":"error","errorType":"bad_data","error":"parse error: unexpected end"}`, "HTTP 400, bad_data: parse error", "refused"},
		"execution":        {js, 422, `{"status":"error","errorType":"execution","error":"too many samples"}`, "HTTP 422, execution: too many", "refused"},
		"timeout":          {js, 503, `{"status":"error","errorType":"timeout","error":"query timed out"}`, "gave up", "timeout"},
		"success with 500": {js, 500, vector("1"), "HTTP 500", "refused"},
		"unauthorized":     {"text/plain", 401, "no", "authentication", "refused"},
		"forbidden":        {"text/plain", 403, "no", "authentication", "refused"},
		"not found":        {"text/plain", 404, "404 page not found", "path prefix", "refused"},
		"too many":         {"text/plain", 429, "slow down", "HTTP 429", "refused"},
		"bad gateway":      {"text/html", 502, "<html>", "HTTP 502", "refused"},
		"no content":       {"", 204, "", "not JSON", "malformed"},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(answering(c.contentType, c.status, c.body))
			defer server.Close()
			cfg, o := settings(server.URL)
			expectMissing(t, cfg, o, c.reason, c.kind)
		})
	}
}

func expectMissing(t *testing.T, cfg prometheus.Config, o outlet, reason, kind string) {
	t.Helper()
	got := collect(t, cfg, o, 1)[0]
	if got.Value != 0 || !strings.Contains(got.Missing, reason) {
		t.Errorf("value %v, missing %q, want %q", got.Value, got.Missing, reason)
	}
	if len(got.Missing) > 300 {
		t.Errorf("a reason of %d bytes", len(got.Missing))
	}
	if n := testutil.ToFloat64(cfg.Metrics.Counter("trimtab_collector_prometheus_samples_total", kind)); n != 1 {
		t.Errorf("counted %v as %s", n, kind)
	}
}

func TestASeriesThatEndedHasNoValue(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.FormValue("query"), "timestamp(") {
			_, _ = io.WriteString(w, data("vector", "[]"))
			return
		}
		_, _ = io.WriteString(w, vector("0")) // as "… or vector(0)" answers
	}))
	defer server.Close()
	c, o := settings(server.URL)
	expectMissing(t, c, o, "have ended", "gone")
}

func TestAnUnknownAgeIsSaid(t *testing.T) {
	server := httptest.NewServer(answering("application/json", 200, vector("1")))
	defer server.Close()
	c, o := settings(server.URL)
	c.Queries[0].Expr = "x @ end()"
	if got := collect(t, c, o, 1)[0]; got.Missing != "" || !strings.Contains(got.Source, "age unknown") {
		t.Errorf("%+v", got)
	}
}

func TestAServerThatIsDownIsMissing(t *testing.T) {
	c, o := settings("http://127.0.0.1:1")
	expectMissing(t, c, o, "cannot ask Prometheus", "unreachable")
}

func TestAServerThatHangsUpIsMissing(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer server.Close()
	c, o := settings(server.URL)
	expectMissing(t, c, o, "cannot ask Prometheus", "unreachable")
}

func TestASilentServerIsGivenUp(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-release
	}))
	defer server.Close()
	defer close(release)
	c, o := settings(server.URL)
	c.Timeout = 50 * time.Millisecond
	expectMissing(t, c, o, "no answer within 50ms", "timeout")
}

func TestAnAnswerIsBounded(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		block := strings.Repeat(" ", 1<<20)
		for {
			if _, err := io.WriteString(w, block); err != nil {
				return // the client has seen enough
			}
		}
	}))
	defer server.Close()
	c, o := settings(server.URL)
	expectMissing(t, c, o, "larger than 1048576 bytes", "too_large")
}

// TestCompressionIsNotAskedFor, so that no small answer grows large.
func TestCompressionIsNotAskedFor(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		_, _ = io.WriteString(z, vector("1"))
		_ = z.Close()
	}))
	defer server.Close()
	c, o := settings(server.URL)
	expectMissing(t, c, o, "cannot be read", "malformed")
}

// TestNoRedirectLeadsElsewhere is promise S10.
func TestNoRedirectLeadsElsewhere(t *testing.T) {
	asked := make(chan struct{}, 1)
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		answering("application/json", 200, vector("1"))(w, r)
	}))
	defer inside.Close()
	outside := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusTemporaryRedirect))
	defer outside.Close()
	c, o := settings(outside.URL)
	expectMissing(t, c, o, "redirect to another server refused", "refused")
	if len(asked) > 0 {
		t.Error("the other server was asked")
	}
}

func TestARedirectLoopEnds(t *testing.T) {
	server := httptest.NewServer(http.RedirectHandler("/api/v1/query", http.StatusTemporaryRedirect))
	defer server.Close()
	c, o := settings(server.URL)
	expectMissing(t, c, o, "redirects", "refused")
}

func TestAProxyThatOnlyReadsIsAskedByGet(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		answering("application/json", 200, vector("9"))(w, r)
	}))
	defer server.Close()
	c, o := settings(server.URL + "/prefix/")
	if got := collect(t, c, o, 1)[0]; got.Value != 9 {
		t.Errorf("%+v", got)
	}
}

func TestOneSlowQueryDoesNotStopTheOthers(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.FormValue("query"), "slow") {
			<-release
		}
		answering("application/json", 200, vector("1"))(w, r)
	}))
	defer server.Close()
	c, o := settings(server.URL)
	c.Queries = nil
	for i := range 20 {
		expr := "x"
		if i == 0 {
			expr = "slow"
		}
		c.Queries = append(c.Queries, prometheus.Query{Workload: fmt.Sprint("w", i), Quantity: quantity.Load, Expr: expr})
	}
	defer close(release)
	for _, s := range collect(t, c, o, 19) {
		if s.Workload == "w0" || s.Missing != "" {
			t.Errorf("%+v", s)
		}
	}
}

func TestQueriesAreAskedAgainAtEveryInterval(t *testing.T) {
	server := httptest.NewServer(answering("application/json", 200, vector("1")))
	defer server.Close()
	c, o := settings(server.URL)
	c.Interval = time.Millisecond
	collect(t, c, o, 5)
}

func TestOpenRefusesWhatCannotRun(t *testing.T) {
	for name, spoil := range map[string]func(*prometheus.Config){
		"no URL":        func(c *prometheus.Config) { c.URL = "" },
		"no host":       func(c *prometheus.Config) { c.URL = "http://" },
		"file URL":      func(c *prometheus.Config) { c.URL = "file:///etc/passwd" },
		"no interval":   func(c *prometheus.Config) { c.Interval = 0 },
		"no bus":        func(c *prometheus.Config) { c.Bus = nil },
		"no expression": func(c *prometheus.Config) { c.Queries[0].Expr = " " },
		"no workload":   func(c *prometheus.Config) { c.Queries[0].Workload = "" },
		"no CA file":    func(c *prometheus.Config) { c.HTTP.TLSConfig.CAFile = "/nonexistent" },
	} {
		c, _ := settings("http://127.0.0.1:9")
		spoil(&c)
		if _, err := prometheus.Open(c); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzAnswer: whatever a server answers, the sample is valid, and a value is
// finite.
func FuzzAnswer(f *testing.F) {
	f.Add(200, "application/json", vector("1"))
	f.Add(200, "application/json", data("scalar", `[1,"NaN"]`))
	f.Add(500, "text/html", "<html>")
	f.Fuzz(func(t *testing.T, status int, contentType, body string) {
		values, err := prometheus.ReadAnswer(status, contentType, []byte(body))
		for _, v := range values {
			if math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
				t.Errorf("value %v", v)
			}
		}
		if err != nil && (len(values) > 0 || err.Error() == "") {
			t.Errorf("values %v, error %q", values, err)
		}
	})
}
