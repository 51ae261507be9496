package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/console"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/speculation"
)

// jobConsole is a real console whose bus is a job manager that takes everything at once.
func jobConsole(t *testing.T) string {
	t.Helper()
	v := view.New(view.Config{Pool: "cpu"})
	v.Observe(&speculation.Machine{Host: "h1", Pool: "cpu", Time: time.Now(), Life: 1, Report: 1, Blocked: "cpu is over 0.8"})
	take := func(_ context.Context, r *speculation.JobRequest) error {
		s := &speculation.JobState{Pool: "cpu", Name: r.Job.Name, Time: time.Now(), Submitted: time.Now(), By: "ann", State: speculation.StateRunning, Running: 1}
		if r.Verb == speculation.CancelJob {
			s.State = speculation.StateCancelled
		}
		p := .5
		s.Tasks = []speculation.TaskState{{Name: "t", State: speculation.StateRunning, Host: "h1", Attempts: 1, Last: &speculation.Attempt{
			AttemptID: speculation.AttemptID{Job: s.Name, Task: "t", Attempt: 1}, State: speculation.AttemptRunning, Progress: &p, Output: 6, LastLines: []string{"hello"}}}}
		v.Observe(s)
		return nil
	}
	server := httptest.NewServer(console.Handler(v, console.Options{Request: take}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestJobsAreSubmittedListedPrintedAndCancelled(t *testing.T) {
	url, file := jobConsole(t), filepath.Join(t.TempDir(), "night.yaml")
	if err := os.WriteFile(file, []byte("name: night\ntasks: [{name: t, command: [/bin/true], cpu: 1, memory: 1MiB}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	if err := os.WriteFile(bad, []byte("name: night\ntask: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"job list", exitDone, []string{"no jobs: trimtab job submit", "0 of 1 host would take", "no: cpu is over 0.8"}},
		{"job submit --dry-run " + file, exitDone, []string{"1 task; nothing was submitted"}},
		{"job logs night/t", exitError, []string{"no job manager told", "trimtab: hint: "}},
		{"job submit " + bad, exitError, []string{`bad.yaml:2:1: unknown key "task"`, `hint: did you mean "tasks"?`}},
		{"job submit none.yaml", exitError, []string{"none.yaml", "trimtab: hint: docs/jobs.md"}},
		{"job submit " + file, exitDone, []string{"job night is submitted, with 1 task"}},
		{"job submit " + file, exitError, []string{"one of that name is running", "trimtab: hint: "}},
		{"job list", exitDone, []string{"night", "running", "ann"}},
		{"job list night", exitDone, []string{"job night is running", "h1", "50%"}},
		{"job logs night/t", exitDone, []string{"hello\n", "attempt 1 on h1"}},
		{"job logs night", exitError, []string{"not JOB/TASK", "trimtab: hint: trimtab job list JOB"}},
		{"job grant night/t h1", exitDone, []string{"is being granted regular resources on h1"}},
		{"job grant night/t", exitError, []string{"trimtab: hint: trimtab job grant JOB/TASK HOST"}},
		{"job grant --revoke night/t", exitDone, []string{"is being taken back"}},
		{"job cancel night", exitDone, []string{"is being cancelled"}},
		{"job cancel night", exitError, []string{"it is cancelled", "trimtab: hint: "}},
	} {
		var out bytes.Buffer
		code := Main(t.Context(), append(strings.Fields(c.args), "--url", url), &out, &out)
		for _, want := range c.says {
			if code != c.code || !strings.Contains(out.String(), want) {
				t.Errorf("%s: %d, no %q in %s", c.args, code, want, out.String())
			}
		}
	}
	for _, args := range []string{"job list", "job list night", "job logs night/t"} {
		var out, errOut bytes.Buffer
		if code := Main(t.Context(), append(strings.Fields(args), "--url", url, "-o", "json"), &out, &errOut); code != exitDone || !json.Valid(out.Bytes()) {
			t.Errorf("%s: %d %s%s", args, code, out.String(), errOut.String())
		}
	}
}

func TestAJobThatNobodyTakesSaysSo(t *testing.T) {
	server := httptest.NewServer(console.Handler(view.New(view.Config{Pool: "cpu"}), console.Options{Request: func(context.Context, *speculation.JobRequest) error { return nil }}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "night.yaml")
	if err := os.WriteFile(file, []byte("name: night\ntasks: [{name: t, command: [/bin/true], cpu: 1, memory: 1MiB}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if code := Main(t.Context(), []string{"job", "submit", "--wait", "1ms", "--url", server.URL, file}, &out, &out); code != exitError || !strings.Contains(out.String(), "no job manager has taken it") || !strings.Contains(out.String(), "trimtab: hint: ") {
		t.Errorf("%d %s", code, out.String())
	}
}
