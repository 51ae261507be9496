package alertmanager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/metric"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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

func TestABodyIsReadLeniently(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want Summary
	}{
		"no groupKey, no version":     {`{"alerts":[` + alertJSON("firing", "f", t1, `"service":"search"`) + `]}`, Summary{Alerts: 1, Published: 1}},
		"unknown fields":              {`{"version":"4","new":{"deep":[1,2]},"alerts":[{"status":"firing","labels":{"service":"search"},"x":[[]]}]}`, Summary{Alerts: 1, Published: 1}},
		"status of the group":         {`{"status":"firing","alerts":[{"labels":{"service":"search"}}]}`, Summary{Alerts: 1, Published: 1}},
		"a label that is no text":     {`{"alerts":[{"status":"firing","labels":{"service":"search","n":7,"o":null}}]}`, Summary{Alerts: 1, Published: 1}},
		"a start that is no time":     {`{"alerts":[{"status":"firing","labels":{"service":"search"},"startsAt":"yesterday"}]}`, Summary{Alerts: 1, Published: 1}},
		"fields of another type":      {`{"version":"4","receiver":7,"groupKey":[],"truncatedAlerts":"many","alerts":[{"status":"firing","labels":{"service":"search"},"fingerprint":8}]}`, Summary{Alerts: 1, Published: 1}},
		"no alerts at all":            {`{"version":"4","alerts":[]}`, Summary{}},
		"alerts that are none":        {`{"status":"odd","alerts":[7,null,{},{"labels":{"service":"search"}},{"status":"firing","labels":[]}]}`, Summary{Alerts: 5, Malformed: 5}},
		"Grafana's version 1":         {`{"version":"1","orgId":1,"alerts":[{"status":"resolved","labels":{"service":"search"},"values":{"A":1}}]}`, Summary{Alerts: 1, Published: 1}},
		"fewer than none left out":    {`{"truncatedAlerts":-4,"alerts":[]}`, Summary{}},
		"an empty name":               {`{"alerts":[{"status":"firing","labels":{"alertname":"","service":"search"}}]}`, Summary{Alerts: 1, Published: 1}},
		"a name of a thousand":        {`{"alerts":[{"status":"firing","labels":{"alertname":"` + strings.Repeat("é", 1000) + `","service":"search"}}]}`, Summary{Alerts: 1, Published: 1}},
		"a start that JSON can't say": {`{"alerts":[{"status":"firing","labels":{"service":"search"},"startsAt":"0000-01-01T00:00:00Z"}]}`, Summary{Alerts: 1, Published: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			r, _ := opened(t, nil)
			if code, s, w := serve(t, r, request(c.body)); code != http.StatusOK || s != c.want {
				t.Errorf("%d %s, want %+v", code, w.Body, c.want)
			}
		})
	}
}

func TestABodyThatIsNoWebhookIsRefusedWith400(t *testing.T) {
	r, bus := opened(t, nil)
	for _, body := range []string{"", "{", "[]", "7", "null", "{}", `{"alerts":null}`, `{"alerts":{}}`, `{"alerts":7}`, `{"version":"5","alerts":[]}`,
		`{"alerts":[` + strings.Repeat("{},", maxAlerts) + `{}]}`, strings.Repeat("[", 100_000)} {
		if code, _, w := serve(t, r, request(body)); code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "error") {
			t.Errorf("%.40q: %d %s", body, code, w.Body)
		}
	}
	if got := bus.lines(); len(got) > 0 {
		t.Error(got)
	}
}

