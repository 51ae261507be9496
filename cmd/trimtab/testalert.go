package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/alertmanager"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/hint"
)

// testCmd is `trimtab test`.
type testCmd struct {
	Alert testAlertCmd `cmd:"" help:"Send one alert to a running trimtab, as Alertmanager would."`
}

// testAlertCmd is `trimtab test alert`.
type testAlertCmd struct {
	clientFlags `embed:""`
	File        string            `arg:"" optional:"" help:"Body of a webhook to send as it is; - is standard input. Without one, a body is built from the flags."`
	Workload    string            `help:"Build an alert on this workload, with the labels of its match.alert." placeholder:"NAME"`
	Name        string            `help:"Name of the alert that is built." default:"TrimtabTest"`
	Label       map[string]string `help:"Further labels of the alert that is built." placeholder:"NAME=VALUE"`
	Resolved    bool              `help:"Say that the alert is over."`
	Config      string            `name:"config.file" help:"Configuration of the running trimtab: where match.alert and the token's file are found." type:"path" placeholder:"FILE"`
	TokenFile   string            `help:"File that holds the token. Default: that of --config.file." type:"path" placeholder:"FILE"`
}

// Example is shown by --help.
func (testAlertCmd) Example() string {
	return "trimtab test alert --config.file trimtab.yaml --workload checkout\ntrimtab test alert --config.file trimtab.yaml --workload checkout --resolved\ntrimtab test alert webhook.json --token-file alertmanager.token"
}

// Run sends an alert and prints the receiver's answer.
func (c *testAlertCmd) Run(ctx context.Context, t terminal) error {
	cfg := config.Default()
	if c.Config != "" {
		var err error
		if cfg, err = config.Load(c.Config); err != nil {
			return hint.Add(err, "trimtab check config %s says the same", c.Config)
		}
	}
	body, err := c.body(cfg)
	if err != nil {
		return err
	}
	token, err := c.token(cfg)
	if err != nil {
		return err
	}
	s, err := c.client().Alert(ctx, body, token)
	if err != nil {
		return err
	}
	if s.Published+s.Repeated == 0 {
		return hint.Add(fmt.Errorf("send alert: %s", summaryText(s)), "an alert concerns a workload when it has all labels of its match.alert, by default workload: NAME")
	}
	return c.print(t.out, s, func(w io.Writer) {
		fmt.Fprintln(w, summaryText(s))
		fmt.Fprintln(w, "trimtab plan shows the round that it asked for: at most one per 10 s and group")
	})
}

// summaryText describes how the receiver handled the alerts of one webhook.
func summaryText(s *alertmanager.Summary) string {
	text := fmt.Sprintf("%d received: %d handed to the planner, %d known already, %d concern no workload", s.Alerts, s.Published, s.Repeated, s.Unmatched)
	if s.Malformed > 0 {
		text += fmt.Sprintf(", %d are no alerts", s.Malformed)
	}
	if s.Truncated > 0 {
		text += fmt.Sprintf("; the sender left out %d more", s.Truncated)
	}
	return text
}

// body reads the file, or builds a webhook of one alert.
func (c *testAlertCmd) body(cfg *config.Config) ([]byte, error) {
	switch {
	case c.File != "" && c.Workload != "":
		return nil, hint.Add(trimtab.Invalidf("send alert: both a file and --workload are given"), "keep one of them")
	case c.File == "-":
		b, err := io.ReadAll(io.LimitReader(os.Stdin, alertmanager.MaxBody+1))
		if err != nil {
			return nil, fmt.Errorf("read alert: %w", err)
		}
		return b, nil
	case c.File != "":
		b, err := os.ReadFile(c.File)
		if err != nil {
			return nil, fmt.Errorf("read alert: %w", err)
		}
		return b, nil
	case c.Workload == "" && len(c.Label) == 0:
		return nil, hint.Add(trimtab.Invalidf("send alert: nothing to send"), "name a FILE, or a workload with --workload")
	}
	return c.built(cfg)
}

func (c *testAlertCmd) built(cfg *config.Config) ([]byte, error) {
	labels := map[string]string{"alertname": c.Name}
	if c.Workload != "" {
		maps.Copy(labels, matchOf(cfg, c.Workload))
	}
	maps.Copy(labels, c.Label)
	status := "firing"
	if c.Resolved {
		status = "resolved"
	}
	b, err := json.Marshal(map[string]any{
		"version": "4", "receiver": "trimtab-test", "status": status, "groupLabels": map[string]string{"alertname": c.Name},
		"groupKey": "{}:{alertname=" + fmt.Sprintf("%q", c.Name) + "}",
		"alerts": []any{map[string]any{"status": status, "labels": labels, "startsAt": time.Now().UTC(),
			"annotations": map[string]string{"summary": "sent by trimtab test alert"}}},
	})
	if err != nil {
		return nil, fmt.Errorf("print alert: %w", err)
	}
	return b, nil
}

// matchOf returns the labels of alerts on a workload.
func matchOf(cfg *config.Config, workload string) map[string]string {
	for i := range cfg.Workloads {
		if w := &cfg.Workloads[i]; w.Name == workload {
			return w.Match.Alert
		}
	}
	return map[string]string{"workload": workload}
}

// token reads the file that is named by the flag, or by the configuration.
func (c *testAlertCmd) token(cfg *config.Config) (string, error) {
	name := cmp.Or(c.TokenFile, cfg.Alertmanager.TokenFile)
	if name == "" {
		return "", nil
	}
	token, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	return strings.TrimSpace(string(token)), nil
}
