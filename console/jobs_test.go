package console

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/console/view"
)

// jobBook is a host with one job, which notes what it is asked.
type jobBook struct{ asked []string }

func (b *jobBook) Colocation() *view.Colocation {
	return &view.Colocation{Host: "h", Jobs: []view.Job{{ID: "batch/1", State: "running"}, {ID: "jobs/train", Registered: true}}}
}

func (b *jobBook) Register(body []byte) (string, error) {
	if strings.Contains(string(body), "bad") {
		return "", trimtab.Invalidf("job name %q", "bad")
	}
	return "jobs/train", nil
}

func (b *jobBook) Remove(id string) error { return b.Report(id, nil) }

func (b *jobBook) Report(id string, body []byte) error {
	b.asked = append(b.asked, id)
	switch {
	case id == "disk":
		return errors.New("no space left")
	case id != "batch/1":
		return fmt.Errorf("report: %w", ErrNoJob)
	}
	return nil
}

func TestJobsRegisterAndReportOverHTTP(t *testing.T) {
	book := new(jobBook)
	o := Options{Jobs: func() Jobs { return book }}
	json := []string{"Content-Type", "application/json"}
	for name, h := range map[string]http.Handler{"console": Handler(testView(), o), "agent": Plain(o)} {
		for _, c := range []struct {
			method, path, body string
			head               []string
			want               int
		}{
			{"GET", "/api/v1/jobs", "", nil, 200},
			{"GET", "/api/v1/jobs/batch/1", "", nil, 200},
			{"GET", "/api/v1/jobs/train", "", nil, 200},
			{"GET", "/api/v1/jobs/none", "", nil, 404},
			{"POST", "/api/v1/jobs", `{"name":"train","cgroup":"x"}`, json, 201},
			{"POST", "/api/v1/jobs", `{"name":"bad"}`, json, 400},
			{"POST", "/api/v1/jobs", `{`, json, 400},
			{"POST", "/api/v1/jobs", `{}`, []string{"Content-Type", "text/plain"}, 415},
			{"POST", "/api/v1/jobs", `{"name":"` + strings.Repeat("x", maxJobBody) + `"}`, json, 413},
			{"POST", "/api/v1/jobs", `{}`, append(json, "Host", "evil.example"), 403},
			{"POST", "/api/v1/jobs", `{}`, append(json, "Origin", "http://evil.example"), 403},
			{"POST", "/api/v1/jobs/batch/1/progress", `{"done":0.4}`, json, 204},
			{"POST", "/api/v1/jobs/batch%2F1/progress", `{"done":0.4}`, json, 204},
			{"POST", "/api/v1/jobs/none/progress", `{"done":0.4}`, json, 404},
			{"POST", "/api/v1/jobs/disk/progress", `{"done":0.4}`, json, 503},
			{"POST", "/api/v1/jobs/batch/1", `{"done":0.4}`, json, 404},
			{"DELETE", "/api/v1/jobs/batch/1", "", nil, 204},
			{"DELETE", "/api/v1/jobs/none", "", nil, 404},
			{"PUT", "/api/v1/jobs/none", "", nil, 405},
		} {
			if code, body, _ := request(t, h, c.method, c.path, c.body, c.head...); code != c.want {
				t.Errorf("%s: %s %s %.30s %v: %d, want %d: %s", name, c.method, c.path, c.body, c.head, code, c.want, body)
			}
		}
	}
}

func TestAProcessWithoutJobsSaysWhereTheyAre(t *testing.T) {
	for _, o := range []Options{{}, {Jobs: func() Jobs { return nil }}} {
		if code, body, _ := request(t, Plain(o), "GET", "/api/v1/jobs", ""); code != 501 || !strings.Contains(body, "agent of each host") {
			t.Error(code, body)
		}
	}
}

func TestThePageOfJobsShowsThemAndIsOnlyWhereThereAreSome(t *testing.T) {
	book := new(jobBook)
	h := Handler(testView(), Options{Jobs: func() Jobs { return book }})
	code, body, _ := request(t, h, "GET", "/jobs", "")
	if code != 200 || !strings.Contains(body, "batch/1") || !strings.Contains(body, `<a href="/jobs" aria-current="page">`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body, _ := request(t, Handler(testView(), Options{}), "GET", "/jobs", ""); code != 404 || strings.Contains(body, `href="/jobs"`) {
		t.Errorf("%d %s", code, body)
	}
}

// aWord is what the agent of a host says of its jobs.
func aWord(host, verb string) *colocation.Colocation {
	return &colocation.Colocation{Host: host, Pool: colocation.JobsPool("cpu"), Policy: "rhythm", Mode: trimtab.Act, Time: time.Now(), Running: 1,
		Last: &colocation.HostDecision{Time: time.Now(), Verb: verb, Why: "because of " + host}, Jobs: []colocation.Job{{ID: "batch/" + host, State: "running"}},
		Services: []colocation.ServiceHere{{Workload: "web"}}}
}

func TestAConsoleOfAFleetShowsTheJobsOfEveryHost(t *testing.T) {
	v := view.New(view.Config{Pool: "cpu"})
	h := Handler(v, Options{})
	v.Observe(aWord("h1", "StopBE"))
	if code, body, _ := request(t, h, "GET", "/jobs", ""); code != 200 || !strings.Contains(body, "batch/h1") || strings.Contains(body, `id="fleet"`) {
		t.Errorf("the only host: %d %s", code, body)
	}
	v.Observe(aWord("h/2", "AllowBEGrowth"))
	for path, wants := range map[string][]string{
		"/jobs":                           {"StopBE", "because of h1", "AllowBEGrowth", `href="/jobs?host=h%2F2"`, `<a href="/jobs" aria-current="page">`},
		"/jobs?host=h%2F2":                {"batch/h/2", `href="/jobs?host=h1"`},
		"/api/v1/colocation":              {`"host":"h1"`, `"host":"h/2"`, `"running":2`},
		"/api/v1/colocation?job=batch/h1": {`"host":"h1"`, `"running":1`},
		"/api/v1/colocation?service=web":  {`"running":2`},
		"/api/v1/colocation?service=none": {`"hosts":[]`},
		"/api/v1/colocation/h%2F2":        {`"batch/h/2"`, `"heard_s"`, `"decisions":[]`},
	} {
		code, body, _ := request(t, h, "GET", path, "")
		for _, want := range wants {
			if code != 200 || !strings.Contains(body, want) {
				t.Errorf("%s: %d, no %s in %s", path, code, want, body)
			}
		}
	}
	for _, path := range []string{"/jobs?host=none", "/api/v1/colocation/none"} {
		if code, body, _ := request(t, h, "GET", path, ""); code != 404 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

func TestAPausedHostSaysSo(t *testing.T) {
	v := view.New(view.Config{Pool: "cpu"})
	c := aWord("h1", "AllowBEGrowth")
	c.Paused = true
	v.Observe(c)
	if code, body, _ := request(t, Handler(v, Options{}), "GET", "/jobs", ""); code != 200 || !strings.Contains(body, "trimtab resume") {
		t.Errorf("%d %s", code, body)
	}
}