// S3: without the token nothing is read and nothing happens.
func TestWithoutTheTokenNothingGoesOn(t *testing.T) {
	r, bus := opened(t, nil)
	body := webhook("", alertJSON("firing", "f1", t1, `"service":"search"`))
	for _, header := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Bearer " + token + "x", "Basic " + token, token, "Digest " + token, "Bearer " + strings.ToUpper(token)} {
		req := request(body)
		unread := &countingReader{Reader: strings.NewReader(body)}
		req.Body = io.NopCloser(unread)
		req.Header.Set("Authorization", header)
		code, _, w := serve(t, r, req)
		if code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") == "" || unread.n > 0 || strings.Contains(w.Body.String(), token) {
			t.Errorf("%q: %d, %d bytes read: %s", header, code, unread.n, w.Body)
		}
	}
	closed, _ := opened(t, func(c *Config) { c.TokenFile = "" })
	if code, _, w := serve(t, closed, request(body)); code != http.StatusForbidden || !strings.Contains(w.Body.String(), "alertmanager.token_file") {
		t.Errorf("no token configured: %d %s", code, w.Body)
	}
	if got := bus.lines(); len(got) > 0 {
		t.Error(got)
	}
	for _, let := range []func(*http.Request){
		func(r *http.Request) { r.Header.Set("Authorization", "bearer  "+token) },
		func(r *http.Request) { r.SetBasicAuth("alertmanager", token) },
	} {
		req := request(body)
		let(req)
		if code, _, w := serve(t, r, req); code != http.StatusOK {
			t.Errorf("with the token: %d %s", code, w.Body)
		}
	}
}

type countingReader struct {
	io.Reader
	n int
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n += n
	return n, err
}

func TestAChangedTokenIsInForceAtOnceAndALostOneLetsNobodyIn(t *testing.T) {
	r, _ := opened(t, nil)
	name := r.config.TokenFile
	body := webhook("")
	try := func(given string) int {
		req := request(body)
		req.Header.Set("Authorization", "Bearer "+given)
		code, _, _ := serve(t, r, req)
		return code
	}
	if err := os.WriteFile(name, []byte("next"), 0o600); err != nil {
		t.Fatal(err)
	}
	if try(token) != http.StatusUnauthorized || try("next") != http.StatusOK {
		t.Error("the changed token is not in force")
	}
	for _, spoil := range []func() error{
		func() error { return os.WriteFile(name, []byte(" \n"), 0o600) },
		func() error { return os.WriteFile(name, []byte(strings.Repeat("x", maxToken+1)), 0o600) },
		func() error { return os.Remove(name) },
		func() error { return os.Mkdir(name, 0o700) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		for _, given := range []string{"", "next", token, strings.Repeat("x", maxToken+1)} {
			if code := try(given); code == http.StatusOK {
				t.Errorf("let in with %.10q", given)
			}
		}
	}
	if _, err := Open(r.config); err == nil {
		t.Error("opens without its token")
	}
}

func TestWrongMethodsTypesAndSizesAreRefused(t *testing.T) {
	r, bus := opened(t, nil)
	big := webhook("", alertJSON("firing", "f1", t1, `"service":"search","pad":"`+strings.Repeat("x", MaxBody)+`"`))
	for name, c := range map[string]struct {
		change func(*http.Request)
		want   int
	}{
		"GET":               {func(r *http.Request) { r.Method = http.MethodGet }, http.StatusMethodNotAllowed},
		"PUT":               {func(r *http.Request) { r.Method = http.MethodPut }, http.StatusMethodNotAllowed},
		"a form":            {func(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }, http.StatusUnsupportedMediaType},
		"no type":           {func(r *http.Request) { r.Header.Del("Content-Type") }, http.StatusUnsupportedMediaType},
		"compressed":        {func(r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }, http.StatusUnsupportedMediaType},
		"too large, told":   {func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader(big)), int64(len(big)) }, http.StatusRequestEntityTooLarge},
		"too large, untold": {func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader(big)), -1 }, http.StatusRequestEntityTooLarge},
		"endless":           {func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(endless{}), -1 }, http.StatusRequestEntityTooLarge},
		"a charset":         {func(r *http.Request) { r.Header.Set("Content-Type", "application/json; charset=utf-8") }, http.StatusOK},
	} {
		req := request(webhook(""))
		c.change(req)
		if code, _, w := serve(t, r, req); code != c.want || code == http.StatusMethodNotAllowed && w.Header().Get("Allow") != "POST" {
			t.Errorf("%s: %d %s, want %d", name, code, w.Body, c.want)
		}
	}
	if got := bus.lines(); len(got) > 0 || r.room.held.Load() != 0 {
		t.Error(got, r.room.held.Load())
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
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

func TestTooManyAtATimeAreAnsweredWith503Never429(t *testing.T) {
	r, bus := opened(t, func(c *Config) { c.Requests = 1 })
	entered, leave := make(chan struct{}), make(chan struct{})
	bus.set(func(context.Context, *trimtab.Alert) error { close(entered); <-leave; return nil })
	var wg sync.WaitGroup
	wg.Go(func() { serve(t, r, request(webhook("", alertJSON("firing", "f1", t1, `"service":"search"`)))) })
	<-entered
	if code, _, w := serve(t, r, request(webhook(""))); code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("%d %s", code, w.Body)
	}
	close(leave)
	wg.Wait()
	small, _ := opened(t, func(c *Config) { c.HeldBytes = 8 << 10 })
	if code, _, w := serve(t, small, request(webhook(strings.Repeat(" ", 9<<10)))); code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", code, w.Body)
	}
}

