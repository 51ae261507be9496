package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/site"
	"github.com/trimtab/trimtab/planner/replicas"
	"github.com/trimtab/trimtab/sim"
	"github.com/trimtab/trimtab/sim/figure"
	"github.com/trimtab/trimtab/sim/kubernetes"
	"github.com/trimtab/trimtab/sim/replay"
)

// replayPods are the flags of a comparison of autoscalers.
type replayPods struct {
	HPA     string         `name:"hpa" help:"Manifest with HorizontalPodAutoscalers; each applies to the workload that it targets, a single one to all. Default: CPU at 80% of requests, 1 to 100 pods." type:"path" placeholder:"FILE" group:"Autoscalers:"`
	KEDA    string         `name:"keda" help:"Manifest with ScaledObjects, likewise. Default: 80% of the requests per second that a pod can serve, 1 to 100 pods." type:"path" placeholder:"FILE" group:"Autoscalers:"`
	VPA     string         `name:"vpa" help:"Manifest with VerticalPodAutoscalers, likewise. Default: one that evicts." type:"path" placeholder:"FILE" group:"Autoscalers:"`
	Cores   float64        `name:"pod-cores" help:"CPU request and limit of a pod. Default: what an instance had at first, or a quarter of the first allocation; 1 with a file of loads." placeholder:"CORES" group:"Autoscalers:"`
	Startup *time.Duration `help:"How long a pod takes to start. Default: as in the configuration, or 30s." placeholder:"DURATION" group:"Autoscalers:"`
	Learn   time.Duration  `help:"Length of the beginning that is played and not scored, since trimtab starts without having learnt anything." default:"0s" group:"Autoscalers:"`
	Plot    string         `help:"Directory to draw into, as SVG: the cores of each policy over time, and minutes missed over core-hours." type:"path" placeholder:"DIR" group:"Autoscalers:"`

	Cost     *time.Duration `help:"CPU time of a request. Default: as recorded; 20ms with a file of loads." placeholder:"DURATION" group:"Loads:"`
	Latency  time.Duration  `name:"slo-latency" help:"SLO of a file of loads: the latency of its requests." default:"200ms" group:"Loads:"`
	Fraction float64        `name:"slo-fraction" help:"SLO of a file of loads: the share of requests within that latency, 0.01 to 0.9999." default:"0.95" group:"Loads:"`
	Interval time.Duration  `help:"Time that one line of a file of loads covers. Default: the time between its lines, or a second." placeholder:"DURATION" group:"Loads:"`
	Scale    float64        `help:"Factor by which loads are multiplied." default:"1" group:"Loads:"`
	Seed     uint64         `help:"Seed of the load's variation within one line of a file of loads." default:"1" group:"Loads:"`
}

// compares reports whether autoscalers are asked for.
func (c *replayCmd) compares() bool {
	return slices.ContainsFunc(c.Policy, func(name string) bool { return slices.Contains(kubernetes.ReplayNames(), name) })
}

// podsAnswer has the fields that `trimtab replay --policy hpa,... -o json` prints.
type podsAnswer struct {
	From string `json:"from"`
	To   string `json:"to"`
	// Model says how performance follows from an allocation.
	Model string `json:"model"`
	// Recorded is absent of a file of loads.
	Recorded []recordedPods      `json:"recorded,omitempty"`
	Policies []kubernetes.Played `json:"policies"`
	// Played has the pods with which each workload was played.
	Played []playedWith `json:"workloads"`
	Notes  []string     `json:"notes"`
	// scaled has the names by which autoscalers refer to each workload, besides its own name.
	scaled map[string][]scaled
}

// recordedPods is a workload as it was.
type recordedPods struct {
	Workload  string  `json:"workload"`
	Minutes   float64 `json:"minutes"`
	Missed    float64 `json:"missed_minutes"`
	ByCurve   float64 `json:"missed_minutes_by_curve"`
	CoreHours float64 `json:"core_hours"`
	Changes   int     `json:"changes"`
}

// playedWith has the pods, costs and autoscalers with which a workload was played.
type playedWith struct {
	Workload string  `json:"workload"`
	Pods     int     `json:"pods"`
	Cores    float64 `json:"pod_cores"`
	Cost     float64 `json:"cost_s"`
	Startup  float64 `json:"startup_s"`
	HPA      string  `json:"hpa"`
	KEDA     string  `json:"keda"`
	VPA      string  `json:"vpa"`
}

