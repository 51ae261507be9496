package main

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/sim/kubernetes"
)

// maxLoads bounds the lines of a file of loads: four months of seconds.
const maxLoads = 10_000_000

// isLoads reports whether a path is a file of loads, and no recording.
func isLoads(path string) bool {
	name := strings.TrimSuffix(path, ".gz")
	return strings.HasSuffix(name, ".csv") || strings.HasSuffix(name, ".txt")
}

// loads has the loads of a file, each over the interval that ends at its time.
type loads struct {
	points   []kubernetes.Point
	interval time.Duration
}

// readLoads reads a file with one number a line, or a time and a number: requests in the
// interval. An interval of 0 is the distance of the times, or a second without times. The error
// is trimtab.ErrInvalid for any other file.
func readLoads(path string, interval time.Duration, scale float64) (*loads, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read loads: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		zipped, err := gzip.NewReader(f)
		if err != nil {
			return nil, fmt.Errorf("read loads: %w", err)
		}
		in = zipped
	}
	times, counts, err := readCounts(in)
	if err != nil {
		return nil, fmt.Errorf("read loads of %s: %w", path, err)
	}
	return timed(times, counts, interval, scale)
}

// readCounts reads the lines; times are empty where there are none.
func readCounts(in io.Reader) (times []time.Time, counts []float64, err error) {
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		fields := strings.Split(text, ",")
		v, bad := strconv.ParseFloat(strings.TrimSpace(fields[min(1, len(fields)-1)]), 64)
		if bad != nil && n == 1 {
			continue // the names of columns
		}
		if bad != nil || !(v >= 0 && v <= 1e12) || len(fields) > 2 {
			return nil, nil, trimtab.Invalidf("line %d is %.60q: want a number of requests, or a time and a number", n, text)
		}
		if len(fields) == 2 {
			at, ok := timeOf(fields[0])
			if !ok || len(times) > 0 && !at.After(times[len(times)-1]) {
				return nil, nil, trimtab.Invalidf("line %d is %.60q: want times in order, as 2006-01-02 15:04:05, 2006-01-02T15:04:05Z or Unix seconds", n, text)
			}
			times = append(times, at)
		}
		if counts = append(counts, v); len(counts) > maxLoads {
			return nil, nil, trimtab.Invalidf("more than %d lines", maxLoads)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, nil, err
	}
	if len(counts) == 0 || len(times) > 0 && len(times) != len(counts) {
		return nil, nil, trimtab.Invalidf("%d numbers, %d of them with a time: want all or none with one", len(counts), len(times))
	}
	return times, counts, nil
}

func timeOf(text string) (time.Time, bool) {
	text = strings.TrimSpace(text)
	for _, form := range []string{time.RFC3339, time.DateTime, "2006-01-02 15:04", "2006-01-02 15:04:05-07:00"} {
		if at, err := time.Parse(form, text); err == nil {
			return at, true
		}
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0 && seconds < 1e11) {
		return time.Time{}, false
	}
	return time.UnixMilli(int64(seconds * 1000)).UTC(), true
}

// timed makes rates of counts. A count is of the interval that begins at its time.
func timed(times []time.Time, counts []float64, interval time.Duration, scale float64) (*loads, error) {
	if interval == 0 {
		interval = time.Second
		if len(times) > 1 {
			gaps := make([]time.Duration, len(times)-1)
			for i := range gaps {
				gaps[i] = times[i+1].Sub(times[i])
			}
			slices.Sort(gaps)
			interval = gaps[len(gaps)/2]
		}
	}
	if interval < 100*time.Millisecond {
		return nil, trimtab.Invalidf("loads every %v: want 100ms or more", interval)
	}
	out := &loads{interval: interval}
	at := time.Unix(0, 0).UTC()
	for i, v := range counts {
		if at = at.Add(interval); len(times) > 0 {
			at = times[i].Add(interval)
		}
		out.points = append(out.points, kubernetes.Point{At: at, Load: scale * v / interval.Seconds()})
	}
	return out, nil
}
