package main

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/exporters/record"
	"github.com/trimtab/trimtab/internal/cli"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/quantity"
	"github.com/trimtab/trimtab/sim/sizing"
)

// replayUsage are the flags of a comparison of rules that set a limit from usage.
type replayUsage struct {
	Of     string  `name:"usage-of" help:"Play recorded usage of a resource, memory or cpu, under rules that set a limit: trimtab, vpa, dpa, limit (the recorded one), thumb (1.2 times the 99th percentile), for CPU eks, and for memory autopilot, autopilot98. --policy chooses some. The file is a recording; CSV with lines of time and use, time, instance and use, or time, instance, use and limit, in bytes or cores; or JSON of Prometheus's query_range." enum:"memory,cpu,none" default:"none" placeholder:"RESOURCE" group:"Usage:"`
	Limit  float64 `help:"Limit that instances had, in GiB or cores, where the file does not say." placeholder:"AMOUNT" group:"Usage:"`
	Margin float64 `help:"How far trimtab's memory limit is above the need, as a part of it." default:"0.07" group:"Usage:"`
}

// maxUsage and maxSeries bound what is read of usage.
const maxUsage, maxSeries = 20_000_000, 10_000

const usageHint = "a file of usage has lines of time, instance, use and limit, in bytes or cores, or is the answer of Prometheus's /api/v1/query_range; a recording comes from exporters.record.path"

// usageAnswer has the fields that `trimtab replay --usage-of RESOURCE -o json` prints.
type usageAnswer struct {
	Resource string `json:"resource"`
	Unit     string `json:"unit"`
	// Instances has each instance, Total all of them.
	Instances []usageOf      `json:"instances"`
	Total     []sizing.Score `json:"total"`
	Killed    int            `json:"recorded_kills"`
}

type usageOf struct {
	Name   string         `json:"name"`
	Limit  float64        `json:"recorded_limit,omitempty"`
	Killed int            `json:"recorded_kills,omitempty"`
	Rules  []sizing.Score `json:"rules"`
}

// usage plays recorded usage under rules.
func (c *replayCmd) usage(ctx context.Context, t terminal) error {
	if err := cli.Within(cli.In("limit", c.Limit, 0, 1e6), cli.In("margin", c.Margin, 0, 10)); err != nil {
		return err
	}
	a := &usageAnswer{Resource: c.Of, Unit: "bytes", Instances: []usageOf{}}
	limit := c.Limit * (1 << 30)
	if c.Of == trimtab.CPU {
		a.Unit, limit = "cores", c.Limit
	}
	rules := []string(c.Policy)
	if len(rules) == 0 {
		rules = sizing.Rules(c.Of)
	}
	for _, name := range rules {
		if !slices.Contains(sizing.Rules(c.Of), name) {
			return hint.Add(trimtab.Invalidf("--policy %.40q: no rule for %s", name, c.Of), "%s", cli.DidYouMean(name, sizing.Rules(c.Of)))
		}
		a.Total = append(a.Total, sizing.Score{Rule: name})
	}
	all, err := readUsage(ctx, c.Recording, c.Of)
	if err != nil {
		return hint.Add(fmt.Errorf("replay %s: %w", c.Recording, err), "%s", usageHint)
	}
	for i := range all {
		s := &all[i]
		s.Limit = cmp.Or(s.Limit, limit)
		of := usageOf{Name: s.Name, Limit: s.Limit, Killed: s.Kills}
		for k, name := range rules {
			if ctx.Err() != nil {
				return fmt.Errorf("replay usage: %w", ctx.Err())
			}
			score := sizing.Play(s, sizing.New(c.Of, name, s, c.Margin))
			score.Rule = name
			of.Rules = append(of.Rules, score)
			a.Total[k].Add(score)
		}
		a.Killed += s.Kills
		a.Instances = append(a.Instances, of)
	}
	return cli.Print(t.out, c.Output, a, a.text)
}

