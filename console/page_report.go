package console

import (
	"net/http"
	"time"

	"github.com/trimtab/trimtab/console/view"
)

// reportPage is what report.html shows.
type reportPage struct {
	Frame frame
	view.Document
	Ranges []link
}

// reportSince is the period of a report without another.
const reportSince = "7d"

// report answers GET /api/v1/report?since=7d.
func (h *handler) report(w http.ResponseWriter, r *http.Request) {
	now := time.Now()
	since, err := sinceOf(r.URL.Query().Get("since"), now)
	if err != nil {
		problem(w, http.StatusBadRequest, err)
		return
	}
	writeJSON(w, http.StatusOK, h.view.Report(since, now))
}

func (s *site) drawReport(w http.ResponseWriter, r *http.Request) {
	chosen, now := r.URL.Query().Get("since"), time.Now()
	if chosen == "" {
		chosen = reportSince
	}
	since, err := sinceOf(chosen, now)
	if err != nil {
		http.Error(w, "trimtab: "+err.Error(), http.StatusBadRequest)
		return
	}
	all := s.view.Report(since, now)
	p := reportPage{Frame: s.frame(r, "report", "Report", "/api/v1/report?"+with(nil, "since", chosen).Encode()), Document: all.Document()}
	p.Frame.Between = 60_000 // it reads all that is kept
	for _, since := range []string{"1h", "24h", "7d"} {
		p.Ranges = append(p.Ranges, link{since, "?since=" + since, since == chosen})
	}
	s.render(w, http.StatusOK, "report.html", &p)
}
