package console

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/trimtab/trimtab"
)

// reply is one request of the API: it returns the value that is written as JSON. An error is
// written with the status that [statusOf] gives it.
type reply func(*http.Request) (any, error)

// ServeHTTP answers a request.
func (a reply) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v, err := a(r)
	if err != nil {
		problem(w, statusOf(err), err)
		return
	}
	of, ok := v.(accepted)
	switch {
	case !ok:
		writeJSON(w, http.StatusOK, v)
	case of.status == http.StatusNoContent:
		w.WriteHeader(of.status)
	default:
		writeJSON(w, of.status, of.value)
	}
}

// accepted is the answer to a request that changes something.
type accepted struct {
	status int
	value  any
}

// refusal is an error with the status that it is answered with.
type refusal struct {
	error
	status int
}

// Unwrap returns the error alone.
func (r refusal) Unwrap() error { return r.error }

func notFound(format string, args ...any) error {
	return refusal{fmt.Errorf(format, args...), http.StatusNotFound}
}

// statusOf is the HTTP status of an error.
func statusOf(err error) int {
	var r refusal
	switch {
	case errors.As(err, &r):
		return r.status
	case errors.Is(err, ErrNoJob):
		return http.StatusNotFound
	case errors.Is(err, errBusy):
		return http.StatusServiceUnavailable
	case errors.Is(err, trimtab.ErrUnsupported):
		return http.StatusNotImplemented
	case errors.Is(err, trimtab.ErrInvalid), errors.Is(err, trimtab.ErrInfeasible):
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// readBody reads the body of a request, which must be JSON of at most most bytes.
func readBody(r *http.Request, most int64) ([]byte, error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return nil, refusal{errors.New("Content-Type must be application/json"), http.StatusUnsupportedMediaType}
	}
	b, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, most))
	if err != nil {
		return nil, refusal{err, http.StatusRequestEntityTooLarge}
	}
	return b, nil
}

// readJSON reads the body of a request, of at most most bytes, into v.
func readJSON(r *http.Request, most int64, v any) error {
	b, err := readBody(r, most)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, v); err != nil {
		return refusal{err, http.StatusBadRequest}
	}
	return nil
}

func writeJSON(w http.ResponseWriter, code int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		http.Error(w, "trimtab: print answer: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	// A client that went away is not our error.
	_, _ = w.Write(append(b, '\n'))
}

func problem(w http.ResponseWriter, code int, err error) {
	writeJSON(w, code, map[string]string{"error": err.Error()})
}
