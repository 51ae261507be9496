package microservices

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"github.com/trimtab/trimtab"
)

// Record is one window of a recorded run.
type Record struct {
	// Start and Length are in seconds; Start from the begin of the run.
	Start, Length float64
	// Completed is how many requests were answered.
	Completed float64
	// P99 is in ms.
	P99 float64
	// CPUs per service, in the order of Names, averaged over the window.
	CPUs [Count]float64
}

// ReadLog reads a recorded run. Errors are trimtab.ErrInvalid, with file and
// line, for a column that is absent and a number that is missing, not finite or
// negative.
func ReadLog(r io.Reader, file string) ([]Record, error) {
	c := csv.NewReader(r)
	head, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, invalid(err))
	}
	names := append([]string{"t_start_s", "dur_s", "load", "p99_ms"}, Names()...)
	at := make([]int, len(names))
	for i, name := range names {
		if at[i] = slices.Index(head, name); at[i] < 0 {
			return nil, trimtab.Invalidf("read %s: column %q is absent", file, name)
		}
	}
	var out []Record
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", file, invalid(err))
		}
		v := make([]float64, len(names))
		for i := range names {
			v[i], err = strconv.ParseFloat(row[at[i]], 64)
			if err != nil || math.IsNaN(v[i]) || math.IsInf(v[i], 0) || v[i] < 0 {
				line, _ := c.FieldPos(at[i])
				return nil, trimtab.Invalidf("read %s:%d: column %s is %q: want a number >= 0", file, line, names[i], row[at[i]])
			}
		}
		rec := Record{Start: v[0], Length: v[1], Completed: v[2], P99: v[3]}
		copy(rec.CPUs[:], v[4:])
		out = append(out, rec)
	}
	if len(out) == 0 {
		return nil, trimtab.Invalidf("read %s: no window", file)
	}
	return out, nil
}

func invalid(err error) error { return trimtab.Invalidf("%w", err) }
