package beside

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/jobs"
)

var _ console.Jobs = (*jobHost)(nil)

// Jobs returns the controller of this host's best-effort jobs; nil: there is none.
func (s *Host) Jobs() console.Jobs {
	if h := s.jobs.Load(); h != nil {
		return h
	}
	return nil
}

// Colocation returns the state of the jobs, which callers must not change.
func (h *jobHost) Colocation() *view.Colocation {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.shown
}

// Register adds a job that describes itself.
func (h *jobHost) Register(body []byte) (id string, err error) {
	var s jobs.Spec
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return "", trimtab.Invalidf(`register job: want {"name": "train", "cgroup": "batch.slice/train.scope"}, and perhaps progress_file and predict`)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", trimtab.Invalidf("register job: something follows the JSON object")
	}
	if err := h.registry.Register(s); err != nil {
		return "", err
	}
	h.logger.Info("job registered itself", "job", s.ID(), "cgroup", s.Cgroup)
	return s.ID(), nil
}

// Remove removes a job that registered itself.
func (h *jobHost) Remove(id string) error {
	err := h.registry.Remove(id)
	if errors.Is(err, jobs.ErrUnknown) {
		return fmt.Errorf("remove job %.100q: %w that registered itself", id, console.ErrNoJob)
	}
	if err == nil {
		h.logger.Info("job removed", "job", id)
	}
	return err
}

// Report records the progress that a job reports.
func (h *jobHost) Report(id string, body []byte) error {
	id, ok := h.known(id)
	if !ok {
		h.metrics.Counter("trimtab_colocate_reports_total", "unknown").Inc()
		return fmt.Errorf("report progress of %.100q: %w", id, console.ErrNoJob)
	}
	r, err := jobs.Parse(body)
	if err != nil {
		h.metrics.Counter("trimtab_colocate_reports_total", "invalid").Inc()
		return err
	}
	h.take(id, time.Now(), r)
	return nil
}

func (h *jobHost) take(id string, now time.Time, r jobs.Report) {
	before := h.registry.Progress(id).Backwards
	h.registry.Take(id, now, r)
	if h.registry.Progress(id).Backwards > before {
		h.metrics.Counter("trimtab_colocate_reports_total", "backwards").Inc()
		h.logger.Info("job reported less than before: taken for one that began again", "job", id)
		return
	}
	h.metrics.Counter("trimtab_colocate_reports_total", "taken").Inc()
}

// known looks up a job by its ID, or by the name under which it registered.
func (h *jobHost) known(id string) (string, bool) {
	for _, s := range h.registry.Registered() {
		if id == s.Name || id == s.ID() {
			return s.ID(), true
		}
	}
	for _, j := range h.Colocation().Jobs {
		if j.ID == id {
			return id, true
		}
	}
	return id, false
}

// fileSources lists the files from which jobs' progress is read, by job.
func (h *jobHost) fileSources() map[string]jobs.Source {
	out := map[string]jobs.Source{}
	for _, s := range h.registry.Registered() {
		if s.File != "" {
			out[s.ID()] = jobs.Source{Name: s.File, Strict: true}
		}
	}
	for _, j := range h.Colocation().Jobs {
		if w, ok := h.declaredOf(j.ID); ok && w.Progress.File != "" {
			out[j.ID] = jobs.Source{Name: groupOf(w.Progress.File, strings.TrimPrefix(strings.TrimPrefix(j.ID, w.Name), "/"))}
		}
	}
	return out
}

// takeFile records the progress that was read from a file.
func (h *jobHost) takeFile(id string, now time.Time, r jobs.Report, err error) {
	if err != nil {
		h.metrics.Counter("trimtab_colocate_reports_total", "invalid").Inc()
		h.registry.Fail(id, err.Error())
		return
	}
	h.take(id, now, r)
}
