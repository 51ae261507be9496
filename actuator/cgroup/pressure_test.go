package cgroup_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab/actuator/cgroup"
)

func TestPressureIsTheTotalOfAllWaitingWhereTheKernelTellsIt(t *testing.T) {
	for text, want := range map[string]float64{
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=9000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=2500000\n": 2.5,
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=9000000\n":                                                       -1,
		"full total=x\n":                    -1,
		"full total=99999999999999999999\n": -1,
		"":                                  -1,
		"-":                                 -1, // there is no such file
	} {
		root := t.TempDir()
		dir := filepath.Join(root, "g")
		files := map[string]string{"cpu.max": "50000 100000\n", "cpu.stat": "usage_usec 0\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n", "cpu.pressure": text}
		if text == "-" {
			delete(files, "cpu.pressure")
		}
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		k, err := cgroup.Open(cgroup.Config{Root: root, Path: "g"})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := k.Pressure(); ok {
			t.Error("a group that was not looked at tells its pressure")
		}
		if _, err := k.Look(); err != nil {
			t.Fatal(err)
		}
		if total, ok := k.Pressure(); ok != (want >= 0) || ok && total != want {
			t.Errorf("%q: %v, %v", text, total, ok)
		}
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
}
