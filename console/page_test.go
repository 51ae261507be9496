package console

import (
	"regexp"
	"strings"
	"testing"

	"github.com/trimtab/trimtab"
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
