package alertmanager

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trimtab/trimtab"
)

// fires is a webhook as Alertmanager and Grafana send it, in group, of so many alerts.
func fires(group, ends string, alerts int) string {
	all := make([]string, alerts)
	for i := range all {
		all[i] = fmt.Sprintf(`{"status":"firing","labels":{"alertname":"Slow","service":"search"},"annotations":{},"startsAt":"1999-12-31T23:00:00Z","endsAt":"%s","generatorURL":"","fingerprint":"f%d"}`, ends, i)
	}
	return fmt.Sprintf(`{"receiver":"trimtab","status":"firing","orgId":1,"alerts":[%s],"groupLabels":{},"commonLabels":{},"externalURL":"https://x.test/","version":"1","groupKey":"%s","truncatedAlerts":0,"state":"alerting"}`, strings.Join(all, ","), group)
}

const never = "0001-01-01T00:00:00Z"

// last is the newest alert that was published.
func (s *shelf) last() *trimtab.Alert {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[len(s.kept)-1]
}

func TestAnAlertIsOverdueByTheRepeatIntervalOfItsSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, bus := opened(t, nil)
		take := func(body string) *trimtab.Alert {
			if _, err := r.accept(t.Context(), []byte(body)); err != nil {
				t.Fatal(err)
			}
			return bus.last()
		}
		if a := take(fires("g", never, 1)); !a.Until.IsZero() {
			t.Errorf("before it was repeated: %v", a.Until)
		}
		pass := func(d time.Duration) { <-time.After(d) }
		pass(15 * time.Second) // another of the cluster says the same
		take(fires("g", never, 1))
		pass(time.Hour - 15*time.Second)
		if a := take(fires("g", never, 1)); !a.Until.Equal(time.Now().Add(2 * time.Hour)) {
			t.Errorf("repeated after an hour: until %v, now %v", a.Until, time.Now())
		}
		pass(5 * time.Minute) // the group grew: that is no repetition
		if a := take(fires("g", never, 2)); !a.Until.Equal(time.Now().Add(2 * time.Hour)) {
			t.Errorf("once the group grew: until %v, now %v", a.Until, time.Now())
		}
		pass(time.Hour)
		if a := take(fires("g", never, 2)); !a.Until.Equal(time.Now().Add(2 * time.Hour)) {
			t.Errorf("repeated again: until %v, now %v", a.Until, time.Now())
		}
		if a := take(fires("of another route", never, 1)); !a.Until.IsZero() && a.Group != "g" {
			t.Errorf("another group has until %v", a.Until)
		}
	})
}

func TestTheEndThatASenderGivesCounts(t *testing.T) {
	for ends, want := range map[string]string{
		"2999-01-01T00:00:00+02:00": "2998-12-31T22:00:00Z",
		"2001-01-01T00:00:00Z":      "0001-01-01T00:00:00Z", // it is past, and the alert fires
		never:                       "0001-01-01T00:00:00Z",
		"soon":                      "0001-01-01T00:00:00Z",
	} {
		r, bus := opened(t, nil)
		if _, err := r.accept(t.Context(), []byte(fires("g", ends, 1))); err != nil {
			t.Fatal(err)
		}
		if got := bus.last().Until.Format(time.RFC3339); got != want {
			t.Errorf("endsAt %s: until %s, want %s", ends, got, want)
		}
	}
}

func TestThatAnAlertStillFiresIsToldOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, bus := opened(t, nil)
		for range 30 {
			s, err := r.accept(t.Context(), []byte(fires("g", never, 1)))
			if err != nil || s.Published+s.Repeated != 1 {
				t.Fatalf("%+v, %v", s, err)
			}
			<-time.After(10 * time.Second)
		}
		if n := len(bus.lines()); n != 5 {
			t.Errorf("%d published in 5 minutes", n)
		}
	})
}

func TestGroupsWithoutEndAreForgotten(t *testing.T) {
	var r repeats
	for i := range 3 * maxGroups {
		r.heard(fmt.Sprint(i), [32]byte{1}, time.Unix(int64(i), 0))
	}
	if len(r.of) != maxGroups || len(r.order) != maxGroups {
		t.Errorf("%d groups are remembered", len(r.of))
	}
}
