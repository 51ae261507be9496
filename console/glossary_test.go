package console

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
)

func TestTermsOnPagesLeadToTheirMeaning(t *testing.T) {
	v := testView()
	v.Observe(&trimtab.Holding{Pool: "cpu", Host: "rack/1", Time: time.Now(), LeaseLeft: 30, Capacity: map[string]float64{"cpu": 4}, Targets: []trimtab.KnobState{onHost("rack/1", "a", 1)}})
	h := Handler(v, Options{})
	_, page, _ := request(t, h, "GET", "/glossary", "")
	ids := map[string]bool{}
	for _, m := range regexp.MustCompile(`<dt id="([^"]*)">`).FindAllStringSubmatch(page, -1) {
		if ids[m[1]] {
			t.Errorf("two terms at #%s", m[1])
		}
		ids[m[1]] = true
	}
	if len(ids) < 60 || !ids["limited-by"] || !ids["exploration"] {
		t.Errorf("%d terms", len(ids))
	}
	if i := strings.Index(page, "]("); i >= 0 {
		t.Errorf("a link of Markdown: %s", page[max(0, i-40):i+40])
	}
	links := regexp.MustCompile(`href="/glossary#([^"]*)" title="[^"]+"`)
	for path, least := range map[string]int{"/": 4, "/workloads/shop": 8, "/plan": 0, "/pipeline": 2, "/hosts": 0, "/hosts/rack%2F1": 1} {
		code, body, _ := request(t, h, "GET", path, "")
		found := links.FindAllStringSubmatch(body, -1)
		if code != 200 || len(found) < least {
			t.Errorf("%s: %d, %d links to the glossary, want %d", path, code, len(found), least)
		}
		for _, m := range found {
			if !ids[m[1]] {
				t.Errorf("%s: no term #%s", path, m[1])
			}
		}
	}
}

func TestThePageOfADiscoveredServiceDraftsItsConfiguration(t *testing.T) {
	v := testView()
	upper, from := trimtab.Seconds(.0334), time.Now().Add(-time.Minute)
	v.Observe(&trimtab.Estimate{Workload: "found", Time: time.Now(), Latency: map[string]trimtab.Seconds{"p95": .03, "p99": .09},
		Observed: &trimtab.Observed{From: from, To: time.Now(), Requests: 600, Load: 10, LoadMost: 20, P95: .03, P95Upper: &upper}})
	h := Handler(v, Options{})
	code, body, _ := request(t, h, "GET", "/workloads/found", "")
	for _, want := range []string{"To let trimtab advise on it", "- name: found", "slo: {latency: 75ms, fraction: 0.95}", "saw 600 requests in 60s, at 10 requests/s on average and 20 at most", "mode: off"} {
		if code != 200 || !strings.Contains(body, want) {
			t.Errorf("%d, no %q", code, want)
		}
	}
	if _, body, _ := request(t, h, "GET", "/workloads/shop", ""); strings.Contains(body, "To let trimtab advise on it") {
		t.Error("a configured workload has a draft")
	}
}

// TestEveryTermOfATemplateIsInTheGlossary also reads what no page of a test shows.
func TestEveryTermOfATemplateIsInTheGlossary(t *testing.T) {
	s := &site{glossary: glossary()}
	files, err := assets.ReadDir("web")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".html") {
			continue
		}
		b, err := assets.ReadFile("web/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`\{\{term "([^"]+)"(?: "([^"]+)")?\}\}`).FindAllSubmatch(b, -1) {
			n++
			of := []string{}
			if len(m[2]) > 0 {
				of = append(of, string(m[2]))
			}
			if _, err := s.term(string(m[1]), of...); err != nil {
				t.Errorf("%s: %v", f.Name(), err)
			}
		}
	}
	if n < 30 {
		t.Errorf("%d terms", n)
	}
}