// text prints a table for people.
func (a *usageAnswer) text(w io.Writer) {
	fmt.Fprintf(w, "%s of %s under each rule, after a first day of watching, or a third of a shorter recording; amounts are means\n", a.Resource, view.Count(len(a.Instances), "instance"))
	if a.Killed > 0 {
		fmt.Fprintf(w, "in the recording the kernel killed %s for lack of memory\n", view.Count(a.Killed, "process"))
	}
	rows := [][]string{{"INSTANCE", "RULE", "READINGS", "OVERRUNS", "KILLS", "LIMIT", "OVER-PROVIDED", "UNDER-PROVIDED", "SLACK"}}
	const most = 8
	for i := range a.Instances[:min(len(a.Instances), most)] {
		for k := range a.Instances[i].Rules {
			rows = append(rows, a.row(a.Instances[i].Name, &a.Instances[i].Rules[k]))
		}
	}
	for k := range a.Total {
		if len(a.Instances) > 1 {
			rows = append(rows, a.row("all", &a.Total[k]))
		}
	}
	cli.Table(w, rows)
	if n := len(a.Instances) - most; n > 0 {
		fmt.Fprintf(w, "%d more instances: -o json\n", n)
	}
}

func (a *usageAnswer) row(name string, s *sizing.Score) []string {
	if s.Readings == 0 {
		return []string{name, s.Rule, "–", "", "", "no limit is known", "", "", ""}
	}
	kills := fmt.Sprint(s.Kills)
	if a.Resource == trimtab.CPU {
		kills = "–"
	}
	show := func(v float64) string { return trimtab.AmountOf(a.Resource, trimtab.Units(v)) }
	return []string{name, s.Rule, fmt.Sprint(s.Readings), fmt.Sprint(s.Overruns), kills, show(s.Limit), show(s.Over), show(s.Under), fmt.Sprintf("%.1f%%", 100*s.Slack)}
}

// readUsage reads the usage of instances, in order of their names.
func readUsage(ctx context.Context, path, resource string) ([]sizing.Series, error) {
	by := usages{}
	name := strings.TrimSuffix(path, ".gz")
	var err error
	switch {
	case isLoads(path), strings.HasSuffix(name, ".json"):
		err = by.file(path, strings.HasSuffix(name, ".json"))
	default:
		err = by.recording(ctx, path, resource)
	}
	if err == nil && len(by) == 0 {
		err = trimtab.Invalidf("read usage: there is none of %s", resource)
	}
	if err != nil {
		return nil, err
	}
	var all []sizing.Series
	for _, k := range slices.Sorted(maps.Keys(by)) {
		s := by[k]
		slices.SortStableFunc(s.Readings, func(a, b sizing.Reading) int { return a.At.Compare(b.At) })
		all = append(all, *s)
	}
	return all, nil
}

// usages are series by the name of their instance.
type usages map[string]*sizing.Series

// of returns the series of an instance; an error: there are too many.
func (u usages) of(name string) (*sizing.Series, error) {
	if u[name] == nil {
		if len(u) >= maxSeries {
			return nil, trimtab.Invalidf("read usage: more than %d instances", maxSeries)
		}
		u[name] = &sizing.Series{Name: name}
	}
	return u[name], nil
}

func (u usages) file(path string, isJSON bool) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return fmt.Errorf("read usage: %w", err)
		}
	}
	if isJSON {
		return u.prometheus(in)
	}
	return u.csv(in)
}

// csv reads lines of time and use, with an instance between them, and a limit behind.
func (u usages) csv(in io.Reader) error {
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		fields := strings.Split(text, ",")
		at, ok := timeOf(fields[0])
		if !ok && n == 1 {
			continue // the names of columns
		}
		name, use, limit := "usage", fields[min(1, len(fields)-1)], ""
		if len(fields) > 2 {
			name, use = fields[1], fields[2]
		}
		if len(fields) > 3 {
			limit = fields[3]
		}
		v, err := strconv.ParseFloat(strings.TrimSpace(use), 64)
		if !ok || err != nil || !usable(v) || len(fields) < 2 || len(fields) > 4 || n > maxUsage {
			return trimtab.Invalidf("read usage: line %d is %.60q: want time,use or time,instance,use or time,instance,use,limit, at most %d lines", n, text, maxUsage)
		}
		s, err := u.of(strings.TrimSpace(name))
		if err != nil {
			return err
		}
		s.Readings = append(s.Readings, sizing.Reading{At: at, Use: v})
		if l, err := strconv.ParseFloat(strings.TrimSpace(limit), 64); err == nil && usable(l) {
			s.Limit = l
		}
	}
	return lines.Err()
}

