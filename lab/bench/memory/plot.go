package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/trimtab/trimtab/sim/figure"
)

// plot draws for each service the working set without a limit and the limit of each other row.
func (r *result) plot(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	for i, s := range r.services {
		c := figure.Chart{Title: s.name + ": working set and limits", X: "s", Y: "MiB"}
		for _, row := range r.Rows {
			line := figure.Series{Name: "limit, " + row.Name}
			if row.Name == rowKernel {
				line.Name = "working set, " + row.Name
			}
			for _, x := range row.seen[i].Readings {
				v := x.Limit
				if row.Name == rowKernel {
					v = x.Working
				}
				line.X, line.Y = append(line.X, x.At.Seconds()), append(line.Y, v/mib)
			}
			c.Series = append(c.Series, line)
		}
		if err := draw(filepath.Join(dir, s.name+".svg"), &c); err != nil {
			return err
		}
	}
	return nil
}

func draw(name string, c *figure.Chart) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("draw: %w", err)
	}
	defer f.Close()
	return c.Lines(f)
}
