package cilantro

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"

	"github.com/trimtab/trimtab/lab"
)

// small is an environment of a few jobs and rounds.
func small(jobs, rounds, capacity int) *Environment {
	e := BuiltIn(rounds * Windows * WindowSeconds)
	e.Rounds, e.Capacity = rounds, capacity
	e.Jobs = []Job{table3()[0], table3()[3], table3()[13], table3()[11]}[:jobs]
	return e
}

func TestAProfileIsFlatAboveAndFallsToZeroBelow(t *testing.T) {
	p := &Profile{X: []float64{1, 2, 4}, P: []float64{0.5, 0.5, 1}}
	for x, want := range map[float64]float64{0: 0, 0.5: 0.25, 1: 0.5, 1.5: 0.5, 3: 0.75, 4: 1, 9: 1} {
		if got := p.At(x); math.Abs(got-want) > 1e-12 {
			t.Errorf("at %v: %v, want %v", x, got, want)
		}
	}
	for slo, want := range map[float64]float64{0.25: 0.5, 0.5: 1, 0.75: 3, 1: 4, 1.5: 4} {
		if got := p.Least(slo); math.Abs(got-want) > 1e-12 {
			t.Errorf("least for %v: %v, want %v", slo, got, want)
		}
	}
}

func TestTheLeastAllocationReachesTheSLO(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Profile{}
		x, v := 0.0, 0.0
		for range rapid.IntRange(2, 8).Draw(t, "points") {
			x += rapid.Float64Range(0.01, 2).Draw(t, "dx")
			v += rapid.Float64Range(0.01, 1).Draw(t, "dp")
			p.X, p.P = append(p.X, x), append(p.P, v)
		}
		if p.validate("p") != nil {
			return
		}
		slo := rapid.Float64Range(0.001, p.P[len(p.P)-1]).Draw(t, "slo")
		d := p.Least(slo)
		if p.At(d) < slo-1e-9 || p.At(d*0.999) > slo+1e-9 {
			t.Fatalf("least for %v is %v, which gives %v, and a little less %v", slo, d, p.At(d), p.At(d*0.999))
		}
	})
}

func TestTheLoadIsTheMeanOfWholeRequestsPerSecond(t *testing.T) {
	e := &Environment{Jobs: []Job{{Scale: 0.5}, {}}, Trace: []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}
	// 0.5 q to even: 0 0 1 2 2 2 3 4 4 4.
	if got := e.Load(0, 0); got != 2.2 {
		t.Errorf("%v, want 2.2", got)
	}
	if got := e.Load(1, 0); got != 1 {
		t.Errorf("a job without a trace has load %v, want 1", got)
	}
}

