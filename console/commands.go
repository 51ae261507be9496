package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/trimtab/trimtab"
)

// maxBody is the longest body of a command, in bytes.
const maxBody = 64 << 10

// commandWithin is how long the bus may take to confirm a command: a second to store it, another
// to find out whether it did.
const commandWithin = 3 * time.Second

func (h *handler) command(r *http.Request) (any, error) {
	c := new(trimtab.Command)
	if err := readJSON(r, maxBody, c); err != nil {
		return nil, fmt.Errorf("read command: %w", err)
	}
	c.Time = time.Now()
	if c.Pool == "" {
		c.Pool = h.view.Pool()
	}
	if err := c.Validate(); err != nil {
		return nil, refusal{err, http.StatusBadRequest}
	}
	// A person waits for it.
	ctx, cancel := context.WithTimeout(r.Context(), commandWithin)
	defer cancel()
	if err := h.options.Send(ctx, c); err != nil {
		return nil, refusal{fmt.Errorf("send %s: %w", c.Verb, err), http.StatusServiceUnavailable}
	}
	return accepted{http.StatusAccepted, c}, nil
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
