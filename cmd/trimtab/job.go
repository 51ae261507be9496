package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/speculation"
)

// jobCmd submits, lists, prints and cancels speculative jobs.
type jobCmd struct {
	Submit jobSubmitCmd `cmd:"" help:"Submit the job in a file: its tasks run on CPU and memory that is reserved and idle."`
	List   jobListCmd   `cmd:"" help:"List the jobs, or the tasks of one."`
	Logs   jobLogsCmd   `cmd:"" help:"Print the last lines of a task."`
	Cancel jobCancelCmd `cmd:"" help:"End all unfinished tasks of a job."`
	Grant  jobGrantCmd  `cmd:"" help:"Report that the cluster's resource manager granted a task regular resources on a host."`
}

// Example is shown by --help.
func (jobCmd) Example() string {
	return "trimtab job submit night.yaml\ntrimtab job list\ntrimtab job logs night/render-7\ntrimtab job cancel night"
}

// asker names the person for the record.
func asker() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}

// noManager is the hint where no job manager answers.
const noManager = "is there a planner with a section beside.manager (or beside.tasks) in its configuration? trimtab status shows whether its part jobs is ready"

type jobSubmitCmd struct {
	clientFlags `embed:""`
	File        string        `arg:"" help:"The job, in YAML (docs/jobs.md); - reads standard input."`
	DryRun      bool          `help:"Check the file and print the job, without submitting it."`
	Wait        time.Duration `help:"How long to wait until a job manager accepted the job." default:"5s"`
}

// Example is shown by --help.
func (jobSubmitCmd) Example() string {
	return "trimtab job submit night.yaml\ntrimtab job submit --dry-run -o json night.yaml | jq '.tasks | length'"
}

// Run submits the job.
func (c *jobSubmitCmd) Run(ctx context.Context, t terminal) error {
	var job *speculation.BatchJob
	var err error
	if c.File == "-" {
		job, err = config.ReadJob("standard input", os.Stdin)
	} else {
		job, err = config.LoadJob(c.File)
	}
	if err != nil {
		return hint.Else(err, "docs/jobs.md describes the file of a job")
	}
	if c.DryRun {
		return c.print(t.out, job, func(w io.Writer) {
			fmt.Fprintf(w, "job %s has %s; nothing was submitted\n", job.Name, view.Count(len(job.Tasks), "task"))
		})
	}
	var before time.Time // when an earlier job with that name was submitted
	if old, err := c.client().BatchJob(ctx, job.Name); err == nil {
		before = old.Submitted
	}
	_, err = c.client().JobRequest(ctx, speculation.JobRequest{Verb: speculation.SubmitJob, By: asker(), Job: *job})
	if err != nil {
		return hint.Else(err, "trimtab job list shows the jobs that there are")
	}
	taken, err := c.accepted(ctx, job.Name, before)
	if err != nil {
		return err
	}
	return c.print(t.out, taken, func(w io.Writer) {
		fmt.Fprintf(w, "job %s is submitted, with %s: trimtab job list %s\n", job.Name, view.Count(len(job.Tasks), "task"), job.Name)
	})
}

