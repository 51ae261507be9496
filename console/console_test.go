package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/console/view"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func testView() *view.Model {
	v := view.New(view.Config{Pool: "cpu", Resource: "cpu", Capacity: 8, Objective: "njc", Round: time.Second, Workloads: []view.Workload{
		{Name: "shop", Mode: trimtab.Act, SLO: "95% under 200ms", Target: .95, Share: true, Utility: func(p float64) float64 { return min(1, p/.95) }},
		{Name: "batch", Mode: trimtab.Off},
	}})
	bad, good := 0.4, 0.95
	v.Observe(&trimtab.Estimate{Workload: "shop", Time: noon, Performance: &bad, Model: "bintree/1", Reports: 9,
		Curve: &trimtab.Curve{Level: .9, Knots: []trimtab.Knot{{Allocation: 1}}}, Inputs: []trimtab.Input{{Name: "load", Value: 4, Age: 2}}})
	v.Observe(&trimtab.Estimate{Workload: "<script>found</script>", Time: noon, Performance: &good})
	v.Observe(&trimtab.Holding{Host: "h", Time: noon, LeaseLeft: 10, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Host: "h", Workload: "shop", Resource: "cpu"}, Knob: "cgroup v2 shop", Now: trimtab.Units(1), Max: 4}}})
	return v
}

func plan(sequence uint64, set float64) *trimtab.Plan {
	target := 3.0
	return &trimtab.Plan{Pool: "cpu", Epoch: 2, Sequence: sequence, Step: 1, Time: noon.Add(time.Duration(sequence) * time.Second), Lease: 10, Cause: trimtab.Cause{Kind: codes.CauseTick}, Capacity: 8,
		Actions: []trimtab.Action{{KnobID: trimtab.KnobID{Pool: "cpu", Host: "h", Workload: "shop", Resource: "cpu"}, Expect: trimtab.Units(1), Set: trimtab.Units(set), Mode: trimtab.Act,
			Why: trimtab.Reason{Summary: "raise shop to meet its SLO", Target: &target, Binding: trimtab.Binding{Kind: "step"}, Bounds: &trimtab.Band{Lower: .5, Mean: .7, Upper: .9},
				Inputs: []trimtab.Input{{Name: "load", Value: 5, Age: 1}}, Alternatives: []trimtab.Alternative{{Set: 1, Objective: .4, Why: "stay"}}}}}}
}