func usable(v float64) bool { return v >= 0 && v <= 1e18 && !math.IsNaN(v) }

// prometheus reads the answer of a range query. Values that are no finite number are missing.
func (u usages) prometheus(in io.Reader) error {
	type result struct {
		Metric map[string]string `json:"metric"`
		Values [][2]any          `json:"values"`
	}
	var answer struct {
		Data struct {
			Result []result `json:"result"`
		} `json:"data"`
	}
	data, err := io.ReadAll(io.LimitReader(in, 1<<30))
	if err != nil {
		return fmt.Errorf("read usage: %w", err)
	}
	if strings.HasPrefix(strings.TrimSpace(string(data[:min(len(data), 100)])), "[") {
		err = json.Unmarshal(data, &answer.Data.Result) // as promtool prints it
	} else {
		err = json.Unmarshal(data, &answer)
	}
	if err != nil {
		return fmt.Errorf("read usage: %w: %w", trimtab.ErrInvalid, err)
	}
	for _, r := range answer.Data.Result {
		s, err := u.of(labelled(r.Metric))
		if err != nil {
			return err
		}
		for _, x := range r.Values {
			at, isNumber := x[0].(float64)
			text, isText := x[1].(string)
			v, err := strconv.ParseFloat(text, 64)
			if isNumber && isText && err == nil && usable(v) && at >= 0 && at < 1e11 {
				s.Readings = append(s.Readings, sizing.Reading{At: time.UnixMilli(int64(at * 1000)).UTC(), Use: v})
			}
		}
	}
	maps.DeleteFunc(u, func(_ string, s *sizing.Series) bool { return len(s.Readings) == 0 })
	return nil
}

// labelled names a series of Prometheus: by namespace, pod and container, or by all its labels.
func labelled(labels map[string]string) string {
	var known, all []string
	for _, k := range []string{"namespace", "pod", "container"} {
		if labels[k] != "" {
			known = append(known, labels[k])
		}
	}
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		if k != "__name__" {
			all = append(all, k+"="+labels[k])
		}
	}
	switch {
	case labels["pod"] != "" || labels["container"] != "":
		return strings.Join(known, "/")
	case len(all) > 0:
		return strings.Join(all, " ")
	}
	return "usage"
}

// recording reads the samples of working sets, limits and kills, or those of the use of CPU.
func (u usages) recording(ctx context.Context, path, resource string) error {
	in, err := record.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // only read
	use := quantity.WorkingSet
	if resource == trimtab.CPU {
		use = quantity.Usage
	}
	for ctx.Err() == nil {
		line, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		sample, ok := line.Value.(*trimtab.Sample)
		if !ok || line.Stage != "learn" || line.Role != record.In || sample.Missing != "" {
			continue
		}
		name := strings.TrimSuffix(strings.Join(slices.DeleteFunc([]string{sample.Workload, sample.Host, sample.Instance}, func(s string) bool { return s == "" }), "/"), "/")
		switch s := u[name]; {
		case sample.Quantity == use:
			if s, err = u.of(name); err != nil {
				return err
			}
			s.Readings = append(s.Readings, sizing.Reading{At: sample.Time, Use: sample.Value})
		case s == nil || resource == trimtab.CPU:
		case sample.Quantity == quantity.MemoryLimit:
			s.Limit = sample.Value
		case sample.Quantity == quantity.OOMKills:
			s.Kills += int(math.Min(sample.Value, 1e6))
		}
	}
	return ctx.Err()
}
