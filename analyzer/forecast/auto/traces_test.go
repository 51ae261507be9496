package auto_test

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// trace is a recorded load, its values summed to means of each group.
type trace struct {
	name, file string
	// seconds lie between the values of the file, group of them make a
	// report.
	seconds, group int
}

// traces are all recorded loads; those per second also as reports of 10 s and
// of a minute.
func traces() []trace {
	out := []trace{
		{"clarknet 60s", "load-traces/clarknet_1995_per_minute_days01-10.csv.gz", 60, 1},
		{"worldcup 60s", "load-traces/worldcup98_per_minute_to_0625.csv.gz", 60, 1},
		{"cilantro 60s", "cilantro/twitter_trace_1min.csv", 60, 1},
		{"cilantro 10s", "cilantro/twitter_trace_1s.csv", 1, 10},
		{"cilantro 1s", "cilantro/twitter_trace_1s.csv", 1, 1},
	}
	for _, name := range []string{"nasa_1995", "twitter_2021-08"} {
		for _, group := range []int{60, 10, 1} {
			short, _, _ := strings.Cut(name, "_")
			out = append(out, trace{fmt.Sprintf("%s %ds", short, group), "load-traces/" + name + "_per_second_first2of3.txt.gz", 1, group})
		}
	}
	return out
}

// step is the time between reports.
func (tr trace) step() time.Duration { return time.Duration(tr.seconds*tr.group) * time.Second }

// read returns at most limit reports.
func (tr trace) read(t testing.TB, limit int) []float64 {
	t.Helper()
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: no recorded loads")
	}
	f, err := os.Open(filepath.Join(dir, tr.file))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(tr.file, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	var out []float64
	for s := bufio.NewScanner(r); s.Scan() && len(out) < limit*tr.group; {
		text := s.Text()
		if i := strings.LastIndexByte(text, ','); i >= 0 {
			text = text[i+1:]
		}
		if v, err := strconv.ParseFloat(text, 64); err == nil {
			out = append(out, v)
		} else if len(out) > 0 {
			t.Fatalf("read %s: %v", tr.file, err)
		}
	}
	return means(out, tr.group)
}

func means(v []float64, group int) []float64 {
	var out []float64
	for ; len(v) >= group; v = v[group:] {
		sum := 0.0
		for _, x := range v[:group] {
			sum += x / float64(group)
		}
		out = append(out, math.Max(0, sum))
	}
	return out
}
