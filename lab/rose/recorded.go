package rose

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab"
)

// step is the resolution of a course of use, in seconds: the recordings have a value
// each minute or so.
const step = 60

// Course is what a machine used over time, in percent of what it has, each [step].
type Course struct{ CPU, Disk []float64 }

// Usage is the recorded use of machines.
type Usage struct {
	// Origin says where it is from.
	Origin  string
	Courses []Course
}

// The bounds of a recording.
const maxRows, maxCourses, maxSeconds = 10_000_000, 100_000, 100 * 24 * 3600

// ReadUsage reads the machine usage of Alibaba's trace of 2018: rows of machine, time in
// seconds, and 7 values of which the first is CPU and the last is disk, in percent. A
// missing or invalid value holds what was before; a machine without any is left out.
func ReadUsage(r io.Reader, name string) (*Usage, error) {
	raw := map[string]*rawCourse{}
	var order []string
	rows := bufio.NewScanner(r)
	n := 0
	for rows.Scan() {
		n++
		f := strings.Split(rows.Text(), ",")
		if len(f) != 9 || n > maxRows {
			return nil, trimtab.Invalidf("read %s:%d: %d columns: want 9, and at most %d rows", name, n, len(f), maxRows)
		}
		at, err := strconv.ParseFloat(f[1], 64)
		if err != nil || !(at >= 0 && at <= maxSeconds) {
			return nil, trimtab.Invalidf("read %s:%d: time %.40q: want seconds, at most %d", name, n, f[1], maxSeconds)
		}
		c := raw[f[0]]
		if c == nil {
			if len(order) == maxCourses {
				return nil, trimtab.Invalidf("read %s:%d: more than %d machines", name, n, maxCourses)
			}
			c = &rawCourse{}
			raw[f[0]] = c
			order = append(order, f[0])
		}
		c.add(at, percent(f[2]), percent(f[8]))
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	u := &Usage{Origin: "recorded: " + name}
	for _, id := range order {
		if c, ok := raw[id].resample(); ok {
			u.Courses = append(u.Courses, c)
		}
	}
	if len(u.Courses) == 0 {
		return nil, trimtab.Invalidf("read %s: no machine with usage", name)
	}
	return u, nil
}

// percent is a value in [0, 100], or NaN.
func percent(text string) float64 {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= 100) {
		return math.NaN()
	}
	return v
}

// rawCourse is a course as it was recorded.
type rawCourse struct{ at, cpu, disk []float64 }

func (c *rawCourse) add(at, cpu, disk float64) {
	if n := len(c.at); n > 0 && at < c.at[n-1] {
		return // time went back: not to be placed
	}
	c.at, c.cpu, c.disk = append(c.at, at), append(c.cpu, cpu), append(c.disk, disk)
}

// resample gives the last value before each step.
func (c *rawCourse) resample() (out Course, ok bool) {
	if len(c.at) == 0 {
		return out, false
	}
	begin, end := c.at[0], c.at[len(c.at)-1]
	cpu, disk, k := math.NaN(), math.NaN(), 0
	for t := begin; t <= end; t += step {
		for ; k < len(c.at) && c.at[k] <= t; k++ {
			cpu, disk = held(cpu, c.cpu[k]), held(disk, c.disk[k])
		}
		if !math.IsNaN(cpu) && !math.IsNaN(disk) {
			out.CPU, out.Disk = append(out.CPU, cpu), append(out.Disk, disk)
		}
	}
	return out, len(out.CPU) > 0
}

func held(before, now float64) float64 {
	if math.IsNaN(now) {
		return before
	}
	return now
}

// mean of all values of all courses.
func (u *Usage) mean() (cpu, disk float64) {
	n := 0.0
	for i := range u.Courses {
		for k := range u.Courses[i].CPU {
			cpu, disk, n = cpu+u.Courses[i].CPU[k], disk+u.Courses[i].Disk[k], n+1
		}
	}
	return cpu / n, disk / n
}

// moments of one recorded machine: mean and deviation of CPU and disk in percent.
type moments struct{ cpu, cpuDev, disk, diskDev float64 }

// recordedMoments are those of the 11 machines of the recording, rounded;
// TestTheBuiltInUsageHasTheMomentsOfTheRecording compares.
func recordedMoments() []moments {
	return []moments{
		{40.9, 15.2, 5.8, 4.3}, {5.7, 1.1, 1.1, 0.7}, {38.7, 13.4, 6.3, 4.7}, {39.9, 13.2, 8.1, 4.7}, {32.3, 13.5, 9.3, 10.7}, {39.7, 13.8, 8.2, 5.5},
		{32.6, 13.0, 6.2, 5.1}, {44.3, 11.8, 9.1, 6.0}, {38.3, 12.9, 6.7, 5.3}, {45.1, 11.0, 7.7, 4.9}, {39.3, 11.9, 6.2, 6.5},
	}
}

// course is a series whose values depend on those before as in the recording: a slow
// part, of which a share 1/e is left after so many minutes, and a fast one.
type course struct {
	slowShare, slowMinutes, fast float64
	slow, quick                  float64
}

// The correlations of the recording after 1, 5, 10, 30, 60 and 240 minutes are .79, .64,
// .60, .54, .49, .18 of CPU and .64, .47, .41, .30, .28, .10 of disk, the median of its
// machines; these parts have .79, .64, .62, .56, .48, .20 and .64, .39, .38, .34, .28, .10.
func cpuCourse(rng *rand.Rand) *course {
	return begun(course{slowShare: 0.65, slowMinutes: 200, fast: 0.41}, rng)
}
func diskCourse(rng *rand.Rand) *course {
	return begun(course{slowShare: 0.4, slowMinutes: 170, fast: 0.4}, rng)
}

func begun(c course, rng *rand.Rand) *course {
	c.slow, c.quick = rng.NormFloat64(), rng.NormFloat64()
	return &c
}

// next is the value a minute later, of mean 0 and deviation 1.
func (c *course) next(rng *rand.Rand) float64 {
	keep := math.Exp(-1 / c.slowMinutes)
	c.slow = keep*c.slow + math.Sqrt(1-keep*keep)*rng.NormFloat64()
	c.quick = c.fast*c.quick + math.Sqrt(1-c.fast*c.fast)*rng.NormFloat64()
	return math.Sqrt(c.slowShare)*c.slow + math.Sqrt(1-c.slowShare)*c.quick
}

// BuiltInUsage is made up: 11 machines with mean, deviation and persistence of the
// recorded ones, CPU normal and disk log-normal. It stands in for the recording, which
// is not distributed with the program.
func BuiltInUsage() *Usage {
	rng := rand.New(rand.NewPCG(lab.Seed(2018)))
	u := &Usage{Origin: "built-in, with the moments of the recording"}
	for _, m := range recordedMoments() {
		var c Course
		cpu, disk := cpuCourse(rng), diskCourse(rng)
		spread := math.Sqrt(math.Log1p(m.diskDev * m.diskDev / (m.disk * m.disk)))
		for range days * 24 * 60 {
			c.CPU = append(c.CPU, min(max(m.cpu+m.cpuDev*cpu.next(rng), 0), 100))
			c.Disk = append(c.Disk, min(m.disk*math.Exp(spread*disk.next(rng)-spread*spread/2), 100))
		}
		u.Courses = append(u.Courses, c)
	}
	return u
}

// days of the built-in use, as many as are recorded.
const days = 8
