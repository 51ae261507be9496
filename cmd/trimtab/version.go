package main

import (
	"fmt"
	"io"

	"github.com/prometheus/common/version"

	"github.com/trimtab/trimtab/internal/cli"
)

// versionCmd is `trimtab version`.
type versionCmd struct {
	Output string `short:"o" help:"text, json or yaml." enum:"text,json,yaml" default:"text"`
}

// built says which build this is.
type built struct {
	Version string `json:"version"`
	// Revision is the commit; absent where the build does not know it.
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go_version"`
	Platform string `json:"platform"`
}

// Example is shown by --help.
func (versionCmd) Example() string {
	return "trimtab version\ntrimtab version -o json | jq -r .version"
}

// Run prints what --version does.
func (c *versionCmd) Run(t terminal) error {
	b := built{Version: version.Version, Revision: version.GetRevision(), Go: version.GoVersion, Platform: version.GoOS + "/" + version.GoArch}
	if b.Revision == "unknown" {
		b.Revision = ""
	}
	return cli.Print(t.out, c.Output, b, func(w io.Writer) { fmt.Fprintln(w, version.Print("trimtab")) })
}
