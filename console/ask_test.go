package console

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

func TestACursorThatIsNoneIsRefused(t *testing.T) {
	v := view.New(view.Config{})
	v.Observe(plan(1, 2))
	h := Handler(v, Options{})
	for _, bad := range []string{"x", "1", "1-2", "1-2-3-4", "-1-2-3", "1-2-3x", "%00", "99999999999999999999-1-1"} {
		if code, body, _ := request(t, h, "GET", "/api/v1/workloads/shop/decisions?before="+bad, ""); code != 400 {
			t.Errorf("%s: %d %s", bad, code, body)
		}
	}
	for _, query := range []string{"limit=0", "limit=-1", "limit=x"} {
		if code, body, _ := request(t, h, "GET", "/api/v1/workloads/shop/decisions?"+query, ""); code != 400 {
			t.Errorf("%s: %d %s", query, code, body)
		}
	}
	if code, _, _ := request(t, h, "GET", "/api/v1/workloads/nobody/decisions", ""); code != 404 {
		t.Error(code)
	}
}

func TestADecisionIsAnsweredWithItsReasonAndEffect(t *testing.T) {
	v := testView()
	v.Observe(plan(1, 1.5))
	_, body, _ := request(t, Handler(v, Options{}), "GET", "/api/v1/workloads/shop/decisions?limit=1", "")
	var d view.Decisions
	if err := json.Unmarshal([]byte(body), &d); err != nil || len(d.Decisions) != 1 {
		t.Fatal(err, body)
	}
	why := d.Decisions[0].Action.Why
	if len(why.Inputs) != 1 || len(why.Alternatives) != 1 || why.Binding.Kind != "step" || d.Decisions[0].Effect == nil {
		t.Errorf("%+v", d.Decisions[0])
	}
	// The list of workloads is drawn often: it goes without.
	if s := v.Status(noon); s.Workloads[0].Decision.Action.Why.Inputs != nil || s.Workloads[0].Decision.Action.Why.Binding.Kind != "step" {
		t.Errorf("%+v", s.Workloads[0].Decision)
	}
}

func TestWhatWasNotMeasuredIsNullInTheHistory(t *testing.T) {
	v := view.New(view.Config{Round: time.Second})
	bad, now := .1, time.Now()
	v.Observe(&trimtab.Estimate{Workload: "shop", Time: now.Add(-2 * time.Second)})
	v.Observe(&trimtab.Estimate{Workload: "shop", Time: now.Add(-time.Second), Performance: &bad})
	h := Handler(v, Options{})
	_, body, _ := request(t, h, "GET", "/api/v1/workloads/shop/history?since=1h", "")
	for _, want := range []string{`"allocation":[null,null]`, `"performance":[null,0.1]`, `"load":[null,null]`} {
		if !strings.Contains(body, want) {
			t.Errorf("no %s in %s", want, body)
		}
	}
	for _, bad := range []string{"yesterday", "-5m", "1e99", "NaN"} {
		if code, body, _ := request(t, h, "GET", "/api/v1/workloads/shop/history?since="+bad, ""); code != 400 {
			t.Errorf("since=%s: %d %s", bad, code, body)
		}
	}
}

func TestObservationsAreTheReportsThatHaveBoth(t *testing.T) {
	v := view.New(view.Config{Round: time.Second})
	for n := range 3 {
		performance := float64(n) / 10
		e := &trimtab.Estimate{Workload: "shop", Time: noon.Add(time.Duration(n) * time.Second), Performance: &performance}
		if n > 0 {
			a := float64(n)
			e.Allocation = &a
		}
		v.Observe(e)
		v.Observe(e) // again
	}
	_, body, _ := request(t, Handler(v, Options{}), "GET", "/api/v1/workloads/shop?observations=500", "")
	var e view.Explanation
	if err := json.Unmarshal([]byte(body), &e); err != nil || len(e.Observations) != 2 || e.Observations[1].Performance != .2 || e.Observations[1].Allocation != 2 || e.Observations[1].Load != nil {
		t.Errorf("%v %+v", err, e.Observations)
	}
}

func TestAPatchOfWhatHasNoAdviceIsNotThere(t *testing.T) {
	h := Handler(testView(), Options{})
	for name, want := range map[string]int{"batch": 404, "nobody": 404} {
		if code, body, _ := request(t, h, "GET", "/api/v1/workloads/"+name+"/patch", ""); code != want || !strings.Contains(body, "error") {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
}

func TestAPatchIsAnsweredAsJSON(t *testing.T) {
	v := testView()
	v.Observe(plan(1, 1.5))
	_, body, _ := request(t, Handler(v, Options{}), "GET", "/api/v1/workloads/shop/patch", "")
	var p view.Patch
	if err := json.Unmarshal([]byte(body), &p); err != nil || p.Amounts["cpu"].Value != 1.5 || !strings.Contains(p.Systemd, "CPUQuota=150%") {
		t.Errorf("%v %s", err, body)
	}
}

func TestHostsAndTheirKnobsAreAnswered(t *testing.T) {
	v := testView()
	odd := "rack/7 <b>"
	v.Observe(&trimtab.Holding{Pool: "cpu", Host: odd, Time: noon, Capacity: map[string]float64{"cpu": 8}, Targets: []trimtab.KnobState{
		{KnobID: trimtab.KnobID{Pool: "cpu", Host: odd, Workload: "shop", Instance: "2", Resource: "cpu"}, Knob: "cgroup v2 shop@2", Now: trimtab.Units(2), Since: noon, Max: 4}}})
	h := Handler(v, Options{})
	var all view.Hosts
	_, body, _ := request(t, h, "GET", "/api/v1/hosts?limit=1", "")
	if err := json.Unmarshal([]byte(body), &all); err != nil || all.Total != 2 || len(all.Hosts) != 1 || all.Hosts[0].Name != odd || *all.Hosts[0].Resources[0].Free != 6 {
		t.Errorf("%v %s", err, body)
	}
	var one view.HostDetail
	_, body, _ = request(t, h, "GET", address("/api/v1/hosts/", odd)+"?pool=cpu", "")
	if err := json.Unmarshal([]byte(body), &one); err != nil || len(one.Listed) != 1 || one.Listed[0].Instance != "2" || one.Listed[0].Now != trimtab.Units(2) {
		t.Errorf("%v %s", err, body)
	}
	var s view.Status
	_, body, _ = request(t, h, "GET", "/api/v1/status?hosts=5", "")
	if err := json.Unmarshal([]byte(body), &s); err != nil || len(s.Tightest) != 2 {
		t.Errorf("%v %s", err, body)
	}
	for path, want := range map[string]int{"hosts/nobody": 404, "hosts/h?pool=other": 404, "hosts?limit=x": 400, "hosts/h?offset=-1": 400, "hosts/h?offset=9": 200, "status?hosts=-1": 400} {
		if code, body, _ := request(t, h, "GET", "/api/v1/"+path, ""); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}
