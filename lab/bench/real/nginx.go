package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/trimtab/trimtab/lab/bench/rig"
)

// nginx serves a text that it compresses for each request. Work is the length
// of the text in KiB.
type nginx struct {
	*rig.Nginx
	dir string
}

func (n *nginx) start(ctx context.Context, in *rig.Group, dir string) (err error) {
	n.dir = filepath.Join(dir, "www")
	if err := os.MkdirAll(n.dir, 0o755); err != nil {
		return fmt.Errorf("start nginx: %w", err)
	}
	if err := n.prepare(1); err != nil {
		return err
	}
	n.Nginx, err = rig.StartNginx(ctx, in, dir, rig.Site{HTTP: rig.Gzip, Server: "root " + n.dir + ";", Ready: "/1", Most: inFlight})
	return err
}

// prepare writes a text of that many KiB.
func (n *nginx) prepare(work int) error {
	name := filepath.Join(n.dir, strconv.Itoa(work))
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	if err := os.WriteFile(name, rig.Prose(work<<10), 0o644); err != nil {
		return fmt.Errorf("write what nginx serves: %w", err)
	}
	return nil
}

func (n *nginx) do(ctx context.Context, work int) error {
	if err := n.prepare(work); err != nil {
		return err
	}
	_, err := n.Ask(ctx, "/"+strconv.Itoa(work))
	return err
}

func (n *nginx) close() { n.Close() }
