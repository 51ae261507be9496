package alertmanager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/leak"
	"github.com/trimtab/trimtab/internal/metric"
)

func TestMain(m *testing.M) { leak.Main(m) }

// shelf is a bus that keeps what it takes.
type shelf struct {
	mu   sync.Mutex
	kept []*trimtab.Alert
	// fail, when not nil, is asked first.
	fail func(ctx context.Context, a *trimtab.Alert) error
}

func (s *shelf) Publish(ctx context.Context, v trimtab.Value) error {
	if err := v.Validate(); err != nil {
		return err
	}
	a := v.(*trimtab.Alert)
	s.mu.Lock()
	fail := s.fail
	s.mu.Unlock()
	if fail != nil {
		if err := fail(ctx, a); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, a)
	return nil
}

// lines returns what was kept as texts, in order.
func (s *shelf) lines() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []string{}
	for _, a := range s.kept {
		out = append(out, fmt.Sprintf("%s %s %s %v", a.Workload, a.Name, a.Fingerprint, a.Firing))
	}
	slices.Sort(out)
	return out
}

func (s *shelf) set(fail func(context.Context, *trimtab.Alert) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = fail
}

const token = "correct horse battery staple"

func opened(t testing.TB, change func(*Config)) (*Receiver, *shelf) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bus := &shelf{}
	c := Config{Bus: bus, Metrics: metric.NewSet(), TokenFile: file, Workloads: []Workload{
		{"checkout", map[string]string{"service": "checkout", "env": "prod"}},
		{"search", map[string]string{"service": "search"}},
		{"shop", map[string]string{"env": "prod"}},
		{"nobody", nil},
	}}
	if change != nil {
		change(&c)
	}
	r, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return r, bus
}

func request(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func serve(t testing.TB, r *Receiver, req *http.Request) (int, Summary, *httptest.ResponseRecorder) {
	t.Helper()
	w := httptest.NewRecorder()
	r.ServeHTTP(w, req)
	var s Summary
	if w.Code == http.StatusOK {
		if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil {
			t.Fatalf("%s: %v", w.Body, err)
		}
	}
	return w.Code, s, w
}

// alertJSON is one alert as Alertmanager prints it.
func alertJSON(status, fingerprint, starts string, labels string) string {
	return fmt.Sprintf(`{"status":%q,"labels":{"alertname":"Slow",%s},"annotations":{"summary":"p99 is 9s"},"startsAt":%q,"endsAt":"0001-01-01T00:00:00Z","generatorURL":"http://prometheus/graph","fingerprint":%q}`,
		status, labels, starts, fingerprint)
}

func webhook(more string, alerts ...string) string {
	return fmt.Sprintf(`{"receiver":"trimtab","status":"firing","alerts":[%s],"groupLabels":{"alertname":"Slow"},"commonLabels":{},"commonAnnotations":{},"externalURL":"http://am","version":"4","groupKey":"{}:{alertname=\"Slow\"}"%s}`,
		strings.Join(alerts, ","), more)
}

const t1 = "2026-01-02T03:04:05.678Z"

func TestAnAlertIsPublishedForEveryWorkloadAllOfWhoseLabelsItHas(t *testing.T) {
	r, bus := opened(t, nil)
	code, s, w := serve(t, r, request(webhook(`,"truncatedAlerts":3`,
		alertJSON("firing", "f1", t1, `"service":"checkout","env":"prod"`),
		alertJSON("resolved", "f2", t1, `"service":"search","env":"dev"`),
		alertJSON("firing", "f3", t1, `"service":"checkout","env":"dev"`))))
	if d := cmp.Diff(Summary{Alerts: 3, Published: 3, Unmatched: 1, Truncated: 3}, s); code != http.StatusOK || d != "" {
		t.Fatalf("%d %s: %s", code, w.Body, d)
	}
	if d := cmp.Diff([]string{"checkout Slow f1 true", "search Slow f2 false", "shop Slow f1 true"}, bus.lines()); d != "" {
		t.Error(d)
	}
	a := bus.kept[0]
	if a.Group != `{}:{alertname="Slow"}` || a.Summary != "p99 is 9s" || a.Started.Format(time.RFC3339Nano) != t1 || a.Time.IsZero() {
		t.Errorf("%+v", a)
	}
	for result, want := range map[string]float64{"published": 3, "unmatched": 1, "truncated": 3} {
		if got := testutil.ToFloat64(r.config.Metrics.Counter("trimtab_collector_alerts_total", result)); got != want {
			t.Errorf("%s: counted %v, want %v", result, got, want)
		}
	}
}

func TestARepeatedAlertIsPublishedOnce(t *testing.T) {
	r, bus := opened(t, nil)
	const labels = `"service":"search"`
	for i, c := range []struct {
		status, fingerprint, starts string
		published                   int
	}{
		{"firing", "f1", t1, 1}, {"firing", "f1", t1, 0}, {"firing", "f2", t1, 1}, {"firing", "f1", "2026-01-02T04:00:00Z", 1},
		{"resolved", "f1", t1, 1}, {"resolved", "f1", t1, 0},
		{"firing", "f1", t1, 1}, // Alertmanager joins what overlaps: it fires again with the old start
	} {
		_, s, _ := serve(t, r, request(webhook("", alertJSON(c.status, c.fingerprint, c.starts, labels))))
		if s.Published != c.published || s.Published+s.Repeated != 1 {
			t.Errorf("%d: %+v", i, s)
		}
	}
	if n := len(bus.lines()); n != 5 {
		t.Errorf("%d published", n)
	}
}

func TestOfManyAtATimeOneIsPublished(t *testing.T) {
	r, bus := opened(t, nil)
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() { serve(t, r, request(webhook("", alertJSON("firing", "f1", t1, `"service":"search"`)))) })
	}
	wg.Wait()
	if got := bus.lines(); len(got) != 1 {
		t.Error(got)
	}
}

