//go:build integration

package console_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// axeFindsNothing lets axe-core look at every page, in turn light and wide, and dark and
// narrow; with AXE=all at each in both.
func axeFindsNothing(t *testing.T, b context.Context, s *scene) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(home, ".cache", "trimtab-axe", "axe.min.js"))
	if err != nil {
		t.Skipf("axe-core is not here (make axe): %v", err)
	}
	dark := narrow()
	dark.dark = true
	looks := []look{wide(), dark}
	for i, page := range everyPage() {
		for j, l := range looks {
			if i%len(looks) != j && os.Getenv("AXE") != "all" {
				continue
			}
			p := s.open(b, t, page.path, l)
			p.until(page.ready)
			p.do(chromedp.Evaluate[chromedp.Void](string(source)))
			found, err := chromedp.Run(p.ctx, chromedp.Evaluate[string](`axe.run(document, { resultTypes: ['violations'] }).then((r) => JSON.stringify([r.passes.length + r.incomplete.length, r.violations.map((v) => [v.id, v.help, ...v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200))])]))`, chromedp.EvalAwaitPromise))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(found, ",[]]") || strings.HasPrefix(found, "[0,") {
				t.Errorf("%s, dark %v: %s", page.name, l.dark, found)
			}
		}
	}
}
