//go:build integration

package colocate

import (
	"compress/gzip"
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trimtab/trimtab/lab"
)

func recordedData(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TRIMTAB_DATA")
	if dir == "" {
		t.Skip("TRIMTAB_DATA is not set: it names the directory with memcached-interference and perf-counters-corun")
	}
	return dir
}

// rows reads a CSV with a header.
func rows(t *testing.T, name string) []map[string]string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := csv.NewReader(f)
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		r = csv.NewReader(z)
	}
	all, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var out []map[string]string
	for _, row := range all[1:] {
		m := map[string]string{}
		for i, v := range row {
			m[all[0][i]] = v
		}
		out = append(out, m)
	}
	return out
}

func number(t *testing.T, s string) float64 {
	t.Helper()
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// percentiles of mcperf, and their probabilities.
func percentiles() ([]string, []float64) {
	return []string{"min", "p5", "p10", "p50", "p67", "p75", "p80", "p85", "p90", "p95", "p99", "p999", "p9999"},
		[]float64{0, 0.05, 0.10, 0.50, 0.67, 0.75, 0.80, 0.85, 0.90, 0.95, 0.99, 0.999, 0.9999}
}

// curve is the mean quantiles, in s, of one source of interference at one rate.
type curve struct {
	quantile []float64
	reached  float64
}

func mcperf(t *testing.T, group string) map[string]map[float64]curve {
	names, _ := percentiles()
	sum, count := map[string]map[float64]curve{}, map[string]map[float64]float64{}
	for _, row := range rows(t, filepath.Join(recordedData(t), "memcached-interference", "part1_group_"+group+"_3runs.csv")) {
		k, rate := row["interference"], number(t, row["target"])
		if sum[k] == nil {
			sum[k], count[k] = map[float64]curve{}, map[float64]float64{}
		}
		c := sum[k][rate]
		if c.quantile == nil {
			c.quantile = make([]float64, len(names))
		}
		for i, name := range names {
			c.quantile[i] += number(t, row[name]) / 1e6
		}
		c.reached += number(t, row["qps"])
		sum[k][rate], count[k][rate] = c, count[k][rate]+1
	}
	for k := range sum {
		for rate, c := range sum[k] {
			for i := range c.quantile {
				c.quantile[i] /= count[k][rate]
			}
			c.reached /= count[k][rate]
			sum[k][rate] = c
		}
	}
	return sum
}

// saturated is the greatest rate that was reached.
func saturated(of map[float64]curve) float64 {
	most := 0.0
	for _, c := range of {
		most = math.Max(most, c.reached)
	}
	return most
}

// at interpolates a quantile function.
func (c curve) at(u float64) float64 {
	_, p := percentiles()
	i, _ := slices.BinarySearch(p, u)
	i = min(max(i, 1), len(p)-1)
	return c.quantile[i-1] + (u-p[i-1])/(p[i]-p[i-1])*(c.quantile[i]-c.quantile[i-1])
}

// paused returns p95 and p99 of what was recorded alone, shifted, with pauses.
func paused(alone curve, shift, share, pause float64) (p95, p99 float64) {
	const n = 4000
	v := make([]float64, n)
	for i := range n {
		v[i] = alone.at((float64(i)+0.5)/n) + shift
		// A second uniform number of low discrepancy (golden ratio).
		if u := math.Mod(float64(i)*0.6180339887498949, 1); u < share {
			v[i] += -pause * math.Log((u+0.5/n)/share)
		}
	}
	slices.Sort(v)
	return v[n*95/100], v[n*99/100]
}

func TestTheFrozenSensitivitiesAreThoseOfTheRecordedRuns(t *testing.T) {
	groups := []map[string]map[float64]curve{mcperf(t, "a"), mcperf(t, "b")}
	for _, resource := range []string{"llc", "membw"} {
		slowdown := 0.0
		for _, g := range groups {
			slowdown += (saturated(g["none"])/saturated(g[resource]) - 1) / float64(len(groups))
		}
		best, share, pause := math.Inf(1), 0.0, 0.0
		for s := 0.002; s < 0.1; s *= 1.1 {
			for d := 0.0002; d < 0.01; d *= 1.1 {
				loss := 0.0
				for _, g := range groups {
					for _, rate := range []float64{5000, 10_000, 15_000, 20_000, 25_000, 30_000} {
						alone, beside := g["none"][rate], g[resource][rate]
						if alone.quantile == nil || beside.quantile == nil {
							continue
						}
						p95, p99 := paused(alone, beside.at(0.5)-alone.at(0.5), s, d)
						loss += math.Pow(math.Log(p95/beside.at(0.95)), 2) + math.Pow(math.Log(p99/beside.at(0.99)), 2)
					}
				}
				if loss < best {
					best, share, pause = loss, s, d
				}
			}
		}
		frozen := keyValue(1)[resource]
		t.Logf("%s: slowdown %.3f, pauses of %.3g s for %.3g of the requests (loss %.2f); frozen %+v", resource, slowdown, pause, share, best, frozen)
		for what, pair := range map[string][2]float64{"slowdown": {slowdown, frozen.Slowdown}, "stall": {share, frozen.Stall}, "pause": {pause, frozen.Pause}} {
			if math.Abs(pair[0]/pair[1]-1) > 0.05 {
				t.Errorf("%s: %s is %.4g, frozen is %.4g", resource, what, pair[0], pair[1])
			}
		}
	}
	besideSP(t)
}

// besideSP checks the slowdowns of the programs beside NPB SP, with the mean of what
// SP held and moved there.
func besideSP(t *testing.T) {
	dir := filepath.Join(recordedData(t), "perf-counters-corun")
	const cache, socket, clock = 40 << 20, 48.6e9, 2.1e9
	var held, moved []float64
	runtime := map[string]float64{}
	for _, row := range rows(t, filepath.Join(dir, "runtimes.csv")) {
		runtime[row["mode"]+row["program"]] = number(t, row["runtime_s"])
	}
	for name, frozen := range map[string]float64{"canneal": store, "fluidanimate": search, "freqmine": script, "kmeans": light, "nn": proxy} {
		var bytes, wall, occupied, n float64
		for _, row := range rows(t, filepath.Join(dir, "corun", name+"+SP", "SP.csv.gz")) {
			bytes += number(t, row["local_mem"]) + number(t, row["remote_mem"])
			wall += number(t, row["wall_cycles"])
			occupied += number(t, row["llc_size"])
			n++
		}
		held, moved = append(held, occupied/n/cache), append(moved, bytes/(wall/clock)/socket)
		a := (runtime["corun"+name]/runtime["solo"+name] - 1) / (0.94*0.94 + 0.59*0.59)
		t.Logf("%s: %.4f, frozen %.4f", name, a, frozen)
		if math.Abs(a/frozen-1) > 0.05 {
			t.Errorf("%s beside SP: %.4f, frozen is %.4f", name, a, frozen)
		}
	}
	if h, m := lab.Mean(held), lab.Mean(moved); math.Abs(h-0.94) > 0.03 || math.Abs(m-0.59) > 0.03 {
		t.Errorf("SP held %.3f of the cache and moved %.3f of the bandwidth, not 0.94 and 0.59", h, m)
	}
}

// growth is by how much the p99 of a service grows on average over 20, 40, 60 and 80%
// of the load when all other cores of one component's host are busy.
func growth(s Service, component string, slowdown float64) float64 {
	for i := range s.Components {
		if s.Components[i].Name == component {
			s.Components[i].Sensitivity["cpu"] = Sensitivity{Slowdown: slowdown}
		}
	}
	e := &Environment{Services: []Service{s}, Hosts: []Host{}}
	at := map[string]int{}
	for i := range s.Components {
		e.Hosts, at[s.Components[i].Host] = append(e.Hosts, Host{Name: s.Components[i].Host}), i
	}
	out := 0.0
	for _, load := range []float64{0.2, 0.4, 0.6, 0.8} {
		var p99 [2]float64
		for k := range p99 {
			x := newService(&e.Services[0], at, 1, 1)
			hosts := make([]*host, len(e.Hosts))
			for i := range hosts {
				hosts[i] = &host{}
				if k == 1 && s.Components[i].Name == component {
					hosts[i].press.cpu = 1
				}
			}
			for range 300 {
				x.serve(load, hosts)
				p99[k] += x.p99 / 300
			}
		}
		out += (p99[1]/p99[0] - 1) / 4
	}
	return out
}

func TestTheFrozenCPUSensitivitiesGiveTheGrowthOfThePaper(t *testing.T) {
	for _, c := range []struct {
		name, component string
		of              func() Service
		want            float64
	}{
		{"redis", "master", redis, 1.131}, {"redis", "slave", redis, 0.22},
		{"e-commerce", "tomcat", eCommerce, 0.22}, {"e-commerce", "mysql", eCommerce, 0.571},
	} {
		named := func() Service {
			s := c.of()
			for i := range s.Components {
				s.Components[i].Host = s.Components[i].Name
			}
			return s
		}
		low, high := 0.0, 3.0
		for range 25 {
			if mid := (low + high) / 2; growth(named(), c.component, mid) < c.want {
				low = mid
			} else {
				high = mid
			}
		}
		frozen := 0.0
		s := named()
		for i := range s.Components {
			if s.Components[i].Name == c.component {
				frozen = s.Components[i].Sensitivity["cpu"].Slowdown
			}
		}
		t.Logf("%s of %s: %.3f, frozen %.3f", c.component, c.name, high, frozen)
		if math.Abs(high-frozen) > 0.05*high {
			t.Errorf("%s of %s: cpu slowdown %.3f gives a growth of %.0f%%, frozen is %.3f", c.component, c.name, high, 100*c.want, frozen)
		}
	}
}
