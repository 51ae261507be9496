package console

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/speculation"
)

func batchState(name, state string) *speculation.JobState {
	p := .25
	return &speculation.JobState{Pool: "cpu", Name: name, Time: time.Now(), Submitted: time.Now(), By: "ann", State: state, Running: 1, Failed: 1,
		Tasks: []speculation.TaskState{
			{Name: "t1", State: speculation.StateRunning, Host: "h1", Attempts: 1, Last: &speculation.Attempt{AttemptID: speculation.AttemptID{Job: name, Task: "t1", Attempt: 1}, State: speculation.AttemptRunning, Progress: &p}},
			{Name: "t2", State: speculation.StateFailed, Attempts: 3, Why: "exited with 1", Last: &speculation.Attempt{AttemptID: speculation.AttemptID{Job: name, Task: "t2", Attempt: 3}, State: speculation.AttemptEnded, LastLines: []string{"cannot open <x>"}}},
		}}
}

// batchConsole has a job that runs, one that is over, and two hosts.
func batchConsole(sent *[]*speculation.JobRequest) (*view.Model, Options) {
	v := view.New(view.Config{Pool: "cpu", Workloads: []view.Workload{{Name: "shop"}}})
	v.Observe(batchState("night", speculation.StateRunning))
	v.Observe(batchState("old", speculation.StateDone))
	v.Observe(&speculation.Machine{Host: "h1", Pool: "cpu", Time: time.Now(), Life: 1, Report: 1, Running: 3, Signals: []speculation.ServiceSignal{
		{Workload: "shop", Signal: "run-queue delay", Value: 1.5, Model: "phases", Typical: 1.01, Boundary: 1.2, Anomaly: true, Distance: new(.31), Windows: 600, FalseAlarms: 1, Judged: 512},
		{Workload: "shop", Instance: "2", Signal: "cpi", Value: 1.1, Model: "unknown", Windows: 2},
		{Workload: "other", Signal: "throttled", Value: 1, Model: "gamma", Typical: 1, Boundary: 1.05, Judged: 9}}})
	v.Observe(&speculation.Machine{Host: "h2", Pool: "cpu", Time: time.Now(), Life: 1, Report: 1, Blocked: "cpu is over 0.8"})
	return v, Options{Request: func(_ context.Context, r *speculation.JobRequest) error {
		*sent = append(*sent, r)
		return nil
	}}
}

