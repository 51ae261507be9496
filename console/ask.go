package console

import (
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

// parameter reads a parameter that counts, from least to most; more counts as most.
func parameter(r *http.Request, name string, otherwise, least, most int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		return 0, trimtab.Invalidf("read %s %.40q: want a number from %d to %d", name, text, least, most)
	}
	return min(n, most), nil
}

// unknown says that a workload is neither configured nor seen.
func unknown(workload string) error {
	return notFound("find workload %.300q: not configured and not seen", workload)
}

// filterOf reads the parameters of a list of workloads.
func filterOf(r *http.Request) (f view.Filter, err error) {
	f.Query, f.Sort = r.URL.Query().Get("q"), r.URL.Query().Get("sort")
	if err = f.Validate(); err != nil {
		return f, err
	}
	if f.Limit, err = parameter(r, "limit", view.DefaultRows, 1, view.MaxRows); err == nil {
		f.Offset, err = parameter(r, "offset", 0, 0, view.MaxRows)
	}
	return f, err
}

func (h *handler) status(r *http.Request) (any, error) {
	f, err := filterOf(r)
	if err != nil {
		return nil, err
	}
	hosts, err := parameter(r, "hosts", 0, 0, view.MaxRows)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	s := h.view.Page(now, f)
	if hosts > 0 {
		s.Tightest = h.view.Hosts(now, view.Filter{Limit: hosts}).Hosts
	}
	h.led(r.Context(), &s)
	return s, nil
}

func (h *handler) hosts(r *http.Request) (any, error) {
	f, err := filterOf(r)
	if err != nil {
		return nil, err
	}
	return h.view.Hosts(time.Now(), f), nil
}

func (h *handler) host(r *http.Request) (any, error) {
	limit, err := parameter(r, "limit", view.MaxKnobs, 1, view.MaxKnobs)
	if err != nil {
		return nil, err
	}
	offset, err := parameter(r, "offset", 0, 0, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	d, ok := h.view.Host(nameOf(r), r.URL.Query().Get("pool"), limit, offset, time.Now())
	if !ok {
		return nil, notFound("find host %.300q: it has reported no knob of this pool", nameOf(r))
	}
	return d, nil
}

func (h *handler) explain(r *http.Request) (any, error) {
	history, err := parameter(r, "history", 0, 0, view.MaxDecisions)
	if err != nil {
		return nil, err
	}
	observations, err := parameter(r, "observations", 0, 0, view.MaxObservations)
	if err != nil {
		return nil, err
	}
	e, ok := h.view.ExplainWith(nameOf(r), history, observations, time.Now())
	if !ok {
		return nil, unknown(nameOf(r))
	}
	return e, nil
}

func (h *handler) history(r *http.Request) (any, error) {
	now := time.Now()
	since, err := sinceOf(r.URL.Query().Get("since"), now)
	if err != nil {
		return nil, err
	}
	out, ok := h.view.History(nameOf(r), since, now)
	if !ok {
		return nil, unknown(nameOf(r))
	}
	return out, nil
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

func (h *handler) decisions(r *http.Request) (any, error) {
	limit, err := parameter(r, "limit", view.DefaultDecisions, 1, view.MaxDecisions)
	if err != nil {
		return nil, err
	}
	out, ok, err := h.view.Decisions(nameOf(r), r.URL.Query().Get("before"), limit, time.Now())
	if err == nil && !ok {
		err = unknown(nameOf(r))
	}
	return out, err
}

func (h *handler) plan(*http.Request) (any, error) {
	if p := h.view.Planned(); p != nil {
		return p, nil
	}
	return nil, notFound("find plan: none was made yet")
}

func (h *handler) fairness(*http.Request) (any, error) {
	if a, ok := h.view.Audited(); ok {
		return a, nil
	}
	return nil, notFound("find audit: no plan was audited yet")
}

func (h *handler) applied(r *http.Request) (any, error) {
	if p := h.view.Applied(r.PathValue("plan")); p != nil {
		return p, nil
	}
	return nil, notFound("find answer to apply %.100s: none yet", r.PathValue("plan"))
}

func (h *handler) diff(*http.Request) (any, error) { return h.view.Differences(), nil }

func (h *handler) patch(r *http.Request) (any, error) {
	name := nameOf(r)
	p, advised, ok := h.view.Patch(name)
	switch {
	case !ok:
		return nil, unknown(name)
	case !advised:
		return nil, notFound("find advice for %.300q: no decision was made yet", name)
	}
	return p, nil
}
