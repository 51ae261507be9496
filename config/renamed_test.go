package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
)

const oldNames = `pool: {cpu: 4}
# Nightly batch jobs.
colocate:
  mode: act   # since May

  capacity: {cpu: 2}
batch: {policy: SLB}
# Everybody else.
speculate:
  user: batch
  programs: [/opt/batch/*]
workloads: []
`

const newNames = `pool: {cpu: 4}
# Nightly batch jobs.
beside:
  jobs:
    mode: act   # since May

    capacity: {cpu: 2}
  manager: {policy: SLB}
  tasks:
    user: batch
    programs: [/opt/batch/*]
# Everybody else.
workloads: []
`

func TestSectionsWithTheirOldNamesAreReadWithANote(t *testing.T) {
	c := parse(t, oldNames)
	if c.Beside.Jobs == nil || c.Beside.Jobs.Capacity.CPU != 2 || c.Beside.Manager.Policy != "SLB" || c.Beside.Tasks.User != "batch" {
		t.Errorf("%+v", c.Beside)
	}
	var notes []string
	for _, w := range c.Warnings {
		notes = append(notes, w.Message)
	}
	if diff := cmp.Diff([]string{"colocate is now called beside.jobs", "batch is now called beside.manager", "speculate is now called beside.tasks"}, notes); diff != "" {
		t.Error(diff)
	}
	if c := parse(t, newNames); len(c.Warnings) != 0 {
		t.Errorf("the new names: %v", c.Warnings)
	}
}

func TestASectionUnderBothNamesIsAMistakeWhicheverComesFirst(t *testing.T) {
	const was, is = "colocate: {}\n", "beside: {jobs: {mode: act}}\n"
	for _, text := range []string{was + is, is + was} {
		if _, err := config.Parse("f", []byte("pool: {cpu: 4}\n"+text)); err == nil || !strings.Contains(err.Error(), "colocate is the old name of beside.jobs, which is in this file too") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestAFileIsTranslatedWithItsComments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trimtab.yaml")
	for old, want := range map[string]string{oldNames: newNames, newNames: newNames, "{colocate: {}}": ""} {
		if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := config.Translate(file)
		if want == "" {
			if !errors.Is(err, trimtab.ErrInvalid) || !strings.Contains(err.Error(), "write colocate") {
				t.Errorf("%q: %v", old, err)
			}
			continue
		}
		if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
			t.Errorf("%v\n%s", err, diff)
		}
	}
}