func TestThePageOfSpeculativeJobsShowsJobsHostsAndTasks(t *testing.T) {
	v, o := batchConsole(new([]*speculation.JobRequest))
	h := Handler(v, o)
	for path, wants := range map[string][]string{
		"/batch":                 {`href="/batch?job=night"`, "1 host would take tasks", "3 tasks run", "no: cpu is over 0.8", `<a href="/batch" aria-current="page">`, `data-label="Running"`},
		"/batch?job=night":       {"exited with 1", "cannot open &lt;x&gt;", "25%", "by ann"},
		"/api/v1/batch":          {`"name":"night"`, `"tasks_omitted":2`, `"host":"h2"`, `"blocked":"cpu is over 0.8"`},
		"/api/v1/batch/night":    {`"name":"t2"`, `"last_lines":["cannot open`},
		"/api/v1/batch/night/t1": {`"host":"h1"`},
		"/":                      {`href="/batch"`},
		"/workloads/shop": {"Beside speculative tasks", "run-queue delay", "1.5, anomalous: over 1.2 (typical 1.01)", "by phases (KS 0.31); false alarms 0.2% of 512 windows alone",
			"<small>2</small>", "1.1, too little is known of it without tasks", "not judged"},
		"/api/v1/workloads/shop": {`"signals":[{"host":"h1","workload":"shop","signal":"run-queue delay","value":1.5`, `"false_alarms":1,"judged":512`},
	} {
		code, body, _ := request(t, h, "GET", path, "")
		for _, want := range wants {
			if code != 200 || !strings.Contains(body, want) {
				t.Errorf("%s: %d, no %s in %s", path, code, want, body)
			}
		}
	}
	if _, body, _ := request(t, h, "GET", "/workloads/shop", ""); strings.Contains(body, "throttled") {
		t.Error("the page of a service has the signals of another")
	}
	for _, path := range []string{"/batch?job=none", "/api/v1/batch/none", "/api/v1/batch/night/none"} {
		if code, body, _ := request(t, h, "GET", path, ""); code != 404 {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	v.Observe(&speculation.JobState{Pool: "cpu", Name: "old", Time: time.Now(), State: speculation.StateForgotten})
	if code, body, _ := request(t, h, "GET", "/api/v1/batch/old", ""); code != 404 {
		t.Errorf("a job that was forgotten: %d %s", code, body)
	}
	if _, body, _ := request(t, Handler(testView(), Options{}), "GET", "/", ""); strings.Contains(body, `href="/batch"`) {
		t.Error("a console that heard of none has a page of them")
	}
}

func TestTheLastLinesOfATaskAreThoseThatItsHostTold(t *testing.T) {
	v, o := batchConsole(new([]*speculation.JobRequest))
	h := Handler(v, o)
	tell := func(attempt int, lines ...string) {
		v.Observe(&speculation.Machine{Host: "h1", Pool: "cpu", Time: time.Now(), Life: 1, Report: 2, Attempts: []speculation.Attempt{
			{AttemptID: speculation.AttemptID{Job: "night", Task: "t1", Attempt: attempt}, State: speculation.AttemptRunning, Output: 7, LastLines: lines}}})
	}
	says := func(want string) {
		t.Helper()
		if code, body, _ := request(t, h, "GET", "/api/v1/batch/night/t1", ""); code != 200 || !strings.Contains(body, want) {
			t.Errorf("%d, no %s in %s", code, want, body)
		}
	}
	tell(1, "first")
	says(`"last_lines":["first"]`)
	tell(1) // nothing new was printed
	says(`"last_lines":["first"]`)
	says(`"progress":0.25`)
	tell(2, "again")
	tell(1, "late")
	says(`"last_lines":["again"]`)
}

func TestRequestsOnJobsAreGivenToTheBusIfTheyCanBe(t *testing.T) {
	job := `{"job":{"name":"%","retries":1,"tasks":[{"name":"t","command":["/bin/true"],"cores":1,"memory":1048576}]}}`
	for _, c := range []struct {
		body string
		code int
		says string
	}{
		{strings.Replace(job, "%", "new", 1), 202, `"verb":"submit"`},
		{strings.Replace(job, "%", "old", 1), 202, `"verb":"submit"`},
		{strings.Replace(job, "%", "night", 1), 409, "is running"},
		{strings.Replace(job, "%", "../x", 1), 400, "want 1 to 63 letters"},
		{`{"job":{"name":"new","tasks":[{"name":"t","command":["/bin/true"],"cores":-1,"memory":1}]}}`, 400, "cores -1"},
		{`{"verb":"cancel","job":{"name":"night"}}`, 202, `"verb":"cancel"`},
		{`{"verb":"cancel","job":{"name":"old"}}`, 409, "it is done"},
		{`{"verb":"cancel","job":{"name":"none"}}`, 404, "no job manager told"},
		{`{"verb":"grant","job":{"name":"night"},"task":"t1","host":"h1"}`, 202, `"host":"h1"`},
		{`{"verb":"grant","job":{"name":"night"},"task":"t2","host":"h1"}`, 409, "it is failed"},
		{`{"verb":"grant","job":{"name":"night"},"task":"t9","host":"h1"}`, 404, "has none of that name"},
		{`{"verb":"grant","job":{"name":"night"},"task":"t1"}`, 400, "host"},
		{`{"verb":"delete","job":{"name":"night"}}`, 400, "delete"},
		{`{`, 400, "unexpected end"},
	} {
		var sent []*speculation.JobRequest
		v, o := batchConsole(&sent)
		code, body, _ := request(t, Handler(v, o), "POST", "/api/v1/batch", c.body, "Content-Type", "application/json")
		if code != c.code || !strings.Contains(body, c.says) || (code == 202) != (len(sent) == 1) {
			t.Errorf("%s: %d %s, %d sent; want %d with %q", c.body, code, body, len(sent), c.code, c.says)
		}
		for _, r := range sent {
			if r.Pool != "cpu" || r.ID == "" || r.Time.IsZero() || r.Validate() != nil {
				t.Errorf("sent %+v", r)
			}
		}
		if code == 202 {
			var r speculation.JobRequest
			if err := json.Unmarshal([]byte(body), &r); err != nil || r.ID == "" {
				t.Errorf("%s: %v", body, err)
			}
		}
	}
}
