package demo

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/trimtab/trimtab/internal/demo/loadgen"
)

// worst is a setup and a report with every field as wide as it gets.
func worst(t *testing.T) (*run, *Report) {
	t.Helper()
	setup, err := NewSetup(Machine{CPUs: 128, Free: 127.9, Speed: 500}, KnobProcess, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := &Report{Capacity: setup.Capacity, Resource: setup.Resource, MaxAllocatedSum: setup.Capacity, Rounds: 10000, Seed: 999999}
	phases := []string{Kernel, Equal, Learned}
	for _, name := range phases {
		p := Phase{Name: name}
		for _, s := range setup.Services {
			p.Services = append(p.Services, ServiceResult{Name: s.Name, SLOAttained: .999, P99: 12020, Allocation: 1234, SLO: ReportSLO{s.SLO.Latency.Seconds() * 1e3, .999}})
		}
		r.Phases = append(r.Phases, p)
	}
	return &run{Config: Config{For: 6 * time.Minute}, setup: setup, report: r, phases: phases, length: 2 * time.Minute}, r
}

func TestWhatTheDemoPrintsFitsATerminalOf80Columns(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{Out: &out}
	r, report := worst(t)
	s.opening(r, Machine{CPUs: 128, Free: 127.9})
	if strings.Contains(out.String(), "busy") {
		t.Error("a free machine is said to be busy")
	}
	s.opening(r, Machine{CPUs: 128, Free: 88.8})
	if !strings.Contains(out.String(), "This machine is busy: other programs use about 39 of 128 cores") {
		t.Errorf("a busy machine is not said to be busy:\n%s", out.String())
	}
	s.page(usual, r.setup.Services[0].Name)
	s.page("http://127.0.0.1:65535", r.setup.Services[0].Name)
	results := make([]loadgen.Result, len(r.setup.Services))
	f := &frame{phase: Kernel, number: 1, of: 3, at: 30 * time.Second, day: 2 * time.Minute, setup: r.setup, results: results, allocations: []float64{10, 10, 10}}
	for _, row := range s.table(f) {
		out.WriteString(row + "\n")
	}
	s.summary(report)
	report.Interrupted, report.Restored = true, true
	s.summary(report)
	two := *report
	two.Phases = report.Phases[1:]
	s.summary(&two)
	for range 3 {
		report.Interrupted, report.Phases[2].MinUtility = false, report.Phases[2].MinUtility+0.5
		report.Phases[0].MinUtility = 0.5
		s.summary(report)
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if n := utf8.RuneCountInString(line); n > columns {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

func TestTheSummaryNamesWhoMissedAndWhetherLimitsAreBack(t *testing.T) {
	_, report := worst(t)
	for i := range report.Phases[2].Services {
		report.Phases[2].Services[i].SLOMet = true
	}
	report.Phases[0].MinUtility = 0.9
	var out bytes.Buffer
	(&Screen{Out: &out}).summary(report)
	for _, want := range []string{"Equal shares: missed by shop 99%/100%, search", "Learned shares: every SLO was met.", "NOT all restored",
		"The kernel alone: missed by shop", "the kernel alone   equal shares", "The kernel alone did better: this load fits the pool"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	report.Restored = true
	report.Phases[2].MinUtility = 0.905
	out.Reset()
	(&Screen{Out: &out}).summary(report)
	if !strings.Contains(out.String(), "limits are what they were before") || !strings.Contains(out.String(), "The kernel alone did as well") {
		t.Error(out.String())
	}
}
