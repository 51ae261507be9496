package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/demo/loadgen"
)

// Report is the result of the demo, as written to a file.
type Report struct {
	Knob string `json:"knob"`
	// Resource is the resource of Capacity and the allocations.
	Resource string  `json:"resource"`
	Capacity float64 `json:"capacity"`
	Seed     uint64  `json:"seed"`
	// Day is the length of a phase.
	Day trimtab.Seconds `json:"day_s"`
	// Machine is the calibration.
	Machine struct {
		CPUs  int     `json:"cpus"`
		Free  float64 `json:"free_cores"`
		Speed float64 `json:"speed"`
	} `json:"machine"`
	Phases []Phase `json:"phases"`
	// MaxAllocatedSum is the highest sum of the allocations that was read back
	// at one moment, over the whole run.
	MaxAllocatedSum float64 `json:"max_allocated_sum"`
	// Restored says that at the end every limit was the same as before trimtab took control.
	Restored bool `json:"restored"`
	// Rounds is the number of rounds that trimtab planned.
	Rounds int `json:"rounds"`
	// Interrupted says that the demo was ended before its time.
	Interrupted bool `json:"interrupted,omitempty"`
}

// Names of phases: the kernel alone, which is one quota for all services and equal weights, and
// which only cgroups have; equal limits, while trimtab watches; trimtab in charge.
const (
	Kernel  = "kernel"
	Equal   = "equal"
	Learned = "learned"
)

// Phase is one playing of the day.
type Phase struct {
	// Name is Kernel, Equal or Learned.
	Name     string          `json:"phase"`
	Services []ServiceResult `json:"services"`
	// MinUtility is the least utility, Social the mean of the utilities.
	MinUtility float64 `json:"min_utility"`
	Social     float64 `json:"social"`
}

// ServiceResult has the measurements of one service in one phase by its clients. Latencies are in
// ms from the intended start; requests without an answer count as the time-out.
type ServiceResult struct {
	Name string `json:"name"`
	// Utility is the mean over windows of min(1, attained / SLO), in [0, 1].
	Utility float64 `json:"utility"`
	// SLOAttained is the share of all requests within the SLO's latency.
	SLOAttained float64 `json:"slo_attained"`
	SLOMet      bool    `json:"slo_met"`
	P50         float64 `json:"p50_ms"`
	P95         float64 `json:"p95_ms"`
	P99         float64 `json:"p99_ms"`
	// Allocation is the mean over the phase.
	Allocation float64   `json:"allocation"`
	Requests   int       `json:"requests"`
	Failed     int       `json:"failed"`
	SLO        ReportSLO `json:"slo"`
}

// ReportSLO is the SLO of a service.
type ReportSLO struct {
	LatencyMS float64 `json:"latency_ms"`
	Fraction  float64 `json:"fraction"`
}

// window is the interval over which utilities are averaged.
const window = 10 * time.Second

// score collects the windows of one phase.
type score struct {
	services []*Service
	open     []loadgen.Result
	since    time.Duration
	sums     []float64
	counts   []int
}

// add adds the results of an interval that ended at the given time of day.
func (s *score) add(at time.Duration, results []loadgen.Result) {
	if s.open == nil {
		s.open = make([]loadgen.Result, len(results))
		s.sums = make([]float64, len(results))
		s.counts = make([]int, len(results))
	}
	for i, r := range results {
		s.open[i].Requests += r.Requests
		s.open[i].OK += r.OK
	}
	if at-s.since >= window {
		s.close(at)
	}
}

func (s *score) close(at time.Duration) {
	for i := range s.open {
		if p, ok := s.open[i].Attained(); ok {
			s.sums[i] += min(1, p/s.services[i].SLO.Fraction)
			s.counts[i]++
		}
		s.open[i] = loadgen.Result{}
	}
	s.since = at
}

// phase puts the figures of a phase together.
func (s *score) phase(name string, totals []loadgen.Result, allocations []float64) Phase {
	s.close(s.since)
	p := Phase{Name: name, MinUtility: 1}
	for i, svc := range s.services {
		r := ServiceResult{Name: svc.Name, Allocation: allocations[i],
			Requests: totals[i].Requests, Failed: totals[i].Failed + totals[i].Shed,
			SLO: ReportSLO{LatencyMS: svc.SLO.Latency.Seconds() * 1e3, Fraction: svc.SLO.Fraction}}
		if i < len(s.counts) && s.counts[i] > 0 {
			r.Utility = s.sums[i] / float64(s.counts[i])
		}
		r.SLOAttained, _ = totals[i].Attained()
		r.SLOMet = r.SLOAttained >= svc.SLO.Fraction
		for q, to := range map[float64]*float64{0.5: &r.P50, 0.95: &r.P95, 0.99: &r.P99} {
			v, _ := totals[i].Latency.Quantile(q)
			*to = v * 1e3
		}
		p.Services = append(p.Services, r)
		p.MinUtility = min(p.MinUtility, r.Utility)
		p.Social += r.Utility / float64(len(s.services))
	}
	return p
}

// Write puts the report into a file, as indented JSON. It replaces the file atomically.
func (r *Report) Write(path string) error {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	part := path + ".part"
	if err := os.WriteFile(part, append(b, '\n'), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := os.Rename(part, path); err != nil {
		return fmt.Errorf("write report: %w", errors.Join(err, os.Remove(part)))
	}
	return nil
}