// compare replays the recording with autoscalers.
func (c *replayCmd) compare(ctx context.Context, t terminal) error {
	if err := cli.Within(cli.In("pod-cores", c.Cores, 0, 1000), cli.In("slo-fraction", c.Fraction, 0.01, 0.9999), cli.In("scale", c.Scale, 1e-6, 1e9), cli.In("capacity", c.Capacity, 0, 1e6)); err != nil {
		return err
	}
	if c.Startup != nil && (*c.Startup < 0 || *c.Startup > 24*time.Hour) || c.Cost != nil && !(*c.Cost > 0 && *c.Cost < time.Hour) {
		return hint.Add(trimtab.Invalidf("replay: --startup is 0s to 24h, --cost more than 0s and less than 1h"), "leave them out for what was recorded, or the default")
	}
	if err := cli.Plottable(c.Plot); err != nil {
		return err
	}
	words, err := c.words()
	if err != nil {
		return err
	}
	x := &kubernetes.Replay{Run: c.Policy, Learn: c.Learn, Pool: c.Capacity, Seed: c.Seed, Runner: sim.InOrder, Stop: func() bool { return ctx.Err() != nil }}
	answer := &podsAnswer{Notes: []string{}, scaled: map[string][]scaled{}}
	if isLoads(c.Recording) {
		err = c.fromLoads(x, answer)
		x.Runner = cli.Parallel(ctx, 0)
	} else {
		err = c.fromRecording(ctx, t, x, answer)
	}
	if err != nil {
		return err
	}
	if answer.Played, err = words.fitting(x.Workloads, answer.scaled); err != nil {
		return err
	}
	answer.Notes = append(answer.Notes, words.notes...)
	err = cli.Counted(t.err, "policies", len(x.Run), func(done func()) (err error) {
		x.Done = done
		answer.Policies, err = x.Play()
		return err
	})
	var unknown *sim.UnknownError
	if errors.As(err, &unknown) {
		return hint.Add(err, "%s; an objective is replayed alone", cli.DidYouMean(unknown.Name, unknown.Known))
	}
	if err != nil {
		return hint.Add(err, "give --interval where lines of a file of loads are not seconds; trimtab replay --help says what each flag means")
	}
	answer.From, answer.To = spanOf(x)
	if c.Plot != "" {
		if err := answer.plot(c.Plot); err != nil {
			return err
		}
	}
	return cli.Print(t.out, c.Output, answer, answer.text)
}

func spanOf(x *kubernetes.Replay) (from, to string) {
	a, b := x.Bounds()
	return a.UTC().Format(time.RFC3339), b.UTC().Format(time.RFC3339)
}

// fromLoads makes one workload of a file of loads.
func (c *replayCmd) fromLoads(x *kubernetes.Replay, answer *podsAnswer) error {
	in, err := readLoads(c.Recording, c.Interval, c.Scale)
	if err != nil {
		return hint.Add(err, "a file of loads has a number of requests a line, or a time and a number")
	}
	x.Interval = in.interval
	r := kubernetes.Recorded{Service: kubernetes.Service{Name: "load", Cost: c.cost(0.02), Latency: c.Latency.Seconds(), Fraction: c.Fraction, Variation: 1, Startup: c.startup()},
		Points: in.points, Request: or(c.Cores, 1)}
	sum := 0.0
	for _, p := range in.points {
		sum += p.Load
	}
	// As many pods as the mean load needs at 80% utilisation, and two if a VPA may evict one.
	r.Replicas = min(max(int(math.Ceil(sum/float64(len(in.points))*r.Cost/r.Request/0.8)), 2), 10_000)
	x.Workloads = []kubernetes.Recorded{bounded(r, nil)}
	answer.Model = fmt.Sprintf("a request costs %g ms of CPU; each pod is an M/M/1 queue, and what its cores do not do waits: late = rho exp(-(cores/cost - load) %gs). The load varies by 4%% within what the file tells.",
		1000*r.Cost, r.Latency)
	return nil
}

// fromRecording takes the workloads from a recording.
func (c *replayCmd) fromRecording(ctx context.Context, t terminal, x *kubernetes.Replay, answer *podsAnswer) error {
	cfg, err := c.config()
	if err != nil {
		return err
	}
	plan, err := site.PlannerConfig(cfg)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if unit := view.Unit(cfg.Pool.Resource()); unit != "cores" {
		return hint.Add(trimtab.Invalidf("replay: the pool shares %s: autoscalers are compared where it shares cores", unit), "replay an objective instead")
	}
	history, err := (&replayAnswer{}).history(ctx, cfg, c.Recording, t.err)
	if err != nil {
		return err
	}
	for i := range plan.Workloads {
		w := &plan.Workloads[i]
		course, ok := history.Course(w.Name, w.SLO)
		if !ok {
			answer.Notes = append(answer.Notes, w.Name+" is left out: it was not recorded with load, performance and allocation")
			continue
		}
		r, err := c.recorded(cfg, w.Name, w.SLO, course)
		if err != nil {
			return err
		}
		x.Interval = course.Interval
		x.Workloads = append(x.Workloads, *r)
		answer.scaled[w.Name] = scaledAs(cfg, w.Name)
		m := &course.Measured
		answer.Recorded = append(answer.Recorded, recordedPods{w.Name, m.Minutes, m.Minutes - m.SLOMinutes, m.Minutes - course.ByCurve.SLOMinutes, m.Hours, course.Changes})
	}
	answer.Model = "performance is that of the curve learnt from the whole recording, at pods x cores of each; the range is that of its band. Work that waits is not carried over. What was measured stands beside what the same curve says of the same allocations."
	return nil
}

