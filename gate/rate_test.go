package gate

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// rateOf asks the control API for a rate, or changes it.
func rateOf(t *testing.T, g *Gate, method, path, body string) (code int, d RateDocument) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "http://"+g.AdminAddress()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode == http.StatusOK {
		err = json.Unmarshal(b, &d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, d
}

func TestARateBoundsAdmissionsApartFromTheEnvelopeUntilItIsDeletedOrItsLeaseEnds(t *testing.T) {
	g := run(t, http.NotFoundHandler(), nil)
	if code, d := rateOf(t, g, http.MethodPut, "/v1/rate", `{"rate":40,"lease_ms":60000}`); code != http.StatusOK || d.Rate == nil || *d.Rate != 40 || *d.InForce != 40 || d.Exact || d.LeaseLeft < 1 {
		t.Errorf("%d %+v", code, d)
	}
	control(t, g, http.MethodPut, `{"max":3,"lease_ms":60000}`)
	control(t, g, http.MethodDelete, "")
	if _, d := control(t, g, http.MethodGet, ""); d.Rate == nil || *d.Rate != 40 || d.Envelope != nil {
		t.Errorf("the envelope came and went, and the rate is %+v", d)
	}
	if _, d := rateOf(t, g, http.MethodDelete, "/v1/rate", ""); d.Rate != nil || d.InForce != nil {
		t.Errorf("after DELETE: %+v", d)
	}
	_, d := rateOf(t, g, http.MethodPut, "/v1/rate", `{"rate":40,"lease_ms":1}`)
	for d.Rate != nil { // the lease of a millisecond ends
		_, d = rateOf(t, g, http.MethodGet, "/v1/rate", "")
	}
	for _, bad := range []string{`{`, `{"rate":0,"lease_ms":1}`, `{"rate":1e-9,"lease_ms":1}`, `{"rate":1e10,"lease_ms":1}`, `{"rate":1}`, `{"rate":1,"lease_ms":99999999999}`, `{"rat":1,"lease_ms":1}`, `{"rate":1,"lease_ms":1}{}`} {
		if code, _ := rateOf(t, g, http.MethodPut, "/v1/rate", bad); code != http.StatusBadRequest {
			t.Errorf("%s: %d", bad, code)
		}
	}
	if code, _ := rateOf(t, g, http.MethodPost, "/v1/rate", ""); code != http.StatusMethodNotAllowed {
		t.Error(code)
	}
}

func TestARateOfAClassRefusesThatClassAlone(t *testing.T) {
	g := run(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), func(c *Config) {
		c.Within, c.Class = 200*time.Millisecond, "x-priority=high,low"
	})
	if code, _ := rateOf(t, g, http.MethodPut, "/v1/rate/none", `{"rate":1,"lease_ms":1}`); code != http.StatusNotFound {
		t.Errorf("a class that the gate does not have: %d", code)
	}
	if code, d := rateOf(t, g, http.MethodPut, "/v1/rate/low", `{"rate":0.01,"exact":true,"lease_ms":60000}`); code != http.StatusOK || !d.Exact {
		t.Fatalf("%d %+v", code, d)
	}
	want := []int{http.StatusOK, http.StatusServiceUnavailable}
	for _, status := range want { // the first has the token that there is
		if resp, _ := get(t, g.url("/"), "x-priority", "low"); resp.StatusCode != status {
			t.Errorf("low: %s, want %d", resp.Status, status)
		}
		if resp, _ := get(t, g.url("/"), "x-priority", "high"); resp.StatusCode != http.StatusOK {
			t.Errorf("high: %s", resp.Status)
		}
	}
	_, metrics := get(t, "http://"+g.AdminAddress()+"/metrics")
	if !strings.Contains(metrics, `trimtab_gate_refused_total{class="low",reason="rate",workload="shop"} 1`) {
		t.Error(metrics)
	}
}
