package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/speculation"
)

// maxBatchBody limits a submitted job to the size of a message on the bus.
const maxBatchBody = 4 << 20

// batch serves the state of speculative jobs, and receives requests on them.
type batch struct {
	view    *view.Model
	request func(context.Context, *speculation.JobRequest) error // see Options.Request
}

func (h batch) route(mux *http.ServeMux) {
	const at = "/api/v1/batch"
	for path, a := range map[string]reply{"GET " + at: h.all, "GET " + at + "/{job}": h.job, "GET " + at + "/{job}/{task}": h.task, "POST " + at: h.change} {
		mux.Handle(path, a)
	}
}

func (h batch) all(*http.Request) (any, error) { return h.view.Batch(time.Now()), nil }

func (h batch) job(r *http.Request) (any, error) { return h.jobOf(r.PathValue("job")) }

// task answers with one task, and the last lines of its newest attempt.
func (h batch) task(r *http.Request) (any, error) {
	return h.taskOf(r.PathValue("job"), r.PathValue("task"))
}

func (h batch) jobOf(name string) (*view.JobState, error) {
	if j, ok := h.view.BatchJob(name); ok {
		return j, nil
	}
	return nil, notFound("find job %.100q: no job manager told of one of that name", name)
}

func (h batch) taskOf(job, task string) (*view.TaskState, error) {
	j, err := h.jobOf(job)
	if err != nil {
		return nil, err
	}
	t, ok := h.view.BatchTask(j, task)
	switch {
	case ok:
		return t, nil
	case j.Omitted > 0:
		return nil, notFound("find task %.100q of job %s: it is none of the %d that are told of; %d that went well are left out", task, job, len(j.Tasks), j.Omitted)
	}
	return nil, notFound("find task %.100q: job %s has none of that name", task, job)
}

// change gives a request to the job manager: it answers when that is stored on the
// bus.
func (h batch) change(r *http.Request) (any, error) {
	q := new(speculation.JobRequest)
	if err := readJSON(r, maxBatchBody, q); err != nil {
		return nil, fmt.Errorf("read request on jobs: %w", err)
	}
	q.Time = time.Now()
	q.Pool, q.Verb = cmp.Or(q.Pool, h.view.Pool()), cmp.Or(q.Verb, speculation.SubmitJob)
	if q.ID == "" {
		q.ID = rand.Text()
	}
	if err := q.Validate(); err != nil {
		return nil, refusal{err, http.StatusBadRequest}
	}
	if err := h.refuses(q); err != nil {
		return nil, err
	}
	if h.request == nil {
		return nil, refusal{errors.New("this process gives no requests to the bus"), http.StatusNotImplemented}
	}
	ctx, cancel := context.WithTimeout(r.Context(), commandWithin)
	defer cancel()
	if err := h.request(ctx, q); err != nil {
		return nil, refusal{fmt.Errorf("%s job %s: %w", q.Verb, q.Job.Name, err), http.StatusServiceUnavailable}
	}
	taken := *q // a copy that is not changed any more
	taken.Job.Tasks = nil
	return accepted{http.StatusAccepted, &taken}, nil
}

// refuses returns the error that the job manager would have, as far as it can be known here: the
// manager itself does not answer.
func (h batch) refuses(q *speculation.JobRequest) error {
	conflict := func(format string, args ...any) error {
		return refusal{fmt.Errorf(format, args...), http.StatusConflict}
	}
	j, err := h.jobOf(q.Job.Name)
	switch {
	case q.Verb == speculation.SubmitJob:
		if err == nil && !speculation.Over(j.State) {
			return conflict("submit job %s: one of that name is %s; cancel it, or take another name", q.Job.Name, j.State)
		}
		return nil
	case err != nil:
		return err
	case speculation.Over(j.State):
		return conflict("%s job %s: it is %s", q.Verb, q.Job.Name, j.State)
	case q.Verb == speculation.CancelJob:
		return nil
	}
	if t, err := h.taskOf(q.Job.Name, q.Task); err != nil && j.Omitted == 0 {
		return err
	} else if err == nil && speculation.Over(t.State) {
		return conflict("%s task %s of job %s: it is %s", q.Verb, q.Task, q.Job.Name, t.State)
	}
	return nil
}