// recorded is a workload of a recording, with pods like those that it had.
func (c *replayCmd) recorded(cfg *config.Config, name string, slo float64, course *replay.Course) (*kubernetes.Recorded, error) {
	i := slices.IndexFunc(cfg.Workloads, func(w config.Workload) bool { return w.Name == name })
	if i < 0 {
		return nil, trimtab.Invalidf("replay of %.100q: the configuration does not have it", name)
	}
	w := &cfg.Workloads[i]
	cost := c.cost(course.Cost)
	if cost == 0 {
		return nil, hint.Add(trimtab.Invalidf("replay of %.100q: what a request costs was not recorded", name), "say it with --cost 20ms; a recording has it where trimtab sees what the workload uses")
	}
	pods := course.Instances
	if pods == 0 {
		pods = 4
	}
	r := kubernetes.Recorded{Service: kubernetes.Service{Name: name, Cost: cost, Fraction: slo, Startup: c.startup()}, Predict: course.Predict, Shares: course.Shares,
		Request: or(c.Cores, course.Allocation/float64(pods))}
	if w.SLO.Shares() {
		r.Latency = w.SLO.Latency.Seconds()
	}
	r.Replicas = min(max(int(math.Ceil(course.Allocation/r.Request-1e-9)), 1), 10_000)
	for k, at := range course.Times {
		r.Points = append(r.Points, kubernetes.Point{At: at, Load: c.Scale * course.Loads[k]})
	}
	if n := w.Knob.Replicas; n != nil && c.Startup == nil {
		r.Startup = n.Startup.Seconds()
	}
	out := bounded(r, &w.Knob)
	return &out, nil
}

func (c *replayCmd) cost(otherwise float64) float64 {
	if c.Cost != nil {
		return c.Cost.Seconds()
	}
	return otherwise
}

// startup returns the start time of pods; 0 if requested, so that pods start at once.
func (c *replayCmd) startup() float64 {
	if c.Startup != nil {
		return c.Startup.Seconds()
	}
	return 30
}

func or(v, otherwise float64) float64 {
	if v > 0 {
		return v
	}
	return otherwise
}

// bounded sets trimtab's bounds: those of the knob of a Kubernetes workload, or a tenth to twice
// the size of a pod.
func bounded(r kubernetes.Recorded, k *config.Knob) kubernetes.Recorded {
	r.Sizes = replicas.Size{Min: r.Request / 10, Max: 2 * r.Request, Step: r.Request / 100}
	r.Counts = replicas.Count{Min: 1, Max: 100}
	if k != nil && k.Kubernetes != nil && k.CPU != nil && k.CPU.Min > 0 && k.CPU.Max >= k.CPU.Min {
		r.Sizes.Min, r.Sizes.Max = k.CPU.Min, k.CPU.Max
	}
	if k != nil && k.Replicas != nil {
		r.Counts.Min, r.Counts.Max, r.Counts.Spare = k.Replicas.Min, k.Replicas.Max, k.Replicas.Spare
		r.Counts.Behavior = site.BehaviorOf(k.Replicas.Behavior)
	}
	return r
}

