package config_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/prometheus/promql/parser"
	"golang.org/x/tools/txtar"

	"github.com/trimtab/trimtab/config"
)

// told is an objective on one line for each thing it says.
func told(o *config.Objective) string {
	slo := fmt.Sprintf("performance %v", o.SLO.Performance)
	if o.SLO.Latency > 0 {
		slo = fmt.Sprintf("%v of the requests within %v", o.SLO.Fraction, o.SLO.Latency)
	}
	s := fmt.Sprintf("%s %s of %q, %s:%d\n  slo: %s\n  performance: %s\n  load: %s\n", o.Form, o.Name, o.Service, o.File, o.Line, slo, o.Performance, o.Load)
	for _, note := range o.Notes {
		s += "  note: " + note + "\n"
	}
	return s
}

// objectivesOfOthers are those of an example file in each form.
func objectivesOfOthers(t *testing.T) (all []config.Objective) {
	t.Helper()
	for _, name := range []string{"openslo", "sloth", "sloth-resource", "pyrra"} {
		data, err := os.ReadFile("testdata/slo/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		some, err := config.ReadObjectives(name+".yaml", data, config.DefaultWindow)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

func TestObjectivesOfOtherToolsBecomeQueries(t *testing.T) {
	var got strings.Builder
	for _, o := range objectivesOfOthers(t) {
		got.WriteString(told(&o))
	}
	const golden = "testdata/slo/want.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestEveryQueryOfAnObjectiveIsOneThatPrometheusReads(t *testing.T) {
	read := 0
	for _, o := range objectivesOfOthers(t) {
		for _, query := range []string{o.Performance, o.Load} {
			if query == "" {
				continue
			}
			read++
			if _, err := parser.NewParser(parser.Options{}).ParseExpr(query); err != nil {
				t.Errorf("%s: %s: %v", o.Name, query, err)
			}
		}
	}
	if read < 12 {
		t.Errorf("only %d queries", read)
	}
}

func TestAnObjectiveThatHasNoMeaningHereIsAMistakeWithItsPlace(t *testing.T) {
	const name = "testdata/slo/bad.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var rewritten []txtar.File
	for i := 0; i+1 < len(archive.Files); i += 2 {
		f := archive.Files[i]
		_, err := config.ReadObjectives(f.Name, f.Data, config.DefaultWindow)
		got := fmt.Sprint(err) + "\n"
		place := regexp.MustCompile(`^` + regexp.QuoteMeta(f.Name) + `:\d+:\d+: \S[^\n]*\n  hint: \S[^\n]*\n$`)
		if !place.MatchString(got) {
			t.Errorf("%s: not one mistake with place and hint:\n%s", f.Name, got)
		}
		if diff := cmp.Diff(string(archive.Files[i+1].Data), got); diff != "" && !*update {
			t.Errorf("%s: (-want +got)\n%s", f.Name, diff)
		}
		rewritten = append(rewritten, f, txtar.File{Name: archive.Files[i+1].Name, Data: []byte(got)})
	}
	if *update {
		archive.Files = rewritten
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAWorkloadTakesItsSLOFromAFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"sloth.yaml", "pyrra.yaml"} {
		b, err := os.ReadFile("testdata/slo/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check := func(slo string) (*config.Config, error) {
		file := filepath.Join(dir, "trimtab.yaml")
		text := "prometheus: {url: http://127.0.0.1:9090}\nworkloads:\n  - name: cart\n    mode: off\n    load: vector(7)\n    slo: " + slo + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return config.Check(file)
	}
	c, err := check("{file: pyrra.yaml, name: pay-latency}")
	if err != nil {
		t.Fatal(err)
	}
	w := c.Workloads[0]
	if w.SLO.Fraction != 0.95 || w.SLO.Latency.String() != "100ms" || !strings.Contains(w.Performance, `le="0.1"`) || w.Load != "vector(7)" {
		t.Errorf("%+v", w)
	}
	for slo, want := range map[string]string{
		"{file: sloth.yaml}":                                "6:17: the file has 3 objectives",
		"{file: sloth.yaml, name: ratoi}":                   `6:35: the file has no objective "ratoi"`,
		"{file: gone.yaml}":                                 "6:17: file names gone.yaml, which cannot be read: no such file",
		"{file: trimtab.yaml}":                              "6:17: the file has mistakes: ",
		"{file: sloth.yaml, name: ratio, performance: 0.9}": "6:55: slo has both a file and a performance",
	} {
		_, err := check(slo)
		var list config.Errors
		if !errors.As(err, &list) || len(list) != 1 || !strings.Contains(err.Error(), want) || list[0].Hint == "" {
			t.Errorf("%s: want %q, got %v", slo, want, err)
		}
	}
}

// FuzzReadObjectives: any bytes give objectives whose queries a configuration takes, or
// mistakes with places and hints.
func FuzzReadObjectives(f *testing.F) {
	files, err := filepath.Glob("testdata/slo/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := config.ReadObjectives("f", data, config.DefaultWindow)
		var list config.Errors
		if (len(all) == 0) == (err == nil) || err != nil && !errors.As(err, &list) {
			t.Fatalf("%d objectives and %v", len(all), err)
		}
		for _, e := range list {
			if e.Line < 1 || e.Col < 1 || e.Message == "" || e.Hint == "" {
				t.Errorf("%+v", e)
			}
		}
		for i := range all {
			o := &all[i]
			text := fmt.Sprintf("prometheus: {url: http://p}\nworkloads:\n- {name: a, mode: off, slo: {performance: %v}, performance: %q, load: %q}\n", max(o.SLO.Performance, 0.5), o.Performance, o.Load+"vector(1)"[:max(0, 9-9*len(o.Load))])
			if _, err := config.Parse("x", []byte(text)); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}
