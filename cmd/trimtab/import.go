package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/kube"
)

// importCmd is `trimtab import`.
type importCmd struct {
	SLO importSLOCmd `cmd:"" name:"slo" help:"Print the workloads that files of OpenSLO, Sloth or Pyrra describe."`
}

// importSLOCmd is `trimtab import slo`.
type importSLOCmd struct {
	Files      []string      `arg:"" optional:"" name:"file" help:"Files of OpenSLO (openslo/v1), Sloth or Pyrra." type:"path"`
	Window     time.Duration `help:"Range of the rates: at least four times the scrape interval." default:"1m"`
	Prometheus string        `name:"prometheus.url" help:"Prometheus that answers the queries." default:"http://127.0.0.1:9090" placeholder:"URL"`
	Kubernetes string        `placeholder:"NAMESPACE" help:"Also the objects of OpenSLO, Sloth and Pyrra in this namespace of the cluster that kubectl reaches; * for all."`
	Kubeconfig string        `type:"path" placeholder:"FILE" help:"Kubeconfig file of that cluster, in place of kubectl's."`
}

// Example is shown by --help.
func (importSLOCmd) Example() string {
	return "trimtab import slo slos/*.yaml > trimtab.yaml && trimtab check config trimtab.yaml"
}

// Run prints a configuration that only watches: a person adds pool, knob and mode.
func (c *importSLOCmd) Run(ctx context.Context, t terminal) error {
	if c.Window < time.Second || c.Window > time.Hour || c.Window%time.Second != 0 {
		return hint.Add(fmt.Errorf("import slo: window %v: want 1s to 1h, in whole seconds", c.Window), "write --window=1m")
	}
	texts, err := c.texts(ctx)
	if err != nil {
		return err
	}
	var all []config.Objective
	var mistakes config.Errors
	for _, x := range texts {
		found, err := config.ReadObjectives(x.Name, x.Text, c.Window)
		if list := (config.Errors)(nil); errors.As(err, &list) {
			mistakes = append(mistakes, list...)
		}
		all = append(all, found...)
	}
	mistaken := error(nil)
	if len(mistakes) > 0 {
		mistaken = hint.Add(mistakes, "what has no meaning in trimtab is not guessed: mend it, or leave that objective out")
		if c.Kubernetes == "" || len(all) == 0 {
			return mistaken
		}
	}
	text := printObjectives(all, c.Prometheus)
	if _, err = config.Parse("draft", []byte(text)); err != nil {
		return fmt.Errorf("import slo: what follows from the files cannot be used: %w", err)
	}
	_, err = io.WriteString(t.out, text)
	return errors.Join(err, mistaken) // of a cluster, the others are no worse for it
}

// texts reads the files, and the objects of the cluster.
func (c *importSLOCmd) texts(ctx context.Context) (all []kube.Objective, err error) {
	if len(c.Files) == 0 && c.Kubernetes == "" {
		return nil, hint.Add(errors.New("import slo: neither a file nor a namespace"), "name files, or --kubernetes=NAMESPACE")
	}
	for _, name := range c.Files {
		data, err := readBounded(name)
		if err != nil {
			return nil, fmt.Errorf("read objectives: %w", err)
		}
		all = append(all, kube.Objective{Name: name, Text: data})
	}
	if c.Kubernetes == "" {
		return all, nil
	}
	client, err := kube.Open(kube.Config{Kubeconfig: c.Kubeconfig})
	if err != nil {
		return nil, err
	}
	found, err := client.Objectives(ctx, strings.TrimSuffix(c.Kubernetes, "*"))
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("import slo: no object of OpenSLO, Sloth or Pyrra in namespace %s", c.Kubernetes)
	}
	return append(all, found...), nil
}

// printObjectives writes a configuration with one workload for each service. Of several
// objectives of one service the first counts, and the others are comments.
func printObjectives(all []config.Objective, url string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Add pool, and to each workload its knob and mode, where trimtab is to recommend.\nprometheus: {url: %s}\nworkloads:\n", strconv.Quote(url))
	first := map[string]string{}
	for i := range all {
		o := &all[i]
		name := workloadName(o)
		fmt.Fprintf(&b, "\n  # %s %s, %s:%d\n", o.Form, o.Name, o.File, o.Line)
		for _, note := range o.Notes {
			fmt.Fprintf(&b, "  # %s\n", note)
		}
		lines := objectiveLines(o, name)
		if before, twice := first[name]; twice {
			fmt.Fprintf(&b, "  # A workload has one SLO, and that of %s is %s above. In its place:\n", name, before)
			for i := range lines {
				lines[i] = "  # " + strings.TrimPrefix(lines[i], "  ")
			}
		} else {
			first[name] = o.Name
		}
		b.WriteString(strings.Join(lines, "\n") + "\n")
	}
	return b.String()
}

// workloadName is the service, or the objective where the file names no service, in
// letters that a name may have.
func workloadName(o *config.Objective) string {
	name := o.Service
	if name == "" {
		name = o.Name
	}
	name = regexp.MustCompile(`[^A-Za-z0-9._/:-]+`).ReplaceAllString(name, "-")
	return strings.TrimLeft(name, ".-/:")
}

func objectiveLines(o *config.Objective, name string) []string {
	slo := fmt.Sprintf("{performance: %v}", o.SLO.Performance)
	if o.SLO.Latency > 0 {
		slo = fmt.Sprintf("{latency: %v, fraction: %v}", o.SLO.Latency, o.SLO.Fraction)
	}
	lines := []string{"  - name: " + name, "    mode: off", "    slo: " + slo, "    performance: " + quoted(o.Performance)}
	if o.Load != "" {
		lines = append(lines, "    load: "+quoted(o.Load))
	}
	return lines
}

// quoted writes a query as YAML reads it back, on one line.
func quoted(query string) string {
	query = strings.Join(strings.Fields(query), " ")
	if !strings.Contains(query, "'") {
		return "'" + query + "'"
	}
	return strconv.Quote(query)
}
