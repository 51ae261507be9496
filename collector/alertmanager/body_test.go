package alertmanager

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

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
			if _, err := codec.Encode(v, trimtab.Origin{Source: "s", Incarnation: 1, Sequence: 1}); err != nil {
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
