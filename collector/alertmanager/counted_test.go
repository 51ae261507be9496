package alertmanager

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// answered looks at the metrics in the moment in which the answer is sent.
type answered struct {
	*httptest.ResponseRecorder
	look func()
}

func (a answered) WriteHeader(code int) {
	a.look()
	a.ResponseRecorder.WriteHeader(code)
}

func TestAWebhookIsCountedBeforeItIsAnswered(t *testing.T) {
	for result, change := range map[string]func(*http.Request){
		"ok":           func(*http.Request) {},
		"unauthorized": func(r *http.Request) { r.Header.Del("Authorization") },
		"content_type": func(r *http.Request) { r.Header.Del("Content-Type") },
		"malformed":    func(r *http.Request) { r.Body = http.NoBody },
	} {
		t.Run(result, func(t *testing.T) {
			r, _ := opened(t, nil)
			req := request(`{"version":"4","alerts":[]}`)
			change(req)
			looked := false
			r.ServeHTTP(answered{httptest.NewRecorder(), func() {
				looked = true
				if n := testutil.ToFloat64(r.config.Metrics.Counter("trimtab_collector_webhook_requests_total", result)); n != 1 {
					t.Errorf("%v requests were counted as %s when the answer was sent, want 1", n, result)
				}
			}}, req)
			if !looked {
				t.Error("nothing was answered")
			}
		})
	}
}

func TestAlertsAreCountedBeforeTheirWebhookIsAnswered(t *testing.T) {
	r, _ := opened(t, nil)
	body := `{"version":"4","alerts":[` + strings.Join([]string{
		alertJSON("firing", "a1", "2026-01-02T12:00:00Z", `"service":"search"`),
		alertJSON("firing", "a2", "2026-01-02T12:00:00Z", `"service":"other"`),
	}, ",") + `]}`
	r.ServeHTTP(answered{httptest.NewRecorder(), func() {
		for _, result := range []string{"published", "unmatched"} {
			if n := testutil.ToFloat64(r.config.Metrics.Counter("trimtab_collector_alerts_total", result)); n != 1 {
				t.Errorf("%v alerts were counted as %s when the answer was sent, want 1", n, result)
			}
		}
	}}, request(body))
}
