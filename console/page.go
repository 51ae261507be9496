package console

import (
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

//go:embed page.html workload.html style.css
var assets embed.FS

// pages parses the embedded templates. They are part of the program: one that
// does not parse is a programmer's error, and panics.
func pages() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"number":  number,
		"percent": percent,
		"ms":      milliseconds,
		"state":   stateClass,
		"clock":   func(t time.Time) string { return t.Format(time.TimeOnly) },
		"share":   share,
	}).ParseFS(assets, "*.html"))
}

func (h *handler) page(w http.ResponseWriter, _ *http.Request) {
	h.render(w, "page.html", h.view.Status(time.Now()))
}

func (h *handler) workload(w http.ResponseWriter, r *http.Request) {
	e, ok := h.view.Explain(r.PathValue("name"), 50, time.Now())
	if !ok {
		http.NotFound(w, r)
		return
	}
	h.render(w, "workload.html", e)
}

func style(w http.ResponseWriter, _ *http.Request) {
	b, err := assets.ReadFile("style.css")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/css; charset=utf-8")
	// A client that went away is not our error.
	_, _ = w.Write(b)
}

func (h *handler) render(w http.ResponseWriter, name string, data any) {
	var b strings.Builder
	if err := h.pages.ExecuteTemplate(&b, name, data); err != nil {
		http.Error(w, "trimtab: draw page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, b.String())
}

// number prints three significant digits, or a dash for what was not measured.
func number(p *float64) string {
	if p == nil {
		return "–"
	}
	return fmt.Sprintf("%.3g", *p)
}

func percent(p *float64) string {
	if p == nil {
		return "–"
	}
	return fmt.Sprintf("%.1f%%", 100**p)
}

func milliseconds(latency map[string]trimtab.Seconds, name string) string {
	s, ok := latency[name]
	if !ok {
		return "–"
	}
	return fmt.Sprintf("%.0f ms", 1000*float64(s))
}

// stateClass picks the colour of a row.
func stateClass(s string) string {
	if s == "ok" || s == "learning" {
		return s
	}
	return "attention"
}

// share is the width of an allocation's bar in percent of the capacity.
func share(a *trimtab.Amount, capacity float64) string {
	if a == nil || capacity <= 0 {
		return "0"
	}
	if a.Unlimited {
		return "100"
	}
	return fmt.Sprintf("%.1f", min(100, 100*a.Value/capacity))
}
