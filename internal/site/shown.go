package site

import (
	"fmt"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	exporter "github.com/trimtab/trimtab/exporters/prometheus"
)

// This file converts the configuration for the parts that show it: the console and the metrics of
// workloads.

func viewConfig(cfg *config.Config) view.Config {
	cfg = cfg.Pooled() // jobs are shown by their host
	c := view.Config{Pool: cfg.Pool.Name, Resource: cfg.Pool.Resource(), Capacity: cfg.Pool.Capacity(), Objective: cfg.Objective, Round: cfg.Round}
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		// It was validated when the configuration was read.
		utility, _ := w.UtilityFunc()
		c.Workloads = append(c.Workloads, view.Workload{
			Name: w.Name, Mode: w.Mode, Class: w.Class, SLO: sloText(&w.SLO), Target: w.SLO.Target(), Share: w.SLO.Shares(), Utility: utility, Doubt: w.Doubt(), MemoryAlone: w.Knob.MemoryAlone(&cfg.Pool),
		})
	}
	return c
}

func configureExporter(e *exporter.Exporter, cfg *config.Config) {
	e.Configure(exported(cfg))
	e.SetPatience(view.Patience(cfg.Round))
}

// exported returns, for each workload, the settings from which its metrics are computed.
func exported(cfg *config.Config) []exporter.Workload {
	cfg = cfg.Pooled()
	var out []exporter.Workload
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		// It was validated when the configuration was read.
		utility, _ := w.UtilityFunc()
		out = append(out, exporter.Workload{Name: w.Name, SLO: w.SLO.Target(), Utility: utility})
	}
	return out
}

// sloText formats an SLO for people: "95% under 200ms".
func sloText(s *config.SLO) string {
	if s.Entry != "" {
		own := *s
		own.Entry = ""
		return sloText(&own) + " at " + s.Entry
	}
	switch {
	case s.Latency > 0 && s.Proposed:
		return fmt.Sprintf("%g%% under %v, proposed", 100*s.Fraction, s.Latency)
	case s.Latency > 0:
		return fmt.Sprintf("%g%% under %v", 100*s.Fraction, s.Latency)
	case s.Performance > 0:
		return fmt.Sprintf("performance %g", s.Performance)
	case s.Proposed:
		return "not proposed yet"
	}
	return ""
}