// text prints a table for people.
func (a *podsAnswer) text(w io.Writer) {
	fmt.Fprintf(w, "replayed %s to %s\n%s\n", a.From, a.To, a.Model)
	for _, p := range a.Played {
		fmt.Fprintf(w, "%s: %s of %.4g cores at first, starts of %.3g s, %.4g ms of CPU a request\n", p.Workload, view.Count(p.Pods, "pod"), p.Cores, p.Startup, 1000*p.Cost)
		fmt.Fprintf(w, "  hpa: %s\n  keda: %s\n  vpa: %s\n", p.HPA, p.KEDA, p.VPA)
	}
	for _, text := range a.Notes {
		fmt.Fprintf(w, "note: %s\n", text)
	}
	fmt.Fprintln(w)
	rows := [][]string{{"WORKLOAD", "POLICY", "MINUTES", "SLO MISSED", "BETWEEN", "CORE-HOURS", "USED", "NEEDED", "CHANGES OF NUMBER", "RESIZES A POD AND DAY", "FIRST ADVICE"}}
	for i, r := range a.Recorded {
		rows = append(rows, []string{r.Workload, "as recorded", fmt.Sprintf("%.0f", r.Minutes), fmt.Sprintf("%.1f", r.Missed), fmt.Sprintf("by curve %.1f", r.ByCurve), fmt.Sprintf("%.2f", r.CoreHours), "", "", fmt.Sprint(r.Changes), "", ""})
		for k := range a.Policies {
			rows = append(rows, playedRow(r.Workload, a.Policies[k].Policy, &a.Policies[k].Workloads[i]))
		}
	}
	for k := range a.Policies {
		p := &a.Policies[k]
		if len(a.Recorded) == 1 {
			break
		}
		rows = append(rows, playedRow("all", p.Policy, &p.Total))
	}
	cli.Table(w, rows)
}

func playedRow(workload, policy string, s *kubernetes.Score) []string {
	between := fmt.Sprintf("%.0f and %.0f", s.LeastMissed, s.MostMissed)
	if s.LeastMissed == s.MostMissed {
		between = ""
	}
	needed, resizes, advice := "–", "–", "never"
	if s.NeedUnknown == 0 {
		needed = fmt.Sprintf("%.2f", s.NeededHours)
	}
	if s.PodDays > 0 {
		resizes = fmt.Sprintf("%.1f", s.Resized/s.PodDays)
	}
	if s.Advice != nil {
		advice = (time.Duration(*s.Advice) * time.Second).String()
	}
	return []string{workload, policy, fmt.Sprintf("%.0f", s.Minutes), fmt.Sprintf("%.0f", s.Missed), between, fmt.Sprintf("%.2f", s.CoreHours), fmt.Sprintf("%.2f", s.UsedHours), needed,
		fmt.Sprintf("%.0f", s.Scaled), resizes, advice}
}

// plot draws each workload over time, and the totals.
func (a *podsAnswer) plot(dir string) error {
	ends := &figure.Chart{Title: "Minutes of SLO missed and core-hours, " + a.From + " to " + a.To, X: "core-hours", Y: "minutes missed"}
	for k := range a.Policies {
		p := &a.Policies[k]
		ends.Series = append(ends.Series, figure.Series{Name: p.Policy, X: []float64{p.Total.CoreHours}, Y: []float64{p.Total.Missed}, Labels: []string{p.Policy}})
	}
	if err := cli.Draw(filepath.Join(dir, "replay-missed.svg"), ends.Points); err != nil {
		return err
	}
	for i := range a.Played {
		c := &figure.Chart{Title: "Cores of " + a.Played[i].Workload, X: "hours", Y: "cores"}
		for k := range a.Policies {
			x, y := thinned(a.Policies[k].Workloads[i].Course)
			c.Series = append(c.Series, figure.Series{Name: a.Policies[k].Policy, X: x, Y: y})
		}
		if err := cli.Draw(filepath.Join(dir, "replay-"+strings.NewReplacer("/", "-", "\\", "-").Replace(a.Played[i].Workload)+".svg"), c.Lines); err != nil {
			return err
		}
	}
	return nil
}

// thinned averages minutes so that at most 600 points are left.
func thinned(course []float64) (x, y []float64) {
	each := len(course)/600 + 1
	for i := 0; i < len(course); i += each {
		part, sum := course[i:min(i+each, len(course))], 0.0
		for _, v := range part {
			sum += v
		}
		x, y = append(x, float64(i)/60), append(y, sum/float64(len(part)))
	}
	return x, y
}

// readWords reads the objects of a manifest; none for "".
func readWords(path, kind string) ([]config.Autoscaler, error) {
	if path == "" {
		return nil, nil
	}
	data, err := readBounded(path, config.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("read manifest: %w", err)
	}
	return config.ReadAutoscalers(path, data, kind)
}

// scaledAs are the names by which autoscalers refer to a workload: the Deployment or StatefulSet
// of its knob, or of its match.
func scaledAs(cfg *config.Config, workload string) (all []scaled) {
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		if w.Name != workload {
			continue
		}
		for _, t := range []*config.KubernetesTarget{w.Knob.Kubernetes, w.Match.Kubernetes} {
			if t != nil {
				_, name := t.Workload()
				all = append(all, scaled{t.Namespace, name})
			}
		}
	}
	return all
}
