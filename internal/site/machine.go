package site

import (
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/collector/link"
	"github.com/trimtab/trimtab/collector/rapl"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/pipeline"
)

// hostParts measure this host as a whole. What it has nothing of is told as missing.
func (s *Site) hostParts(cfg *config.Config) (out []part, err error) {
	work := pipeline.Work{Round: max(cfg.Analyzer.ReportInterval, 5*time.Second), Every: trimtab.KindSample}
	if cfg.Measure.Power {
		out = append(out, s.reading(nil, "power", rapl.Reader{}, work, func(b bus.Bus) (reader, error) {
			return rapl.Open(rapl.Reader{}, rapl.Config{Host: s.host, Bus: b, Metrics: s.metrics, Logger: s.logger})
		}))
	}
	if names := cfg.Measure.Links; len(names) > 0 {
		out = append(out, s.reading(nil, "links", names, work, func(b bus.Bus) (reader, error) {
			return link.Open("", names, link.Config{Host: s.host, Bus: b, Metrics: s.metrics, Logger: s.logger})
		}))
	}
	return out, nil
}
