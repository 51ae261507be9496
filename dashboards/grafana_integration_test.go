//go:build integration

package dashboards

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The versions of what the types are checked with.
const (
	grafanaSchema = "@grafana/schema@13.2.3"
	typescript    = "typescript@5.9.3"
)

// head makes the names of enums, which Grafana writes as text, acceptable as
// text, and adds what Prometheus keeps with an annotation.
const head = `import type { Dashboard as Model, AnnotationQuery } from '@grafana/schema';
import * as timeseries from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
import * as stat from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import * as table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import * as heatmap from '@grafana/schema/dist/esm/raw/composable/heatmap/panelcfg/x/HeatmapPanelCfg_types.gen';

type Text<T> = T extends string ? ` + "`${T}`" + ` : T extends (infer U)[] ? Text<U>[] : T extends object ? { [K in keyof T]: Text<T[K]> } : T;
type OfPrometheus = { expr: string; titleFormat: string; textFormat: string };
type Board = Omit<Text<Model>, 'annotations'> & { annotations: { list: (Text<AnnotationQuery> & OfPrometheus)[] } };
`

// TestTheBoardsHaveTheTypesOfGrafana lets TypeScript compare the boards and
// the options of every panel with Grafana's own types.
func TestTheBoardsHaveTheTypesOfGrafana(t *testing.T) {
	npm, err := exec.LookPath("npm")
	if err != nil {
		t.Skipf("no npm here (%v): apt-get install npm", err)
	}
	dir := t.TempDir()
	// A registry that does not answer is one that is not there.
	installing, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	run := func(ctx context.Context, name string, args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, name, args...)
		cmd.WaitDelay = time.Second
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private": true, "type": "module"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := run(installing, npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", grafanaSchema, typescript); err != nil {
		t.Skipf("npm does not bring %s and %s: %v\n%s", grafanaSchema, typescript, err, out)
	}
	args := []string{"--noEmit", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler"}
	var files []string
	for name, b := range boards() {
		file := name + ".ts"
		if err := os.WriteFile(filepath.Join(dir, file), typed(t, b), 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	tsc := filepath.Join(dir, "node_modules", ".bin", "tsc")
	if out, err := run(t.Context(), tsc, append(args, files...)...); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// What is wrong must be found: in the board, an option and a style.
	for _, change := range []struct{ from, to string }{
		{`"schemaVersion": 42`, `"schemaVersion": "42"`},
		{`"displayMode":"table"`, `"displayMode":"tabel"`},
		{`"lineWidth":1`, `"lineWith":1`},
		{`"uid": "${datasource}"`, `"uid": 1`},
	} {
		good := typed(t, workload())
		bad := bytes.Replace(good, []byte(change.from), []byte(change.to), 1)
		if bytes.Equal(good, bad) {
			t.Fatalf("no %s in the file", change.from)
		}
		if err := os.WriteFile(filepath.Join(dir, "bad.ts"), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := run(t.Context(), tsc, append(args, "bad.ts")...); err == nil {
			t.Errorf("%s is accepted: %s", change.to, out)
		}
	}
}

// typed prints a board as TypeScript that only compiles when all fits.
func typed(t *testing.T, b *board) []byte {
	t.Helper()
	var out strings.Builder
	out.WriteString(head)
	fmt.Fprintf(&out, "export const board: Board = %s;\n", b.encode())
	print := func(name, kind string, v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "export const %s: %s = %s;\n", name, kind, text)
	}
	for _, p := range b.Panels {
		if p.Type == "row" {
			continue
		}
		print(fmt.Sprint("options", p.ID), "Text<Partial<"+p.Type+".Options>>", p.Options)
		if p.FieldConfig.Defaults.Custom != nil {
			print(fmt.Sprint("custom", p.ID), "Text<Partial<"+p.Type+".FieldConfig>>", p.FieldConfig.Defaults.Custom)
		}
	}
	return []byte(out.String())
}
