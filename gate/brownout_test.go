package gate

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// thrifty is a service that answers when it is told to, with the brownout header that it got.
type thrifty struct{ *blocked }

func (s thrifty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.blocked.ServeHTTP(w, r)
	fmt.Fprintf(w, "brownout %q", r.Header["X-Brownout"])
}

func TestWhileRequestsOfAClassAreRefusedTheServiceIsAskedForCheaperAnswers(t *testing.T) {
	for name, http2 := range map[string]bool{"directly": false, "by the proxy": true} {
		t.Run(name, func(t *testing.T) {
			service := thrifty{newBlocked()}
			g := run(t, service, func(c *Config) {
				c.Within, c.HTTP2 = 200*time.Millisecond, http2
				c.Class, c.ClassPath = "x-priority=critical,normal,low", "/feed=low"
				c.BrownoutHeader, c.BrownoutClasses = "x-brownout: please", "low"
			})
			control(t, g, http.MethodPut, `{"max":1,"lease_ms":60000}`)
			first := make(chan string, 1)
			go func() { _, body := get(t, g.url("/feed"), "x-brownout", "0"); first <- body }()
			<-service.come
			if resp, _ := get(t, g.url("/feed")); resp.StatusCode != http.StatusServiceUnavailable {
				t.Fatal(resp.Status)
			}
			close(service.go_)
			if body := <-first; body != "brownout []" {
				t.Errorf("the first: %s: what a client sends is none of the gate's", body)
			}
			for body := ""; body != `brownout ["please"]`; { // the next tick comes
				_, body = get(t, g.url("/feed"))
			}
			if _, body := get(t, g.url("/checkout")); body != "brownout []" {
				t.Errorf("another class: %s", body)
			}
			if _, d := control(t, g, http.MethodGet, ""); d.Classes[2].Brown != 1 || d.Classes[1].Brown != 0 {
				t.Errorf("%+v", d.Classes)
			}
			_, metrics := get(t, "http://"+g.AdminAddress()+"/metrics")
			for _, line := range []string{`trimtab_gate_brownout_total{class="low",workload="shop"} 1`, `trimtab_gate_brownout_total{class="normal",workload="shop"} 0`,
				`trimtab_gate_refused_total{class="low",reason="limit",workload="shop"} 1`, `trimtab_gate_refused_total{class="low",reason="rate",workload="shop"} 0`} {
				if !strings.Contains(metrics, "\n"+line+"\n") {
					t.Errorf("no %s in %s", line, metrics)
				}
			}
		})
	}
}

func TestWithoutClassesABrownoutIsForAllButTheMostImportant(t *testing.T) {
	for names, want := range map[string]string{"": "[true]", "a,b": "[false true]", "a,b,c": "[false true true]"} {
		header := ""
		if names != "" {
			header = "x-priority=" + names
		}
		c, _ := parseClasses(header, "")
		if b, err := parseBrownout("x-brownout: 1", "", &c); err != nil || fmt.Sprint(b.classes) != want || b.name != "X-Brownout" || b.value != "1" {
			t.Errorf("%q: %+v, %v", names, b, err)
		}
	}
}

func TestAWrongBrownoutSaysWhatIsWrong(t *testing.T) {
	c, _ := parseClasses("x-priority=critical,low", "")
	for text, want := range map[[2]string]string{
		{"", "low"}:               "no --brownout-header",
		{"x-brownout", ""}:        "no header that can be added",
		{": 1", ""}:               "no header",
		{"x y: 1", ""}:            "no header",
		{"x: a\r\nb: c", ""}:      "no header",
		{"Content-Length: 0", ""}: "no header",
		{"x: 1", "medium"}:        "is not one of the classes critical, low",
	} {
		if _, err := parseBrownout(text[0], text[1], &c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q in it", text, err, want)
		}
	}
}
