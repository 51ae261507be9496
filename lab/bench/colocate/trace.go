package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// recording is a recorded load.
type recording struct {
	// Origin says where it is from.
	Origin string
	// Counts are requests in steps of the same length.
	Counts []float64
}

// aDay is the second day of the recording of ClarkNet's server (29 August 1995,
// Internet Traffic Archive): requests per minute, as means over 20 minutes.
func aDay() []float64 {
	return []float64{
		151, 140, 147, 151, 127, 127, 110, 136, 113, 77, 88, 80, 81, 66, 75, 77, 80, 78, 78, 79, 108, 98, 114, 112,
		128, 154, 184, 168, 184, 182, 204, 201, 259, 217, 203, 226, 231, 259, 276, 275, 262, 270, 286, 289, 288, 273, 278, 315,
		297, 281, 280, 287, 282, 253, 249, 250, 222, 270, 223, 188, 197, 172, 186, 192, 183, 177, 173, 173, 175, 197, 174, 141,
	}
}

// clarknet is the file below TRIMTAB_DATA, of one line "time,count" a minute.
const clarknet = "load-traces/clarknet_1995_per_minute_days01-10.csv.gz"

// openRecording reads one day, counted from 1, of the recorded file below the
// directory data; where there is none it is the day that is built in.
func openRecording(data string, day int) (*recording, error) {
	if data == "" {
		return &recording{Origin: "ClarkNet, 29 August 1995, means of 20 minutes (built in)", Counts: aDay()}, nil
	}
	f, err := os.Open(filepath.Join(data, clarknet))
	if err != nil {
		return nil, fmt.Errorf("open recorded load: %w", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("read recorded load: %w", err)
	}
	all, err := readCounts(z)
	if err != nil {
		return nil, fmt.Errorf("read recorded load %s: %w", clarknet, err)
	}
	const minutes = 24 * 60
	if day < 1 || len(all) < day*minutes {
		return nil, trimtab.Invalidf("day %d of a recording of %d minutes", day, len(all))
	}
	return &recording{Origin: fmt.Sprintf("ClarkNet, day %d of the recording, minutes", day), Counts: all[(day-1)*minutes : day*minutes]}, nil
}

// readCounts reads a head line and then lines "time,count".
func readCounts(in io.Reader) ([]float64, error) {
	var out []float64
	s := bufio.NewScanner(io.LimitReader(in, 64<<20))
	for n := 1; s.Scan(); n++ {
		_, text, ok := strings.Cut(strings.TrimSpace(s.Text()), ",")
		v, err := strconv.ParseFloat(text, 64)
		if n == 1 && errors.Is(err, strconv.ErrSyntax) {
			continue
		}
		if !ok || err != nil || !(v >= 0 && v < 1e9) {
			return nil, trimtab.Invalidf("line %d: %.40q: want time,count", n, s.Text())
		}
		out = append(out, v)
	}
	return out, s.Err()
}

// course is a load over time, as shares of the most, in steps of the same length.
type course struct {
	shares []float64
	whole  time.Duration
}

// fit compresses the recording into whole, in steps of a second, and maps its
// least step to low and its greatest to high.
func (r *recording) fit(whole time.Duration, low, high float64) course {
	n := max(2, min(len(r.Counts), int(whole/time.Second)))
	out := make([]float64, n)
	for i := range out {
		part := r.Counts[i*len(r.Counts)/n : (i+1)*len(r.Counts)/n]
		for _, v := range part {
			out[i] += v / float64(len(part))
		}
	}
	least, most := slices.Min(out), slices.Max(out)
	for i, v := range out {
		out[i] = low
		if most > least {
			out[i] = low + (high-low)*(v-least)/(most-least)
		}
	}
	return course{out, whole}
}

// at returns the load at a moment, between two steps in proportion.
func (c course) at(t time.Duration) float64 {
	x := float64(t) / float64(c.whole) * float64(len(c.shares)-1)
	i := max(0, min(int(x), len(c.shares)-2))
	f := min(1, x-float64(i))
	return c.shares[i]*(1-f) + c.shares[i+1]*f
}

// arrivals draws the times at which requests are meant to be sent: a Poisson process
// of the rate load × most, by thinning one of the highest rate. The same seed gives
// the same arrivals, whatever controls the jobs.
func (c course) arrivals(most float64, seed uint64) []time.Duration {
	r := rand.New(rand.NewPCG(seed, 1))
	var out []time.Duration
	for t := 0.0; ; {
		t += r.ExpFloat64() / most
		at := time.Duration(t * float64(time.Second))
		if at >= c.whole {
			return out
		}
		if r.Float64() < c.at(at) {
			out = append(out, at)
		}
	}
}

// constant is a load that stays.
func constant(share float64, whole time.Duration) course {
	return course{[]float64{share, share}, whole}
}