// S6: slow senders, with and without the token, hold up nobody and are cut off.
func TestSlowSendersAreCutOffAndHoldUpNobody(t *testing.T) {
	r, _ := opened(t, func(c *Config) { c.ReadTimeout = 2 * time.Second })
	server := httptest.NewServer(r)
	defer server.Close()
	var slow []net.Conn
	for i := range 200 {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		auth := "Bearer " + token
		if i%2 == 0 {
			auth = "Bearer wrong"
		}
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\nAuthorization: %s\r\n\r\n{", Path, auth)
		slow = append(slow, c)
	}
	req, err := http.NewRequest(http.MethodPost, server.URL+Path, strings.NewReader(webhook("")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header = request("").Header
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("beside slow senders: %s", resp.Status)
	}
	for i, c := range slow {
		_ = c.SetReadDeadline(time.Now().Add(30 * time.Second))
		answer, err := io.ReadAll(c)
		want := "HTTP/1.1 408 "
		if i%2 == 0 {
			want = "HTTP/1.1 401 "
		}
		if err != nil || !strings.HasPrefix(string(answer), want) {
			t.Fatalf("slow sender %d: %v: %.60q, want %q and the end of the connection", i, err, answer, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestForeignTextsStayOnOneLineAndBounded(t *testing.T) {
	r, bus := opened(t, nil)
	evil := "<script>alert(1)</script>\n\x1b[31m\"}) or vector(1) #\u202e../../etc/passwd\x00"
	b, _ := json.Marshal(map[string]any{"groupKey": strings.Repeat(evil, 100), "alerts": []any{map[string]any{
		"status": "firing", "labels": map[string]string{"alertname": evil, "service": "search"},
		"annotations": map[string]string{"summary": strings.Repeat(evil, 100)}, "fingerprint": strings.Repeat(evil, 10)}}})
	if code, _, w := serve(t, r, request(string(b))); code != http.StatusOK {
		t.Fatal(code, w.Body)
	}
	a := bus.kept[0]
	for name, s := range map[string]string{"name": a.Name, "group": a.Group, "fingerprint": a.Fingerprint, "summary": a.Summary} {
		if len(s) > maxSummary || strings.ContainsAny(s, "\n\r\x00\x1b\u202e") {
			t.Errorf("%s: %q", name, s)
		}
	}
	if !strings.HasPrefix(a.Name, "<script>") {
		t.Errorf("name %q: a text stays a text", a.Name)
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
		if again, err := s.once(t.Context(), identity{fingerprint: fmt.Sprint(i)}, true, ok); again || err != nil {
			t.Fatal(again, err)
		}
	}
	if len(s.last) != maxSeen {
		t.Errorf("%d remembered", len(s.last))
	}
	if again, _ := s.once(t.Context(), identity{fingerprint: "11"}, true, ok); !again {
		t.Error("11 is forgotten")
	}
	if again, _ := s.once(t.Context(), identity{fingerprint: "3"}, true, ok); again {
		t.Error("3 is not forgotten")
	}
}

// S5: a body of a mebibyte that is made to unfold takes little memory, however
// many come at a time.
func TestBombsAreRefusedInLittleMemory(t *testing.T) {
	names := strings.Builder{}
	for i := 0; names.Len() < MaxBody-200; i++ {
		fmt.Fprintf(&names, `"%x":"",`, i)
	}
	r, bus := opened(t, nil)
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	peak := uint64(0)
	var wg sync.WaitGroup
	for name, c := range map[string]struct {
		body string
		want []int
	}{
		"labels":  {`{"alerts":[{"status":"firing","labels":{` + names.String() + `"service":"search"}}]}`, []int{http.StatusOK, http.StatusServiceUnavailable}},
		"group":   {`{"alerts":[],"groupLabels":{` + names.String() + `"service":"search"}}`, []int{http.StatusOK, http.StatusServiceUnavailable}},
		"alerts":  {`{"alerts":[` + strings.Repeat("{},", MaxBody/4) + `{}]}`, []int{http.StatusBadRequest, http.StatusServiceUnavailable}},
		"nesting": {`{"alerts":` + strings.Repeat("[", MaxBody-100), []int{http.StatusBadRequest, http.StatusServiceUnavailable}},
		"unknown": {`{"alerts":[],"x":{` + names.String()[:strings.LastIndexByte(names.String()[:MaxBody/2], ',')] + `,"y":` + strings.Repeat(`{"z":`, 5000) + "1" + strings.Repeat("}", 5001) + `}`, []int{http.StatusOK, http.StatusServiceUnavailable}},
	} {
		for range 8 {
			wg.Go(func() {
				if code, _, w := serve(t, r, request(c.body)); !slices.Contains(c.want, code) {
					t.Errorf("%s: %d %.200s", name, code, w.Body)
				}
			})
		}
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			runtime.ReadMemStats(&now)
			peak = max(peak, now.HeapAlloc)
		}
	}
	if peak > before.HeapAlloc+64<<20 {
		t.Errorf("the heap grew from %d to %d MiB", before.HeapAlloc>>20, peak>>20)
	}
	t.Logf("the heap grew from %d to %d MiB", before.HeapAlloc>>20, peak>>20)
	if got := bus.lines(); len(got) > 0 || r.room.held.Load() != 0 {
		t.Error(got, r.room.held.Load())
	}
}

// FuzzDecode: any body is a message or an error, and every alert in it is one
// that the bus takes.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(webhook(`,"truncatedAlerts":3`, alertJSON("firing", "f1", t1, `"service":"search"`))))
	f.Add([]byte(`{"alerts":[7,null,{},{"status":"resolved","labels":{"a":1}}],"groupKey":7}`))
	f.Add([]byte(`{"alerts":[{"status":"firing","labels":{"alertname":"\u0000\ud800"},"startsAt":"9999-12-31T23:59:59-23:59"}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		n := 0
		m, err := decode(body, func(group string, a *received) {
			n++
			v := a.alert("w", group, time.Now())
			if _, err := trimtab.Encode(v, trimtab.Origin{Source: "s", Incarnation: 1, Sequence: 1}); err != nil {
				t.Fatalf("%+v: %v", v, err)
			}
		})
		if err != nil && !errors.Is(err, trimtab.ErrInvalid) {
			t.Fatal(err)
		}
		if err == nil && n+m.malformed != m.alerts {
			t.Fatalf("%d + %d of %d", n, m.malformed, m.alerts)
		}
	})
}
