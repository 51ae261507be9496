package alertmanager

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

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
		"PUT":               {func(r *http.Request) { r.Method = http.MethodPut }, http.StatusOK},
		"PATCH":             {func(r *http.Request) { r.Method = http.MethodPatch }, http.StatusMethodNotAllowed},
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
		if code, _, w := serve(t, r, req); code != c.want || code == http.StatusMethodNotAllowed && w.Header().Get("Allow") != "POST, PUT" {
			t.Errorf("%s: %d %s, want %d", name, code, w.Body, c.want)
		}
	}
	if got := bus.lines(); len(got) > 0 || r.budget.held.Load() != 0 {
		t.Error(got, r.budget.held.Load())
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
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
	r, _ := opened(t, func(c *Config) { c.ReadTimeout = 10 * time.Second }) // what the other needs on a busy machine
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
		_ = c.SetReadDeadline(time.Now().Add(time.Minute))
		answer, err := io.ReadAll(c)
		want := "HTTP/1.1 503 "
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
	if got := bus.lines(); len(got) > 0 || r.budget.held.Load() != 0 {
		t.Error(got, r.budget.held.Load())
	}
}
