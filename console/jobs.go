package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/trimtab/trimtab/console/view"
)

// Jobs are the best-effort jobs of this process's host.
type Jobs interface {
	// Colocation says how they stand.
	Colocation() *view.Colocation
	// Register adds a job from a JSON object, and returns its ID. An error that is
	// trimtab.ErrInvalid is the sender's.
	Register(body []byte) (id string, err error)
	// Remove ends trimtab's control of a registered job, Report reads a job's report of its
	// progress. Both return ErrNoJob for an unknown job.
	Remove(id string) error
	Report(id string, body []byte) error
}

// ErrNoJob says that no host knows the job.
var ErrNoJob = errors.New("no such job")

// maxJobBody is the longest body of a request from a job, in bytes.
const maxJobBody = 8 << 10

func (h *handler) routeJobs(mux *http.ServeMux) {
	const at = "/api/v1/jobs"
	mux.Handle("GET "+at, h.withJobs(func(j Jobs, _ *http.Request) (any, error) { return j.Colocation(), nil }))
	mux.Handle("GET "+at+"/{id...}", h.withJobs(oneJob))
	mux.Handle("POST "+at, h.withJobs(registerJob))
	mux.Handle("POST "+at+"/{id...}", h.withJobs(reportJob))
	mux.Handle("DELETE "+at+"/{id...}", h.withJobs(removeJob))
}

// jobsNow returns the jobs of this host; nil: no part of the process manages jobs.
func (h *handler) jobsNow() Jobs {
	if h.options.Jobs == nil {
		return nil
	}
	return h.options.Jobs()
}

func (h *handler) withJobs(serve func(Jobs, *http.Request) (any, error)) reply {
	return func(r *http.Request) (any, error) {
		j := h.jobsNow()
		if j == nil {
			return nil, refusal{errors.New("find jobs: this process keeps no best-effort jobs: they are kept by the agent of each host (or by trimtab run), with a section beside.jobs in its configuration; what a console heard of them is at /api/v1/colocation"), http.StatusNotImplemented}
		}
		v, err := serve(j, r)
		if err != nil && statusOf(err) == http.StatusInternalServerError {
			err = refusal{err, http.StatusServiceUnavailable}
		}
		return v, err
	}
}

// colocations answers with the best-effort jobs of all hosts, or of those that have the named job
// or service.
func (h *handler) colocations(r *http.Request) (any, error) {
	q := r.URL.Query()
	return h.view.Colocations(time.Now(), view.JobFilter{Job: q.Get("job"), Service: q.Get("service")}), nil
}

// colocation answers with all that is known of the jobs of one host.
func (h *handler) colocation(r *http.Request) (any, error) {
	c, ok := h.view.Colocation(nameOf(r), time.Now())
	if !ok {
		return nil, notFound("find best-effort jobs of host %.100q: it was not heard of within the last 15 minutes", nameOf(r))
	}
	return c, nil
}

func oneJob(j Jobs, r *http.Request) (any, error) {
	id := r.PathValue("id")
	for _, job := range j.Colocation().Jobs {
		if job.Named(id) {
			return job, nil
		}
	}
	return nil, fmt.Errorf("find job %.100q: %w", id, ErrNoJob)
}

func registerJob(j Jobs, r *http.Request) (any, error) {
	b, err := jobBody(r)
	if err != nil {
		return nil, err
	}
	id, err := j.Register(b)
	return accepted{http.StatusCreated, map[string]string{"id": id}}, err
}

func reportJob(j Jobs, r *http.Request) (any, error) {
	id, ok := strings.CutSuffix(r.PathValue("id"), "/progress")
	if !ok || id == "" {
		return nil, notFound("report progress: send it to /api/v1/jobs/ID/progress")
	}
	b, err := jobBody(r)
	if err != nil {
		return nil, err
	}
	return accepted{status: http.StatusNoContent}, j.Report(id, b)
}

func removeJob(j Jobs, r *http.Request) (any, error) {
	return accepted{status: http.StatusNoContent}, j.Remove(r.PathValue("id"))
}

// jobBody reads a small JSON body.
func jobBody(r *http.Request) ([]byte, error) {
	b, err := readBody(r, maxJobBody)
	if err != nil {
		return nil, fmt.Errorf("read job: %w", err)
	}
	if !json.Valid(b) {
		return nil, refusal{errors.New("read job: the body is not JSON"), http.StatusBadRequest}
	}
	return b, nil
}
