package main

import (
	"log/slog"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/site"
)

func TestWhatWasLearntSurvivesARestart(t *testing.T) {
	t.Parallel()
	q := fixtureQuotas(t)
	cfg := loopConfig(t, q.root)
	open := func() (*site.Site, *operated) {
		s, err := site.Open(t.Context(), cfg, site.Options{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return s, &operated{t, s, q}
	}
	reports := func(s *site.Site) (n int) {
		var st view.Status
		getJSON(t, s, "/api/v1/status", &st)
		for _, w := range st.Workloads {
			if w.Name == "hungry" {
				n = w.Reports
			}
		}
		return n
	}
	s, o := open()
	requests := newSender(t, s.OTLPAddress(), q)
	o.eventually("ten reports", func() bool {
		if err := requests.send(t.Context()); err != nil {
			t.Fatal(err)
		}
		return reports(s) >= 10
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// After the restart nothing is sent but a first report's worth: what is
	// known then, is known from before.
	s, o = open()
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	before := reports(s)
	requests = newSender(t, s.OTLPAddress(), q)
	o.eventually("a report after the restart", func() bool {
		if err := requests.send(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := reports(s)
		return n > before && n > 0
	})
	if n := reports(s); n < 10 {
		t.Errorf("%d reports after the restart, want those from before too", n)
	}
}

func TestMetricsOfARunningSiteAreLintClean(t *testing.T) {
	t.Parallel()
	q := fixtureQuotas(t)
	o := operate(t, q, "act", nil)
	o.eventually("hungry to be raised", func() bool { return q.read("hungry") > 0.5 })
	resp, err := http.Get("http://" + o.site.WebAddress() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	problems, err := promlint.New(resp.Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}
