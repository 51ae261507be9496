package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/trimtab/trimtab"
)

// maxBody is the longest body of a command, in bytes.
const maxBody = 64 << 10

// commandWithin is how long the bus may take to confirm a command: a second to store it, another
// to find out whether it did.
const commandWithin = 3 * time.Second

// readJSON reads the body of a request, of at most most bytes, into v. With an error it returns the
// status to answer.
func readJSON(w http.ResponseWriter, r *http.Request, most int64, v any) (int, error) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return http.StatusUnsupportedMediaType, errors.New("Content-Type must be application/json")
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return http.StatusRequestEntityTooLarge, err
	}
	return http.StatusBadRequest, json.Unmarshal(b, v)
}

func (h *handler) command(w http.ResponseWriter, r *http.Request) {
	c := new(trimtab.Command)
	if code, err := readJSON(w, r, maxBody, c); err != nil {
		problem(w, code, fmt.Errorf("read command: %w", err))
		return
	}
	c.Time = time.Now()
	if c.Pool == "" {
		c.Pool = h.view.Pool()
	}
	if err := c.Validate(); err != nil {
		problem(w, http.StatusBadRequest, err)
		return
	}
	// A person waits for it.
	ctx, cancel := context.WithTimeout(r.Context(), commandWithin)
	defer cancel()
	if err := h.options.Send(ctx, c); err != nil {
		problem(w, http.StatusServiceUnavailable, fmt.Errorf("send %s: %w", c.Verb, err))
		return
	}
	writeJSON(w, http.StatusAccepted, c)
}

func (h *handler) reload(w http.ResponseWriter, r *http.Request) {
	if h.options.Reload == nil {
		problem(w, http.StatusNotImplemented, errors.New("reload: started without a configuration file"))
		return
	}
	if err := h.options.Reload(r.Context()); err != nil {
		problem(w, http.StatusBadRequest, fmt.Errorf("reload: the old configuration stays: %w", err))
		return
	}
	fmt.Fprintln(w, "reloaded")
}
