package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
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
	mux.HandleFunc("GET "+at, h.withJobs(func(j Jobs, w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, j.Colocation()) }))
	mux.HandleFunc("GET "+at+"/{id...}", h.withJobs(oneJob))
	mux.HandleFunc("POST "+at, h.withJobs(registerJob))
	mux.HandleFunc("POST "+at+"/{id...}", h.withJobs(reportJob))
	mux.HandleFunc("DELETE "+at+"/{id...}", h.withJobs(removeJob))
}

// jobsNow returns the jobs of this host; nil: no part of the process manages jobs.
func (h *handler) jobsNow() Jobs {
	if h.options.Jobs == nil {
		return nil
	}
	return h.options.Jobs()
}

func (h *handler) withJobs(serve func(Jobs, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		j := h.jobsNow()
		if j == nil {
			problem(w, http.StatusNotImplemented, errors.New("find jobs: this process keeps no best-effort jobs: they are kept by the agent of each host (or by trimtab run), with a section colocate in its configuration; what a console heard of them is at /api/v1/colocation"))
			return
		}
		serve(j, w, r)
	}
}

// colocations answers with the best-effort jobs of all hosts, or of those that have the named job
// or service.
func (h *handler) colocations(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	writeJSON(w, http.StatusOK, h.view.Colocations(time.Now(), view.JobFilter{Job: q.Get("job"), Service: q.Get("service")}))
}

// colocation answers with all that is known of the jobs of one host.
func (h *handler) colocation(w http.ResponseWriter, r *http.Request) {
	name := view.Named(r.PathValue("name"), r.URL.Query())
	c, ok := h.view.Colocation(name, time.Now())
	if !ok {
		problem(w, http.StatusNotFound, fmt.Errorf("find best-effort jobs of host %.100q: it was not heard of within the last 15 minutes", name))
		return
	}
	writeJSON(w, http.StatusOK, c)
}

func oneJob(j Jobs, w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	for _, job := range j.Colocation().Jobs {
		if job.Named(id) {
			writeJSON(w, http.StatusOK, job)
			return
		}
	}
	jobProblem(w, fmt.Errorf("find job %.100q: %w", id, ErrNoJob))
}

func registerJob(j Jobs, w http.ResponseWriter, r *http.Request) {
	b, ok := jobBody(w, r)
	if !ok {
		return
	}
	id, err := j.Register(b)
	if err != nil {
		jobProblem(w, err)
		return
	}
	writeJSON(w, http.StatusCreated, map[string]string{"id": id})
}

func reportJob(j Jobs, w http.ResponseWriter, r *http.Request) {
	id, ok := strings.CutSuffix(r.PathValue("id"), "/progress")
	if !ok || id == "" {
		problem(w, http.StatusNotFound, errors.New("report progress: send it to /api/v1/jobs/ID/progress"))
		return
	}
	b, ok := jobBody(w, r)
	if !ok {
		return
	}
	if err := j.Report(id, b); err != nil {
		jobProblem(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

func removeJob(j Jobs, w http.ResponseWriter, r *http.Request) {
	if err := j.Remove(r.PathValue("id")); err != nil {
		jobProblem(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// jobBody reads a small JSON body. If that fails, it answers the request with the error.
func jobBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		problem(w, http.StatusUnsupportedMediaType, errors.New("read job: Content-Type must be application/json"))
		return nil, false
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxJobBody))
	if err != nil {
		problem(w, http.StatusRequestEntityTooLarge, fmt.Errorf("read job: %w", err))
		return nil, false
	}
	if !json.Valid(b) {
		problem(w, http.StatusBadRequest, errors.New("read job: the body is not JSON"))
		return nil, false
	}
	return b, true
}

func jobProblem(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, ErrNoJob):
		problem(w, http.StatusNotFound, err)
	case errors.Is(err, trimtab.ErrInvalid):
		problem(w, http.StatusBadRequest, err)
	default:
		problem(w, http.StatusServiceUnavailable, err)
	}
}
