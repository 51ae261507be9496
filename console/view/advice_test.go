package view

import (
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// recommending is a plan of the nth second that recommends an amount.
func recommending(n int, to float64) *trimtab.Plan {
	p := at(n, "shop")
	p.Actions[0].Mode, p.Actions[0].Set = trimtab.Recommend, trimtab.Units(to)
	return p
}

func TestAdviceThatStaysTheSameIsOneEntryWithSinceWhen(t *testing.T) {
	v := New(Config{Pool: "cpu", Resource: "cpu", Round: time.Second, Workloads: []Workload{{Name: "shop", Mode: trimtab.Recommend}}})
	for n := range 100 {
		to := 2.0
		if n >= 40 {
			to = 3
		}
		v.Observe(recommending(n, to))
	}
	now := noon.Add(100 * time.Second)
	all, next, total, err := v.Advices("shop", "", 20, now)
	if err != nil || len(all) != 2 || next != "" || total != 100 {
		t.Fatalf("%d entries of %d, then %q: %v", len(all), total, next, err)
	}
	if all[0].Count != 60 || !all[0].Since.Equal(noon.Add(40*time.Second)) || all[0].Held() != "same advice for 59 s, 60 times" || all[1].Count != 40 {
		t.Errorf("%+v, %+v", all[0], all[1])
	}
	one, next, _, err := v.Advices("shop", "", 1, now)
	if err != nil || len(one) != 1 || next == "" {
		t.Fatalf("%d entries, then %q: %v", len(one), next, err)
	}
	if rest, _, _, err := v.Advices("shop", next, 1, now); err != nil || len(rest) != 1 || rest[0].Count != 40 {
		t.Errorf("the rest: %+v, %v", rest, err)
	}
	// A permalink shows its decision first.
	if linked, _, _, err := v.Advices("shop", all[1].After(), 1, now); err != nil || linked[0].Cursor() != all[1].Cursor() {
		t.Errorf("linked: %+v, %v", linked, err)
	}
	if _, _, _, err := v.Advices("shop", "never", 1, now); err == nil || !strings.Contains(err.Error(), "3-17-1") {
		t.Errorf("a cursor that is none: %v", err)
	}
}

func TestMovesThatAreMadeAreNeverPutTogether(t *testing.T) {
	v := New(Config{Pool: "cpu", Resource: "cpu", Round: time.Second, Workloads: []Workload{{Name: "shop", Mode: trimtab.Act}}})
	for n := range 10 {
		v.Observe(at(n, "shop"))
	}
	if all, _, _, err := v.Advices("shop", "", 20, noon.Add(time.Minute)); err != nil || len(all) != 10 {
		t.Errorf("%d entries: %v", len(all), err)
	}
}

func TestRoundsThatAnAlertStartedAreKeptForCharts(t *testing.T) {
	v := New(Config{Pool: "cpu", Resource: "cpu", Round: time.Second, Workloads: []Workload{{Name: "shop", Mode: trimtab.Act}}})
	for n := range 2 * maxAlarms {
		p := at(n, "shop")
		if n%2 == 0 {
			p.Cause = trimtab.Cause{Kind: codes.CauseAlert, Ref: "Slow", Workload: "shop", Text: "group a"}
		}
		v.Observe(p)
		v.Observe(p)
	}
	e, _ := v.Explain("shop", 0, noon.Add(time.Hour))
	if len(e.Alarms) != maxAlarms || !e.Alarms[0].Time.Equal(noon) || !strings.Contains(e.Alarms[0].Text, "Slow") {
		t.Errorf("%d alerts, the first %+v", len(e.Alarms), e.Alarms[0])
	}
}
