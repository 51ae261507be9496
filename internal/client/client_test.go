package client_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/client"
	"github.com/trimtab/trimtab/internal/hint"
)

// answering is a server that gives one answer, and tells what it was asked.
func answering(t *testing.T, code int, body string, asked *http.Request) client.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked != nil {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			*asked = *r
			asked.Body = io.NopCloser(strings.NewReader(string(b)))
		}
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}))
	t.Cleanup(s.Close)
	return client.Client{URL: s.URL}
}

func TestAnErrorNamesTheAddressWithoutItsPassword(t *testing.T) {
	for _, address := range []string{"http://anna:hunter2@127.0.0.1:1", "http://anna:hunter2@127.0.0.1:x"} {
		_, err := client.Client{URL: address}.Status(t.Context())
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "127.0.0.1") || hint.Of(err) == "" {
			t.Errorf("%v, hint %q", err, hint.Of(err))
		}
	}
}

func TestAnErrorOfTheAPIIsSaidAsItIsAndHarmsNoTerminal(t *testing.T) {
	_, err := answering(t, http.StatusNotFound, `{"error": "explain \u001b[2Jx: not known"}`, nil).Plan(t.Context())
	if err == nil || err.Error() != `explain \x1b[2Jx: not known` {
		t.Errorf("%v", err)
	}
}

func TestOnlyForATerminalAreNamesMadePrintable(t *testing.T) {
	c := answering(t, http.StatusOK, `{"workloads": [{"name": "a\u001b"}]}`, nil)
	for terminal, want := range map[bool]string{false: "a\x1b", true: `a\x1b`} {
		c.Terminal = terminal
		s, err := c.Status(t.Context())
		if err != nil || s.Workloads[0].Name != want {
			t.Errorf("terminal %v: %v %+v", terminal, err, s)
		}
	}
}

func TestAnotherServerThanTrimtabIsNamedAsThat(t *testing.T) {
	c := answering(t, http.StatusOK, "<html>", nil)
	_, err := c.Diff(t.Context())
	_, alert := c.Alert(t.Context(), []byte("{}"), "")
	for _, err := range []error{err, alert} {
		if err == nil || !strings.Contains(hint.Of(err), "is that a trimtab") {
			t.Errorf("%v, hint %q", err, hint.Of(err))
		}
	}
}

func TestACommandGoesAsJSONAndAnAlertWithItsToken(t *testing.T) {
	var asked http.Request
	c := answering(t, http.StatusOK, `{"verb": "pause", "alerts": 1, "published": 1}`, &asked)
	got, err := c.Send(t.Context(), trimtab.Command{Verb: trimtab.Pause, By: "cli"})
	if err != nil || got.Verb != trimtab.Pause {
		t.Fatal(got, err)
	}
	if b, err := io.ReadAll(asked.Body); err != nil || !strings.Contains(string(b), `"by":"cli"`) || asked.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%s %v", b, err)
	}
	s, err := c.Alert(t.Context(), []byte("{}"), "t0ken")
	if err != nil || s.Published != 1 || asked.Header.Get("Authorization") != "Bearer t0ken" {
		t.Errorf("%+v %v, %v", s, err, asked.Header)
	}
}

func TestARefusedAlertSaysWhereItsTokenComesFrom(t *testing.T) {
	_, err := answering(t, http.StatusUnauthorized, `{"error": "wrong token"}`, nil).Alert(t.Context(), []byte("{}"), "")
	if err == nil || !strings.Contains(err.Error(), "wrong token") || !strings.Contains(hint.Of(err), "--token-file") {
		t.Errorf("%v, hint %q", err, hint.Of(err))
	}
}

func TestATextThatSaysNoBeginsWithItsStatus(t *testing.T) {
	b, err := answering(t, http.StatusServiceUnavailable, "planner: starting", nil).Text(t.Context(), "/-/ready")
	if err != nil || string(b) != "503 Service Unavailable\nplanner: starting" {
		t.Errorf("%q %v", b, err)
	}
}

func TestAWorkloadOfAnyNameHasAPath(t *testing.T) {
	for _, name := range []string{".", "..", "a/b", "a?b", "%2f"} {
		path := client.ExplainPath(name, 1)
		if strings.Contains(path, "/../") || strings.HasSuffix(path, "/.") || strings.Count(path, "?") != 1 {
			t.Errorf("%q: %s", name, path)
		}
	}
}