// accepted waits until a job manager reports the job that was just submitted.
func (c *jobSubmitCmd) accepted(ctx context.Context, job string, before time.Time) (*view.JobState, error) {
	for end := time.Now().Add(c.Wait); ; {
		j, err := c.client().BatchJob(ctx, job)
		if err == nil && !j.Submitted.Equal(before) {
			return j, nil
		}
		if time.Now().After(end) {
			return nil, hint.Add(fmt.Errorf("job %s is stored, and no job manager has taken it within %v; it may yet, for an hour", job, c.Wait), noManager)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

type jobListCmd struct {
	clientFlags `embed:""`
	Job         string `arg:"" optional:"" help:"Name of a job, to list its tasks." complete:"job"`
}

// Example is shown by --help.
func (jobListCmd) Example() string {
	return "trimtab job list\ntrimtab job list night\ntrimtab job list -o json | jq '.jobs[].name'"
}

// Run prints jobs, or the tasks of one.
func (c *jobListCmd) Run(ctx context.Context, t terminal) error {
	if c.Job != "" {
		j, err := c.client().BatchJob(ctx, c.Job)
		if err != nil {
			return hint.Else(err, "trimtab job list shows the jobs that there are")
		}
		return c.print(t.out, j, func(w io.Writer) { printJob(w, j) })
	}
	b, err := c.client().Batch(ctx)
	if err != nil {
		return err
	}
	return c.print(t.out, b, func(w io.Writer) { printBatch(w, b, c.Output == "wide") })
}

func printBatch(w io.Writer, b *view.Batch, wide bool) {
	if len(b.Jobs) == 0 {
		fmt.Fprintln(w, "no jobs: trimtab job submit FILE.yaml submits one")
	} else {
		rows := [][]string{{"JOB", "STATE", "WAITING", "RUNNING", "DONE", "FAILED", "SUBMITTED", "BY"}}
		for i := range b.Jobs {
			j := &b.Jobs[i]
			rows = append(rows, []string{j.Name, j.State, strconv.Itoa(j.Waiting), strconv.Itoa(j.Running), strconv.Itoa(j.Done), strconv.Itoa(j.Failed), view.Clock(j.Submitted), orDash(j.By)})
		}
		cli.Table(w, rows)
		for i := range b.Jobs {
			if p := b.Jobs[i].Problem; p != "" {
				fmt.Fprintf(w, "%s: nothing of it starts: %s\n", b.Jobs[i].Name, p)
			}
		}
	}
	takes := 0
	for i := range b.Hosts {
		if !b.Hosts[i].Silent && b.Hosts[i].Blocked == "" {
			takes++
		}
	}
	fmt.Fprintf(w, "\n%d of %s would take tasks now; %d tasks run, %d wait on hosts\n", takes, view.Count(len(b.Hosts), "host"), b.Running, b.Waiting)
	if !wide && takes > 0 || len(b.Hosts) == 0 {
		return
	}
	rows := [][]string{{"HOST", "RUNNING", "WAITING", "REGULAR", "TAKES TASKS"}}
	for i := range b.Hosts {
		h := &b.Hosts[i]
		why := "yes"
		switch {
		case h.Silent:
			why = "no: silent for " + view.Age(h.ReportAge)
		case h.Blocked != "":
			why = "no: " + h.Blocked
		}
		rows = append(rows, []string{h.Host, strconv.Itoa(h.Running), strconv.Itoa(h.Waiting), strconv.Itoa(h.Regular), why})
	}
	cli.Table(w, rows)
}

func printJob(w io.Writer, j *view.JobState) {
	fmt.Fprintf(w, "job %s is %s: %d waiting, %d running, %d done, %d failed\n", j.Name, j.State, j.Waiting, j.Running, j.Done, j.Failed)
	if j.Problem != "" {
		fmt.Fprintln(w, "nothing of it starts:", j.Problem)
	}
	rows := [][]string{{"TASK", "STATE", "HOST", "ATTEMPTS", "DONE", "WHY"}}
	for i := range j.Tasks {
		t, done := &j.Tasks[i], view.Missing
		if t.Last != nil {
			done = view.Performance(t.Last.Progress, true)
		}
		rows = append(rows, []string{t.Name, t.State, orDash(t.Host), strconv.Itoa(t.Attempts), done, orDash(t.Why)})
	}
	cli.Table(w, rows)
	if j.Omitted > 0 {
		fmt.Fprintf(w, "%d tasks that went well are left out\n", j.Omitted)
	}
}

type jobLogsCmd struct {
	clientFlags `embed:""`
	Task        string `arg:"" help:"JOB/TASK." placeholder:"JOB/TASK" complete:"task"`
}

// Example is shown by --help.
func (jobLogsCmd) Example() string {
	return "trimtab job logs night/render-7\ntrimtab job logs night/render-7 -o json | jq -r '.last.last_lines[]'"
}

// Run prints the last lines.
func (c *jobLogsCmd) Run(ctx context.Context, t terminal) error {
	job, task, ok := strings.Cut(c.Task, "/")
	if !ok || job == "" || task == "" {
		return hint.Add(trimtab.Invalidf("print logs of %q: not JOB/TASK", c.Task), "trimtab job list JOB lists its tasks")
	}
	s, err := c.client().BatchTask(ctx, job, task)
	if err != nil {
		return hint.Else(err, "trimtab job list JOB lists its tasks")
	}
	return c.print(t.out, s, func(w io.Writer) {
		if s.Last == nil {
			fmt.Fprintf(t.err, "task %s is %s: it has printed nothing yet\n", c.Task, s.State)
			return
		}
		for _, l := range s.Last.LastLines {
			fmt.Fprintln(w, l)
		}
		// Not among the lines, which are the task's own.
		fmt.Fprintf(t.err, "task %s, attempt %d on %s, is %s; these are the last %s of %s that it printed\n",
			c.Task, s.Last.Attempt, orDash(s.Host), s.State, view.Count(len(s.Last.LastLines), "line"), view.Sized(float64(s.Last.Output), trimtab.Memory))
	})
}

type jobCancelCmd struct {
	clientFlags `embed:""`
	Job         string `arg:"" help:"Name of the job." complete:"job"`
}

// Example is shown by --help.
func (jobCancelCmd) Example() string { return "trimtab job cancel night" }

// Run cancels a job.
func (c *jobCancelCmd) Run(ctx context.Context, t terminal) error {
	r, err := c.client().JobRequest(ctx, speculation.JobRequest{Verb: speculation.CancelJob, By: asker(), Job: speculation.BatchJob{Name: c.Job}})
	if err != nil {
		return hint.Else(err, "trimtab job list shows the jobs that there are")
	}
	return c.print(t.out, r, func(w io.Writer) {
		fmt.Fprintf(w, "job %s is being cancelled: its tasks end within seconds on hosts that are heard\n", c.Job)
	})
}

type jobGrantCmd struct {
	clientFlags `embed:""`
	Task        string `arg:"" help:"JOB/TASK." placeholder:"JOB/TASK" complete:"task"`
	Host        string `arg:"" optional:"" help:"Host of the regular resources."`
	Revoke      bool   `help:"Take the grant back."`
}

// Example is shown by --help.
func (jobGrantCmd) Example() string {
	return "trimtab job grant night/render-7 node12\ntrimtab job grant --revoke night/render-7"
}

// Run grants, or revokes a grant.
func (c *jobGrantCmd) Run(ctx context.Context, t terminal) error {
	job, task, ok := strings.Cut(c.Task, "/")
	if !ok || job == "" || task == "" {
		return hint.Add(trimtab.Invalidf("grant to %q: not JOB/TASK", c.Task), "trimtab job list JOB lists its tasks")
	}
	if (c.Host == "") != c.Revoke {
		return hint.Add(trimtab.Invalidf("grant to %s: a grant is on a host, and one that is taken back on none", c.Task), "trimtab job grant JOB/TASK HOST, or trimtab job grant --revoke JOB/TASK")
	}
	verb := speculation.GrantTask
	if c.Revoke {
		verb = speculation.RevokeGrant
	}
	r, err := c.client().JobRequest(ctx, speculation.JobRequest{Verb: verb, By: asker(), Job: speculation.BatchJob{Name: job}, Task: task, Host: c.Host})
	if err != nil {
		return hint.Else(err, "trimtab job list JOB lists its tasks")
	}
	return c.print(t.out, r, func(w io.Writer) {
		if c.Revoke {
			fmt.Fprintf(w, "the grant of task %s is being taken back\n", c.Task)
			return
		}
		fmt.Fprintf(w, "task %s is being granted regular resources on %s: it goes on where it is far enough, and starts there otherwise\n", c.Task, c.Host)
	})
}
