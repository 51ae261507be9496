package main

import (
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
