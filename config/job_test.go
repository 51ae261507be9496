package config_test

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/speculation"
)

func TestAJobFileIsTheJobThatItSays(t *testing.T) {
	got, err := config.ParseJob("job.yaml", []byte(`
name: night
priority: 2
queue_timeout: 30s
tasks:
  - {name: one, command: [/opt/batch/one, --all], cpu: 0.5, memory: 64MiB, dir: /srv, progress: /srv/p, wall: 1h, env: {A: b}}
  - {name: many, copies: 2, command: [/opt/batch/many], cpu: 1, memory: 1GiB}
`))
	want := &speculation.BatchJob{Name: "night", Priority: 2, Retries: 2, QueueTimeout: 30, Tasks: []speculation.BatchTask{
		{Name: "one", TaskSpec: speculation.TaskSpec{Command: []string{"/opt/batch/one", "--all"}, Cores: .5, Memory: 64 << 20, Dir: "/srv", Progress: "/srv/p", Wall: 3600, Env: map[string]string{"A": "b"}}},
		{Name: "many-1", TaskSpec: speculation.TaskSpec{Command: []string{"/opt/batch/many"}, Cores: 1, Memory: 1 << 30, Env: map[string]string{"TRIMTAB_COPY": "1"}}},
		{Name: "many-2", TaskSpec: speculation.TaskSpec{Command: []string{"/opt/batch/many"}, Cores: 1, Memory: 1 << 30, Env: map[string]string{"TRIMTAB_COPY": "2"}}},
	}}
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
}

func TestBadJobFilesAreAnsweredWithPlaceAndHint(t *testing.T) {
	const name = "testdata/badjobs.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var rewritten []txtar.File
	for i := 0; i < len(archive.Files); i++ {
		f := archive.Files[i]
		base, isFile := strings.CutSuffix(f.Name, ".yaml")
		if !isFile {
			continue
		}
		want := ""
		if i+1 < len(archive.Files) && archive.Files[i+1].Name == base+".want" {
			want = string(archive.Files[i+1].Data)
		}
		_, err := config.ParseJob(f.Name, f.Data)
		if !errors.Is(err, trimtab.ErrInvalid) {
			t.Fatalf("%s: %v, want invalid", f.Name, err)
		}
		got := err.Error() + "\n"
		for line := range strings.Lines(got) {
			if !strings.HasPrefix(line, f.Name+":") && !strings.HasPrefix(line, "  hint: ") {
				t.Errorf("%s: %q has neither place nor hint", f.Name, line)
			}
		}
		if got != want && !*update {
			t.Errorf("%s:\n%s", f.Name, cmp.Diff(want, got))
		}
		rewritten = append(rewritten, f, txtar.File{Name: base + ".want", Data: []byte(got)})
	}
	if *update {
		archive.Files = rewritten
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func FuzzParseJob(f *testing.F) {
	f.Add([]byte("name: a\ntasks: [{name: b, command: [/c], cpu: 1, memory: 1MiB, copies: 3}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		job, err := config.ParseJob("f", data)
		if err == nil {
			err = job.Validate()
		} else if !errors.Is(err, trimtab.ErrInvalid) {
			t.Error(err)
		}
		if job != nil && err != nil {
			t.Error(err)
		}
	})
}