func TestWhatTheBusDoesNotTakeIsAnsweredWith503AndSentOnceInTheEnd(t *testing.T) {
	r, bus := opened(t, nil)
	var alerts []string
	for i := range 50 {
		alerts = append(alerts, alertJSON("firing", fmt.Sprint("f", i), t1, `"service":"search"`))
	}
	n := 0
	bus.set(func(context.Context, *trimtab.Alert) error {
		bus.mu.Lock()
		defer bus.mu.Unlock()
		if n++; n > 20 {
			return errors.New("store: no space")
		}
		return nil
	})
	for range 3 {
		if code, _, w := serve(t, r, request(webhook("", alerts...))); code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Fatalf("%d %s", code, w.Body)
		}
	}
	bus.set(nil)
	code, s, w := serve(t, r, request(webhook("", alerts...)))
	if code != http.StatusOK || s.Published != 30 || s.Repeated != 20 || len(bus.lines()) != 50 {
		t.Errorf("%d %s: %d published in all", code, w.Body, len(bus.lines()))
	}
}

func TestABusThatHangsIsGivenUpInTime(t *testing.T) {
	r, bus := opened(t, nil)
	bus.set(func(ctx context.Context, _ *trimtab.Alert) error { <-ctx.Done(); return ctx.Err() })
	if code, _, w := serve(t, r, request(webhook("", alertJSON("firing", "f1", t1, `"service":"search"`)))); code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", code, w.Body)
	}
	bus.set(nil)
	if code, s, _ := serve(t, r, request(webhook("", alertJSON("firing", "f1", t1, `"service":"search"`)))); code != http.StatusOK || s.Published != 1 {
		t.Errorf("%d %+v", code, s)
	}
}

func TestGroupsThatDifferBeyondTheBoundStayDifferent(t *testing.T) {
	long := strings.Repeat("x", 1000)
	if a, b := short(long+"a", maxGroup), short(long+"b", maxGroup); a == b || len(a) > maxGroup || len(b) > maxGroup {
		t.Error(a, b)
	}
}

func TestOldAlertsAreForgottenWhenThereAreTooMany(t *testing.T) {
	var s seen
	ok := func() error { return nil }
	for i := range maxSeen + 10 {
		if again, err := s.once(t.Context(), identity{fingerprint: fmt.Sprint(i)}, time.Time{}, true, ok); again || err != nil {
			t.Fatal(again, err)
		}
	}
	if len(s.last) != maxSeen {
		t.Errorf("%d remembered", len(s.last))
	}
	if again, _ := s.once(t.Context(), identity{fingerprint: "11"}, time.Time{}, true, ok); !again {
		t.Error("11 is forgotten")
	}
	if again, _ := s.once(t.Context(), identity{fingerprint: "3"}, time.Time{}, true, ok); again {
		t.Error("3 is not forgotten")
	}
}
