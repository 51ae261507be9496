package memory

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/sim/sizing"
)

// whole is what 100% of a machine's memory counts as, in bytes.
const whole = float64(64 << 30)

// Format says where a CSV file has what.
type Format struct {
	// ID, Time and Value are columns, from 0; -1: there is none. Without a time rows are Every apart.
	ID, Time, Value int
	Every           time.Duration
	// Scale is what a value of 1 is in bytes; 0: the highest value is that of a machine.
	Scale float64
	// Share is the column with the use in percent of the limit; 0: the limit is that of a machine.
	Share int
	// Header: the first row has names.
	Header bool
}

// FormatOf returns the format of a recording by the name of its file.
func FormatOf(name string) (Format, error) {
	if strings.HasSuffix(name, "_metric.csv.gz") {
		return Format{ID: 2, Time: 1, Value: 5, Share: 6, Scale: 1 << 20, Header: true}, nil
	}
	switch name {
	case "machine_usage_shared.csv.gz":
		return Format{ID: 0, Time: 1, Value: 3, Scale: whole / 100}, nil
	case "alibaba2018_days_1_to_8_300s.csv":
		return Format{ID: -1, Time: -1, Value: 1, Every: 5 * time.Minute, Scale: whole / 100, Header: true}, nil
	case "azure_v2_month_cpu_mem_300s.csv.gz":
		return Format{ID: -1, Time: 0, Value: 2, Header: true}, nil
	case "google2019_week1_300s.csv", "google2019_week2_300s.csv", "google2019_week3_300s.csv":
		return Format{ID: -1, Time: -1, Value: 1, Every: 5 * time.Minute, Scale: whole, Header: true}, nil
	}
	return Format{}, trimtab.Invalidf("recording %q: unknown", name)
}

// Read reads the series of a file. Rows without a usable value are left out.
func Read(r io.Reader, name string, f Format) ([]sizing.Series, error) {
	rows := csv.NewReader(r)
	rows.FieldsPerRecord = -1
	rows.ReuseRecord = true
	byID := map[string]*sizing.Series{}
	for i := 0; ; i++ {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if i == 0 && f.Header || len(row) <= max(f.ID, f.Time, f.Value, f.Share) {
			continue
		}
		at := float64(i) * f.Every.Seconds()
		if f.Time >= 0 {
			at, err = strconv.ParseFloat(row[f.Time], 64)
		}
		v, bad := strconv.ParseFloat(row[f.Value], 64)
		if err != nil || bad != nil || !(v > 0 && v <= math.MaxFloat64) || !(at >= 0 && at < 1e10) {
			continue
		}
		id := ""
		if f.ID >= 0 {
			id = row[f.ID]
		}
		if byID[id] == nil {
			byID[id] = &sizing.Series{Name: strings.TrimSpace(name + " " + id), Limit: whole}
		}
		s := byID[id]
		s.Readings = append(s.Readings, sizing.Reading{At: time.Unix(1e9, 0).UTC().Add(time.Duration(at * float64(time.Second))), Use: v})
		if share, err := strconv.ParseFloat(row[f.Share], 64); f.Share > 0 && err == nil && share > 0 {
			s.Limit = v / share * 100 * f.Scale
		}
	}
	var all []sizing.Series
	for _, s := range byID {
		slices.SortStableFunc(s.Readings, func(a, b sizing.Reading) int { return a.At.Compare(b.At) })
		scale := f.Scale
		if scale == 0 {
			scale = whole / slices.MaxFunc(s.Readings, func(a, b sizing.Reading) int { return cmp.Compare(a.Use, b.Use) }).Use
		}
		for i := range s.Readings {
			s.Readings[i].Use *= scale
		}
		all = append(all, *s)
	}
	slices.SortFunc(all, func(a, b sizing.Series) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// Files are patterns of the recordings below the directory of recorded data: of whole machines and
// clusters, and of containers.
func Files() (machines, containers []string) {
	return []string{
		"alibaba2018-machine-usage/machine_usage_shared.csv.gz",
		"cluster-mean-usage/alibaba2018_days_1_to_8_300s.csv",
		"cluster-mean-usage/google2019_week?_300s.csv",
		"cluster-mean-usage/azure_v2_month_cpu_mem_300s.csv.gz",
	}, []string{"nezha-*/metric/*/*_metric.csv.gz"}
}
