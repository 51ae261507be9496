package console

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// config answers with the configuration in force, without its secrets.
func (h *handler) config(w http.ResponseWriter, _ *http.Request) {
	if h.options.Config == nil {
		problem(w, http.StatusNotImplemented, errors.New("show configuration: there is none"))
		return
	}
	w.Header().Set("Content-Type", "application/yaml")
	_, _ = w.Write(h.options.Config())
}

// debug answers with one of the process's texts for fault finding.
func (h *handler) debug(w http.ResponseWriter, r *http.Request) {
	print, ok := h.options.Debug[r.PathValue("name")]
	if !ok {
		problem(w, http.StatusNotFound, fmt.Errorf("find debug text %.100q: there is none", r.PathValue("name")))
		return
	}
	var b bytes.Buffer
	if err := print(&b); err != nil {
		problem(w, http.StatusInternalServerError, fmt.Errorf("print %s: %w", r.PathValue("name"), err))
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = io.Copy(w, &b)
}
