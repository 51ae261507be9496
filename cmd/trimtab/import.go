package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

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
	Files      []string      `arg:"" optional:"" name:"file" help:"Files of OpenSLO (v1, v1alpha, v2alpha), Sloth or Pyrra, which may refer to each other's SLIs; of a directory, all .yaml, .yml and .json below it. Objects of other kinds are ignored." type:"path"`
	Window     time.Duration `help:"Range of the rates: at least four times the scrape interval." default:"1m"`
	Prometheus string        `name:"prometheus.url" help:"Prometheus that answers the queries." default:"http://127.0.0.1:9090" placeholder:"URL"`
	Kubernetes string        `placeholder:"NAMESPACE" help:"Also the objects of OpenSLO, Sloth and Pyrra in this namespace of the cluster that kubectl reaches; * for all."`
	Kubeconfig string        `type:"path" placeholder:"FILE" help:"Kubeconfig file of that cluster, in place of kubectl's."`
}

// Example is shown by --help.
func (importSLOCmd) Example() string {
	return "trimtab import slo slos/ > trimtab.yaml && trimtab check config trimtab.yaml"
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
	all, passed, err := config.ReadObjectiveFiles(texts, c.Window)
	mistaken := error(nil)
	if err != nil {
		mistaken = hint.Add(err, "what has no meaning in trimtab is not guessed: mend it, or leave that objective out")
		if c.Kubernetes == "" {
			return mistaken
		}
		all, passed = eachAlone(texts, c.Window)
		if len(all) == 0 {
			return mistaken
		}
	}
	text := printObjectives(all, passed, c.Prometheus)
	if _, err = config.Parse("draft", []byte(text)); err != nil {
		return fmt.Errorf("import slo: what follows from the files cannot be used: %w", err)
	}
	_, err = io.WriteString(t.out, text)
	return errors.Join(err, mistaken) // a mistake in one object does not affect the others
}

// eachAlone parses each text by itself, so that a bad object of a cluster does not hide the
// others.
func eachAlone(texts []config.ObjectiveFile, window time.Duration) (all []config.Objective, passed []string) {
	for i := range texts {
		found, others, err := config.ReadObjectiveFiles(texts[i:i+1], window)
		if err == nil {
			all, passed = append(all, found...), append(passed, others...)
		}
	}
	return all, passed
}

// texts reads the files, and the objects of the cluster.
func (c *importSLOCmd) texts(ctx context.Context) (all []config.ObjectiveFile, err error) {
	if len(c.Files) == 0 && c.Kubernetes == "" {
		return nil, hint.Add(errors.New("import slo: neither a file nor a namespace"), "name files or directories, or --kubernetes=NAMESPACE")
	}
	size := 0
	for _, name := range c.Files {
		some, err := filesOf(name)
		if err != nil {
			return nil, fmt.Errorf("read objectives: %w", err)
		}
		for _, one := range some {
			if one.Data, err = readBounded(one.Name, config.MaxBytes); err != nil {
				return nil, fmt.Errorf("read objectives: %w", err)
			}
			if size += len(one.Data); size > maxObjectiveBytes {
				return nil, hint.Add(fmt.Errorf("read objectives: the files up to %s have more than %d MiB together", one.Name, maxObjectiveBytes>>20), "name fewer at a time")
			}
			all = append(all, one)
		}
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
	for _, o := range found {
		all = append(all, config.ObjectiveFile{Name: o.Name, Data: o.Text})
	}
	return all, nil
}

const (
	// maxObjectiveBytes is the largest size of all files together; maxObjectiveFiles is the largest
	// number of files in a directory.
	maxObjectiveBytes = 32 << 20
	maxObjectiveFiles = 10_000
)

// filesOf returns a file, or those in and below a directory, in order of name, without names that
// begin with a dot.
func filesOf(name string) (all []config.ObjectiveFile, err error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() { // opening it gives the error
		return []config.ObjectiveFile{{Name: name}}, nil
	}
	err = filepath.WalkDir(name, func(path string, d fs.DirEntry, err error) error {
		hidden := strings.HasPrefix(d.Name(), ".") && path != name
		switch {
		case err != nil:
			return err
		case d.IsDir() && hidden:
			return fs.SkipDir
		case d.IsDir() || hidden || !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(path))):
			return nil
		case len(all) == maxObjectiveFiles:
			return fmt.Errorf("%s has more than %d files", name, maxObjectiveFiles)
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			all = append(all, config.ObjectiveFile{Name: path, Any: true})
		}
		return nil
	})
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no .yaml, .yml or .json", name)
	}
	return all, err
}

// printObjectives writes a configuration with one workload for each service. Of several
// objectives of one service the first counts, and the others are comments.
func printObjectives(all []config.Objective, passed []string, url string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Add pool, and to each workload its knob and mode, where trimtab is to recommend.\nprometheus: {url: %s}\nworkloads:\n", strconv.Quote(url))
	for i, one := range passed {
		if i == mostPassed {
			fmt.Fprintf(&b, "# passed over: %d more\n", len(passed)-i)
			break
		}
		fmt.Fprintf(&b, "# passed over: %s\n", printable(one))
	}
	first := map[string]string{}
	for i := range all {
		o := &all[i]
		name := workloadName(o)
		fmt.Fprintf(&b, "\n  # %s\n", printable(fmt.Sprintf("%s %s, %s:%d", o.Form, o.Name, o.File, o.Line)))
		for _, note := range o.Notes {
			fmt.Fprintf(&b, "  # %s\n", printable(note))
		}
		lines := objectiveLines(o, name)
		if before, twice := first[name]; twice {
			fmt.Fprintf(&b, "  # A workload has one SLO, and that of %s is %s above. In its place:\n", name, printable(before))
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

// mostPassed is the number of skipped objects that are named.
const mostPassed = 10

// printable replaces what would end a comment or cannot be printed.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
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
	if !strings.ContainsFunc(query, func(r rune) bool { return r == '\'' || !unicode.IsPrint(r) }) {
		return "'" + query + "'"
	}
	return strconv.Quote(query)
}
