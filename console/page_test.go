package console

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/console/view"
)

func TestWhatAPageLoadsIsThereAndMayBeKept(t *testing.T) {
	h := Handler(testView(), Options{})
	_, body, _ := request(t, h, "GET", "/workloads/shop", "")
	loaded := regexp.MustCompile(`(?:src|href)="(/web/[^"]+)"`).FindAllStringSubmatch(body, -1)
	if len(loaded) < 8 {
		t.Fatalf("the page loads %v", loaded)
	}
	for _, m := range loaded {
		code, text, head := request(t, h, "GET", m[1], "")
		if code != 200 || text == "" || !strings.Contains(head.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d, %d bytes, %s", m[1], code, len(text), head.Get("Cache-Control"))
		}
		if strings.HasSuffix(m[1], ".js") && !strings.HasPrefix(head.Get("Content-Type"), "text/javascript") {
			t.Errorf("%s is %s: no module", m[1], head.Get("Content-Type"))
		}
	}
	old := regexp.MustCompile(`/web/[0-9a-f]+/`).ReplaceAllString(loaded[0][1], "/web/0123/")
	if code, _, head := request(t, h, "GET", old, ""); code != 200 || head.Get("Cache-Control") != "no-store" {
		t.Errorf("of another version: %d, %s", code, head.Get("Cache-Control"))
	}
	for _, path := range []string{"layout.html", "nothing.js", "%2e%2e/page.go", "vendor", ""} {
		if code, _, _ := request(t, h, "GET", "/web/x/"+path, ""); code != 404 {
			t.Errorf("%q: %d", path, code)
		}
	}
}

func TestPagesOfWhatIsNotThereSaySo(t *testing.T) {
	h := Handler(testView(), Options{})
	for path, want := range map[string]int{"/workloads/nobody": 404, "/workloads/%3Cb%3Enobody": 404, "/workloads/shop?before=yesterday": 400, "/?offset=-7": 200, "/?offset=x": 200, "/?offset=9999999999": 200, "/nothing": 404} {
		if code, body, _ := request(t, h, "GET", path, ""); code != want || strings.Contains(body, "<b>nobody</b>") != (path == "/workloads/nobody") {
			t.Errorf("%s: %d, want %d\n%s", path, code, want, body)
		}
	}
	// Without a pool, and without anything at all.
	for _, path := range []string{"/", "/pipeline", "/fairness"} {
		if code, body, _ := request(t, Handler(view.New(view.Config{}), Options{}), "GET", path, ""); code != 200 || !strings.Contains(body, "</html>") {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
	}
}

func TestPagesTellWhatIsPending(t *testing.T) {
	v := testView()
	in := trimtab.Units(1)
	v.Observe(&trimtab.Holding{Host: "h", Time: noon, LeaseLeft: 10, Targets: []trimtab.KnobState{{KnobID: trimtab.KnobID{Host: "h", Workload: "shop", Resource: "cpu"},
		Knob: "cgroup v2 shop", Now: trimtab.Units(3.25), Effective: &in, Since: noon, Max: 4}}})
	for path, want := range map[string]string{"/": "3.25 pending", "/workloads/shop": "set to 3.25, not in force yet"} {
		if code, body, _ := request(t, Handler(v, Options{}), "GET", path, ""); code != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d, want %q in\n%s", path, code, want, body)
		}
	}
}

func TestPagesSayWhatIsShedOfWhomAndWhatItWouldTakeNotTo(t *testing.T) {
	v, load, low := testView(), 20., 0.4
	h := Handler(v, Options{})
	if _, body, _ := request(t, h, "GET", "/workloads/shop", ""); !strings.Contains(body, `<div id="shed" data-live hidden>`) || !strings.Contains(body, `id="refused" hidden data-optional>`) {
		t.Error("nothing is shed, and the page says something is")
	}
	now := time.Now()
	v.Observe(&trimtab.Estimate{Workload: "shop", Time: now, Performance: &low, Load: &trimtab.LoadForecast{Now: load, Mean: load, Upper: load}, Refused: map[string]float64{"<b>low": 10, "normal": 2}, Model: "test/1"})
	for path, want := range map[string][]string{
		"/":               {`<small class="note">sheds 12 requests/s, 60% of the load (&lt;b&gt;low 10, normal 2), since `},
		"/workloads/shop": {"<dt>to shed none</dt><dd>not known: no curve was learnt yet", `data-label="Refused, requests/s" class="n">10</td>`, "the gate&#39;s own rule"},
	} {
		_, body, _ := request(t, h, "GET", path, "")
		for _, w := range want {
			if !strings.Contains(body, w) {
				t.Errorf("%s: no %q in\n%s", path, w, body)
			}
		}
	}
}

