package gate

import (
	"bufio"
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAClientCannotTakeAwayWhatTheGateAdds(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header = http.Header{"Connection": {"TE, traceparent", "forwarded,X-Own"}, "Te": {"trailers"}, "Forwarded": {"for=1"}, "X-Own": {"1"}, "X-Other": {"2"}}
	r.Header = added(r.Header)
	r.Header.Set("Traceparent", "3")
	var b bytes.Buffer
	if err := writeHead(bufio.NewWriter(&b), r, "a"); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"Traceparent: 3\r\n": true, "Te: trailers\r\n": true, "Forwarded: for=1\r\n": true, "X-Other: 2\r\n": true, "X-Own": false, "Connection": false} {
		if strings.Contains(b.String(), text) != want {
			t.Errorf("%q is there: %v, want %v\n%s", text, !want, want, &b)
		}
	}
}

func TestWhatCannotBeWrittenAsItIsTakesTheOtherPath(t *testing.T) {
	d := &direct{}
	for _, spoil := range []func(*http.Request){
		func(r *http.Request) { r.URL.RawQuery = "a b" }, func(r *http.Request) { r.URL.RawQuery = "a\r\nX: 1" },
		func(r *http.Request) { r.URL.Opaque = "a" }, func(r *http.Request) { r.Host = "a/b" }, func(r *http.Request) { r.Host = "a\r\nX: 1" },
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if !d.carries(r) {
			t.Fatal("a plain request is not carried")
		}
		if spoil(r); d.carries(r) {
			t.Errorf("%q %q is carried", r.Host, r.URL)
		}
	}
}