func request(t *testing.T, h http.Handler, method, path, body string, set ...string) (int, string, http.Header) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Host = "127.0.0.1:9600"
	for i := 0; i < len(set); i += 2 {
		if set[i] == "Host" {
			r.Host = set[i+1]
		}
		r.Header.Set(set[i], set[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	b, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return w.Code, string(b), w.Header()
}

func TestLabelsWithHTMLAreTextOnThePages(t *testing.T) {
	v := testView()
	p := plan(1, 2)
	p.Actions[0].Why.Summary = "<b onclick=x>"
	v.Observe(p)
	h := Handler(v, Options{})
	for _, path := range []string{"/", "/workloads/shop", "/workloads/%3Cscript%3Efound%3C%2Fscript%3E"} {
		code, body, head := request(t, h, "GET", path, "")
		if code != 200 || strings.Contains(body, "<script>") || strings.Contains(body, "<b onclick") {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
		if !strings.Contains(head.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: no content security policy", path)
		}
	}
}

func TestForeignHostsAndOriginsAreRefused(t *testing.T) {
	sent := 0
	h := Handler(testView(), Options{Hosts: []string{"tab.example"}, Send: func(context.Context, *trimtab.Command) error { sent++; return nil }})
	if code, _, _ := request(t, h, "GET", "/api/v1/status", "", "Host", "evil.example"); code != 403 {
		t.Error("foreign host", code)
	}
	if code, _, _ := request(t, h, "GET", "/api/v1/status", "", "Host", "tab.example:9600"); code != 200 {
		t.Error("allowed host", code)
	}
	const body = `{"verb":"pause"}`
	for _, c := range []struct {
		want int
		head []string
	}{
		{202, []string{"Content-Type", "application/json"}},
		{415, []string{"Content-Type", "text/plain"}},
		{403, []string{"Content-Type", "application/json", "Origin", "http://evil.example"}},
		{403, []string{"Content-Type", "application/json", "Sec-Fetch-Site", "cross-site"}},
	} {
		if code, got, _ := request(t, h, "POST", "/api/v1/commands", body, c.head...); code != c.want {
			t.Errorf("%v: %d, want %d: %s", c.head, code, c.want, got)
		}
	}
	if sent != 1 {
		t.Errorf("%d commands were sent", sent)
	}
}

func TestACommandThatMakesNoSenseIsAnswered(t *testing.T) {
	h := Handler(testView(), Options{Send: func(context.Context, *trimtab.Command) error { return errors.New("bus is down") }})
	for body, want := range map[string]int{
		`{"verb":"explode"}`: 400, `{`: 400, `{"verb":"apply","plan":"x"}`: 400, `{"verb":"pause"}`: 503,
		`{"verb":"` + strings.Repeat("x", maxBody) + `"}`: 413,
	} {
		if code, got, _ := request(t, h, "POST", "/api/v1/commands", body, "Content-Type", "application/json"); code != want {
			t.Errorf("%.30s: %d, want %d: %s", body, code, want, got)
		}
	}
	if code, _, _ := request(t, h, "DELETE", "/api/v1/status", ""); code != 405 {
		t.Error("DELETE", code)
	}
}

func TestReadyGivesTheReasonAndABadReloadKeepsTheOld(t *testing.T) {
	bad := map[string]string{"planner": "not the leader"}
	h := Handler(testView(), Options{Ready: func() map[string]string { return bad }, Reload: func(context.Context) error { return fmt.Errorf("a.yaml:1:2: no") }})
	if code, body, _ := request(t, h, "GET", "/-/ready", ""); code != 503 || !strings.Contains(body, "not the leader") {
		t.Error(code, body)
	}
	clear(bad)
	if code, _, _ := request(t, h, "GET", "/-/ready", ""); code != 200 {
		t.Error(code)
	}
	if code, body, _ := request(t, h, "POST", "/-/reload", ""); code != 400 || !strings.Contains(body, "the old configuration stays") {
		t.Error(code, body)
	}
}

func TestReadyHasALineForEachPartThatDoesNotWorkWithWhatSinceWhenAndWhatToDo(t *testing.T) {
	h := Handler(testView(), Options{
		Ready: func() map[string]string {
			return map[string]string{"planner": "every plan was refused; stop one of the two", "actuator": "write journal:\nno space left on device"}
		},
		Stages: func() []view.StageState {
			return []view.StageState{{Name: "planner", Since: noon}, {Name: "path-0", Ready: true, Since: noon}}
		},
	})
	code, body, head := request(t, h, "GET", "/-/ready", "")
	const want = "actuator: write journal:; no space left on device\n" +
		"planner: every plan was refused; stop one of the two (not ready since 2026-01-02 12:00:00 UTC)\n"
	if code != 503 || body != want || !strings.HasPrefix(head.Get("Content-Type"), "text/plain") {
		t.Errorf("%d %s\n%s, want\n%s", code, head.Get("Content-Type"), body, want)
	}
}

func TestDiffAndPlanAnswerAsJSON(t *testing.T) {
	v := testView()
	h := Handler(v, Options{})
	if code, _, _ := request(t, h, "GET", "/api/v1/plan", ""); code != 404 {
		t.Error("plan before any", code)
	}
	v.Observe(plan(1, 2))
	_, body, _ := request(t, h, "GET", "/api/v1/diff", "")
	var d []view.Difference
	if err := json.Unmarshal([]byte(body), &d); err != nil || len(d) != 1 || *d[0].Target != 3 || d[0].Now.Value != 1 {
		t.Errorf("%v %s", err, body)
	}
	if code, _, _ := request(t, h, "GET", "/api/v1/plan", ""); code != 200 {
		t.Error("plan", code)
	}
}
