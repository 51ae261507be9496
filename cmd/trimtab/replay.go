package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/exporters/record"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/site"
	"github.com/trimtab/trimtab/sim/kubernetes"
	"github.com/trimtab/trimtab/sim/replay"
)

// replayCmd is `trimtab replay`.
type replayCmd struct {
	Recording string    `arg:"" help:"Directory that exporters.record wrote, or one of its files; with autoscalers also a file of loads (.csv or .txt, also .gz): a number of requests a line, or a time and a number." type:"path"`
	File      string    `name:"config.file" help:"The configuration that trimtab ran with; needed for a recording." type:"path"`
	Policy    cli.Names `help:"Objective to replay with; default: that of the configuration. Or autoscalers to compare, one or more of hpa, keda, vpa, eks, dpa, trimtab." placeholder:"NAME,..."`
	Capacity  float64   `help:"Capacity of the pool, to try a larger or smaller one. Default: that of the configuration; for autoscalers unlimited." placeholder:"AMOUNT"`
	Output    string    `short:"o" help:"Form of the output: ${enum}." enum:"text,json,yaml" default:"text"`
	replayPods
	replayUsage
}

// Example is shown by --help.
func (replayCmd) Example() string {
	return "trimtab replay /var/lib/trimtab/recordings --config.file trimtab.yml --policy egalitarian\n" +
		"trimtab replay requests-per-minute.csv.gz --policy eks,dpa,vpa,trimtab --learn 24h   # sums of requests, resizes, first advice\n" +
		"trimtab replay /var/lib/trimtab/recordings --config.file trimtab.yml --policy hpa,keda,vpa,trimtab --hpa hpa.yaml --plot figures\n" +
		"trimtab replay requests-per-minute.csv.gz --policy hpa,trimtab --hpa hpa.yaml --cost 20ms --slo-latency 200ms --learn 24h\n" +
		"trimtab replay memory.csv --usage-of memory --limit 4                  # time,instance,bytes: trimtab, VPA, the limit of 4 GiB, ...\n" +
		"trimtab replay /var/lib/trimtab/recordings --usage-of memory --policy vpa,trimtab,limit"
}

// Run replays and prints the result.
func (c *replayCmd) Run(ctx context.Context, t terminal) error {
	if c.Of != "none" {
		return c.usage(ctx, t)
	}
	if c.compares() {
		return c.compare(ctx, t)
	}
	if len(c.Policy) > 1 {
		return hint.Add(trimtab.Invalidf("--policy %s: one objective is replayed at a time", strings.Join(c.Policy, ",")), "autoscalers can be compared: %s", strings.Join(kubernetes.ReplayNames(), ", "))
	}
	if isLoads(c.Recording) {
		return hint.Add(trimtab.Invalidf("replay %s: a file of loads has no workloads to divide a pool among", c.Recording), "compare autoscalers on it: --policy hpa,keda,vpa,trimtab")
	}
	cfg, err := c.config()
	if err != nil {
		return err
	}
	if len(c.Policy) == 1 {
		cfg.Objective = c.Policy[0]
	}
	plan, err := site.PlannerConfig(cfg)
	if err != nil {
		return hint.Add(fmt.Errorf("replay: %w", err), "policies are those that `objective` of the configuration takes")
	}
	if c.Capacity > 0 {
		plan.Capacity = c.Capacity
	}
	answer := replayAnswer{Policy: cfg.Objective, Unit: view.Unit(cfg.Pool.Resource())}
	history, err := answer.history(ctx, cfg, c.Recording, t.err)
	if err != nil {
		return err
	}
	if answer.Recording.Config != site.Digest(cfg) && len(c.Policy) == 0 {
		fmt.Fprintln(t.err, "trimtab: warning: the recording was made with another configuration; workloads are matched by name")
	}
	bar := cli.NewProgress(t.err, "replay", 0)
	result, err := history.Run(plan, func(played float64) bool {
		bar.Part(played)
		return ctx.Err() != nil
	})
	bar.Done()
	if err != nil {
		return hint.Add(err, "a replay needs workloads of the configuration that were recorded with load, performance and allocation")
	}
	answer.add(result)
	err = cli.Print(t.out, c.Output, &answer, answer.text)
	if stopped := ctx.Err(); stopped != nil {
		err = errors.Join(err, fmt.Errorf("replay: printed is what was played: %w", stopped))
	}
	return err
}

