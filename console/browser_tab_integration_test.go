//go:build integration

package console_test

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

var update = flag.Bool("update", false, "write the screenshots of docs/")

// openBrowser starts a chromium of its own, or skips the test where there is none.
func openBrowser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium on this machine: the pages are not tested in a browser")
	}
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()), chromedp.Headless, chromedp.NoSandbox, chromedp.DisableGPU, chromedp.NoFirstRun,
		chromedp.WSURLReadTimeout(5 * time.Minute)} // a cold start on a busy machine
	for _, flag := range []string{"disable-quic", "disable-background-networking", "disable-component-update", "disable-sync", "disable-dev-shm-usage", "hide-scrollbars"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start chromium: %v", err)
	}
	return ctx
}

// tab is one page in the browser, and what it did.
type tab struct {
	t      *testing.T
	ctx    context.Context
	origin string

	mu       sync.Mutex
	asked    []string // addresses
	problems []string // what the console says, and requests elsewhere
	bytes    float64  // as they came over the network, headers included
}

// view is how a page is looked at.
type look struct {
	width, height int64
	dark          bool
}

func wide() look { return look{1440, 900, false} }

// open opens a page and fails the test when it is over if the page asked for
// anything elsewhere, or had an error or a violation of its policy.
func (s *scene) open(browser context.Context, t *testing.T, path string, l look) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	ctx, cancelTime := context.WithTimeout(ctx, 8*time.Minute)
	t.Cleanup(cancelTime)
	p := &tab{t: t, ctx: ctx, origin: s.url}
	if err := chromedp.Listen(ctx, p.happened); err != nil {
		t.Fatalf("open tab: %v", err)
	}
	scheme := "light"
	if l.dark {
		scheme = "dark"
	}
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
	call(p, emulation.SetTimezoneOverride, emulation.SetTimezoneOverrideParams{TimezoneID: "Asia/Tokyo"})
	p.do(chromedp.EmulateViewport(l.width, l.height), chromedp.Navigate(s.url+path))
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, what := range p.problems {
			t.Errorf("%s: %s", path, what)
		}
	})
	return p
}

// happened keeps what a test asks for later.
func (p *tab) happened(ev any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := ev.(type) {
	case *network.EventRequestWillBeSent:
		p.asked = append(p.asked, e.Request.URL)
		if u, err := url.Parse(e.Request.URL); err != nil || u.Scheme+"://"+u.Host != p.origin {
			p.problems = append(p.problems, "asked for "+e.Request.URL)
		}
	case *network.EventLoadingFinished:
		p.bytes += e.EncodedDataLength
	case *runtime.EventExceptionThrown:
		p.problems = append(p.problems, "exception: "+e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		var words []string
		for _, a := range e.Args {
			words = append(words, string(a.Value)+a.Description)
		}
		p.problems = append(p.problems, fmt.Sprintf("console.%s: %s", e.Type, strings.Join(words, " ")))
	case *log.EventEntryAdded:
		p.problems = append(p.problems, fmt.Sprintf("log, %s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
	}
}

func (p *tab) received() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

func call[P, R any](p *tab, c cdp.Command[P, R], params P) R {
	p.t.Helper()
	r, err := chromedp.Call(p.ctx, c, params)
	if err != nil {
		p.t.Fatalf("%s: %v", c.Method, err)
	}
	return r
}

// focused describes what has the focus, "" for nothing.
const focused = `(() => { const e = document.activeElement; return e === document.body ? '' : [e.tagName, e.name ?? '', e.getAttribute('href') ?? '', (e.textContent ?? '').trim().slice(0, 30)].join(' '); })()`

// until waits until a JavaScript expression is true.
func (p *tab) until(expression string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, 90*time.Second)
	defer cancel()
	if _, err := chromedp.Run(ctx, chromedp.Poll[bool](expression)); err != nil {
		p.t.Fatalf("wait for %s: %v\nat %s, focus at %s\n%.2000s", expression, err, eval[string](p, "location.href"), eval[string](p, focused), eval[string](p, "document.querySelector('main').innerText"))
	}
}

// eval returns what a JavaScript expression gives.
func eval[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// screenshot keeps what the page looks like: in docs/ with -update where a name
// is given there, else in the directory SCREENSHOTS, or nowhere.
func (p *tab) screenshot(name string, whole bool) {
	p.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if *update && name == "console" {
		dir = filepath.Join("..", "docs")
	}
	if dir == "" {
		return
	}
	action := chromedp.CaptureScreenshot()
	if whole {
		action = chromedp.FullScreenshot(100)
	}
	b, err := chromedp.Run(p.ctx, action)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), b, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
