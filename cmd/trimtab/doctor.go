package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus/natsbus"
	"github.com/trimtab/trimtab/codes"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/client"
	"github.com/trimtab/trimtab/internal/doctor"
	"github.com/trimtab/trimtab/internal/hint"
)

// doctorCmd is `trimtab doctor`.
type doctorCmd struct {
	clientFlags `embed:""`
	Config      string `name:"config.file" help:"Configuration file. Without one, check what a trimtab that only watches needs." type:"path" placeholder:"FILE"`
	Role        string `help:"Check what a process with this role needs: collector, analyzer, planner, agent or console. By default: a process with all roles." placeholder:"ROLE"`
	NATS        string `name:"nats.config.file" help:"File with the nats section of that process." type:"path" placeholder:"FILE"`
	Host        string `name:"host" help:"What this host is called in knobs; by default its host name." placeholder:"NAME"`
}

// Example is shown by --help.
func (doctorCmd) Example() string {
	return "trimtab doctor --config.file trimtab.yaml\ntrimtab doctor --config.file trimtab.yaml -o json | jq '.[] | select(.level == \"bad\")'\ntrimtab doctor --config.file trimtab.yaml --role agent --nats.config.file agent/nats.yaml"
}

// Run looks and prints; it is an error when something will not work.
func (c *doctorCmd) Run(ctx context.Context, t terminal) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	found := append(c.running(ctx), doctor.Examine(ctx, cfg, doctor.Location{Role: natsbus.Role(c.Role), Host: c.Host})...)
	if err := c.print(t.out, found, func(w io.Writer) { printFindings(w, found) }); err != nil {
		return err
	}
	return badOf("doctor", found)
}

func (c *doctorCmd) load() (*config.Config, error) {
	if c.Role != "" && (c.Role == string(natsbus.Observer) || !knownRole(c.Role)) {
		return nil, hint.Add(trimtab.Invalidf("doctor: unknown role %q", c.Role), "use one of: collector, analyzer, planner, agent, console")
	}
	switch {
	case c.Config == "" && (c.NATS != "" || c.Role != ""):
		return nil, hint.Add(trimtab.Invalidf("doctor: a role or a nats section needs the configuration of the site"), "add --config.file FILE")
	case c.Config == "":
		return config.Default(), nil
	}
	cfg, err := config.Check(c.Config)
	if err == nil && c.NATS != "" {
		cfg, err = (&stageFlags{Config: c.Config, NATS: c.NATS}).load(natsbus.Role(c.Role), nil)
	}
	return cfg, hint.Add(err, "trimtab check config %s says the same; docs/config.md has every key", c.Config)
}

func knownRole(name string) bool {
	for _, r := range natsbus.Roles() {
		if string(r) == name {
			return true
		}
	}
	return false
}

// running returns the findings of a running trimtab.
func (c *doctorCmd) running(ctx context.Context) []doctor.Finding {
	p, err := client.Client{URL: c.URL}.Pipeline(ctx)
	if err != nil {
		return []doctor.Finding{{Area: "running", Subject: c.URL, Level: doctor.FoundNote, Text: err.Error(), Hint: "it does not run yet, or elsewhere: then name its page with --url"}}
	}
	out := []doctor.Finding{}
	for _, s := range p.Stages {
		f := doctor.Finding{Area: "running", Subject: s.Name, Level: doctor.FoundOK, Text: "ready"}
		switch {
		case !s.Ready:
			f.Level, f.Text, f.Hint = doctor.FoundBad, "not ready: "+s.Reason, "docs/operations.md says what each reason asks for"
		case s.Missing != "":
			f.Level, f.Text = doctor.FoundNote, "ready, without "+s.Missing
		}
		out = append(out, f)
	}
	return append(out, c.status(ctx)...)
}

// status returns the settings that are not in force on hosts, and notes on workloads.
func (c *doctorCmd) status(ctx context.Context) (out []doctor.Finding) {
	s, err := client.Client{URL: c.URL}.Status(ctx)
	if err != nil {
		return nil // a process without a console, which the pipeline has reported
	}
	for i := range s.Unmet {
		u := &s.Unmet[i]
		level := doctor.FoundBad
		if u.What == codes.UnmetClaims {
			level = doctor.FoundNote // it may be intended
		}
		out = append(out, doctor.Finding{Area: "running", Subject: u.What + " on " + u.Host, Level: level, Text: u.Text(), Hint: u.Do})
	}
	for _, w := range s.Workloads {
		for _, note := range w.Notes {
			out = append(out, doctor.Finding{Area: "workload", Subject: w.Name, Level: doctor.FoundNote, Text: note, Hint: "docs/operations.md says what to do about it"})
		}
	}
	return out
}

// printFindings prints one line for each, and its hint below.
func printFindings(w io.Writer, found []doctor.Finding) {
	for _, f := range found {
		fmt.Fprintf(w, "%-5s %s %s: %s\n", f.Level, f.Area, f.Subject, client.Printable(f.Text))
		if f.Hint != "" && f.Level != doctor.FoundOK {
			fmt.Fprintf(w, "      hint: %s\n", client.Printable(f.Hint))
		}
	}
}

// badOf is an error when one of them is bad.
func badOf(what string, found []doctor.Finding) error {
	var bad []string
	for _, f := range found {
		if f.Level == doctor.FoundBad {
			bad = append(bad, f.Subject)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return hint.Add(fmt.Errorf("%s: %d of %d will not work: %s", what, len(bad), len(found), strings.Join(bad[:min(len(bad), 5)], "; ")), "the lines above say what to do")
}
