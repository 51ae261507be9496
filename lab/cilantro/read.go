package cilantro

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
)

// sheet is a table with a header, whose columns are known by name.
type sheet struct {
	name string
	rows *csv.Reader
	at   map[string]int
	row  []string
}

// open reads the header. Columns that are neither needed nor allowed are an
// error: a misspelt one would be silently left out.
func open(r io.Reader, name string, needed, allowed []string) (*sheet, error) {
	s := &sheet{name: name, rows: csv.NewReader(r), at: map[string]int{}}
	header, err := s.rows.Read()
	if errors.Is(err, io.EOF) {
		return nil, trimtab.Invalidf("read %s:1: no header", name)
	}
	if err != nil {
		return nil, s.broken(err)
	}
	for i, c := range header {
		c = strings.TrimSpace(strings.TrimPrefix(c, "\ufeff"))
		if !slices.Contains(needed, c) && !slices.Contains(allowed, c) {
			return nil, &ColumnError{File: name, Column: c, Known: slices.Concat(needed, allowed)}
		}
		s.at[c] = i
	}
	for _, c := range needed {
		if _, ok := s.at[c]; !ok {
			return nil, &ColumnError{File: name, Column: c, Known: slices.Concat(needed, allowed), Absent: true}
		}
	}
	return s, nil
}

// ColumnError is a header that is not understood; it is trimtab.ErrInvalid.
type ColumnError struct {
	File, Column string
	// Known are the columns that the file may have.
	Known []string
	// Absent tells that the column is needed and not there.
	Absent bool
}

// Error names file and column.
func (e *ColumnError) Error() string {
	if e.Absent {
		return fmt.Sprintf("read %s: no column %q", e.File, e.Column)
	}
	return fmt.Sprintf("read %s: unknown column %.60q", e.File, e.Column)
}

// Unwrap returns trimtab.ErrInvalid.
func (e *ColumnError) Unwrap() error { return trimtab.ErrInvalid }

// next reads a row; false at the end.
func (s *sheet) next() (bool, error) {
	row, err := s.rows.Read()
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	if err != nil {
		return false, s.broken(err)
	}
	s.row = row
	return true, nil
}

// broken is an error of the form of the file.
func (s *sheet) broken(err error) error {
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		return trimtab.Invalidf("read %s:%d: %v", s.name, bad.Line, bad.Err)
	}
	return fmt.Errorf("read %s: %w", s.name, err)
}

// here names the place of the row that was just read.
func (s *sheet) here(err error) error {
	line, _ := s.rows.FieldPos(0)
	return fmt.Errorf("read %s:%d: %w", s.name, line, err)
}

// text returns a cell, empty for a column that is not there.
func (s *sheet) text(column string) string {
	i, ok := s.at[column]
	if !ok {
		return ""
	}
	return strings.TrimSpace(s.row[i])
}

// number returns a cell, which must not be empty.
func (s *sheet) number(column string) (float64, error) {
	t := s.text(column)
	if t == "" {
		return 0, s.here(trimtab.Invalidf("%s is empty, want a number", column))
	}
	v, err := strconv.ParseFloat(t, 64)
	if err != nil {
		return 0, s.here(trimtab.Invalidf("%s is %.40q, want a number", column, t))
	}
	return v, nil
}

// optional returns a cell; one that is empty or not there is otherwise.
func (s *sheet) optional(column string, otherwise float64) (float64, error) {
	if s.text(column) == "" {
		return otherwise, nil
	}
	return s.number(column)
}

// maxRows bounds a file: a day of seconds is 86,400.
const maxRows = 10_000_000

// each calls take for every row.
func (s *sheet) each(take func() error) error {
	for range maxRows {
		ok, err := s.next()
		if err != nil || !ok {
			return err
		}
		if err := take(); err != nil {
			return err
		}
	}
	return trimtab.Invalidf("read %s: more than %d rows", s.name, maxRows)
}

