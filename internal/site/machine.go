package site

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/collector/link"
	"github.com/trimtab/trimtab/collector/rapl"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/supervise"
	"github.com/trimtab/trimtab/pipeline"
)

// hostParts measure this host as a whole. What the host does not offer is reported as missing.
func (s *Site) hostParts(cfg *config.Config) (out []supervise.Part, err error) {
	work := pipeline.Work{Round: max(cfg.Analyzer.ReportInterval, 5*time.Second), Every: trimtab.KindSample}
	if cfg.Measure.Power {
		out = append(out, s.process.Reading(nil, "power", rapl.Reader{}, work, func(b bus.Bus) (supervise.Reader, error) {
			return rapl.Open(rapl.Reader{}, rapl.Config{Host: s.process.Host, Bus: b, Metrics: s.process.Metrics, Logger: s.process.Logger})
		}))
	}
	if names := cfg.Measure.Links; len(names) > 0 {
		out = append(out, s.process.Reading(nil, "links", names, work, func(b bus.Bus) (supervise.Reader, error) {
			return link.Open("", names, link.Config{Host: s.process.Host, Bus: b, Metrics: s.process.Metrics, Logger: s.process.Logger})
		}))
	}
	return out, nil
}
