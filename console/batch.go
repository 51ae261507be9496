package console

import (
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
	mux.HandleFunc("GET "+at, func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, h.view.Batch(time.Now())) })
	mux.HandleFunc("GET "+at+"/{job}", h.job)
	mux.HandleFunc("GET "+at+"/{job}/{task}", h.task)
	mux.HandleFunc("POST "+at, h.change)
}

func noBatchJob(name string) error {
	return fmt.Errorf("find job %.100q: no job manager told of one of that name", name)
}

func (h batch) job(w http.ResponseWriter, r *http.Request) {
	j, ok := h.view.BatchJob(r.PathValue("job"))
	if !ok {
		problem(w, http.StatusNotFound, noBatchJob(r.PathValue("job")))
		return
	}
	writeJSON(w, http.StatusOK, j)
}

// task answers with one task, and the last lines of its newest attempt.
func (h batch) task(w http.ResponseWriter, r *http.Request) {
	t, err := h.taskOf(r.PathValue("job"), r.PathValue("task"))
	if err != nil {
		problem(w, http.StatusNotFound, err)
		return
	}
	writeJSON(w, http.StatusOK, t)
}

func (h batch) taskOf(job, task string) (*view.TaskState, error) {
	j, ok := h.view.BatchJob(job)
	if !ok {
		return nil, noBatchJob(job)
	}
	t, ok := h.view.BatchTask(j, task)
	switch {
	case ok:
		return t, nil
	case j.Omitted > 0:
		return nil, fmt.Errorf("find task %.100q of job %s: it is none of the %d that are told of; %d that went well are left out", task, job, len(j.Tasks), j.Omitted)
	}
	return nil, fmt.Errorf("find task %.100q: job %s has none of that name", task, job)
}

// change gives a request to the job manager: it answers when that is stored on the
// bus.
func (h batch) change(w http.ResponseWriter, r *http.Request) {
	q := new(speculation.JobRequest)
	if code, err := readJSON(w, r, maxBatchBody, q); err != nil {
		problem(w, code, fmt.Errorf("read request on jobs: %w", err))
		return
	}
	q.Time = time.Now()
	if q.Pool == "" {
		q.Pool = h.view.Pool()
	}
	if q.Verb == "" {
		q.Verb = speculation.SubmitJob
	}
	if q.ID == "" {
		q.ID = rand.Text()
	}
	if err := q.Validate(); err != nil {
		problem(w, http.StatusBadRequest, err)
		return
	}
	if code, err := h.refuses(q); err != nil {
		problem(w, code, err)
		return
	}
	if h.request == nil {
		problem(w, http.StatusNotImplemented, errors.New("this process gives no requests to the bus"))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), commandWithin)
	defer cancel()
	if err := h.request(ctx, q); err != nil {
		problem(w, http.StatusServiceUnavailable, fmt.Errorf("%s job %s: %w", q.Verb, q.Job.Name, err))
		return
	}
	taken := *q // a copy that is not changed any more
	taken.Job.Tasks = nil
	writeJSON(w, http.StatusAccepted, &taken)
}

// refuses returns the error that the job manager would have, as far as it can be known here: the
// manager itself does not answer.
func (h batch) refuses(q *speculation.JobRequest) (int, error) {
	j, ok := h.view.BatchJob(q.Job.Name)
	switch {
	case q.Verb == speculation.SubmitJob:
		if ok && !speculation.Over(j.State) {
			return http.StatusConflict, fmt.Errorf("submit job %s: one of that name is %s; cancel it, or take another name", q.Job.Name, j.State)
		}
		return 0, nil
	case !ok:
		return http.StatusNotFound, noBatchJob(q.Job.Name)
	case speculation.Over(j.State):
		return http.StatusConflict, fmt.Errorf("%s job %s: it is %s", q.Verb, q.Job.Name, j.State)
	case q.Verb == speculation.CancelJob:
		return 0, nil
	}
	if t, err := h.taskOf(q.Job.Name, q.Task); err != nil && j.Omitted == 0 {
		return http.StatusNotFound, err
	} else if err == nil && speculation.Over(t.State) {
		return http.StatusConflict, fmt.Errorf("%s task %s of job %s: it is %s", q.Verb, q.Task, q.Job.Name, t.State)
	}
	return 0, nil
}