// config reads the configuration that a recording was made with.
func (c *replayCmd) config() (*config.Config, error) {
	if c.File == "" {
		return nil, hint.Add(trimtab.Invalidf("replay %s: --config.file is missing", c.Recording), "name the configuration that trimtab ran with; a demo leaves it beside its recording")
	}
	cfg, err := config.Load(c.File)
	if err != nil {
		return nil, hint.Add(err, "trimtab check config %s shows every mistake", c.File)
	}
	return cfg, nil
}

// history reads a recording.
func (a *replayAnswer) history(ctx context.Context, cfg *config.Config, path string, bars io.Writer) (*replay.History, error) {
	learn, err := site.AnalyzerConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	history, err := replay.New(learn)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if err := a.read(ctx, path, history, bars); err != nil {
		return nil, hint.Add(fmt.Errorf("replay %s: %w", path, err), "recordings come from a running trimtab with exporters.record.path")
	}
	return history, nil
}

// replayAnswer has the fields that `trimtab replay -o json` prints.
type replayAnswer struct {
	Policy    string          `json:"policy"`
	Unit      string          `json:"unit"`
	Recording replayRecording `json:"recording"`
	Rounds    int             `json:"rounds"`
	Moved     float64         `json:"moved"`
	Workloads []replayLine    `json:"workloads"`
}

type replayRecording struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Config  string `json:"config"`
	Lines   int    `json:"lines"`
	Damaged int    `json:"damaged"`
	Lost    uint64 `json:"lost"`
}

type replayLine struct {
	Workload string        `json:"workload"`
	Measured replayFigures `json:"measured"`
	Recorded replayFigures `json:"recorded_by_curve"`
	Replayed replayFigures `json:"replayed"`
}

type replayFigures struct {
	Minutes       float64 `json:"minutes"`
	SLOMinutes    float64 `json:"slo_minutes"`
	Low           float64 `json:"slo_minutes_low"`
	High          float64 `json:"slo_minutes_high"`
	ResourceHours float64 `json:"resource_hours"`
}

// read adds the analyzer's part of a recording to history.
func (a *replayAnswer) read(ctx context.Context, path string, history *replay.History, bars io.Writer) error {
	in, err := record.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	bar := cli.NewProgress(bars, "read recording", 0)
	defer bar.Done()
	for ctx.Err() == nil {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		bar.Part(in.Part())
		if line.Stage != "learn" {
			continue
		}
		switch line.Role {
		case record.Begin:
			err = history.Begin()
		case record.In, record.Tick:
			history.Step(line.Received, line.Value)
		}
		if err != nil {
			return err
		}
	}
	counts := in.Counts()
	a.Recording = replayRecording{Config: in.Header().Config, Lines: counts.Lines, Damaged: counts.Damaged, Lost: counts.Lost}
	return ctx.Err()
}

func (a *replayAnswer) add(r *replay.Result) {
	a.Recording.From, a.Recording.To = r.From.UTC().Format(time.RFC3339), r.To.UTC().Format(time.RFC3339)
	a.Rounds, a.Moved = r.Rounds, r.Moved
	figures := func(f replay.Figures) replayFigures {
		return replayFigures{f.Minutes, f.SLOMinutes, f.Low, f.High, f.Hours}
	}
	for _, l := range r.Lines {
		a.Workloads = append(a.Workloads, replayLine{l.Workload, figures(l.Measured), figures(l.Recorded), figures(l.Replayed)})
	}
}

// text prints a table for people.
func (a *replayAnswer) text(w io.Writer) {
	fmt.Fprintf(w, "replayed %s to %s with %s: rounds: %d\n", a.Recording.From, a.Recording.To, a.Policy, a.Rounds)
	share := func(part, all float64) string {
		if all == 0 {
			return "–"
		}
		return fmt.Sprintf("%.1f%%", 100*part/all)
	}
	unit := strings.ToUpper(a.Unit)
	rows := [][]string{{"WORKLOAD", "MINUTES", "SLO MET", "BY CURVE", "REPLAYED", "BETWEEN", unit + " HOURS", "REPLAYED"}}
	for _, l := range a.Workloads {
		m, c, p := l.Measured, l.Recorded, l.Replayed
		rows = append(rows, []string{l.Workload, fmt.Sprintf("%.0f", m.Minutes), share(m.SLOMinutes, m.Minutes), share(c.SLOMinutes, c.Minutes),
			share(p.SLOMinutes, p.Minutes), share(p.Low, p.Minutes) + " and " + share(p.High, p.Minutes),
			fmt.Sprintf("%.2f", m.ResourceHours), fmt.Sprintf("%.2f", p.ResourceHours)})
	}
	cli.Table(w, rows)
}
