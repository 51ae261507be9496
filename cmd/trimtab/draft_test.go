package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/trimtab/trimtab/config"
)

func TestADraftKnowsWhetherTheGroupsOfItsKnobsHaveOneOfTheirOwnInCommon(t *testing.T) {
	for name, c := range map[string]struct {
		there, given, found []string
		apart               bool
	}{
		"no knob":                 {[]string{"shop"}, nil, nil, false},
		"below one":               {[]string{"shop", "shop/a", "shop/b"}, nil, []string{"shop/a", "shop/b"}, false},
		"with what there was":     {[]string{"shop", "shop/a", "shop/b-1"}, []string{"", "shop/b-*"}, []string{"shop/a"}, false},
		"at the top":              {[]string{"a", "b"}, nil, []string{"a", "b"}, true},
		"below two":               {[]string{"shop/a", "mail/b"}, []string{"mail/b"}, []string{"shop/a"}, true},
		"others are there, too":   {[]string{"shop/a", "shop/cron"}, nil, []string{"shop/a"}, true},
		"others are further down": {[]string{"shop/a", "shop/a/cron"}, nil, []string{"shop/a"}, false},
	} {
		d := &draft{given: &config.Given{Cgroups: c.given}, groups: c.there, knobbed: c.found}
		if got := d.apart(); got != c.apart {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestADraftProposesMemoryFromWhatTheGroupUses(t *testing.T) {
	root := t.TempDir()
	d := &draft{given: &config.Given{Config: &config.Config{}}, root: root}
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"with a limit":    {map[string]string{"memory.current": "314572800\n", "memory.peak": "524288000\n", "memory.max": "1073741824\n"}, ", memory: {min: 150MiB, max: 1024MiB, margin: 0.07}"},
		"without a limit": {map[string]string{"memory.usage_in_bytes": "104857600", "memory.max_usage_in_bytes": "209715200", "memory.limit_in_bytes": "9223372036854771712"}, ", memory: {min: 64MiB, max: 400MiB, margin: 0.07}"},
		"unreadable":      {map[string]string{"memory.current": "what?"}, ""},
	} {
		group := filepath.Join(root, name)
		if err := os.Mkdir(group, 0o700); err != nil {
			t.Fatal(err)
		}
		for file, text := range c.files {
			if err := os.WriteFile(filepath.Join(group, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got, why := d.memory(name); got != c.want || (why == "") != (c.want == "") {
			t.Errorf("%s: %q, %q", name, got, why)
		}
	}
	d.given.Config.Pool.Memory = 1 << 30
	if got, _ := d.memory("with a limit"); got != "" {
		t.Errorf("in a pool that shares memory: %q", got)
	}
}
