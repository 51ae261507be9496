package main

import (
	"context"
	"time"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/client"
	"github.com/trimtab/trimtab/internal/doctor"
	"github.com/trimtab/trimtab/internal/hint"
	"github.com/trimtab/trimtab/internal/site"
)

// checkKubernetesCmd is `trimtab check kubernetes`.
type checkKubernetesCmd struct {
	File string `arg:"" help:"The configuration file." type:"path"`
	URL  string `help:"Address of the running trimtab, to say how many nodes pods would need if they reserved what it finds that they need." placeholder:"URL"`
}

// Example is shown by --help.
func (checkKubernetesCmd) Example() string {
	return "trimtab check kubernetes trimtab.yaml\ntrimtab check kubernetes trimtab.yaml --url http://127.0.0.1:9600   # nodes before and after"
}

// checkFor bounds all questions together.
const checkFor = time.Minute

// Run asks the cluster, and changes nothing there.
func (c *checkKubernetesCmd) Run(t terminal) error {
	cfg, err := config.LoadWith(c.File, nil, (&site.Objectives{}).Members())
	if err != nil {
		return hint.Add(err, "docs/config.md has every key")
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkFor)
	defer cancel()
	if err := doctor.CheckCluster(ctx, cfg, t.out); err != nil {
		return hint.Add(err, "docs/kubernetes.md says what each mode needs")
	}
	money := map[string]view.Money{}
	if c.URL != "" {
		r, err := client.Client{URL: c.URL}.Report(ctx, "1h")
		if err != nil {
			return err
		}
		for i := range r.Workloads {
			if w := &r.Workloads[i]; w.Money != nil {
				money[w.Workload] = *w.Money
			}
		}
	}
	return doctor.Nodes(ctx, cfg, money, t.out)
}
