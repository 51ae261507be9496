package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/goccy/go-yaml"
)

// Print writes v as JSON or YAML, or calls text for every other form.
func Print(w io.Writer, form string, v any, text func(io.Writer)) error {
	if form != "json" && form != "yaml" {
		text(w)
		return nil
	}
	b, err := json.MarshalIndent(v, "", "  ")
	if err == nil && form == "yaml" {
		b, err = yaml.JSONToYAML(b)
	}
	if err != nil {
		return fmt.Errorf("print answer: %w", err)
	}
	_, err = fmt.Fprintln(w, strings.TrimRight(string(b), "\n"))
	return err
}

// Table prints rows in columns.
func Table(w io.Writer, rows [][]string) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	// Errors of w show at the next print.
	_ = tw.Flush()
}

// IsTerminal reports whether w is a screen.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb"
}

// Draw writes one figure.
func Draw(name string, draw func(io.Writer) error) error {
	f, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("create figure: %w", err)
	}
	return errors.Join(draw(f), f.Close())
}