// ReadJobs reads a table of jobs: job, workload_type, slo_type ("latency": a
// fraction, or "throughput"), slo, utility_shape; trace_scale (empty: load 1)
// and weight may be left out. Errors are trimtab.ErrInvalid and name the line.
func ReadJobs(r io.Reader, name string) ([]Job, error) {
	told := []string{"slo_latency_s", "unit_demand", "p50_demand_cpus"}
	s, err := open(r, name, []string{"job", "workload_type", "slo_type", "slo", "utility_shape"}, append([]string{"trace_scale", "weight"}, told...))
	if err != nil {
		return nil, err
	}
	var jobs []Job
	err = s.each(func() error {
		j, err := s.job()
		if err != nil {
			return err
		}
		// Nothing is made of these, but a file that is wrong there is wrong.
		for _, column := range told {
			if v, err := s.optional(column, 1); err != nil {
				return err
			} else if !(v > 0) || math.IsInf(v, 0) {
				return s.here(trimtab.Invalidf("%s is %v, want a number > 0, or nothing", column, v))
			}
		}
		jobs = append(jobs, j)
		return nil
	})
	if err == nil && len(jobs) == 0 {
		err = trimtab.Invalidf("read %s: no job", name)
	}
	return jobs, err
}

// job reads the job of a row.
func (s *sheet) job() (j Job, err error) {
	j = Job{Name: s.text("job"), Type: s.text("workload_type"), Shape: s.text("utility_shape")}
	kind := s.text("slo_type")
	if kind != "latency" && kind != "throughput" {
		return j, s.here(trimtab.Invalidf("slo_type is %.20q, want latency or throughput", kind))
	}
	j.Fraction = kind == "latency"
	if j.SLO, err = s.number("slo"); err != nil {
		return j, err
	}
	if j.Scale, err = s.optional("trace_scale", 0); err != nil {
		return j, err
	}
	if j.Weight, err = s.optional("weight", 1); err != nil {
		return j, err
	}
	if err := j.validate(); err != nil {
		return j, s.here(err)
	}
	return j, nil
}

// ReadProfile reads a profile: alloc_per_unit_load and perf_est; other columns
// of the published files are left out. Errors are trimtab.ErrInvalid.
func ReadProfile(r io.Reader, name string) (*Profile, error) {
	s, err := open(r, name, []string{"alloc_per_unit_load", "perf_est"}, []string{"perf_lcb", "perf_ucb"})
	if err != nil {
		return nil, err
	}
	p := &Profile{}
	err = s.each(func() error {
		x, err := s.number("alloc_per_unit_load")
		if err != nil {
			return err
		}
		v, err := s.number("perf_est")
		if err != nil {
			return err
		}
		p.X, p.P = append(p.X, x), append(p.P, v)
		if err := p.validatePoint(len(p.X) - 1); err != nil {
			return s.here(err)
		}
		return nil
	})
	if err == nil {
		err = p.validate(name)
	}
	if err != nil {
		return nil, err
	}
	return p, nil
}

// ReadTrace reads the requests of each second: t_s, in order and without
// gaps, and qps. Errors are trimtab.ErrInvalid and name the line.
func ReadTrace(r io.Reader, name string) ([]float64, error) {
	s, err := open(r, name, []string{"t_s", "qps"}, nil)
	if err != nil {
		return nil, err
	}
	var trace []float64
	err = s.each(func() error {
		t, err := s.number("t_s")
		if err != nil {
			return err
		}
		q, err := s.number("qps")
		if err != nil {
			return err
		}
		if t != float64(len(trace)) {
			return s.here(trimtab.Invalidf("second %v, want %d: a trace has every second, from 0", t, len(trace)))
		}
		if !(q >= 0 && q <= MostLoad) {
			return s.here(trimtab.Invalidf("qps is %v, want 0 to %g", q, MostLoad))
		}
		trace = append(trace, q)
		return nil
	})
	if err == nil && len(trace) == 0 {
		err = trimtab.Invalidf("read %s: no row", name)
	}
	return trace, err
}