func TestAWindowIsScoredByItsDefinitions(t *testing.T) {
	got := score([]truth{
		{allocation: 60, demand: 40, utility: 1, entitled: 1},
		{allocation: 40, demand: 100, utility: 0.5, entitled: 0.8},
		{absent: true},
	}, 100)
	if want := (Score{Social: 0.75, Egalitarian: 0.5, NJC: 0.625, Useful: 0.8}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestReportsAreCountsOfRequestsAndRatesWithNoise(t *testing.T) {
	e := small(3, 1, 300)
	if err := e.Validate(); err != nil {
		t.Fatal(err)
	}
	sums := map[bool]float64{}
	for seed := range uint64(300) {
		w := newWorld(e, Options{}, seed)
		w.begin(0, []int{10, 60, 80})
		truths, reports := make([]truth, 3), make([]Report, 3)
		w.window(0, truths, reports)
		for i, r := range reports {
			if e.Jobs[i].Fraction {
				if n := r.Performance * r.Requests; math.Abs(n-math.Round(n)) > 1e-6 || r.Requests != math.Round(10*r.Load) {
					t.Fatalf("%v of %v requests", n, r.Requests)
				}
			} else if r.Requests != 0 {
				t.Fatal("a rate is told with requests")
			}
			sums[e.Jobs[i].Fraction] += (r.Performance/truths[i].performance - 1) / 300
		}
	}
	for fraction, bias := range sums {
		if math.Abs(bias) > 0.01 {
			t.Errorf("fraction %v: reports are off by %.4f on average", fraction, bias)
		}
	}
}

func TestWhatCannotBeRunIsAnErrorThatNamesIt(t *testing.T) {
	for want, change := range map[string]func(x *Experiment){
		"trace: 2400 s, the run needs 3600":  func(x *Experiment) { x.Env.Rounds = 30 },
		"trace: second 7 has NaN":            func(x *Experiment) { x.Env.Trace[7] = math.NaN() },
		"trace: second 7 has 1e+300":         func(x *Experiment) { x.Env.Trace[7] = 1e300 },
		"trace_scale 1e+300":                 func(x *Experiment) { x.Env.Jobs[0].Scale = 1e300 },
		"trace_scale 1e+08 of":               func(x *Experiment) { x.Env.Jobs[0].Scale = 1e8 },
		"capacity 1: want at least a unit":   func(x *Experiment) { x.Env.Capacity = 1 },
		`no profile of workload type "nope"`: func(x *Experiment) { x.Env.Jobs[0].Type = "nope" },
		"given twice":                        func(x *Experiment) { x.Env.Jobs[1].Name = x.Env.Jobs[0].Name },
		`utility shape "cubic"`:              func(x *Experiment) { x.Env.Jobs[0].Shape = "cubic" },
		`policy "sozial": unknown`:           func(x *Experiment) { x.Run = []string{"sozial"} },
		"lie ghost: no such job":             func(x *Experiment) { x.Options.Lies = map[string]float64{"ghost": 2} },
		"lie db0j1=NaN":                      func(x *Experiment) { x.Options.Lies = map[string]float64{"db0j1": math.NaN()} },
		"leaves in round 30 of 20":           func(x *Experiment) { x.Options.Leave = map[string]float64{"db0j1": 30} },
		"arrives in round 5 and leaves in round 3": func(x *Experiment) {
			x.Options.Arrive, x.Options.Leave = map[string]float64{"db0j1": 5}, map[string]float64{"db0j1": 3}
		},
		"drift by -1":      func(x *Experiment) { x.Options.Drift = Drift{[]string{"db0j1"}, -1} },
		"start-up delay":   func(x *Experiment) { x.Options.Startup = time.Hour },
		"interference 1.5": func(x *Experiment) { x.Options.Interference = 1.5 },
		"0 seeds":          func(x *Experiment) { x.Seeds = 0 },
	} {
		x := &Experiment{Env: small(3, 20, 300), Run: []string{"miad"}, Frame: lab.Frame{Seeds: 1}}
		change(x)
		_, err := x.Play()
		if !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestFilesAreReadStrictly(t *testing.T) {
	jobs, err := ReadJobs(strings.NewReader("job,workload_type,slo_type,slo,utility_shape,trace_scale\na,x,latency,0.9,sqrt,0.5\nb,y,throughput,400,linear,\n"), "jobs.csv")
	if err != nil || len(jobs) != 2 || jobs[0] != (Job{Name: "a", Type: "x", Fraction: true, SLO: 0.9, Shape: "sqrt", Scale: 0.5, Weight: 1}) || jobs[1].Scale != 0 {
		t.Fatalf("%+v, %v", jobs, err)
	}
	const good = "job,workload_type,slo_type,slo,utility_shape\n"
	for text, want := range map[string]string{
		"job,workload_type,slo_type,slo,utility_shap\n":             `unknown column "utility_shap"`,
		"job,workload_type,slo_type,slo\n":                          `no column "utility_shape"`,
		good:                                                        "no job",
		good + "a,x,latency,much,linear\n":                          `jobs.csv:2: slo is "much"`,
		good + "a,x,latency,1.5,linear\n":                           "a fraction at most 1",
		good + "a,x,speed,0.9,linear\n":                             `slo_type is "speed"`,
		good + "a,x,latency\n":                                      "wrong number of fields",
		good + "a,x,latency,NaN,linear\n":                           "slo NaN",
		good + "a,x,latency,,linear\n":                              "jobs.csv:2: slo is empty",
		good + "\na,x,latency,0.9,linear\n\nb,x,latency,0,linear\n": "jobs.csv:5: job b: slo 0",
		"job,workload_type,slo_type,slo,utility_shape,weight\na,x,latency,0.9,linear,0\n":          "jobs.csv:2: job a: weight 0",
		"job,workload_type,slo_type,slo,utility_shape,slo_latency_s\na,x,latency,0.9,linear,-2\n":  "jobs.csv:2: slo_latency_s is -2",
		"job,workload_type,slo_type,slo,utility_shape,unit_demand\na,x,latency,0.9,linear,NaN\n":   "jobs.csv:2: unit_demand is NaN",
		"job,workload_type,slo_type,slo,utility_shape,trace_scale\na,x,latency,0.9,linear,1e300\n": "jobs.csv:2: job a: trace_scale 1e+300: want 0 to 1e+09",
		"": "header",
	} {
		_, err := ReadJobs(strings.NewReader(text), "jobs.csv")
		if !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "jobs.csv") && !strings.Contains(err.Error(), "job ") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"t_s,qps\n0,1\n2,1\n":     "second 2, want 1",
		"t_s,qps\n0,-1\n":         "trace.csv:2: qps is -1",
		"t_s,qps\n0,NaN\n":        "qps is NaN",
		"t_s,qps\n0,\n":           "trace.csv:2: qps is empty",
		"t_s,qps\n0,1\n1,1e300\n": "trace.csv:3: qps is 1e+300, want 0 to 1e+09",
		"t_s,qps\n0,1\n1\n":       "trace.csv:3: wrong number of fields",
		"t_s,qps\n":               "no row",
	} {
		if _, err := ReadTrace(strings.NewReader(text), "trace.csv"); !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"alloc_per_unit_load,perf_est\n1,1\n1,2\n":   "p.csv:3: alloc_per_unit_load 1 follows 1",
		"alloc_per_unit_load,perf_est\n1,1\n2,0.5\n": "p.csv:3: performance falls from 1 to 0.5",
		"alloc_per_unit_load,perf_est\n,1\n":         "p.csv:2: alloc_per_unit_load is empty",
		"alloc_per_unit_load,perf_est\n1,1e300\n":    "p.csv:2: perf_est is 1e+300",
		"alloc_per_unit_load,perf_est\n1,1\n":        "want at least 2",
		"alloc_per_unit_load,perf_est\n1,0\n2,0\n":   "0 everywhere",
	} {
		if _, err := ReadProfile(strings.NewReader(text), "p.csv"); !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadJobs(f *testing.F) {
	f.Add("job,workload_type,slo_type,slo,utility_shape\na,x,latency,0.9,sqrt\n")
	f.Fuzz(func(t *testing.T, text string) {
		jobs, err := ReadJobs(strings.NewReader(text), "f")
		if err == nil && len(jobs) == 0 || err != nil && !errors.Is(err, trimtab.ErrInvalid) {
			t.Fatal(len(jobs), err)
		}
	})
}

func FuzzReadProfile(f *testing.F) {
	f.Add("alloc_per_unit_load,perf_est\n1,1\n2,2\n")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ReadProfile(strings.NewReader(text), "f")
		if err != nil {
			if !errors.Is(err, trimtab.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		for _, x := range []float64{0, 0.5, 1e9} {
			if v := p.At(x); math.IsNaN(v) || v < 0 {
				t.Fatal(x, v)
			}
		}
	})
}

func FuzzReadTrace(f *testing.F) {
	f.Add("t_s,qps\n0,1\n1,2\n")
	f.Fuzz(func(t *testing.T, text string) {
		trace, err := ReadTrace(strings.NewReader(text), "f")
		if err == nil && len(trace) == 0 || err != nil && !errors.Is(err, trimtab.ErrInvalid) {
			t.Fatal(len(trace), err)
		}
	})
}
