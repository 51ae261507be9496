package calc

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/drf"
)

// Table is a demand table for people, and after [Table.Solve] who gets what.
type Table struct {
	// Resources are the names of the columns.
	Resources []string
	// Tenants are the names of the rows.
	Tenants []string

	problem drf.Problem
}

// Row is what one tenant gets.
type Row struct {
	Tenant string `json:"tenant"`
	// Share is the dominant share, Level the same per weight.
	Share float64 `json:"dominant_share"`
	Level float64 `json:"level"`
	// Bound is the resource that stopped it, "limit", or "nothing" when it
	// demands nothing.
	Bound string `json:"bound_by"`
	// Allocation is by resource, in the unit of the table.
	Allocation map[string]float64 `json:"allocation"`
}

// Shares is the answer to a [Table].
type Shares struct {
	Tenants []Row `json:"tenants"`
	// Saturated are the resources that are full.
	Saturated []string `json:"saturated"`
	// Used is the part of each capacity that is given out, in [0, 1].
	Used map[string]float64 `json:"used"`
}

// ReadTable reads a demand table as CSV, up to [MaxBytes]. The header is
// `tenant`, then `weight` and `limit` if wanted, then one name for each
// resource. The row named `capacity` has the sizes; every other row is a
// tenant. An empty cell is no demand, weight 1, or no limit; lines that begin
// with # are comments. Errors are trimtab.ErrInvalid and begin with
// line:column.
func ReadTable(r io.Reader) (Table, error) {
	in := csv.NewReader(io.LimitReader(r, MaxBytes))
	in.Comment, in.TrimLeadingSpace = '#', true
	header, err := in.Read()
	if err != nil {
		return Table{}, csvError(err)
	}
	h, err := readHeader(in, header)
	if err != nil {
		return Table{}, err
	}
	t := Table{Resources: header[h.first:]}
	seen := map[string]bool{}
	for {
		cells, err := in.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return Table{}, csvError(err)
		}
		row := tableRow{in, h, cells}
		if name := cells[0]; seen[name] {
			return Table{}, row.errorf(0, "%.60q stands here a second time", name)
		}
		if seen[cells[0]] = true; cells[0] == "capacity" {
			t.problem.Capacities, err = row.capacities()
		} else {
			err = row.tenant(&t)
		}
		if err != nil {
			return Table{}, err
		}
	}
	if t.problem.Capacities == nil {
		return Table{}, trimtab.Invalidf(`1:1: no row is named "capacity"`)
	}
	return t, nil
}

// header says where the columns are; -1: there is none.
type header struct{ weight, limit, first int }

func readHeader(in *csv.Reader, cells []string) (h header, err error) {
	row := tableRow{in: in, cells: cells}
	h = header{-1, -1, 1}
	if cells[0] != "tenant" {
		return h, row.errorf(0, `the first column is %.60q, want "tenant"`, cells[0])
	}
	seen := make(map[string]bool, len(cells))
	for k, name := range cells[1:] {
		before := seen[name] || name == cells[0]
		seen[name] = true
		switch {
		case name == "":
			return h, row.errorf(k+1, "a column without a name")
		case before:
			return h, row.errorf(k+1, "a second column %.60q", name)
		case h.first != k+1:
		case name == "weight":
			h.weight, h.first = k+1, k+2
		case name == "limit":
			h.limit, h.first = k+1, k+2
		}
	}
	return h, nil
}

// tableRow is the row that was just read.
type tableRow struct {
	in    *csv.Reader
	h     header
	cells []string
}

func (r tableRow) errorf(cell int, format string, args ...any) error {
	line, column := r.in.FieldPos(cell)
	return trimtab.Invalidf("%d:%d: %w", line, column, fmt.Errorf(format, args...))
}

// number reads a cell; ok is false when it is empty.
func (r tableRow) number(cell int, what string) (x float64, ok bool, err error) {
	text := strings.TrimSpace(r.cells[cell])
	if text == "" {
		return 0, false, nil
	}
	x, err = strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0) || math.IsInf(x, 0) {
		return 0, false, r.errorf(cell, "%s %.60q: want a number >= 0", what, text)
	}
	return x, true, nil
}

func (r tableRow) capacities() ([]float64, error) {
	out := make([]float64, len(r.cells)-r.h.first)
	for k := range out {
		x, ok, err := r.number(r.h.first+k, "capacity")
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, r.errorf(r.h.first+k, "a capacity is missing")
		}
		out[k] = x
	}
	return out, nil
}

func (r tableRow) tenant(t *Table) error {
	out := drf.Tenant{Weight: 1}
	if r.h.weight > 0 {
		w, ok, err := r.number(r.h.weight, "weight")
		if err != nil {
			return err
		}
		if ok && w == 0 {
			return r.errorf(r.h.weight, "weight 0: want a number > 0")
		}
		if ok {
			out.Weight = w
		}
	}
	if r.h.limit > 0 {
		l, ok, err := r.number(r.h.limit, "limit")
		if err != nil {
			return err
		}
		if ok {
			out.Limit = &l
		}
	}
	for k := range t.Resources {
		x, ok, err := r.number(r.h.first+k, "demand")
		if err != nil {
			return err
		}
		if ok {
			out.Demands = append(out.Demands, drf.Demand{Resource: k, Amount: x})
		}
	}
	t.Tenants = append(t.Tenants, r.cells[0])
	t.problem.Tenants = append(t.problem.Tenants, out)
	return nil
}

// csvError puts the position first.
func csvError(err error) error {
	var bad *csv.ParseError
	switch {
	case errors.As(err, &bad):
		return trimtab.Invalidf("%d:%d: %v", bad.Line, bad.Column, bad.Err)
	case errors.Is(err, io.EOF):
		return trimtab.Invalidf("1:1: the table is empty")
	}
	return fmt.Errorf("read table: %w", err)
}

// Solve divides the capacities by weighted extended dominant resource
// fairness.
func (t *Table) Solve() (Shares, error) {
	s, err := drf.Solve(t.problem)
	if err != nil {
		return Shares{}, err
	}
	out := Shares{Tenants: make([]Row, len(t.Tenants)), Saturated: []string{}, Used: map[string]float64{}}
	used := make([]float64, len(t.Resources))
	for i, tenant := range t.problem.Tenants {
		row := Row{Tenant: t.Tenants[i], Share: s.Share[i], Level: s.Level[i], Allocation: map[string]float64{}}
		switch by := s.Bound[i]; by {
		case drf.ByLimit:
			row.Bound = "limit"
		case drf.ByNothing:
			row.Bound = "nothing"
		default:
			row.Bound = t.Resources[by]
		}
		for k, d := range tenant.Demands {
			row.Allocation[t.Resources[d.Resource]] = s.Allocation[i][k]
			used[d.Resource] += s.Allocation[i][k]
		}
		out.Tenants[i] = row
	}
	for r, c := range t.problem.Capacities {
		if c > 0 {
			out.Used[t.Resources[r]] = min(1, used[r]/c)
		}
	}
	for _, r := range s.Saturated {
		out.Saturated = append(out.Saturated, t.Resources[r])
	}
	return out, nil
}