func TestBarsStayInside(t *testing.T) {
	big, none := 1e300, (*float64)(nil)
	unlimited := trimtab.Unlimited()
	for _, r := range []view.Row{{}, {Utility: &big, Performance: &big, SLOTarget: &big, Allocation: &unlimited, Demand: &big, Target: none}} {
		o := &overview{longest: longest([]view.Row{r})}
		for _, b := range []bar{utilityBar(r), sloBar(r), o.AllocationBar(r)} {
			if b.Fill != "" && b.Fill != "100" && b.Fill != "100.0" && b.Fill != "50.0" {
				t.Errorf("%+v of %+v", b, r)
			}
		}
	}
	if got := along(1, 0); got != "0" {
		t.Error(got)
	}
}

func TestMemoryIsSaidInBytesPeopleRead(t *testing.T) {
	for v, want := range map[float64]string{64 << 20: "64 MiB", 3 << 29: "1.5 GiB", 0: "0 MiB"} {
		if got := sized(v, "memory"); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
	if got := sized(1.5, "cpu"); got != "1.5 cores" {
		t.Error(got)
	}
}

// onHost is one knob of an instance of shop.
func onHost(host, instance string, now float64) trimtab.KnobState {
	return trimtab.KnobState{KnobID: trimtab.KnobID{Pool: "cpu", Host: host, Workload: "shop", Instance: instance, Resource: "cpu"},
		Knob: "cgroup v2 shop@" + instance, Now: trimtab.Units(now), Since: noon, Baseline: trimtab.Units(1), Max: 4}
}

func TestAHostsPageShowsWhatItHasAndGivesAndWhatRunsThere(t *testing.T) {
	v := testView()
	v.Observe(&trimtab.Holding{Pool: "cpu", Host: "rack/1", Time: time.Now(), LeaseLeft: 30, Capacity: map[string]float64{"cpu": 4, "memory": 8 << 30}, Targets: []trimtab.KnobState{onHost("rack/1", "a", 1), onHost("rack/1", "b", 2.5)}})
	over := onHost("full", "", 5)
	over.Problem = "no such <b>cgroup</b>"
	v.Observe(&trimtab.Holding{Pool: "cpu", Host: "full", Time: time.Now(), Capacity: map[string]float64{"cpu": 4}, Targets: []trimtab.KnobState{over}})
	h := Handler(v, Options{})
	for path, words := range map[string][]string{
		"/hosts":                      {">full<", "more is given out than it has of cpu", "−1 core<", "3.5 cores", "of 4 cores", "0.5 cores", "of 8 GiB", "30 s", "/hosts/rack%2F1?pool=cpu", "In trouble", "Least free"},
		"/hosts?q=rack":               {"rack/1", "2<small>of 1 workload"},
		"/hosts?q=nobody":             {"No host matches"},
		"/hosts/rack%2F1?pool=cpu":    {"3.5 cores", "cgroup v2 shop@b", "the slowest instance", "2 instances of 1 workload", "0 to 4", "all can be used"},
		"/hosts/full":                 {"no such &lt;b&gt;cgroup", "1 cannot be used"},
		"/workloads/shop":             {"Instances by host", "2 instances on a host, of which the slowest counts; 3.5 in all", ">rack/1<", "cgroup v2 shop@a", "silent for"},
		"/":                           {"2 instances on a host"},
		"/hosts/rack%2F1?offset=9999": {"3.5 cores"},
	} {
		code, body, _ := request(t, h, "GET", path, "")
		for _, w := range words {
			if code != 200 || !strings.Contains(strings.ToLower(body), strings.ToLower(w)) {
				t.Errorf("%s: %d, no %q", path, code, w)
			}
		}
		if t.Failed() {
			t.Fatalf("%s", body)
		}
	}
	for path, want := range map[string]int{"/hosts/nobody": 404, "/hosts/full?pool=other": 404, "/hosts?offset=-1": 200, "/hosts?q=" + strings.Repeat("x", 301): 400} {
		if code, body, _ := request(t, h, "GET", path, ""); code != want {
			t.Errorf("%s: %d\n%s", path, code, body)
		}
	}
	if code, body, _ := request(t, Handler(view.New(view.Config{}), Options{}), "GET", "/hosts", ""); code != 200 || !strings.Contains(body, "No host has reported a knob yet") {
		t.Errorf("%d %s", code, body)
	}
}

func TestADecisionOnSeveralInstancesIsShownAsOneWithWhatCameOfEach(t *testing.T) {
	v := testView()
	p := plan(1, 2)
	for _, host := range []string{"h1", "h2"} {
		a := p.Actions[0]
		a.Host, a.Expect, a.Set = host, trimtab.Units(.5), trimtab.Units(.75)
		p.Actions = append(p.Actions, a)
	}
	p.Actions = p.Actions[1:]
	p.Actions[1].Why.Binding = trimtab.Binding{Kind: "host", Detail: "h2 is full"}
	v.Observe(p)
	v.Observe(&trimtab.Outcome{Pool: "cpu", Host: "h2", Epoch: 2, Sequence: 1, Step: 1, Time: noon, Results: []trimtab.Result{{KnobID: p.Actions[1].KnobID, Status: trimtab.Refused, Reason: "full"}}})
	_, body, _ := request(t, Handler(v, Options{}), "GET", "/workloads/shop", "")
	for _, w := range []string{"1 → 1.5", "2 instances on 2 hosts, 0.5 -&gt; 0.75 each", "refused: full", "no answer yet", "host: h2 is full"} {
		if !strings.Contains(body, w) {
			t.Errorf("no %q in\n%s", w, body)
		}
	}
}

func TestAWorkloadsPageDrawsItsCallGraph(t *testing.T) {
	v := testView()
	hostile := `<script>"&'</title></svg>`
	c := &colocation.Contributions{Workload: "shop", Time: time.Now(), Levels: 3,
		Servpods: []colocation.Servpod{{Component: hostile, Contribution: .03}, {Component: "web", Contribution: .01}},
		Growth:   &colocation.TailGrowth{Changed: true, Quantile: .99, Before: .1, After: .2, Parts: []colocation.GrowthPart{{Component: hostile, Share: .9}}},
		Calls:    []colocation.Call{{From: "web", To: hostile, Rate: 12}}}
	v.Observe(c)
	_, body, _ := request(t, Handler(v, Options{}), "GET", "/workloads/shop", "")
	const escaped = "&lt;script&gt;&#34;&amp;&#39;&lt;/title&gt;&lt;/svg&gt;"
	for _, w := range []string{`class="calls" role="img" aria-label="Call graph of 2 components; of all contributions: ` + escaped + ` 75%, web 25%; the tail grew in ` + escaped + `"`,
		`class="node heat-8 grew"`, `class="node heat-3"`, ">75%, 90% of the growth<", ">25%<", "calls " + escaped + ": 12 calls/s", "Outlined is where the tail grew: " + escaped} {
		if !strings.Contains(body, w) {
			t.Errorf("no %q in\n%s", w, body)
		}
	}
	if strings.Contains(body, hostile) || strings.Contains(body, "<script>") {
		t.Errorf("not escaped:\n%s", body)
	}
	c.Calls = nil
	v.Observe(c)
	if _, body, _ = request(t, Handler(v, Options{}), "GET", "/workloads/shop", ""); strings.Contains(body, `class="calls"`) || !strings.Contains(body, "Of all contributions") {
		t.Errorf("without calls there is no graph, and a table:\n%s", body)
	}
}
