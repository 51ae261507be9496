package main

import (
	"github.com/alecthomas/kong"
	"github.com/prometheus/common/version"

	"github.com/trimtab/trimtab/internal/manpage"
)

// manCmd prints the manual page, for packages.
type manCmd struct {
	Date string `help:"Date of the page." placeholder:"YYYY-MM-DD"`
}

// Run prints the page.
func (c *manCmd) Run(k *kong.Context, t terminal) error {
	return manpage.Page{
		Name: "trimtab", Version: version.Version, Date: c.Date,
		Summary: "moves resources to where they serve your objective best, and tells you why",
		Sections: []manpage.Section{
			{Title: "Exit status", Items: []manpage.Item{
				{Term: "0", Text: "Done, or nothing to do."},
				{Term: "1", Text: "An error, with a hint where there is one."},
				{Term: "2", Text: "Changes are pending (trimtab diff)."},
			}},
			{Title: "Environment", Items: []manpage.Item{
				{Term: "TRIMTAB_URL", Text: "Address of the running trimtab that commands ask."},
				{Term: "NO_COLOR", Text: "Set to anything: no colour."},
			}},
			{Title: "Files", Items: []manpage.Item{
				{Term: "/etc/trimtab/trimtab.yaml", Text: "The configuration that the systemd unit reads; every key is in config.md."},
				{Term: "/var/lib/trimtab", Text: "Bus, journal and models of the systemd unit."},
			}},
			{Title: "See also", Items: []manpage.Item{
				{Term: "systemd.resource-control(5), cgroups(7), prometheus(1)", Text: ""},
			}},
		},
	}.Write(t.out, k.Model)
}
