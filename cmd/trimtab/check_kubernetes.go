package main

import (
	"context"
	"time"

	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/internal/doctor"
	"github.com/trimtab/trimtab/internal/hint"
)

// checkKubernetesCmd is `trimtab check kubernetes`.
type checkKubernetesCmd struct {
	File string `arg:"" help:"The configuration file." type:"path"`
}

// Example is shown by --help.
func (checkKubernetesCmd) Example() string { return "trimtab check kubernetes trimtab.yaml" }

// checkFor bounds all questions together.
const checkFor = time.Minute

// Run asks the cluster, and changes nothing there.
func (c *checkKubernetesCmd) Run(t terminal) error {
	cfg, err := config.Load(c.File)
	if err != nil {
		return hint.Add(err, "docs/config.md has every key")
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkFor)
	defer cancel()
	if err := doctor.CheckCluster(ctx, cfg, t.out); err != nil {
		return hint.Add(err, "docs/kubernetes.md says what each mode needs")
	}
	return nil
}
