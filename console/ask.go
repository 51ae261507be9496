package console

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
)

// nameOf returns the workload or job that a URL made by [view.Path] names.
func nameOf(r *http.Request) string { return view.Named(r.PathValue("name"), r.URL.Query()) }

// number reads a parameter that counts; ok is false, and the answer written,
// when it is no number from least to most.
func parameter(w http.ResponseWriter, r *http.Request, name string, otherwise, least, most int) (n int, ok bool) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, true
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		problem(w, http.StatusBadRequest, trimtab.Invalidf("read %s %.40q: want a number from %d to %d", name, text, least, most))
		return 0, false
	}
	return min(n, most), true
}

// unknown answers 404 for a workload that is neither configured nor seen.
func unknown(w http.ResponseWriter, workload string) {
	problem(w, http.StatusNotFound, fmt.Errorf("find workload %.300q: not configured and not seen", workload))
}

// filterOf reads the parameters of a list of workloads.
func filterOf(w http.ResponseWriter, r *http.Request) (f view.Filter, ok bool) {
	f.Query, f.Sort = r.URL.Query().Get("q"), r.URL.Query().Get("sort")
	if err := f.Validate(); err != nil {
		problem(w, http.StatusBadRequest, err)
		return f, false
	}
	if f.Limit, ok = parameter(w, r, "limit", view.DefaultRows, 1, view.MaxRows); ok {
		f.Offset, ok = parameter(w, r, "offset", 0, 0, view.MaxRows)
	}
	return f, ok
}

func (h *handler) status(w http.ResponseWriter, r *http.Request) {
	f, ok := filterOf(w, r)
	if !ok {
		return
	}
	hosts, ok := parameter(w, r, "hosts", 0, 0, view.MaxRows)
	if !ok {
		return
	}
	now := time.Now()
	s := h.view.Page(now, f)
	if hosts > 0 {
		s.Tightest = h.view.Hosts(now, view.Filter{Limit: hosts}).Hosts
	}
	h.led(r.Context(), &s)
	writeJSON(w, http.StatusOK, s)
}

func (h *handler) hosts(w http.ResponseWriter, r *http.Request) {
	if f, ok := filterOf(w, r); ok {
		writeJSON(w, http.StatusOK, h.view.Hosts(time.Now(), f))
	}
}

func (h *handler) host(w http.ResponseWriter, r *http.Request) {
	limit, ok := parameter(w, r, "limit", view.MaxKnobs, 1, view.MaxKnobs)
	if !ok {
		return
	}
	offset, ok := parameter(w, r, "offset", 0, 0, math.MaxInt32)
	if !ok {
		return
	}
	d, ok := h.view.Host(nameOf(r), r.URL.Query().Get("pool"), limit, offset, time.Now())
	if !ok {
		problem(w, http.StatusNotFound, fmt.Errorf("find host %.300q: it has reported no knob of this pool", nameOf(r)))
		return
	}
	writeJSON(w, http.StatusOK, d)
}

func (h *handler) explain(w http.ResponseWriter, r *http.Request) {
	history, ok := parameter(w, r, "history", 0, 0, view.MaxDecisions)
	if !ok {
		return
	}
	observations, ok := parameter(w, r, "observations", 0, 0, view.MaxObservations)
	if !ok {
		return
	}
	e, ok := h.view.ExplainWith(nameOf(r), history, observations, time.Now())
	if !ok {
		unknown(w, nameOf(r))
		return
	}
	writeJSON(w, http.StatusOK, e)
}

func (h *handler) history(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	since, err := sinceOf(r.URL.Query().Get("since"), now)
	if err != nil {
		problem(w, http.StatusBadRequest, err)
		return
	}
	out, ok := h.view.History(nameOf(r), since, now)
	if !ok {
		unknown(w, nameOf(r))
		return
	}
	writeJSON(w, http.StatusOK, out)
}

// sinceOf reads a time, or how long ago.
func sinceOf(text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseFloat(days, 64); err == nil && n >= 0 && n < 36500 {
			return now.Add(-time.Duration(n * 24 * float64(time.Hour))), nil
		}
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return now.Add(-ago), nil
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds >= 0 && seconds < 1e11 {
		return time.UnixMilli(int64(seconds * 1000)), nil
	}
	return time.Time{}, trimtab.Invalidf("read since %.40q: want a time like 2026-01-02T15:04:05Z, or how long ago, like 15m or 7d", text)
}

func (h *handler) decisions(w http.ResponseWriter, r *http.Request) {
	limit, ok := parameter(w, r, "limit", view.DefaultDecisions, 1, view.MaxDecisions)
	if !ok {
		return
	}
	out, ok, err := h.view.Decisions(nameOf(r), r.URL.Query().Get("before"), limit, time.Now())
	switch {
	case err != nil:
		problem(w, http.StatusBadRequest, err)
	case !ok:
		unknown(w, nameOf(r))
	default:
		writeJSON(w, http.StatusOK, out)
	}
}

func (h *handler) plan(w http.ResponseWriter, _ *http.Request) {
	p := h.view.Planned()
	if p == nil {
		problem(w, http.StatusNotFound, errors.New("find plan: none was made yet"))
		return
	}
	writeJSON(w, http.StatusOK, p)
}

func (h *handler) fairness(w http.ResponseWriter, _ *http.Request) {
	a, ok := h.view.Audited()
	if !ok {
		problem(w, http.StatusNotFound, errors.New("find audit: no plan was audited yet"))
		return
	}
	writeJSON(w, http.StatusOK, a)
}

func (h *handler) applied(w http.ResponseWriter, r *http.Request) {
	p := h.view.Applied(r.PathValue("plan"))
	if p == nil {
		problem(w, http.StatusNotFound, fmt.Errorf("find answer to apply %.100s: none yet", r.PathValue("plan")))
		return
	}
	writeJSON(w, http.StatusOK, p)
}

func (h *handler) diff(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, h.view.Differences())
}

func (h *handler) patch(w http.ResponseWriter, r *http.Request) {
	name := nameOf(r)
	p, advised, ok := h.view.Patch(name)
	switch {
	case !ok:
		unknown(w, name)
	case !advised:
		problem(w, http.StatusNotFound, fmt.Errorf("find advice for %.300q: no decision was made yet", name))
	default:
		writeJSON(w, http.StatusOK, p)
	}
}
